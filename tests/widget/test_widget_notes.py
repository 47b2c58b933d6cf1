"""Choosing another endpoint keeps what it can carry and names what it cannot."""

from __future__ import annotations

import pytest

from famnb.endpoints import ENDPOINTS, compose
from famnb.widget.notes import carried, surprises, unsent


def test_shared_fields_and_the_cap_move_along():
    """Temperature keeps its name, the token cap takes the target's; the model stays where it is served."""
    kept, losses = carried(
        {("model",): "fam-2-5-pro", ("temperature",): "0.7", ("max_tokens",): "100", ("top_p",): ""},
        ENDPOINTS["messages"],
        ENDPOINTS["web"],
    )
    assert kept == {("model",): "fam-2-5-pro", ("temperature",): "0.7", ("max_new_tokens",): "100"}
    assert losses == ()


def test_a_text_that_is_wrong_moves_along_too():
    """It is the form's business to say what is wrong with it, there as here."""
    kept, _ = carried({("temperature",): "warm"}, ENDPOINTS["messages"], ENDPOINTS["chat"])
    assert kept == {("temperature",): "warm"}


def test_a_thinking_budget_becomes_the_nearest_effort():
    """And the loss is said."""
    raw = {("thinking", "type"): "enabled", ("thinking", "budget_tokens"): "2048"}
    kept, losses = carried(raw, ENDPOINTS["messages"], ENDPOINTS["responses"])
    assert kept == {("reasoning", "effort"): "medium"}
    assert "nearest reasoning effort" in losses[0]


def test_what_has_no_place_is_named():
    """Each field that is left behind has its sentence."""
    raw = {("tools",): "[]", ("stream_options", "include_usage"): "true"}
    kept, losses = carried(raw, ENDPOINTS["web"], ENDPOINTS["messages"])
    assert kept == {}
    assert [loss.split()[0] for loss in losses] == ["`stream_options.include_usage`", "`tools`"]


def test_a_schema_moves_to_the_place_it_has_at_the_other_endpoint():
    """`text.format` and `response_format` mean the same; only what is left of `text` is named."""
    raw = {("text", "format", "type"): "json_schema", ("text", "format", "schema"): "{}", ("text", "verbosity"): "low"}
    kept, losses = carried(raw, ENDPOINTS["responses"], ENDPOINTS["web"])
    assert kept == {("response_format", "type"): "json_schema", ("response_format", "json_schema", "schema"): "{}"}
    assert [loss.split()[0] for loss in losses] == ["`text.verbosity`"]
    assert carried(kept, ENDPOINTS["chat"], ENDPOINTS["responses"])[0] == {
        path: text for path, text in raw.items() if path != ("text", "verbosity")
    }


def test_a_chosen_model_that_is_not_served_there_is_named():
    """A default that changes is no loss; a choice that cannot be kept is one."""
    assert carried({("model",): "fam-2-5-pro"}, ENDPOINTS["messages"], ENDPOINTS["chat"]) == ({}, ())
    _, (loss,) = carried({("model",): "acme/big"}, ENDPOINTS["chat"], ENDPOINTS["web"])
    assert loss == "`acme/big` is left out: web does not serve it"


def test_a_system_text_beside_a_whole_conversation_is_said_to_stay_behind():
    """Where it is a message of the conversation, there is no place for it; elsewhere it is sent."""
    assert unsent(compose("web", "hi"), system="Be kind.", replaced=True) != []
    assert unsent(compose("web", "hi"), system="Be kind.", replaced=False) == []
    assert unsent(compose("messages", "hi"), system="Be kind.", replaced=True) == []


@pytest.mark.parametrize(
    ("endpoint", "fields", "words"),
    [
        ("messages", {"thinking": 1024}, "not below max_tokens (512)"),
        ("responses", {"reasoning": {"effort": "high"}}, "default of 512"),
        ("web", {"stream": True}, "carries no usage"),
    ],
)
def test_what_is_allowed_but_seldom_meant_is_said(endpoint: str, fields: dict[str, object], words: str):
    """The known traps of each endpoint."""
    assert words in surprises(compose(endpoint, "hi", **fields))[0]


@pytest.mark.parametrize(
    ("endpoint", "fields"),
    [
        ("messages", {"thinking": 256}),
        ("responses", {"reasoning": {"effort": "high"}, "max_tokens": 4000}),
        ("web", {"stream": True, "stream_options": {"include_usage": True}}),
        ("chat", {"stream": True}),
    ],
)
def test_a_request_without_a_trap_has_no_remark(endpoint: str, fields: dict[str, object]):
    """Remarks are worth reading because they are rare."""
    assert surprises(compose(endpoint, "hi", **fields)) == []
