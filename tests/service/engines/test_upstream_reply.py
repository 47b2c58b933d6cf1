"""Whatever an upstream sends, every endpoint answers properly; its failures never look like an end."""

import pytest

from famnb.reply import Reply
from tests.support.fault_server import DONE, Action, FaultServer, chunked, event, whole
from tests.support.service_requests import CAPS, ServiceClient
from tests.support.upstream_servers import (
    COUNTS,
    HELLO,
    THINKING,
    answer_with,
    chunk,
    completion,
    decode_body,
    fetch_reply,
    start_gateway,
    stream_chunks,
)
from tests.support.waiting import wait_until

BARE = [event({"choices": [{"index": 0, "delta": {"content": piece}}]}) for piece in ("Hello", ", world.")]
NULLS = {"content": None, "tool_calls": None, "function_call": None, "refusal": None, "reasoning_content": None}
STREAMS = {
    "as most": stream_chunks("Hello", ", world."),
    "without [DONE]": stream_chunks("Hello", ", world.")[:-1],
    "usage on the finish chunk": [*HELLO, chunk({}, "stop", usage=COUNTS), DONE],
    "usage with every chunk": [
        chunk({"content": "Hello"}, usage={**COUNTS, "completion_tokens": 1, "total_tokens": 8}),
        chunk({"content": ", world."}, "stop", usage=COUNTS),
        DONE,
    ],
    "no finish_reason key before the end": [*BARE, chunk({}, "stop", usage=COUNTS), DONE],
    "nulls everywhere": [
        chunk({**NULLS, "role": "assistant"}, usage=None),
        *(chunk({**NULLS, "content": piece}, usage=None) for piece in ("Hello", ", world.")),
        chunk(NULLS, "stop", usage=COUNTS),
        DONE,
    ],
    "comments and CRLF": [
        b": ping\r\n\r\n",
        *(part.replace(b"\n", b"\r\n") for part in stream_chunks("Hello", ", world.")),
    ],
    "a finish reason of its own": [*HELLO, chunk({}, "eos_token", usage=COUNTS), DONE],
    "reasoning_content": [chunk({"reasoning_content": "Hm."}), *stream_chunks("Hello", ", world.")],
    "reasoning": [chunk({"reasoning": "Hm."}), *stream_chunks("Hello", ", world.")],
    "think tags": stream_chunks("<thi", "nk>Hm.</think>", "\n\nHello", ", world."),
}


def assert_greeting(reply: Reply, endpoint: str, *, thinking: bool) -> None:
    """Assert that a reply is "Hello, world."; on messages without the thinking, which was not asked for."""
    assert (reply.text, reply.complete, reply.finish_reason) == ("Hello, world.", True, "stop")
    assert reply.thinking == ("Hm." if thinking and endpoint != "messages" else "")


@pytest.mark.parametrize("words", STREAMS.values(), ids=STREAMS.keys())
def test_a_stream_of_any_kind_is_told_properly(gateway, upstream, endpoint, words):
    answer_with(upstream, chunked(*words))
    options = {"stream_options": {"include_usage": True}} if endpoint == "web" else {}
    reply = fetch_reply(gateway, endpoint, stream=True, **options)
    assert_greeting(reply, endpoint, thinking=b"Hm." in b"".join(words))
    if endpoint != "chat":
        assert reply.usage.output_tokens == 5


@pytest.mark.parametrize(
    "body",
    [
        completion(),
        completion(reasoning_content="Hm."),
        completion("<think>Hm.</think>Hello, world."),
        completion([{"type": "text", "text": "Hello, world."}], tool_calls=None, refusal=None),
        {"choices": [{"message": {"content": "Hello, world."}}], "usage": COUNTS},
    ],
    ids=["plain", "reasoning_content", "think tags", "parts and nulls", "bare"],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_whole_body_is_told_properly(gateway, upstream, endpoint, stream, body):
    answer_with(upstream, whole(body))
    reply = fetch_reply(gateway, endpoint, stream=stream)
    assert_greeting(reply, endpoint, thinking="Hm." in str(body))
    if not stream:
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (7, 5)


@pytest.mark.parametrize("stream", [False, True])
def test_usage_that_the_upstream_never_says_is_absent(gateway, upstream, endpoint, stream):
    answer_with(
        upstream, chunked(*stream_chunks("Hello.", usage=None)) if stream else whole(completion("Hello.", usage=None))
    )
    assert fetch_reply(gateway, endpoint, stream=stream).usage.output_tokens is None


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "content"])
@pytest.mark.parametrize("stream", [False, True])
def test_thinking_is_shown_where_it_is_asked_for(gateway, upstream, field, stream):
    thought = "<think>Hm, well.</think>" if field == "content" else "Hm, well."
    answer_with(upstream, chunked(chunk({field: thought}), *stream_chunks("Hello", ", world.")))
    reply = fetch_reply(gateway, "messages", stream=stream, thinking=THINKING)
    assert [block.kind for block in reply.blocks] == ["thinking", "text"]
    assert (reply.thinking, reply.text) == ("Hm, well.", "Hello, world.")
    if not stream:
        assert reply.blocks[0].latency_ms is not None
    body = decode_body(upstream.requests[-1])
    assert (body["reasoning_effort"], body["chat_template_kwargs"]) == ("low", {"enable_thinking": True})


CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"city":'}}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}


@pytest.mark.parametrize("finish", ["tool_calls", "stop", "function_call"])
@pytest.mark.parametrize("id_", ["call_1", None])
def test_tool_calls_are_told(gateway: ServiceClient, upstream: FaultServer, finish: str, id_: str | None):
    rest = {"index": 0, "function": {"arguments": ' "Oslo"}'}}
    calls = [chunk({"tool_calls": [{**CALL, "id": id_}]}), chunk({"tool_calls": [rest]}), chunk({}, finish), DONE]
    answer_with(upstream, chunked(*calls))
    streamed = fetch_reply(gateway, "web", stream=True, tools=[TOOL])
    message = [{**CALL, "id": id_, "function": {"name": "look_up", "arguments": '{"city": "Oslo"}'}}]
    answer_with(upstream, whole(completion(None, tool_calls=message, finish=finish)))
    for reply in (streamed, fetch_reply(gateway, "web", tools=[TOOL])):
        (call,) = reply.tool_calls
        assert (call.name, call.arguments, reply.finish_reason) == ("look_up", {"city": "Oslo"}, "tool_calls")
        assert call.id == id_ or call.id.startswith("call_")


BROKEN = {
    "the connection breaks": chunked(*HELLO, Action.RESET, end=False),
    "the body ends without a finish reason": chunked(*HELLO),
    "another request killed it": chunked(*HELLO, DONE, Action.CLOSE, end=False),
    "[DONE] without a finish reason": chunked(*HELLO, DONE),
    "an error event": chunked(*HELLO, event({"error": {"message": "out of memory", "code": 500}}), DONE),
    "an error in an object": chunked(*HELLO, event({"object": "error", "message": "out of memory", "code": 50})),
    "an event that is not JSON": chunked(*HELLO, event(b'{"choices": [{"del'), DONE),
    "a finish reason that says so": chunked(*HELLO, chunk({}, "abort"), DONE),
}


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN.keys())
def test_an_upstream_that_dies_is_a_failure_never_an_end(gateway, upstream, endpoint, script):
    answer_with(upstream, script)
    reply = fetch_reply(gateway, endpoint, stream=True)
    assert (reply.text, reply.status, reply.complete) == ("Hello, world.", "failed", False)
    assert reply.fault is not None
    assert reply.fault.message.startswith("the engine behind this service")


