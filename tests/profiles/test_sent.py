"""What each profile sends, field by field, and that the vendors' own SDKs have every field."""

import json
import pickle
from collections.abc import Mapping
from typing import Any

import anthropic.types.message_create_params
import openai.types.chat.completion_create_params
import openai.types.responses.response_create_params
import pydantic
import pytest

import famnb
from famnb.api import Client
from famnb.errors import InvalidRequest
from famnb.profiles import find_profile
from tests.profiles.vendors import PATHS, VENDORS, Trip, weather
from tests.support.fault_server import FaultServer, whole
from tests.support.wire_payloads import body

FORM = {
    "description": "Where to go.",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "type": "object",
    "additionalProperties": False,
}
NAMED_FORM = {"name": "Trip", "schema": FORM, "strict": True}
PARAMETERS = weather.parameters
FUNCTION = {"name": "weather", "description": "The weather of a city right now.", "parameters": PARAMETERS}
EFFORT = {"reasoning_effort": "medium"}
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 2000}}


def chat(model: str, *, cap: str = "max_tokens", thinking: Mapping[str, Any] = EFFORT) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where to?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        cap: 9000,
        "tools": [{"type": "function", "function": FUNCTION}],
        "response_format": {"type": "json_schema", "json_schema": NAMED_FORM},
        **thinking,
    }


def responses(model: str) -> dict[str, Any]:
    return {
        "model": model,
        "input": "Where to?",
        "instructions": "Be brief.",
        "stream": True,
        "max_output_tokens": 9000,
        "reasoning": {"effort": "medium"},
        "tools": [{"type": "function", **FUNCTION}],
        "text": {"format": {"type": "json_schema", **NAMED_FORM}},
    }


def messages(model: str, *, format: bool = True, thinking: Mapping[str, Any] = BUDGET, **config: str) -> dict[str, Any]:
    form = {"format": {"type": "json_schema", "schema": FORM}} if format else {}
    return {
        "model": model,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Where to?"}]}],
        "system": [{"type": "text", "text": "Be brief."}],
        "stream": True,
        "max_tokens": 9000,
        "tools": [{"name": "weather", "description": FUNCTION["description"], "input_schema": PARAMETERS}],
        **thinking,
        **({"output_config": {**form, **config}} if form or config else {}),
    }


SENT = {
    ("openai", "responses"): responses("gpt-5.4-mini"),
    ("openai", "chat"): chat("gpt-5.4-mini", cap="max_completion_tokens"),
    ("anthropic", "messages"): messages(
        "claude-sonnet-5", thinking={"thinking": {"type": "adaptive", "display": "summarized"}}, effort="medium"
    ),
    ("openrouter", "chat"): chat("openai/gpt-5.4-mini", thinking={"reasoning": {"max_tokens": 2000}}),
    ("gemini", "chat"): chat("gemini-3.5-flash"),
    ("azure", "responses"): responses("gpt-5.4-mini"),
    ("azure", "chat"): chat("gpt-5.4-mini", cap="max_completion_tokens"),
    ("ollama", "chat"): chat("qwen3:8b"),
    ("ollama", "responses"): responses("qwen3:8b"),
    ("ollama", "messages"): messages("qwen3:8b", format=False),
    ("vllm", "chat"): chat("Qwen/Qwen3-8B"),
    ("vllm", "responses"): responses("Qwen/Qwen3-8B"),
    ("vllm", "messages"): messages("Qwen/Qwen3-8B", thinking={}, effort="medium"),
    ("deepseek", "chat"): chat("deepseek-chat"),
    ("groq", "chat"): chat("openai/gpt-oss-120b", cap="max_completion_tokens"),
    # It has no field to ask for usage, which is in every stream, and refuses those that it does not know.
    ("mistral", "chat"): {
        name: value for name, value in chat("mistral-medium-latest").items() if name != "stream_options"
    },
    ("xai", "responses"): responses("grok-4.5"),
    ("xai", "chat"): chat("grok-4.5"),
    ("together", "chat"): chat("openai/gpt-oss-120b"),
    ("bedrock", "chat"): chat("openai.gpt-oss-120b", cap="max_completion_tokens"),
    ("bedrock", "responses"): responses("openai.gpt-oss-120b"),
    ("vertex", "chat"): chat("google/gemini-3.5-flash"),
    ("open", "chat"): chat("default"),
    ("open", "responses"): responses("default"),
    ("open", "messages"): messages("default"),
}
"""What is sent for a prompt, a system text, a cap, thinking, a tool and a form, by profile and endpoint."""

OF_THE_DOCUMENT_ALONE = {
    "chat": {"reasoning": {"effort": "low"}, "response_format": {"type": "json"}},
    "responses": {"reasoning": {"summary": "none"}, "text": {"format": {"type": "json"}}},
    "messages": {"output_format": {"type": "json_schema", "schema": FORM}},
}
"""What the document or our own service takes and these vendors refuse, or ignore, by endpoint."""
HAVE_REASONING_IN_CHAT = ("openrouter", "ollama")

