"""A reply of any length passes through the service, which keeps nothing of it; its parts have limits."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from famnb.errors import ResponseFormatError, StreamDecodeError
from famnb.events import Delta, Opened, Started
from famnb.service import Server, serve
from famnb.service.engines.upstream_reply import MAX_UNREAD_BYTES, UpstreamReader
from tests.support.fault_server import FaultServer, Script, Step, chunked
from tests.support.service_requests import PATHS, ServiceClient, minimal_body
from tests.support.upstream_servers import HELLO, MODEL, chunk, fetch_reply, start_gateway, stream_chunks
from tests.support.waiting import wait_until

MB = 1_000_000


def endless(step: bytes = chunk({"content": "word "}) * 500) -> Script:
    """A stream that says the same for as long as anybody reads it."""
    head, *_ = chunked()
    piece = chunked(step)[1]
    steps: Iterator[Step] = itertools.chain([head], itertools.repeat(piece))
    return steps  # type: ignore[return-value]  # a script is only ever gone through


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    """An engine that never ends."""
    with FaultServer(choose=lambda _: endless()) as server:
        yield server


@pytest.fixture
def gateway(upstream: FaultServer) -> Iterator[Server]:
    """A service of its own in front of it, whose memory nobody else uses."""
    with serve(upstream=upstream.url, upstream_model=MODEL) as server:
        yield server


@pytest.mark.full
def test_a_long_stream_leaves_nothing_in_memory(gateway: Server, upstream: FaultServer):
    """Ten megabytes pass, which would take several times as much as events; when the caller leaves, nothing is read."""
    process = psutil.Process(gateway.pid)
    # Of an endpoint whose streams do not repeat their text at the end; the cap is never met.
    body = minimal_body("messages", stream=True, max_tokens=10**9)
    received, start, peak = 0, 0, 0
    with ServiceClient(gateway) as caller, caller.stream("POST", PATHS["messages"], json=body) as answer:
        for data in answer.iter_raw():
            received += len(data)
            if received > 2 * MB:
                start = start or process.memory_info().rss
                peak = max(peak, process.memory_info().rss)
            if received > 10 * MB:
                break
    wait_until(lambda: upstream.open == 0)
    assert max(peak, process.memory_info().rss) - start < 10 * MB


@pytest.mark.full
def test_a_reply_that_has_to_be_kept_is_ended_in_time(gateway: Server):
    """The end of a responses stream repeats its text: at some hundred thousand tokens it is incomplete."""
    with ServiceClient(gateway) as caller:
        last = caller.events("responses", max_output_tokens=10**9, store=False)[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    text = last["response"]["output"][0]["content"][0]["text"]
    assert 200_000 < text.count("word ") < 400_000


UNENDED = {"one line": b"x" * MB, "lines of one event": b"data: " + b"x" * MB + b"\n"}


@pytest.mark.parametrize("step", UNENDED.values(), ids=UNENDED.keys())
def test_an_event_without_an_end_is_refused(step: bytes):
    script = [*chunked(*HELLO, end=False), *itertools.islice(endless(step), 1, 100)]
    with FaultServer(script) as upstream, start_gateway(upstream) as api:
        reply = fetch_reply(api, "web", stream=True)
        assert (reply.text, reply.status) == ("Hello, world.", "failed")
        wait_until(lambda: upstream.open == 0)


def test_a_whole_body_without_an_end_is_refused():
    script = [*chunked(b"{", content_type="application/json", end=False), *itertools.islice(endless(b" " * MB), 1, 100)]
    with FaultServer(script) as upstream, start_gateway(upstream) as api:
        answer = api.ask("messages")
    assert (answer.status_code, "no chat completion" in answer.text) == (500, True)


def test_a_long_event_passes():
    reader = UpstreamReader(streamed=True)
    for _ in range(5):
        text = "x" * (MAX_UNREAD_BYTES // 2)
        events = list(reader.feed(chunk({"content": text})))
        assert sum(len(getattr(event, "text", "")) for event in events) == len(text)
    with pytest.raises(ResponseFormatError, match="8,000,000 bytes"):
        list(reader.feed(b"data: " + b"x" * MAX_UNREAD_BYTES))


def test_the_events_before_an_unreadable_one_come_first():
    events = UpstreamReader(streamed=True).feed(b"".join([*HELLO, b"data: {no\n\n"]))
    kinds = []
    with pytest.raises(StreamDecodeError):
        kinds.extend(type(event) for event in events)
    assert kinds == [Started, Opened, Delta, Delta]


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_any_cut_of_the_bytes_gives_the_same_events(size: int):
    def read(data: bytes, size: int, **options: Any) -> list[Any]:
        reader = UpstreamReader(**options)
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        return [event for piece in pieces for event in reader.feed(piece)] + list(reader.end())

    stream = b"".join(stream_chunks("Hello", ", world."))
    assert read(stream, size, streamed=True) == read(stream, len(stream), streamed=True)
    body = json.dumps({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}).encode()
    assert read(body, size, streamed=True) == read(body, len(body), streamed=False)
