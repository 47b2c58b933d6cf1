"""A draft means a request, and every request has a draft that means exactly it."""

import pytest
from hypothesis import given

from famnb.endpoints import ENDPOINTS, compose
from famnb.request import ChatRequest, MessagesRequest, Request, ResponsesRequest
from famnb.widget.form.draft import Draft, carry_over, draft_of, form_fields, read_draft
from famnb.widget.form.editor import Editor
from famnb.widget.form.fields import EXACT, FIRST, GROUPS, OTHER
from famnb.widget.form.images import PromptImage
from tests.support.strategies import requests, wide_requests

PNG = "data:image/png;base64," + "iVBORw0KGgo" * 40


@given(requests | wide_requests)
def test_every_request_opens_as_exactly_itself(request: Request):
    reopened = read_draft(draft_of(request)).request
    assert reopened == request
    assert reopened is not None
    assert reopened.key() == request.key()


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_plain_prompt_opens_in_the_plain_controls(name: str):
    pictures = (PromptImage("https://example.org/cat.png"), PromptImage(PNG))
    draft = Draft(
        endpoint=name, prompt="What is it?\n", system="Be brief.", pictures=pictures, raw={("model",): MODEL[name]}
    )
    request = read_draft(draft).request
    assert request is not None
    assert draft_of(request) == draft


MODEL = {name: endpoint.models[0] for name, endpoint in ENDPOINTS.items()}


def test_what_no_control_can_hold_is_kept_as_json():
    request = ResponsesRequest(model="fam-2-5-pro", input="hi", reasoning={}, previous_response_id=" r1 ", store=True)
    draft = draft_of(request)
    assert set(draft.raw) == {("model",), ("store",), EXACT}
    assert draft.prompt == "hi"


def test_several_turns_open_as_a_whole_conversation():
    messages = [{"role": role, "content": role} for role in ("user", "assistant", "user")]
    draft = draft_of(
        MessagesRequest(model="fam-2-5-pro", messages=messages, system=[{"type": "text", "text": "Be brief."}])
    )
    assert (draft.prompt, draft.system) == ("", "Be brief.")
    assert read_draft(draft).replaced
    with_system = [{"role": "system", "content": "Be brief."}, *messages]
    assert draft_of(ChatRequest(model="fam-mini", messages=with_system)).system == ""
    assert draft_of(MessagesRequest(model="fam-2-5-pro", messages=messages, system="Be brief.")).system == ""


def test_faults_name_their_field():
    raw = {("model",): "fam-mini", ("temperature",): "warm", EXACT: "[1]"}
    assert set(read_draft(Draft(endpoint="chat", raw=raw)).faults) == {("temperature",), EXACT}
    reading = read_draft(Draft(endpoint="chat", raw={("model",): "fam-mini", EXACT: '{"top_p": 3}'}))
    assert reading.request is None
    assert "top_p" in str(reading.faults)


def test_every_field_has_a_heading():
    fields = [field for endpoint in ENDPOINTS.values() for field in form_fields(endpoint)]
    assert {field.group for field in fields} <= {FIRST, *GROUPS}
    assert {field.path for field in fields if field.group == OTHER} == {EXACT}


def test_an_unwritten_prompt_is_no_fault():
    reading = read_draft(Draft(endpoint="messages", raw={("model",): "fam-2-5-pro"}))
    assert reading.faults == {}
    assert reading.request == compose("messages", "…")


# Another endpoint


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
        ("responses", "text.verbosity", ("text", "verbosity"), "responses"),
        ("responses", "previous_response_id", ("previous_response_id",), "responses"),
        ("web", "stream_options.include_usage", ("stream_options", "include_usage"), "web"),
    ],
)
def test_what_only_one_endpoint_has_is_said_wherever_one_goes(source, field, path, homes):
    for name, target in ENDPOINTS.items():
        if name != source:
            _, (loss,) = carry_over({path: "x"}, ENDPOINTS[source], target)
            assert loss == f"`{field}` is left out: {name} cannot carry it (only {homes})"


# What is said before it is sent


def remarks_on(endpoint: str, *, pictures: tuple[PromptImage, ...] = (), conversation: str = "") -> str:
    """What a form says of a prompt with a system text."""
    editor = Editor(endpoint=endpoint, prompt="hi", system="Be kind.")
    editor.pictures = pictures
    editor.set_text(ENDPOINTS[endpoint].request.prompt_field, conversation)
    return str(editor.remarks)


def test_a_system_text_beside_a_whole_conversation_is_said_to_stay_behind():
    conversation = '[{"role": "user", "content": "hi"}]'
    is_said = ["system text is not sent" in remarks_on(name, conversation=conversation) for name in ("web", "messages")]
    assert is_said == [True, False]
    assert "system text" not in remarks_on("web")


def test_images_where_the_document_names_none_are_remarked_on():
    pictures = (PromptImage("https://example.org/cat.png"),)
    assert {name for name in ENDPOINTS if "images" in remarks_on(name, pictures=pictures)} == {"web", "messages"}
