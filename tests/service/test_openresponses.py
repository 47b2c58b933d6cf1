"""`--profile openresponses`: each answer has what that specification's suite checks, and nothing changes without it."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from openai import OpenAI

from famnb.api import Client
from famnb.endpoints import compose
from famnb.errors import InvalidRequest
from famnb.service import serve
from tests.support.service_requests import PATHS, ServiceClient, decode_stream, minimal_body
from tests.support.thread_service import run_service

CASES: dict[str, list[dict[str, Any]]] = {
    "basic response": [{"role": "user", "content": "Say hello in three words."}],
    "system prompt": [{"role": "system", "content": "Speak like a pirate."}, {"role": "user", "content": "Say hello."}],
    "image input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is in this image?"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
            ],
        }
    ],
    "multi-turn": [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Hello Ada.", "phase": "final_answer"},
        {"role": "user", "content": "What is my name?"},
    ],
}
"""What the suite asks for, in our words; its tool calling is below, for it needs `compat` as well."""

TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "Return the weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
TEXT, WHOLE, NUMBER, TRUTH, LIST, OBJECT = (
    {"type": name} for name in ("string", "integer", "number", "boolean", "array", "object")
)


def all_of(**fields: Any) -> dict[str, Any]:
    """An object that must have all these fields."""
    return {"type": "object", "required": list(fields), "properties": fields}


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


STATUS = {"enum": ["in_progress", "completed", "incomplete"]}
PART = all_of(type={"const": "output_text"}, text=TEXT, annotations=LIST, logprobs=LIST)
MESSAGE = all_of(
    type={"const": "message"},
    id=TEXT,
    role={"const": "assistant"},
    status=STATUS,
    content={"type": "array", "items": PART},
)
CALL = all_of(type={"const": "function_call"}, id=TEXT, call_id=TEXT, name=TEXT, arguments=TEXT, status=STATUS)
ITEM = {"oneOf": [MESSAGE, CALL]}
USAGE = all_of(
    input_tokens=WHOLE,
    output_tokens=WHOLE,
    total_tokens=WHOLE,
    input_tokens_details=all_of(cached_tokens=WHOLE),
    output_tokens_details=all_of(reasoning_tokens=WHOLE),
)
FORMATS = (
    all_of(type={"enum": ["text", "json_object"]}),
    all_of(type={"const": "json_schema"}, name=TEXT, description=or_null(TEXT), schema={"type": "null"}, strict=TRUTH),
)
FUNCTION = all_of(
    type={"const": "function"}, name=TEXT, description=or_null(TEXT), parameters=or_null(OBJECT), strict=or_null(TRUTH)
)
REASONING = all_of(
    effort={"enum": ["none", "low", "medium", "high", "xhigh", None]},
    summary={"enum": ["concise", "detailed", "auto", None]},
)
CHOICE = {"oneOf": [{"enum": ["none", "auto", "required"]}, all_of(type={"const": "function"}, name=TEXT)]}
RESPONSE = all_of(
    id=TEXT,
    object={"const": "response"},
    created_at=WHOLE,
    completed_at=or_null(WHOLE),
    status=TEXT,
    incomplete_details=or_null(all_of(reason=TEXT)),
    output={"type": "array", "items": ITEM},
    error=or_null(all_of(code=TEXT, message=TEXT)),
    tools={"type": "array", "items": FUNCTION},
    tool_choice=CHOICE,
    truncation={"enum": ["auto", "disabled"]},
    text=all_of(format={"oneOf": list(FORMATS)}, verbosity={"enum": ["low", "medium", "high"]}),
    reasoning=or_null(REASONING),
    usage=or_null(USAGE),
    metadata=OBJECT,
    **dict.fromkeys(("model", "service_tier"), TEXT),
    **dict.fromkeys(("previous_response_id", "instructions", "safety_identifier", "prompt_cache_key"), or_null(TEXT)),
    **dict.fromkeys(("max_output_tokens", "max_tool_calls"), or_null(WHOLE)),
    **dict.fromkeys(("top_p", "presence_penalty", "frequency_penalty", "temperature", "top_logprobs"), NUMBER),
    **dict.fromkeys(("parallel_tool_calls", "store", "background"), TRUTH),
)
PLACE = {"output_index": WHOLE, "content_index": WHOLE, "item_id": TEXT}
EVENTS = {
    **{
        f"response.{word}": {"response": RESPONSE}
        for word in ("created", "in_progress", "completed", "incomplete", "failed")
    },
    **{f"response.output_item.{word}": {"output_index": WHOLE, "item": ITEM} for word in ("added", "done")},
    **{f"response.content_part.{word}": {**PLACE, "part": PART} for word in ("added", "done")},
    "response.output_text.delta": {**PLACE, "delta": TEXT, "logprobs": LIST},
    "response.output_text.done": {**PLACE, "text": TEXT, "logprobs": LIST},
    "response.function_call_arguments.delta": {"output_index": WHOLE, "item_id": TEXT, "delta": TEXT},
    "response.function_call_arguments.done": {"output_index": WHOLE, "item_id": TEXT, "arguments": TEXT},
}
"""For each event of the specification that a reply has, the fields it must have beside type and place."""


@pytest.fixture(scope="module")
def profile_api() -> Iterator[ServiceClient]:
    """A caller of a service with the profile that knows tools at this endpoint."""
    with run_service(time_scale=0, profile="openresponses", compat=True) as server, ServiceClient(server) as caller:
        yield caller


def fetch_response(caller: ServiceClient, **fields: Any) -> Any:
    """The response object of a whole answer, validated."""
    body = caller.ask("responses", **fields).json()
    jsonschema.validate(body, RESPONSE)
    return body


def fetch_events(caller: ServiceClient, *, headers: dict[str, str] | None = None, **fields: Any) -> list[Any]:
    """The events of a streamed answer, each validated; the last line must have been `[DONE]`."""
    answer = caller.post(
        PATHS["responses"], json=minimal_body("responses", stream=True, **fields), headers=headers or {}
    )
    *events, last = decode_stream(answer.content)
    assert last == "[DONE]"
    names = [line.removeprefix("event: ") for line in answer.text.splitlines() if line.startswith("event: ")]
    assert names == [event["type"] for event in events]
    for number, event in enumerate(events):
        assert event["sequence_number"] == number
        jsonschema.validate(event, all_of(type=TEXT, **EVENTS[event["type"]]))
    return events


@pytest.mark.parametrize("case", CASES)
def test_a_reply_has_every_event_and_field(profile_api: ServiceClient, case: str):
    fields = {"input": [{"type": "message", **item} for item in CASES[case]]}
    body = fetch_response(profile_api, **fields)
    assert (body["status"], len(body["output"])) == ("completed", 1)
    assert body["created_at"] <= body["completed_at"] <= body["created_at"] + 60
    events = fetch_events(profile_api, **fields)
    types = [event["type"].removeprefix("response.") for event in events]
    assert types[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert types[-4:] == ["output_text.done", "content_part.done", "output_item.done", "completed"]
    response = events[-1]["response"]
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert response["output"][0]["content"][0]["text"] == events[-3]["part"]["text"] == text
    assert (events[0]["response"]["completed_at"], response["status"]) == (None, "completed")
    assert profile_api.get(f"{PATHS['responses']}/{response['id']}").json() == response


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["auto", {"type": "function", "name": "get_weather"}])
def test_a_tool_is_called(profile_api: ServiceClient, choice: Any, stream: bool):
    fields: dict[str, Any] = {"prompt": "What's the weather in Oslo?", "tools": [TOOL], "tool_choice": choice}
    if stream:
        events = fetch_events(profile_api, **fields)
        types = [event["type"].removeprefix("response.") for event in events]
        assert types[2:4] == ["output_item.added", "function_call_arguments.delta"]
        assert types[-3:-1] == ["function_call_arguments.done", "output_item.done"]
        body = events[-1]["response"]
        assert events[-3]["arguments"] == body["output"][0]["arguments"]
    else:
        body = fetch_response(profile_api, **fields)
    (call,) = body["output"]
    assert (call["type"], call["status"]) == ("function_call", "completed")
    assert json.loads(call["arguments"]) == {"city": "Oslo"}
    assert (body["tools"], body["tool_choice"]) == ([{**TOOL, "strict": None}], choice)
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "11 degrees"}
    second = fetch_response(profile_api, input=[output], tools=[TOOL], previous_response_id=body["id"])
    assert second["previous_response_id"] == body["id"]
    assert "11 degrees" in second["output"][0]["content"][0]["text"]


def test_what_was_asked_for_is_repeated(profile_api: ServiceClient):
    asked: dict[str, Any] = {
        "instructions": "Be kind.",
        "temperature": 0.7,
        "top_p": 0.9,
        "max_output_tokens": 99,
        "reasoning": {"effort": "high", "summary": "auto"},
        "store": False,
        "metadata": {"a": "b"},
    }
    body = fetch_response(profile_api, **asked, text={"verbosity": "low"})
    assert {name: body[name] for name in asked} == asked
    assert body["text"] == {"format": {"type": "text"}, "verbosity": "low"}
    usual = fetch_response(profile_api)
    assert [usual[name] for name in ("temperature", "top_p", "max_output_tokens", "store")] == [0.1, 1, 512, True]
    assert (usual["reasoning"], usual["metadata"]) == (None, {})


@pytest.mark.parametrize(
    "fields",
    [
        {"text": {"format": {"type": "json"}}},
        {"text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": True}}},
        {"reasoning": {"effort": "minimal", "summary": "none"}},
    ],
)
def test_what_the_specification_has_no_word_for_is_still_valid(profile_api: ServiceClient, fields: dict[str, Any]):
    assert fetch_response(profile_api, **fields)
    assert fetch_events(profile_api, **fields)


def test_what_ends_early_says_why(profile_api: ServiceClient):
    fields = {"prompt": "count to 100", "max_output_tokens": 5}
    body = fetch_response(profile_api, **fields)
    assert (body["status"], body["completed_at"]) == ("incomplete", None)
    last = fetch_events(profile_api, **fields)[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    last = fetch_events(profile_api, headers={"x-famnb-fault": "error=2"})[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")


def test_our_client_and_the_openai_sdk_read_it(profile_api: ServiceClient):
    key = profile_api.headers["authorization"].removeprefix("Bearer ")
    url = str(profile_api.base_url).rstrip("/")
    with Client(base_url=url, api_key=key) as client:
        reply = client.send(compose("responses", "Why is the sky blue?", stream=True))
    sdk = OpenAI(base_url=f"{url}/v1", api_key=key)
    with sdk.responses.stream(model="fam-2-5-pro", input="Why is the sky blue?") as stream:
        final = stream.get_final_response()
    assert (reply.complete, reply.text, reply.warnings) == (True, final.output_text, ())
    assert (final.usage and final.usage.output_tokens_details.reasoning_tokens) == 0


def test_only_responses_of_a_service_with_the_profile_change(profile_api: ServiceClient, api: ServiceClient):
    for endpoint in ("chat", "web", "messages"):
        assert set(profile_api.ask(endpoint).json()) == set(api.ask(endpoint).json())
        assert all("sequence_number" not in event for event in profile_api.events(endpoint) if event != "[DONE]")
    body = api.ask("responses").json()
    assert set(body) == {"id", "object", "status", "created_at", "model", "output", "usage"}
    stream = api.ask("responses", stream=True).text
    assert not any(added in stream for added in ("event: ", "sequence_number", "logprobs", "part.done", "[DONE]"))


def test_an_unknown_profile_is_refused():
    with pytest.raises(InvalidRequest, match="profile: expected one of '', 'openresponses', got 'closed'"):
        serve(profile="closed")
