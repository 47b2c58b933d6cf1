"""The upstream engine: whatever a server of the field's chat dialect says, all four endpoints say it properly."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from famnb.service import serve
from tests.support.fault_server import DONE, Do, FaultServer, Received, Script, chunked, event, whole
from tests.support.service_requests import PATHS, BaseClient, eventually, minimal
from tests.support.upstream_servers import (
    COUNTS,
    HELLO,
    MODEL,
    THINKING,
    answer,
    answering,
    asked,
    chunk,
    completion,
    gateway,
    reply,
    said,
)

BARE = [event({"choices": [{"index": 0, "delta": {"content": piece}}]}) for piece in ("Hello", ", world.")]
NULLS = {"content": None, "tool_calls": None, "function_call": None, "refusal": None, "reasoning_content": None}
STREAMS = {
    "as most": said("Hello", ", world."),
    "without [DONE]": said("Hello", ", world.")[:-1],
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
    "comments and CRLF": [b": ping\r\n\r\n", *(part.replace(b"\n", b"\r\n") for part in said("Hello", ", world."))],
    "a finish reason of its own": [*HELLO, chunk({}, "eos_token", usage=COUNTS), DONE],
    "reasoning_content": [chunk({"reasoning_content": "Hm."}), *said("Hello", ", world.")],
    "reasoning": [chunk({"reasoning": "Hm."}), *said("Hello", ", world.")],
    "think tags": said("<thi", "nk>Hm.</think>", "\n\nHello", ", world."),
}


@pytest.mark.parametrize("words", STREAMS.values(), ids=STREAMS.keys())
def test_a_stream_of_any_kind_is_told_properly(
    through: BaseClient, upstream: FaultServer, endpoint: str, words: list[bytes]
) -> None:
    """The same text, end and usage on every endpoint; thinking that nobody asked to see is not shown."""
    answer(upstream, chunked(*words))
    options = {"stream_options": {"include_usage": True}} if endpoint == "web" else {}
    told = reply(through, endpoint, stream=True, **options)
    assert (told.text, told.thinking, told.complete, told.finish_reason) == ("Hello, world.", "", True, "stop")
    if endpoint != "chat":
        assert told.usage.output_tokens == 5


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
def test_a_whole_body_is_told_properly(
    through: BaseClient, upstream: FaultServer, endpoint: str, stream: bool, body: dict[str, Any]
) -> None:
    """Also where a stream was asked for."""
    answer(upstream, whole(body))
    told = reply(through, endpoint, stream=stream)
    assert (told.text, told.thinking, told.complete, told.finish_reason) == ("Hello, world.", "", True, "stop")
    if not stream:
        assert (told.usage.input_tokens, told.usage.output_tokens) == (7, 5)


@pytest.mark.parametrize("stream", [False, True])
def test_usage_that_the_upstream_never_says_is_absent(
    through: BaseClient, upstream: FaultServer, endpoint: str, stream: bool
) -> None:
    """No count is made up: null, or the zero of a messages stream, which means the same."""
    answer(upstream, chunked(*said("Hello.", usage=None)) if stream else whole(completion("Hello.", usage=None)))
    assert reply(through, endpoint, stream=stream).usage.output_tokens is None


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "content"])
@pytest.mark.parametrize("stream", [False, True])
def test_thinking_is_shown_where_it_is_asked_for(
    through: BaseClient, upstream: FaultServer, field: str, stream: bool
) -> None:
    """As a block of its own, before the text, with how long it took."""
    thought = "<think>Hm, well.</think>" if field == "content" else "Hm, well."
    answer(upstream, chunked(chunk({field: thought}), *said("Hello", ", world.")))
    told = reply(through, "messages", stream=stream, thinking=THINKING)
    assert [block.kind for block in told.blocks] == ["thinking", "text"]
    assert (told.thinking, told.text) == ("Hm, well.", "Hello, world.")
    if not stream:
        assert told.blocks[0].latency_ms is not None
    sent = asked(upstream.requests[-1])
    assert (sent["reasoning_effort"], sent["chat_template_kwargs"]) == ("low", {"enable_thinking": True})


CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"city":'}}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}


@pytest.mark.parametrize("finish", ["tool_calls", "stop", "function_call"])
@pytest.mark.parametrize("id_", ["call_1", None])
def test_tool_calls_are_told(through: BaseClient, upstream: FaultServer, finish: str, id_: str | None) -> None:
    """Streamed or whole, with the reason that the API has for them, and an id where the upstream gives none."""
    rest = {"index": 0, "function": {"arguments": ' "Oslo"}'}}
    calls = [chunk({"tool_calls": [{**CALL, "id": id_}]}), chunk({"tool_calls": [rest]}), chunk({}, finish), DONE]
    answer(upstream, chunked(*calls))
    streamed = reply(through, "web", stream=True, tools=[TOOL])
    message = [{**CALL, "id": id_, "function": {"name": "look_up", "arguments": '{"city": "Oslo"}'}}]
    answer(upstream, whole(completion(None, tool_calls=message, finish=finish)))
    for told in (streamed, reply(through, "web", tools=[TOOL])):
        (call,) = told.tool_calls
        assert (call.name, call.arguments, told.finish_reason) == ("look_up", {"city": "Oslo"}, "tool_calls")
        assert call.id == id_ or call.id.startswith("call_")


@pytest.mark.parametrize("words", [[*HELLO, Do.HOLD], [Do.HOLD]], ids=["in a stream", "before it"])
@pytest.mark.parametrize("stream", [False, True])
def test_the_upstream_is_left_when_the_caller_leaves(
    through: BaseClient, upstream: FaultServer, endpoint: str, stream: bool, words: list[Any]
) -> None:
    """The upstream sees the connection close while it still had something to say."""
    script = chunked(*words, end=False) if len(words) > 1 else words

    async def leave() -> int:
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def choose(_: Received) -> Script:
            loop.call_soon_threadsafe(arrived.set)
            return script

        upstream.choose = choose
        async with httpx.AsyncClient(base_url=through.base_url, headers=dict(through.headers)) as client:
            call = asyncio.create_task(client.post(PATHS[endpoint], json=minimal(endpoint, stream=stream)))
            await arrived.wait()
            held = upstream.open
            call.cancel()
        return held

    held = asyncio.run(leave())
    assert eventually(lambda: upstream.open < held)


def test_many_at_once_are_not_mixed_up(through: BaseClient, upstream: FaultServer) -> None:
    """Each of a hundred callers hears its own answer, on its own endpoint."""

    def echo(request: Received) -> Script:
        prompt = asked(request)["messages"][-1]["content"]
        return chunked(*said(*(f"{prompt}:{number} " for number in range(20))))

    upstream.choose = echo
    names = [list(PATHS)[number % 4] for number in range(100)]

    async def ask_all() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=through.base_url, headers=dict(through.headers), timeout=30) as client:
            return await asyncio.gather(
                *(
                    client.post(PATHS[name], json=minimal(name, f"caller{number}", stream=True))
                    for number, name in enumerate(names)
                )
            )

    for number, answered in enumerate(asyncio.run(ask_all())):
        assert answered.status_code == 200
        assert answered.text.count(f"caller{number}:") >= 20
        assert answered.text.count("caller") == answered.text.count(f"caller{number}:")


def test_connections_to_the_upstream_are_used_again(through: BaseClient, upstream: FaultServer, endpoint: str) -> None:
    """One after another, calls need one connection."""
    reply(through, endpoint, stream=True)
    before = upstream.connections
    for stream in (True, False, True):
        reply(through, endpoint, stream=stream)
    assert upstream.connections == before


def test_a_kept_connection_that_is_closing_is_no_failure(
    through: BaseClient, upstream: FaultServer, endpoint: str
) -> None:
    """The request is sent once more, on another connection; a second time is the upstream's own fault."""
    breaking = [True]

    def choose(request: Received) -> Script:
        return [Do.RESET] if breaking.pop() else answering(request)

    upstream.choose = choose
    breaking[:] = [False, True]
    assert reply(through, endpoint, stream=True).text == "Hello, world."
    breaking[:] = [True, True]
    assert through.ask(endpoint, stream=True).status_code == 500
    assert len(upstream.requests) == 4


