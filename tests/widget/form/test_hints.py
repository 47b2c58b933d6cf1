"""Choosing another endpoint keeps what it can carry and names what it cannot."""

import pytest

from famnb.endpoints import ENDPOINTS
from famnb.widget.form.draft import Draft, read_draft
from famnb.widget.form.fields import EXACT
from famnb.widget.form.hints import carry_over, hazards, ignored_texts
from famnb.widget.form.images import PromptImage


def test_shared_fields_and_the_cap_move_along_right_or_wrong():
    kept, losses = carry_over(
        {("model",): "fam-2-5-pro", ("temperature",): "warm", ("max_tokens",): "100", ("top_p",): ""},
        ENDPOINTS["messages"],
        ENDPOINTS["web"],
    )
    assert kept == {("model",): "fam-2-5-pro", ("temperature",): "warm", ("max_new_tokens",): "100"}
    assert losses == ()


def test_a_thinking_budget_becomes_the_nearest_effort():
    raw = {("thinking", "type"): "enabled", ("thinking", "budget_tokens"): "2048"}
    kept, losses = carry_over(raw, ENDPOINTS["messages"], ENDPOINTS["responses"])
    assert kept == {("reasoning", "effort"): "medium"}
    assert "nearest reasoning effort" in losses[0]


def test_a_schema_moves_to_the_place_it_has_at_the_other_endpoint():
    raw = {("text", "format", "type"): "json_schema", ("text", "format", "schema"): "{}", ("text", "verbosity"): "low"}
    kept, losses = carry_over(raw, ENDPOINTS["responses"], ENDPOINTS["web"])
    assert kept == {("response_format", "type"): "json_schema", ("response_format", "json_schema", "schema"): "{}"}
    assert [loss.split()[0] for loss in losses] == ["`text.verbosity`"]
    assert carry_over(kept, ENDPOINTS["chat"], ENDPOINTS["responses"])[0] == {
        path: text for path, text in raw.items() if path != ("text", "verbosity")
    }


def test_a_chosen_model_that_is_not_served_there_is_named():
    assert carry_over({("model",): "fam-2-5-pro"}, ENDPOINTS["messages"], ENDPOINTS["chat"]) == ({}, ())
    _, (loss,) = carry_over({("model",): "acme/big"}, ENDPOINTS["chat"], ENDPOINTS["web"])
    assert loss == "`acme/big` is left out: web does not serve it"


def test_a_system_text_beside_a_whole_conversation_is_said_to_stay_behind():
    messages = {("messages",): '[{"role": "user", "content": "hi"}]'}

    def remarks(endpoint: str, raw: dict[tuple[str, ...], str]) -> list[str]:
        draft = Draft(endpoint=endpoint, system="Be kind.", raw={("model",): ENDPOINTS[endpoint].models[0], **raw})
        return ignored_texts(draft, read_draft(draft))

    assert remarks("web", messages) != []
    assert remarks("web", {}) == []
    assert remarks("messages", messages) == []


def test_a_conversation_and_fields_as_json_move_along_as_they_are():
    """The field says what the other endpoint does not take of it."""
    messages = '[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]'
    raw = {("messages",): messages, EXACT: '{"reasoning": {}}'}
    kept, losses = carry_over(raw, ENDPOINTS["chat"], ENDPOINTS["messages"])
    assert (kept, losses) == (raw, ())
    kept, losses = carry_over({("messages",): messages}, ENDPOINTS["chat"], ENDPOINTS["responses"])
    assert (kept, losses) == ({("input",): messages}, ())


@pytest.mark.parametrize(
    ("source", "field", "path", "homes"),
    [
        ("web", "tools", ("tools",), "web"),
        ("responses", "metadata", ("metadata",), "responses"),
        ("responses", "text.verbosity", ("text", "verbosity"), "responses"),
        ("responses", "previous_response_id", ("previous_response_id",), "responses"),
        ("responses", "store", ("store",), "responses"),
        ("web", "stream_options.include_usage", ("stream_options", "include_usage"), "web"),
    ],
)
def test_what_only_one_endpoint_has_is_said_wherever_one_goes(source, field, path, homes):
    for name, target in ENDPOINTS.items():
        if name != source:
            _, (loss,) = carry_over({path: "x"}, ENDPOINTS[source], target)
            assert loss == f"`{field}` is left out: {name} cannot carry it (only {homes})"


def test_images_where_the_document_names_none_are_remarked_on():
    pictures = (PromptImage("https://example.org/cat.png"),)
    remarks_by_endpoint = {}
    for name, endpoint in ENDPOINTS.items():
        draft = Draft(endpoint=name, prompt="hi", pictures=pictures, raw={("model",): endpoint.models[0]})
        remarks_by_endpoint[name] = [remark for remark in hazards(draft, read_draft(draft)) if "images" in remark]
    assert {name for name, remarks in remarks_by_endpoint.items() if remarks} == {"web", "messages"}
