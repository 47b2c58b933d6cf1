"""A draft means a request, and every request has a draft that means exactly it."""

import pytest
from hypothesis import given

from famnb.endpoints import ENDPOINTS, compose
from famnb.request import ChatRequest, MessagesRequest, Request, ResponsesRequest
from famnb.widget.form.draft import Draft, draft_of, form_fields, read_draft
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