@pytest.mark.parametrize(
    "script",
    [
        [Action.RESET],
        [whole(completion())[0][:-20], Action.CLOSE],
        whole(b"<html><body>Welcome</body></html>", content_type="text/html"),
        whole(b""),
        whole({"choices": []}),
        whole({"error": {"message": "out of memory", "code": 500}}),
        whole(b"<html><title>502 Bad Gateway</title></html>", 502, content_type="text/html"),
        whole({"detail": "Not authenticated"}, 401),
        whole({"error": "model not found"}, 404),
        whole(b"", 301, location="http://127.0.0.1:1/"),
        [b"SSH-2.0-OpenSSH\r\n", Action.CLOSE],
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_wrong_with_the_upstream_is_a_500_in_shape(gateway, upstream, endpoint, stream, script):
    answer_with(upstream, script)
    response = gateway.ask(endpoint, stream=stream)
    inner = response.json()["error"]
    inner = inner["error"] if endpoint == "messages" else inner
    assert (response.status_code, inner["type"]) == (500, "api_error" if endpoint == "messages" else "server_error")
    assert inner["message"].startswith("the engine behind this service")
    assert "www-authenticate" not in response.headers


TOO_LONG = "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens."


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, {"error": {"message": TOO_LONG, "code": 400, "type": "BadRequestError"}}, "context_length_exceeded"),
        (400, {"error": {"message": "too big", "type": "exceed_context_size_error"}}, "context_length_exceeded"),
        (400, {"error": {"message": "no such thing", "code": "bad_thing"}}, "bad_thing"),
        (400, {"object": "error", "message": "no such thing", "code": 40001}, "invalid_request_error"),
        (422, {"detail": [{"loc": ["body", "messages"], "msg": "no such thing"}]}, "invalid_request_error"),
        (413, b"<html><title>no such thing</title></html>", "invalid_request_error"),
        (
            500,
            {"error": {"message": '1 validation error:\n no such thing\n\n  File "/srv/x.py"'}},
            "invalid_request_error",
        ),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_wrong_with_the_request_is_a_400(gateway, upstream, status, body, code, stream):
    answer_with(upstream, whole(body, status))
    response = gateway.ask("web", stream=stream)
    error = response.json()["error"]
    assert (response.status_code, error["type"], error["code"]) == (400, "invalid_request_error", code)
    assert any(words in error["message"] for words in ("no such thing", "maximum context length", "too big"))
    assert "/srv" not in error["message"]


@pytest.mark.parametrize(
    ("hint", "seconds"),
    [({"retry_after": "7"}, "7"), ({"retry_after_ms": "2500"}, "3"), ({"retry_after": "soon"}, None), ({}, None)],
)
def test_a_busy_upstream_is_a_429_with_its_retry_after(gateway, upstream, endpoint, hint, seconds):
    answer_with(upstream, whole({"error": {"message": "slow down"}}, 429, **hint))
    response = gateway.ask(endpoint, stream=True)
    assert (response.status_code, response.headers.get("retry-after")) == (429, seconds)


def test_the_token_cap_is_an_incomplete_reply(gateway: ServiceClient, upstream: FaultServer, endpoint: str):
    answer_with(upstream, chunked(*HELLO, chunk({}, "length"), DONE))
    reply = fetch_reply(gateway, endpoint, stream=True)
    assert (reply.finish_reason, reply.status) == ("length", "incomplete")


def running(tokens: int) -> dict[str, int]:
    """The usage so far."""
    return {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens}


IGNORING = {
    "without usage": [chunk({"content": f"{n} "}) for n in range(1, 50)],
    "with a usage that stands still": [chunk({"content": f"{n} "}, usage=running(0)) for n in range(1, 50)],
    "with running usage": [chunk({"content": f"{n} "}, usage=running(n)) for n in range(1, 50)],
    "several tokens a delta": [chunk({"content": f"{n} "}, usage=running(10 * n)) for n in range(1, 50)],
    "while it thinks": [
        *(chunk({"reasoning_content": "Hm. "}) for _ in range(3)),
        *(chunk({"content": f"{n} "}) for n in range(1, 50)),
    ],
}
TEXTS = ["1 2 3 4 5 ", "1 2 3 4 5 ", "1 2 3 4 5 ", "1 ", "1 2 "]


@pytest.mark.parametrize(("words", "text"), [*zip(IGNORING.values(), TEXTS, strict=True)], ids=IGNORING.keys())
def test_a_cap_that_the_upstream_ignores_is_enforced(endpoint: str, words: list[bytes], text: str):
    with FaultServer(chunked(*words, Action.STALL, end=False)) as upstream, start_gateway(upstream) as api:
        reply = fetch_reply(api, endpoint, stream=True, **{CAPS[endpoint]: 5})
        assert (reply.text, reply.finish_reason, reply.status) == (text, "length", "incomplete")
        wait_until(lambda: upstream.open == 0)


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_as_long_as_its_cap_ends_as_the_upstream_says(gateway, upstream, endpoint, stream):
    answer_with(upstream, chunked(*stream_chunks("Hello", ", world.")) if stream else whole(completion()))
    assert fetch_reply(gateway, endpoint, stream=stream, **{CAPS[endpoint]: 2}).finish_reason == "stop"


def test_an_upstream_that_ends_without_usage_is_not_waited_for_long(gateway, upstream, endpoint):
    answer_with(upstream, chunked(*HELLO, chunk({}, "stop"), Action.STALL, end=False))
    reply = fetch_reply(gateway, endpoint, stream=True)
    assert (reply.text, reply.complete, reply.usage.output_tokens) == ("Hello, world.", True, None)
