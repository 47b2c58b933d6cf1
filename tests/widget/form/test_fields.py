"""The form's fields come from the request models, and their texts become exactly the body that was meant."""

import pydantic
import pytest

from famnb.endpoints import ENDPOINTS, Endpoint
from famnb.profiles import NAMES, find_profile
from famnb.request import WebChatRequest
from famnb.widget.form.fields import faults_of, read_texts, request_fields

ALL = [(name, endpoint) for name in NAMES for endpoint in find_profile(name).endpoints.values()]


@pytest.mark.parametrize("endpoint", [pytest.param(kind, id=f"{name}-{kind.name}") for name, kind in ALL])
def test_every_field_of_every_endpoint_has_a_control_and_a_help(endpoint: Endpoint):
    fields = request_fields(endpoint)
    assert {field.path[0] for field in fields} == set(endpoint.request.model_fields)
    assert [field.name for field in fields if not field.help] == []


@pytest.mark.parametrize(
    ("profile", "endpoint", "name", "kind", "hint", "group"),
    [
        ("fam", "messages", "max_tokens", "integer", "default 512 · ≥ 1", ""),
        ("fam", "messages", "thinking.type", "choice", "", "Reasoning"),
        ("fam", "chat", "max_tokens", "integer", "1 – 16,384", ""),
        ("fam", "responses", "temperature", "number", "default 0.1 · 0 – 2", "Sampling"),
        ("fam", "responses", "store", "switch", "default yes", "Metadata"),
        ("fam", "web", "max_new_tokens", "integer", "default 2,048 · ≥ 1", ""),
        ("fam", "web", "tool_choice", "json", "default auto · none · auto · required · JSON", "Tools"),
        ("openai", "chat", "seed", "integer", "", "Sampling"),
        ("openai", "chat", "presence_penalty", "number", "-2 – 2", "Sampling"),
        ("openai", "chat", "reasoning_effort", "choice", "", "Reasoning"),
        ("openai", "chat", "stream_options.include_usage", "switch", "", "Stream"),
        ("openai", "chat", "extra_body", "json", "JSON", "More"),
        ("anthropic", "messages", "temperature", "number", "0 – 1", "Sampling"),
        ("anthropic", "messages", "tools", "json", "JSON", "Tools"),
        ("vllm", "chat", "top_k", "integer", "≥ -1", "Sampling"),
    ],
)
def test_a_field_has_the_limits_and_the_heading_of_its_service(profile, endpoint, name, kind, hint, group):
    target = find_profile(profile).endpoints[endpoint]
    (field,) = [field for field in request_fields(target) if field.name == name]
    assert (field.kind, field.hint, field.group) == (kind, hint, group)


def test_only_what_was_filled_in_is_sent():
    raw = {("model",): "fam-2-5-pro", ("temperature",): "", ("thinking", "type"): "enabled", ("max_tokens",): " 64 "}
    body, faults = read_texts(request_fields(ENDPOINTS["messages"]), raw)
    assert body == {"model": "fam-2-5-pro", "max_tokens": 64, "thinking": {"type": "enabled"}}
    assert not faults


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("temperature", "0.5", 0.5),
        ("temperature", "1", 1),
        ("max_new_tokens", "5", 5),
        ("stream", "true", True),
        ("stream_options.include_usage", "false", False),
        ("tool_choice", "required", "required"),
        (
            "tool_choice",
            '{"type": "function", "function": {"name": "f"}}',
            {"type": "function", "function": {"name": "f"}},
        ),
        ("tools", "[]", []),
    ],
)
def test_texts_are_read_as_their_field_means_them(name: str, text: str, value: object):
    (field,) = [field for field in request_fields(ENDPOINTS["web"]) if field.name == name]
    assert (field.read(text), type(field.read(text))) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("temperature", "warm", "a number is expected, got 'warm'"),
        ("temperature", "nan", "a number is expected, got 'nan'"),
        ("max_new_tokens", "many", "a whole number is expected, got 'many'"),
        ("tools", "[{", "this is not JSON yet"),
        ("tools", "[" * 100_000, "this is not JSON yet"),
    ],
)
def test_a_text_that_cannot_be_read_is_a_fault_of_its_field(name: str, text: str, words: str):
    path = tuple(name.split("."))
    body, faults = read_texts(request_fields(ENDPOINTS["web"]), {path: text})
    assert body == {}
    assert words in faults[path]


def test_each_fault_of_validation_stands_at_its_field():
    with pytest.raises(pydantic.ValidationError) as caught:
        WebChatRequest.model_validate(
            {
                "model": "fam-2-5-pro",
                "messages": [{"role": "user", "content": "x"}],
                "temperature": 3,
                "tools": [{"type": "function", "function": {"name": "a b"}}],
                "response_format": {"type": "json_schema"},
            }
        )
    faults = faults_of(request_fields(ENDPOINTS["web"]), caught.value)
    assert faults["temperature",] == "should be less than or equal to 2, got 3"
    assert faults["tools",].startswith("tools[0].function.name: ")
    assert "needs a `json_schema`" in faults["response_format", "type"]
