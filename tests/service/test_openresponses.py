"""`--profile openresponses`: each answer has what that specification's suite checks, and nothing changes without it."""

import json
from collections.abc import Iterator
from typing import Any

import pydantic
import pytest
from openai.types.responses import Response, ResponseStreamEvent

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
FIELDS = """
id object created_at completed_at status incomplete_details model previous_response_id instructions output error tools
tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs temperature
reasoning usage max_output_tokens max_tool_calls store background service_tier metadata safety_identifier
prompt_cache_key
"""
"""Every field of a response, all of which the specification wants; their types are those of the SDK."""
EVENT: pydantic.TypeAdapter[ResponseStreamEvent] = pydantic.TypeAdapter(ResponseStreamEvent)


def validate(response: Any) -> None:
    assert response.keys() >= set(FIELDS.split())
    Response.model_validate(response)
    for item in response["output"]:
        for part in item.get("content", ()):
            assert {"text", "annotations", "logprobs"} <= part.keys()


@pytest.fixture(scope="module")
def profile_api() -> Iterator[ServiceClient]:
    """A caller of a service with the profile that knows tools at this endpoint."""
    with run_service(time_scale=0, profile="openresponses", compat=True) as server, ServiceClient(server) as caller:
        yield caller


def fetch_response(caller: ServiceClient, **fields: Any) -> Any:
    """The response object of a whole answer, validated."""
    body = caller.ask("responses", **fields).json()
    validate(body)
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
        EVENT.validate_python(event)
        if "response" in event:
            validate(event["response"])
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
    options: dict[str, Any] = {
        "instructions": "Be kind.",
        "temperature": 0.7,
        "top_p": 0.9,
        "max_output_tokens": 99,
        "reasoning": {"effort": "high", "summary": "auto"},
        "store": False,
        "metadata": {"a": "b"},
    }
    body = fetch_response(profile_api, **options, text={"verbosity": "low"})
    assert {name: body[name] for name in options} == options
    assert body["text"] == {"format": {"type": "text"}, "verbosity": "low"}
    usual = fetch_response(profile_api)
    assert [usual[name] for name in ("temperature", "top_p", "max_output_tokens", "store")] == [0.1, 1, 512, True]
    assert (usual["reasoning"], usual["metadata"]) == (None, {})


def test_what_ends_early_says_why(profile_api: ServiceClient):
    fields = {"prompt": "count to 100", "max_output_tokens": 5}
    body = fetch_response(profile_api, **fields)
    assert (body["status"], body["completed_at"]) == ("incomplete", None)
    last = fetch_events(profile_api, **fields)[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    last = fetch_events(profile_api, headers={"x-famnb-fault": "error=2"})[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")


def test_only_responses_of_a_service_with_the_profile_change(profile_api: ServiceClient, api: ServiceClient):
    for endpoint in ("chat", "web", "messages"):
        assert set(profile_api.ask(endpoint).json()) == set(api.ask(endpoint).json())
        assert all("sequence_number" not in event for event in profile_api.events(endpoint) if event != "[DONE]")
    body = api.ask("responses").json()
    assert set(body) == {"id", "object", "status", "created_at", "model", "output", "usage"}
    stream = api.ask("responses", stream=True).text
    assert not any(added in stream for added in ("event: ", "sequence_number", "logprobs", "part.done", "[DONE]"))