SDKS: dict[tuple[str, str], Any] = {
    ("openai", "chat"): openai.types.chat.completion_create_params.CompletionCreateParamsStreaming,
    ("openai", "responses"): openai.types.responses.response_create_params.ResponseCreateParamsStreaming,
    ("anthropic", "messages"): anthropic.types.message_create_params.MessageCreateParamsStreaming,
}
"""The type of a request in the SDK of each vendor that has one."""
# The SDK has them no more, since the newest models refuse them; older models take them.
EARLIER_FIELDS = {"temperature", "top_p", "top_k"}


@pytest.mark.parametrize(("name", "endpoint"), VENDORS)
def test_a_vendor_is_asked_as_it_documents(name: str, endpoint: str):
    server, key = FaultServer(whole(body(endpoint, '{"city": "Oslo"}'))), "vendor-key-0123456789"
    takes_form = find_profile(name).endpoints[endpoint].traits.format
    with Client(profile=name, base_url=server.url, api_key=key) as client:
        request = client.compose(
            endpoint,
            "Where to?",
            system="Be brief.",
            max_tokens=9000,
            thinking=2000,
            tools=[weather],
            stream=True,
            schema=Trip if takes_form else None,
        )
        assert client.send(request).text == '{"city": "Oslo"}'
    server.close()
    [received] = server.requests
    assert (name, endpoint) in SENT, f"what {name} sends on {endpoint} is to be added to SENT"
    assert json.loads(received.body) == SENT[name, endpoint]
    assert received.path == PATHS[name][endpoint]
    key_headers = {header: received.headers.get(header) for header in ("authorization", "x-api-key", "api-key")}
    header = {"anthropic": "x-api-key", "azure": "api-key"}.get(name, "authorization")
    value = f"Bearer {key}" if header == "authorization" else key
    assert key_headers == {**dict.fromkeys(key_headers), header: value}
    assert received.headers.get("anthropic-version") == ("2023-06-01" if name == "anthropic" else None)


@pytest.mark.parametrize(("name", "endpoint"), VENDORS)
def test_a_field_that_only_the_document_has_is_refused(name: str, endpoint: str):
    request = famnb.compose(endpoint, "Hello", endpoints=find_profile(name).endpoints)
    for field, value in OF_THE_DOCUMENT_ALONE[endpoint].items():
        if field == "reasoning" and endpoint == "chat" and name in HAVE_REASONING_IN_CHAT:
            assert request.replace(**{field: value}).body()[field] == value
        else:
            with pytest.raises(InvalidRequest, match=field):
                request.replace(**{field: value})


def test_a_request_has_the_fields_of_its_table_alone():
    request_type = find_profile("ollama").endpoints["responses"].request
    for name in ("tool_choice", "store", "previous_response_id"):
        with pytest.raises(InvalidRequest, match=f"^OllamaResponsesRequest: {name}: no such field; fields of Ollama"):
            request_type(model="qwen3:8b", input="Hello", **{name: "auto"})
        assert name not in request_type.model_json_schema()["properties"]
        assert f"\n{name} (" not in (request_type.__doc__ or "")
    request = request_type(model="qwen3:8b", input="Hello")
    assert (request.get("store"), request.stores_reply, request.continue_stored("resp_1")) == (None, False, None)


@pytest.mark.parametrize(("name", "endpoint"), VENDORS)
def test_a_request_is_three_classes_below_pydantics_own_and_can_be_pickled(name: str, endpoint: str):
    request = famnb.compose(endpoint, "Hello", endpoints=find_profile(name).endpoints)
    assert type(request).__mro__[3] is pydantic.BaseModel
    assert pickle.loads(pickle.dumps(request)) == request


@pytest.mark.parametrize(("name", "endpoint"), SDKS)
def test_every_field_is_one_of_the_vendor_s_sdk(name: str, endpoint: str):
    known = {field for base in SDKS[name, endpoint].__mro__ for field in getattr(base, "__annotations__", {})}
    ours = {*find_profile(name).endpoints[endpoint].request.model_fields} - {"extra_body"}
    assert ours - known <= (EARLIER_FIELDS if name == "anthropic" else set())


def test_older_models_think_within_a_budget():
    """Newer ones decide themselves; a name without a version keeps the budget. Which it was is said."""
    endpoints = find_profile("anthropic").endpoints
    for model, thinking in (
        ("claude-haiku-4-5-20251001", {"type": "enabled", "budget_tokens": 2000}),
        ("claude-3-7-sonnet-20250219", {"type": "enabled", "budget_tokens": 2000}),
        ("my-deployment", {"type": "enabled", "budget_tokens": 2000}),
        ("claude-sonnet-4-6", {"type": "adaptive", "display": "summarized"}),
        ("claude-opus-5", {"type": "adaptive", "display": "summarized"}),
    ):
        request = famnb.compose("messages", "Hello", endpoints=endpoints, model=model, thinking=2000)
        assert request.body()["thinking"] == thinking
        assert [f"{model} takes no token budget" in loss for loss in request.losses] == [True] * ("display" in thinking)
        assert request.body()["max_tokens"] == 4096 + 2000


