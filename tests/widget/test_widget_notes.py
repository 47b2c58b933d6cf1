"""Choosing another endpoint keeps what it can carry and names what it cannot."""

from __future__ import annotations

import pytest

from famnb.endpoints import ENDPOINTS, compose
from famnb.widget.notes import carried, surprises


def test_shared_fields_and_the_cap_move_along():
    """Temperature keeps its name, the token cap takes the target's."""
    kept, losses = carried(
        {("model",): "fam-2-5-pro", ("temperature",): "0.7", ("max_tokens",): "100", ("top_p",): ""},
        ENDPOINTS["messages"],
        ENDPOINTS["web"],
    )
    assert kept == {("temperature",): "0.7", ("max_new_tokens",): "100"}
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
    assert [loss.split()[0] for loss in losses] == ["`stream_options`", "`tools`"]


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
