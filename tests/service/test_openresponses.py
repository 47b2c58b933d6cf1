"""`--profile openresponses`: each answer has what that specification's suite checks, and nothing changes without it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from openai import OpenAI

from famnb.api import Client
from famnb.endpoints import compose
from famnb.errors import InvalidRequest
from famnb.service import serve
from tests.support.service_requests import PATHS, ServiceClient, decode_stream

IMAGE = "data:image/png;base64,iVBORw0KGgo="


CASES: dict[str, list[dict[str, Any]]] = {
    "basic response": [{"role": "user", "content": "Say hello in three words."}],
    "system prompt": [
        {"role": "system", "content": "Speak like a pirate."},
        {"role": "user", "content": "Say hello."},
    ],
    "image input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is in this image?"},
                {"type": "input_image", "image_url": IMAGE},
            ],
        }
    ],
    "multi-turn": [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Hello Ada."},
        {"role": "user", "content": "What is my name?"},
    ],
    "labelled turns": [
        {"role": "assistant", "content": "Thinking about it.", "phase": "commentary"},
        {"role": "assistant", "content": "Four.", "phase": "final_answer"},
        {"role": "user", "content": "Repeat the number."},
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


def list_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


PART = all_of(type={"const": "output_text"}, text=TEXT, annotations=LIST, logprobs=LIST)


MESSAGE = all_of(
    type={"const": "message"},
    id=TEXT,
    role={"const": "assistant"},
    status={"enum": ["in_progress", "completed", "incomplete"]},
    content=list_of(PART),
)


CALL = all_of(
    type={"const": "function_call"},
    id=TEXT,
    call_id=TEXT,
    name=TEXT,
    arguments=TEXT,
    status={"enum": ["in_progress", "completed", "incomplete"]},
)


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


REASONING = all_of(
    effort={"enum": ["none", "low", "medium", "high", "xhigh", None]},
    summary={"enum": ["concise", "detailed", "auto", None]},
)


RESPONSE = all_of(
    id=TEXT,
    object={"const": "response"},
    created_at=WHOLE,
    completed_at=or_null(WHOLE),
    status=TEXT,
    incomplete_details=or_null(all_of(reason=TEXT)),
    model=TEXT,
    previous_response_id=or_null(TEXT),
    instructions=or_null(TEXT),
    output=list_of(ITEM),
    error=or_null(all_of(code=TEXT, message=TEXT)),
    tools=list_of(
        all_of(
            type={"const": "function"},
            name=TEXT,
            description=or_null(TEXT),
            parameters=or_null(OBJECT),
            strict=or_null(TRUTH),
        )
    ),
    tool_choice={
        "oneOf": [{"enum": ["none", "auto", "required"]}, all_of(type={"const": "function"}, name=TEXT)],
    },
    truncation={"enum": ["auto", "disabled"]},
    parallel_tool_calls=TRUTH,
    text=all_of(format={"oneOf": list(FORMATS)}, verbosity={"enum": ["low", "medium", "high"]}),
    top_p=NUMBER,
    presence_penalty=NUMBER,
    frequency_penalty=NUMBER,
    top_logprobs=WHOLE,
    temperature=NUMBER,
    reasoning=or_null(REASONING),
    usage=or_null(USAGE),
    max_output_tokens=or_null(WHOLE),
    max_tool_calls=or_null(WHOLE),
    store=TRUTH,
    background=TRUTH,
    service_tier=TEXT,
    metadata=OBJECT,
    safety_identifier=or_null(TEXT),
    prompt_cache_key=or_null(TEXT),
)


PLACE = {"output_index": WHOLE, "content_index": WHOLE, "item_id": TEXT}


EVENTS = {
    **{f"response.{word}": {"response": RESPONSE} for word in ("created", "in_progress", "completed")},
    **{f"response.{word}": {"response": RESPONSE} for word in ("incomplete", "failed")},
    **{f"response.output_item.{word}": {"output_index": WHOLE, "item": ITEM} for word in ("added", "done")},
    **{f"response.content_part.{word}": {**PLACE, "part": PART} for word in ("added", "done")},
    "response.output_text.delta": {**PLACE, "delta": TEXT, "logprobs": LIST},
    "response.output_text.done": {**PLACE, "text": TEXT, "logprobs": LIST},
    "response.function_call_arguments.delta": {"output_index": WHOLE, "item_id": TEXT, "delta": TEXT},
    "response.function_call_arguments.done": {"output_index": WHOLE, "item_id": TEXT, "arguments": TEXT},
}
"""For each event of the specification that a reply has, the fields it must have beside type and place."""


def valid(value: Any, schema: dict[str, Any]) -> bool:
    """True; raises ValidationError, which says what is missing."""
    jsonschema.validate(value, schema)
    return True


@pytest.fixture(scope="module")
def profile_api() -> Iterator[ServiceClient]:
    """A caller of a service with the profile."""
    with serve(time_scale=0, profile="openresponses") as server, ServiceClient(server) as caller:
        yield caller


@pytest.fixture(scope="module")
def compat_api() -> Iterator[ServiceClient]:
    """A caller of a service with the profile that knows tools at this endpoint."""
    with serve(time_scale=0, profile="openresponses", compat=True) as server, ServiceClient(server) as caller:
        yield caller


def events(caller: ServiceClient, **fields: Any) -> list[Any]:
    """The events of a streamed answer, each checked; the last line must have been `[DONE]`."""
    stream = caller.ask("responses", stream=True, **fields).content
    *decoded, last = decode_stream(stream)
    assert last == "[DONE]"
    named = [line.removeprefix("event: ") for line in stream.decode().splitlines() if line.startswith("event: ")]
    assert named == [event["type"] for event in decoded]
    for number, event in enumerate(decoded):
        assert event["sequence_number"] == number
        assert valid(event, all_of(type=TEXT, **EVENTS[event["type"]]))
    return decoded


@pytest.mark.parametrize("case", CASES)
def test_a_whole_response_has_every_field(profile_api: ServiceClient, case: str) -> None:
    """It is complete, has an output, and every required field has its type."""
    body = profile_api.ask("responses", input=[{"type": "message", **item} for item in CASES[case]]).json()
    assert valid(body, RESPONSE)
    assert (body["status"], len(body["output"])) == ("completed", 1)
    assert body["created_at"] <= body["completed_at"] <= body["created_at"] + 60
    assert body["usage"]["total_tokens"] == body["usage"]["input_tokens"] + body["usage"]["output_tokens"] > 0


@pytest.mark.parametrize("case", CASES)
def test_a_stream_has_every_event_and_field(profile_api: ServiceClient, case: str) -> None:
    """Every event is valid and in its order, and the last one has the whole response."""
    stream = events(profile_api, input=[{"type": "message", **item} for item in CASES[case]])
    types = [event["type"] for event in stream]
    assert types[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert types[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    final = stream[-1]["response"]
    text = "".join(event["delta"] for event in stream if event["type"] == "response.output_text.delta")
    assert final["output"][0]["content"][0]["text"] == stream[-3]["part"]["text"] == text
    assert (stream[0]["response"]["completed_at"], final["status"]) == (None, "completed")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["auto", {"type": "function", "name": "get_weather"}])
def test_a_tool_is_called(compat_api: ServiceClient, choice: Any, stream: bool) -> None:
    """The call is a valid item, its arguments come in valid events, and the response repeats what was declared."""
    asked: dict[str, Any] = {"prompt": "What's the weather in Oslo?", "tools": [TOOL], "tool_choice": choice}
    if stream:
        streamed = events(compat_api, **asked)
        types = [event["type"] for event in streamed]
        assert types[2:4] == ["response.output_item.added", "response.function_call_arguments.delta"]
        assert types[-3:-1] == ["response.function_call_arguments.done", "response.output_item.done"]
        body = streamed[-1]["response"]
        assert streamed[-3]["arguments"] == body["output"][0]["arguments"]
    else:
        body = compat_api.ask("responses", **asked).json()
        assert valid(body, RESPONSE)
    (call,) = body["output"]
    assert (call["type"], call["status"], json.loads(call["arguments"])) == (
        "function_call",
        "completed",
        {"city": "Oslo"},
    )
    assert (body["tools"], body["tool_choice"]) == ([{**TOOL, "strict": None}], choice)
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "11 degrees"}
    second = compat_api.ask("responses", input=[output], tools=[TOOL], previous_response_id=body["id"]).json()
    assert valid(second, RESPONSE)
    assert "11 degrees" in second["output"][0]["content"][0]["text"]


def test_a_conversation_goes_on_by_id(profile_api: ServiceClient) -> None:
    """The next response names the one it continues."""
    first = profile_api.ask("responses", "My name is Ada.").json()
    second = profile_api.ask("responses", "What is my name?", previous_response_id=first["id"]).json()
    assert valid(second, RESPONSE)
    assert second["previous_response_id"] == first["id"]
    assert "My name is Ada." in second["output"][0]["content"][0]["text"]


def test_what_was_asked_for_is_repeated(profile_api: ServiceClient) -> None:
    """Each field as the request had it, the document's default where it had none."""
    asked: dict[str, Any] = {
        "instructions": "Be kind.",
        "temperature": 0.7,
        "top_p": 0.9,
        "max_output_tokens": 99,
        "reasoning": {"effort": "high", "summary": "auto"},
        "store": False,
        "metadata": {"a": "b"},
    }
    body = profile_api.ask("responses", **asked, text={"verbosity": "low"}).json()
    assert {name: body[name] for name in asked} == asked
    assert body["text"] == {"format": {"type": "text"}, "verbosity": "low"}
    usual = profile_api.ask("responses").json()
    assert [usual[name] for name in ("temperature", "top_p", "max_output_tokens", "store")] == [0.1, 1, 512, True]
    assert (usual["reasoning"], usual["metadata"]) == (None, {})