def test_a_service_that_keeps_no_replies_gets_every_turn_again():
    """A field that Ollama ignores would lose the conversation without a word; OpenAI keeps replies by itself."""
    for name, sent in (("ollama", "input"), ("vllm", "input"), ("openai", "previous_response_id")):
        server = FaultServer(whole(body("responses", "Ada.")), whole(body("responses", "You are Ada.")))
        with Client(profile=name, base_url=server.url, api_key="vendor-key-0123456789") as client:
            talk = client.conversation("responses", stream=False)
            talk.say("My name is Ada.")
            talk.say("Who am I?")
        server.close()
        last = json.loads(server.requests[-1].body)
        if sent == "input":
            assert last["input"] == [
                {"role": "user", "content": "My name is Ada."},
                {"role": "assistant", "content": "Ada."},
                {"role": "user", "content": "Who am I?"},
            ]
        assert ("previous_response_id" in last) == (sent == "previous_response_id")


def test_gemini_s_own_extra_body_is_sent_and_comes_back_from_the_record():
    raw = {"google": {"thinking_config": {"include_thoughts": True}}}
    request = famnb.compose("chat", "Hello", endpoints=find_profile("gemini").endpoints, extra_body={"extra_body": raw})
    assert request.body()["extra_body"] == raw
    assert type(request).from_body(request.body()).body() == request.body()


def test_each_block_may_end_what_is_cached_and_documents_are_sent():
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    blocks = [
        {"type": "document", "source": source, "title": "A report", "citations": {"enabled": True}, **mark},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}, **mark},
        {"type": "tool_result", "tool_use_id": "t1", "content": "4 degrees", **mark},
        {"type": "text", "text": "What is this?", **mark},
    ]
    call = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}, **mark}
    turns = [{"role": "assistant", "content": [call]}, {"role": "user", "content": blocks}]
    request = famnb.compose("messages", "Hello", endpoints=find_profile("anthropic").endpoints).replace(messages=turns)
    assert request.body()["messages"] == turns
    with pytest.raises(InvalidRequest, match="cache_control"):
        request.replace(messages=[{"role": "user", "content": "Hello", **mark}])


OWN_TOOLS: dict[tuple[str, str], dict[str, Any]] = {
    ("openai", "responses"): {"type": "web_search", "search_context_size": "low"},
    ("openai", "chat"): {"type": "custom", "custom": {"name": "shell"}},
    ("anthropic", "messages"): {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    ("openrouter", "chat"): {"type": "openrouter:web_search"},
    ("groq", "chat"): {"type": "browser_search"},
    ("open", "chat"): {"type": "builtin_function", "function": {"name": "$web_search"}},
}


@pytest.mark.parametrize(("name", "endpoint"), VENDORS)
def test_a_vendor_s_own_tools_stand_beside_functions(name: str, endpoint: str):
    endpoints = find_profile(name).endpoints
    extra = OWN_TOOLS.get((name, endpoint), {"google_search": {}})
    if (name, endpoint) in OWN_TOOLS:
        request = famnb.compose(endpoint, "Hello", endpoints=endpoints, tools=[weather, extra])
        assert request.settings().tools[0].name == "weather"
    else:
        with pytest.raises(InvalidRequest, match=r"tools\[1\].*(extra_body=|required, but missing)"):
            famnb.compose(endpoint, "Hello", endpoints=endpoints, tools=[weather, extra])
        request = famnb.compose(endpoint, "Hello", endpoints=endpoints, tools=[weather], extra_body={"tools": [extra]})
    function, tool = request.body()["tools"]
    assert (function.get("function", function)["name"], tool) == ("weather", extra)
    assert type(request).from_body(request.body()).body() == request.body()


def test_what_a_request_uses_is_named_in_the_header_that_it_needs():
    server = FaultServer(whole(body("messages", "Hello.")))
    headers = {"Anthropic-Beta": "mine-2026-01-01"}
    with Client(profile="anthropic", base_url=server.url, api_key="key-0123456789abcdef", headers=headers) as client:
        client.send(client.compose("messages", 'Say "mcp_servers":'))
        tool = {"type": "computer_20251124", "name": "computer", "display_width_px": 800, "display_height_px": 600}
        client.send(client.compose("messages", "Click.", tools=[tool], extra_body={"mcp_servers": []}))
    server.close()
    plain, used = (received.headers["anthropic-beta"] for received in server.requests)
    assert (plain, used) == ("mine-2026-01-01", "mine-2026-01-01,computer-use-2025-11-24,mcp-client-2025-11-20")
