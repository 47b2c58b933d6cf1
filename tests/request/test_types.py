"""The rows of the document's tables: required fields, defaults, ranges, each at and beyond its edge."""

from typing import Any

import pytest

from famnb.errors import InvalidRequest
from famnb.request import ChatRequest, MessagesRequest, Request, ResponsesRequest, WebChatRequest

HI = [{"role": "user", "content": "hi"}]
REQUIRED: dict[type[Request], dict[str, Any]] = {
    ChatRequest: {"model": "fam-mini", "messages": HI},
    ResponsesRequest: {"model": "fam-2-5-pro", "input": "hi"},
    WebChatRequest: {"model": "fam-2-5-pro", "messages": HI},
    MessagesRequest: {"model": "fam-2-5-mini", "messages": HI},
}
each_request = pytest.mark.parametrize("request_type", REQUIRED)


def make(request_type: type[Request], **fields: Any) -> Request:
    """A request with its required fields and these."""
    return request_type(**{**REQUIRED[request_type], **fields})


def refusal_of(request_type: type[Request], **fields: Any) -> str:
    """What the refusal of such a request says."""
    with pytest.raises(InvalidRequest) as caught:
        make(request_type, **fields)
    return str(caught.value)


@pytest.mark.parametrize(
    ("request_type", "fields"),
    [
        (ChatRequest, "model messages stream max_tokens reasoning response_format temperature top_p"),
        (
            ResponsesRequest,
            "model input instructions previous_response_id max_output_tokens stream reasoning temperature top_p text "
            "store metadata",
        ),
        (
            WebChatRequest,
            "model messages stream stream_options tools tool_choice max_new_tokens reasoning response_format "
            "temperature top_p",
        ),
        (MessagesRequest, "model messages system max_tokens stream thinking temperature top_p"),
    ],
)
def test_the_fields_are_the_document_s(request_type: type[Request], fields: str):
    assert set(request_type.model_fields) == set(fields.split())
    assert all(field.description for field in request_type.model_fields.values())


@pytest.mark.parametrize(
    ("request_type", "defaults"),
    [
        (ResponsesRequest, {"max_output_tokens": 512, "stream": False, "temperature": 0.1, "top_p": 1, "store": True}),
        (
            WebChatRequest,
            {"max_new_tokens": 2048, "stream": False, "temperature": 0.1, "top_p": 1, "tool_choice": "auto"},
        ),
        (MessagesRequest, {"max_tokens": 512, "stream": False, "temperature": 0.1, "top_p": 1}),
        (ChatRequest, {}),
    ],
)
def test_the_defaults_are_the_document_s(request_type: type[Request], defaults: dict[str, Any]):
    optional = {name: field for name, field in request_type.model_fields.items() if not field.is_required()}
    assert {name: field.default for name, field in optional.items() if field.default is not None} == defaults
    assert set(request_type.model_fields) - set(optional) == set(REQUIRED[request_type])


@each_request
@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("temperature", [0, 0.0, 0.1, 2, 2.0], [-0.01, 2.01, "0.5", True, float("nan"), float("inf")]),
        ("top_p", [0, 0.5, 1.0], [-0.01, 1.01, "1", True, float("nan")]),
        ("stream", [True, False], ["true", 1, 0]),
    ],
)
def test_sampling_ranges(request_type: type[Request], field: str, good: list[Any], bad: list[Any]):
    for value in good:
        assert make(request_type, **{field: value}).body()[field] == value
    for value in bad:
        assert f"{field}: " in refusal_of(request_type, **{field: value})


def test_models_of_the_first_endpoint():
    assert make(ChatRequest, model="provider/some-model:1")
    for model in ("fam-2-5-pro", "fam-mini ", "fam-mini\n", "/model", "provider/", "provider /model", ""):
        assert "model: " in refusal_of(ChatRequest, model=model)