@pytest.mark.parametrize(
    "fields",
    [
        {"text": {"format": {"type": "json"}}},
        {"text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": True}}},
        {"text": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        {"reasoning": {"effort": "minimal", "summary": "none"}},
    ],
)
def test_what_the_specification_has_no_word_for_is_still_valid(
    profile_api: ServiceClient, fields: dict[str, Any]
) -> None:
    """Whole and streamed, whatever the document allows."""
    assert valid(profile_api.ask("responses", **fields).json(), RESPONSE)
    assert events(profile_api, **fields)


def test_an_incomplete_response_says_why(profile_api: ServiceClient) -> None:
    """It met its cap: no time of completion, and a reason; the stream's last event is `response.incomplete`."""
    body = profile_api.ask("responses", "count to 100", max_output_tokens=5).json()
    assert valid(body, RESPONSE)
    assert (body["status"], body["completed_at"]) == ("incomplete", None)
    last = events(profile_api, prompt="count to 100", max_output_tokens=5)[-1]
    assert (last["type"], last["response"]["incomplete_details"]) == (
        "response.incomplete",
        {"reason": "max_output_tokens"},
    )


def test_a_failed_stream_ends_with_a_valid_response(profile_api: ServiceClient) -> None:
    """`response.failed` with the error's code and message, then `[DONE]`."""
    answer = profile_api.post(
        PATHS["responses"],
        json={"model": "fam-2-5-pro", "input": "hello", "stream": True},
        headers={"x-famnb-fault": "error=2"},
    )
    *_, failed, done = decode_stream(answer.content)
    assert valid(failed, all_of(sequence_number=WHOLE, **EVENTS["response.failed"]))
    assert (failed["type"], failed["response"]["status"], done) == ("response.failed", "failed", "[DONE]")