def test_an_answer_says_which_engine_gave_it(through: BaseClient, upstream: FaultServer, endpoint: str) -> None:
    """And the model by the name that the caller used."""
    answered = through.ask(endpoint)
    assert answered.headers["x-famnb-engine"] == "upstream"
    assert answered.json()["model"] == minimal(endpoint)["model"]
    assert asked(upstream.requests[-1])["model"] == MODEL


def test_a_stored_response_goes_on(through: BaseClient, upstream: FaultServer) -> None:
    """The upstream, which stores nothing, gets the whole conversation each time."""
    first = through.ask("responses", "My name is Ada.").json()
    through.ask("responses", "What is it?", previous_response_id=first["id"])
    said_before = [(message["role"], message["content"]) for message in asked(upstream.requests[-1])["messages"]]
    assert said_before == [("user", "My name is Ada."), ("assistant", "Hello, world."), ("user", "What is it?")]


def test_famnb_in_front_of_famnb_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through two services the simulated answer is the one that the first gives, streamed and whole, with its usage."""
    with serve(time_scale=0) as sim:
        monkeypatch.setenv("THEIR_KEY", sim.key)
        with (
            gateway(sim.url, upstream_key="THEIR_KEY", upstream_model="fam-mini") as through,
            BaseClient(sim) as direct,
        ):
            for endpoint in PATHS:
                whole, streamed = (reply(through, endpoint, temperature=0.5, stream=stream) for stream in (False, True))
                assert whole.text == streamed.text
                assert whole.usage.output_tokens
            assert reply(through, "chat").text == reply(direct, "chat").text
