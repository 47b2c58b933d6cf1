"""A reply of any length passes through the service, which keeps nothing of it; its parts have limits."""

import itertools
from collections.abc import Iterator

import psutil
import pytest

from famnb.errors import ResponseFormatError
from famnb.service import Server, serve
from famnb.service.engines.upstream_reply import MAX_UNREAD_BYTES, UpstreamReader
from tests.support.fault_server import FaultServer, Script, Step, chunked
from tests.support.service_requests import PATHS, ServiceClient, minimal_body
from tests.support.upstream_servers import HELLO, MODEL, chunk, fetch_reply, start_gateway
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
