"""Endpoints over a real socket: whole replies have the document's fields, defaults, words and counts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from famnb.endpoints import ENDPOINTS
from tests.support.fault_server import FaultServer
from tests.support.service_requests import CAPS, CONVERSATION, ServiceClient
from tests.support.upstream_servers import fetch_reply

FIXTURES = Path(__file__).parents[1] / "wire" / "fixtures"


def shape(value: Any) -> Any:
    """A JSON value with its texts and numbers as their types."""
    match value:
        case dict():
            return {name: shape(inner) for name, inner in value.items()}
        case list():
            return [shape(inner) for inner in value]
        case _:
            return type(value)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("chat", {"reasoning": {"effort": "high", "summary": "none"}}),
        ("responses", {"reasoning": {"effort": "medium", "summary": "none"}}),
        ("web", {}),
        ("messages", {"thinking": {"type": "enabled", "budget_tokens": 9}}),
    ],
)
def test_a_whole_reply_has_the_documents_fields(api: ServiceClient, name: str, fields: dict[str, Any]):
    fixture = json.loads((FIXTURES / f"{'web' if name == 'chat' else name}.json").read_text())
    body = api.ask(name, **fields).json()
    assert shape(body) == shape(fixture)
    same = {field for field in ("object", "type", "role", "status", "stop_reason", "stop_sequence") if field in fixture}
    assert {field: body[field] for field in same} == {field: fixture[field] for field in same}
    assert body["model"] == ENDPOINTS[name].models[0]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("chat", r"chatcmpl-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        ("web", r"chatcmpl-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        ("responses", r"resp_[0-9a-f]{32}"),
        ("messages", r"msg_[0-9a-f]{32}"),
    ],
)
def test_an_id_has_its_form_and_is_new_each_time(api: ServiceClient, name: str, form: str, stream: bool):
    ids = [set(re.findall(rf'"id":"({form})"', api.ask(name, "one line", stream=stream).text)) for _ in range(2)]
    assert [len(matches) for matches in ids] == [1, 1]
    assert ids[0] != ids[1]


@pytest.mark.parametrize(("name", "default"), [("responses", 512), ("messages", 512), ("web", 2048), ("chat", 16_384)])
def test_the_default_cap_is_in_force(api: ServiceClient, name: str, default: int):
    reply = fetch_reply(api, name, "count to 99999")
    assert (reply.usage.output_tokens, reply.finish_reason) == (default, "length")


@pytest.mark.parametrize("stream", [False, True])
def test_a_cap_of_one_gives_one_token_and_the_length_reason(api: ServiceClient, endpoint: str, stream: bool):
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 100}} if endpoint == "messages" else {}
    effort = {} if endpoint == "messages" else {"reasoning": {"effort": "high"}}
    reply = fetch_reply(api, endpoint, "count to 9", stream=stream, **{CAPS[endpoint]: 1}, **thinking, **effort)
    assert (reply.text, reply.thinking, reply.finish_reason, reply.status) == ("1", "", "length", "incomplete")


@pytest.mark.parametrize(("type_", "kinds"), [("enabled", ["thinking", "text"]), ("disabled", ["text"])])
def test_a_thinking_budget_is_held_under_the_cap(api: ServiceClient, type_: str, kinds: list[str]):
    thinking = {"type": type_, "budget_tokens": 10**6}
    body = api.ask("messages", "count to 99999", max_tokens=40, thinking=thinking).json()
    assert [block["type"] for block in body["content"]] == kinds
    assert (body["usage"]["output_tokens"], body["stop_reason"]) == (40, "max_tokens")


EFFORTS, SUMMARIES = ("none", "minimal", "low", "medium", "high", "xhigh"), ("none", "auto", "concise", "detailed")
ALLOWED: list[tuple[str, dict[str, Any]]] = [
    *((name, {"reasoning": {"effort": word}}) for name in ("chat", "responses", "web") for word in EFFORTS),
    *((name, {"reasoning": {"summary": word}}) for name in ("chat", "responses", "web") for word in SUMMARIES),
    *(("responses", {"text": {"verbosity": word}}) for word in ("low", "medium", "high")),
    *(
        (name, {"response_format": {"type": word}})
        for name in ("chat", "web")
        for word in ("text", "json", "json_object")
    ),
]


@pytest.mark.parametrize(("name", "fields"), ALLOWED, ids=repr)
def test_every_word_that_is_allowed_passes(api: ServiceClient, name: str, fields: dict[str, Any]):
    assert fetch_reply(api, name, "Say hello in one sentence.", **fields).finish_reason == "stop"


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("chat", ("system", "developer", "user", "assistant", "tool")),
        ("web", ("system", "developer", "user", "assistant", "tool")),
        ("responses", ("user", "assistant", "system", "developer")),
        ("messages", ("user", "assistant")),
    ],
)
def test_every_role_passes_and_no_other(api: ServiceClient, name: str, roles: tuple[str, ...]):
    for role in ("system", "developer", "user", "assistant", "tool", "function", "User", ""):
        turn = {"role": role, "content": "Hello.", **({"tool_call_id": "call_1"} if role == "tool" else {})}
        conversation = [{"role": "user", "content": "Hi."}, turn]
        status = api.ask(name, **{CONVERSATION[name]: conversation}).status_code
        assert (role, status) == (role, 200 if role in roles else 400)


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 3}, "days": {"type": "integer", "minimum": 2}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("strict", [None, False, True])
@pytest.mark.parametrize("name", ["chat", "web", "responses"])
def test_a_reply_satisfies_the_schema_it_was_asked_for(api, name, strict, stream):
    schema = {"name": "trip", "schema": SCHEMA, **({} if strict is None else {"strict": strict})}
    fields: dict[str, Any] = (
        {"text": {"format": {"type": "json_schema", **schema}, "verbosity": "low"}}
        if name == "responses"
        else {"response_format": {"type": "json_schema", "json_schema": schema}}
    )
    validate(json.loads(fetch_reply(api, name, "Plan a trip.", stream=stream, **fields).text), SCHEMA)


def tool(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return {"type": "function", "function": {"name": name, "description": "Look up.", "parameters": parameters}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("choice", "called"),
    [
        ("none", []),
        ("auto", ["get_weather", "get_news"]),
        (..., ["get_weather", "get_news"]),
        ("required", ["get_weather", "get_news"]),
        ({"type": "function", "function": {"name": "get_news"}}, ["get_news"]),
    ],
)
def test_every_tool_choice_is_obeyed(api: ServiceClient, choice: Any, called: list[str], stream: bool):
    fields = {"tools": [tool("get_weather"), tool("get_news")], "tool_choice": choice, "stream": stream}
    reply = fetch_reply(api, "web", "The weather and the news of Paris, please.", **fields)
    assert [call.name for call in reply.tool_calls] == called
    assert all(call.arguments == {"city": "Paris"} for call in reply.tool_calls)
    assert (reply.finish_reason, bool(reply.text)) == ("tool_calls" if called else "stop", not called)


def test_calls_are_streamed_as_indexed_deltas(api: ServiceClient):
    events = api.events("web", "The weather and the news of Paris.", tools=[tool("get_weather"), tool("get_news")])
    *chunks, last, done = events
    calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"]["tool_calls"]]
    assert (last["choices"][0]["finish_reason"], last["choices"][0]["delta"], done) == ("tool_calls", {}, "[DONE]")
    for index in (0, 1):
        first, *pieces = [call for call in calls if call["index"] == index]
        assert (first["type"], first["function"]["arguments"]) == ("function", "")
        assert first["id"]
        assert all(set(piece) == {"index", "function"} for piece in pieces)
        assert json.loads("".join(piece["function"]["arguments"] for piece in pieces)) == {"city": "Paris"}
    assert [call["index"] for call in calls] == sorted(call["index"] for call in calls)


def test_reasoning_is_counted_and_not_shown(api: ServiceClient):
    for name in ("chat", "responses", "web"):
        plain, reasoned = (
            fetch_reply(api, name, "Write 30 words.", reasoning={"effort": effort}) for effort in ("none", "high")
        )
        assert (plain.usage.reasoning_tokens, reasoned.thinking) == (0, "")
        assert reasoned.text == plain.text
        more = (reasoned.usage.output_tokens or 0) - (plain.usage.output_tokens or 0)
        assert more == reasoned.usage.reasoning_tokens > 0


def test_an_image_is_counted_and_never_fetched(api: ServiceClient, endpoint: str):
    with FaultServer() as somewhere:
        url = f"{somewhere.url}/image.png"
        parts = [{"type": "input_image", "image_url": url}, {"type": "image_url", "image_url": {"url": url}}]
        plain = {"role": "user", "content": [{"type": "text", "text": "What is this?"}]}
        shown = {"role": "user", "content": [*parts, {"type": "text", "text": "What is this?"}]}
        without, with_ = (
            fetch_reply(api, endpoint, "", **{CONVERSATION[endpoint]: [message]}).usage.input_tokens or 0
            for message in (plain, shown)
        )
        assert with_ > without
        assert somewhere.connections == 0
