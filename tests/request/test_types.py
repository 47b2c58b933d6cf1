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
ALT = (ResponsesRequest, WebChatRequest, MessagesRequest)
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
def test_each_required_field_is_named_when_missing(request_type: type[Request]):
    with pytest.raises(InvalidRequest) as caught:
        request_type()
    missing = "; ".join(f"{name}: required, but missing" for name in REQUIRED[request_type])
    assert str(caught.value) == f"{request_type.__name__}: {missing}"


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


@each_request
def test_token_caps(request_type: type[Request]):
    assert make(request_type, **{request_type.cap: 1}).body()[request_type.cap] == 1
    for value in (0, -1, 1.5, True, "5"):
        assert f"{request_type.cap}: " in refusal_of(request_type, **{request_type.cap: value})
    if request_type is ChatRequest:
        assert make(ChatRequest, max_tokens=16_384)
        assert refusal_of(ChatRequest, max_tokens=16_385).endswith("less than or equal to 16384, got 16385")
    else:
        assert make(request_type, **{request_type.cap: 1_000_000})


@pytest.mark.parametrize("request_type", ALT)
def test_models_of_the_alt_endpoints(request_type: type[Request]):
    assert all(make(request_type, model=model) for model in ("fam-2-5-pro", "fam-2-5-mini"))
    assert "'fam-2-5-pro' or 'fam-2-5-mini', got 'fam-mini'" in refusal_of(request_type, model="fam-mini")


def test_models_of_the_first_endpoint():
    assert make(ChatRequest, model="provider/some-model:1")
    for model in ("fam-2-5-pro", "fam-mini ", "fam-mini\n", "/model", "provider/", "provider /model", ""):
        assert "model: " in refusal_of(ChatRequest, model=model)


def test_metadata():
    for good in ({f"k{n}": "v" for n in range(16)}, {"k" * 64: "v"}, {"k": "\U0001f600" * 512}, {}):
        assert make(ResponsesRequest, metadata=good).body()["metadata"] == good
    for bad in ({f"k{n}": "v" for n in range(17)}, {"k" * 65: "v"}, {"k": "v" * 513}, {"k": 1}, {"k": None}, []):
        assert "ResponsesRequest: metadata" in refusal_of(ResponsesRequest, metadata=bad)


def function(name: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def test_tool_names():
    for name in ("f", "a" * 64, "aZ0_-"):
        assert make(WebChatRequest, tools=[function(name)])
    for name in ("a" * 65, "a b", "é", "", "a\n", None, 3):
        assert "tools[0].function.name: " in refusal_of(WebChatRequest, tools=[function(name)])


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"tools": [{"type": "retrieval", "function": {"name": "f"}}]}, "tools[0].type: input should be 'function'"),
        ({"tools": [{"type": "function"}]}, "tools[0].function: required, but missing"),
        ({"tools": [function("f")], "tool_choice": function("g")}, "`tool_choice` names 'g', which is not one of"),
        ({"tool_choice": function("g")}, "not one of `tools` (none)"),
        ({"tool_choice": "required"}, "`tool_choice` is `required`, but `tools` is empty"),
        ({"tool_choice": "any"}, "tool_choice: input should be 'none', 'auto' or 'required', got 'any'"),
    ],
)
def test_tools_and_their_choice_agree(fields: dict[str, Any], part: str):
    assert part in refusal_of(WebChatRequest, **fields)


def test_every_tool_choice():
    for choice in ("none", "auto", "required", function("f")):
        assert make(WebChatRequest, tools=[function("f")], tool_choice=choice).body()["tool_choice"] == choice


def test_thinking():
    """Enabled or disabled; a budget is at least one token."""
    for good in ({"type": "enabled", "budget_tokens": 1}, {"type": "enabled"}, {"type": "disabled"}):
        assert make(MessagesRequest, thinking=good).body()["thinking"] == good
    enabled = ({"type": "enabled", "budget_tokens": budget} for budget in (0, -1, "10"))
    for bad in ({"type": "on"}, {"budget_tokens": 5}, *enabled):
        assert "MessagesRequest: thinking" in refusal_of(MessagesRequest, thinking=bad)


@pytest.mark.parametrize("request_type", [ChatRequest, ResponsesRequest, WebChatRequest])
def test_reasoning(request_type: type[Request]):
    for reasoning in ({"effort": "high", "summary": "none"}, {"effort": "medium"}, {}):
        assert make(request_type, reasoning=reasoning).body()["reasoning"] == reasoning
    assert "reasoning.effort: " in refusal_of(request_type, reasoning={"effort": "most"})
    assert "reasoning.summary: " in refusal_of(request_type, reasoning={"summary": True})


SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("request_type", "fields", "part"),
    [
        (WebChatRequest, {"response_format": {"type": "text"}}, None),
        (WebChatRequest, {"response_format": {}}, None),
        (ChatRequest, {"response_format": {"type": "json_object"}}, None),
        (ChatRequest, {"response_format": {"type": "json"}}, None),
        (
            WebChatRequest,
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
            None,
        ),
        (WebChatRequest, {"response_format": {"type": "json_schema"}}, "response_format: type `json_schema` needs a"),
        (WebChatRequest, {"response_format": {"type": "xml"}}, "response_format.type: "),
        (ResponsesRequest, {"text": {"format": {"type": "text"}, "verbosity": "low"}}, None),
        (
            ResponsesRequest,
            {"text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": True}}},
            None,
        ),
        (ResponsesRequest, {"text": {"format": {"type": "json_schema"}}}, "text.format: type `json_schema` needs a"),
        (ResponsesRequest, {"text": {"verbosity": "loud"}}, "text.verbosity: "),
    ],
)
def test_formats(request_type: type[Request], fields: dict[str, Any], part: str | None):
    if part is None:
        assert make(request_type, **fields).body().items() >= fields.items()
    else:
        assert part in refusal_of(request_type, **fields)