@pytest.mark.parametrize("stream", [False, True])
def test_a_stored_response_is_the_one_that_was_sent(profile_api: ServiceClient, stream: bool) -> None:
    """Retrieved, it has the same fields and values, the time of completion included."""
    sent = events(profile_api)[-1]["response"] if stream else profile_api.ask("responses").json()
    assert profile_api.get(f"{PATHS['responses']}/{sent['id']}").json() == sent


def test_our_client_and_the_openai_sdk_read_it(profile_api: ServiceClient) -> None:
    """Both read the stream to the same text."""
    key = profile_api.headers["authorization"].removeprefix("Bearer ")
    url = str(profile_api.base_url).rstrip("/")
    with Client(base_url=url, api_key=key) as client:
        reply = client.send(compose("responses", "Why is the sky blue?", stream=True))
    sdk = OpenAI(base_url=f"{url}/v1", api_key=key)
    with sdk.responses.stream(model="fam-2-5-pro", input="Why is the sky blue?") as stream:
        final = stream.get_final_response()
    assert reply.complete
    assert reply.text == final.output_text
    assert reply.warnings == ()
    assert (final.usage and final.usage.output_tokens_details.reasoning_tokens) == 0


def test_the_other_endpoints_do_not_change(profile_api: ServiceClient, api: ServiceClient) -> None:
    """Only the responses endpoint has a profile; the others answer as without it."""
    for endpoint in ("chat", "web", "messages"):
        assert set(profile_api.ask(endpoint).json()) == set(api.ask(endpoint).json())
        assert all("sequence_number" not in event for event in profile_api.events(endpoint) if event != "[DONE]")


def test_without_the_profile_the_document_alone_holds(api: ServiceClient) -> None:
    """None of the added fields, events or lines is there; the fixtures of the streams hold it to the byte."""
    body = api.ask("responses").json()
    assert set(body) == {"id", "object", "status", "created_at", "model", "output", "usage"}
    stream = api.ask("responses", stream=True).text
    assert not any(added in stream for added in ("event: ", "sequence_number", "logprobs", "part.done", "[DONE]"))


def test_an_unknown_profile_is_refused() -> None:
    """In Python as an error that lists what there is, on the command line with its usage."""
    with pytest.raises(InvalidRequest, match="profile: expected one of '', 'openresponses', got 'closed'"):
        serve(profile="closed")
    command = [sys.executable, "-m", "famnb", "serve", "--profile", "closed"]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 2
