"""One client in a process of its own: reads canned streams in its own idiom and prints what that cost, as JSON.

usage: peers.py PEER URL STREAMS EVENTS
Each peer takes the text of every event and the moment at which it had the event; famnb moreover does all that it does
for any call: folding, timing, recording in a ledger file. famnb brings uvloop, so every other peer is given it too.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import harness

Arrivals = list[tuple[int, str]]
"""For each event of one stream: monotonic nanoseconds, and its text."""
Reader = Callable[[], Coroutine[Any, Any, Arrivals]]
KEY = "benchmark-key"
CHAT: dict[str, Any] = {"model": "fam-mini", "messages": [{"role": "user", "content": "Count."}]}
UNLIMITED = 100_000
"""More connections than any load here needs, for clients that limit them."""


class Meter:
    """What reading cost: processor time and wall time between `start` and `stop`, all threads included."""

    def start(self) -> None:
        self._began = time.process_time(), time.monotonic()

    def stop(self) -> None:
        self.cpu_s = time.process_time() - self._began[0]
        self.wall_s = time.monotonic() - self._began[1]


def run_famnb(url: str, streams: int, meter: Meter) -> list[Arrivals]:
    """The client of famnb; an event's moment is the one at which Python had it, as recorded beside its arrival."""
    import famnb

    request = famnb.ChatRequest(**CHAT)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.sqlite"
        with famnb.Client(base_url=url, api_key=KEY, ledger=ledger, connections=UNLIMITED) as client:
            if is_bulk(url):
                client.send(request)
            meter.start()
            calls = [client.stream(request) for _ in range(streams)]
            replies = [call.result() for call in calls]
            meter.stop()
    # Recorded moments count from the sending, which has no public name on the clock that the server reads.
    return [_arrivals_from_record(call._call.sent_ns or 0, reply) for call, reply in zip(calls, replies, strict=True)]


def is_bulk(url: str) -> bool:
    """Whether it is one stream that is measured, of which connecting and a new ledger file would be a fifth."""
    return "/bulk/" in url


def _arrivals_from_record(sent_ns: int, reply: Any) -> Arrivals:
    arrivals = [
        (sent_ns + read.t_ns + (read.late_ns or 0), text_of(data)) for read in reply.reads for data in read.data
    ]
    if "".join(text for _, text in arrivals) != reply.text:
        raise AssertionError("famnb's record and its reply differ")
    return [(moment, text) for moment, text in arrivals if text]


def text_of(data: bytes, decode: Callable[[bytes], Any] = json.loads) -> str:
    if data == b"[DONE]":
        return ""
    return decode(data)["choices"][0]["delta"].get("content") or ""


def run_loop(reader: Callable[[str], tuple[Reader, Callable[[], Any]]]) -> Callable[[str, int, Meter], list[Arrivals]]:
    """A peer that lives on an event loop, all its streams on one."""

    def run(url: str, streams: int, meter: Meter) -> list[Arrivals]:
        import uvloop

        async def all_streams() -> list[Arrivals]:
            read, close = reader(url)
            if is_bulk(url):
                await read()
            meter.start()
            arrivals = await asyncio.gather(*(read() for _ in range(streams)))
            meter.stop()
            await close()
            return arrivals

        return uvloop.run(all_streams())

    return run


def openai_sdk(url: str) -> tuple[Reader, Callable[[], Any]]:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)

    async def read() -> Arrivals:
        chunks = await client.chat.completions.create(**CHAT, stream=True)
        return [(time.monotonic_ns(), chunk.choices[0].delta.content or "") async for chunk in chunks]

    return read, client.close


def aiohttp_msgspec(url: str) -> tuple[Reader, Callable[[], Any]]:
    """Plain aiohttp, events cut at blank lines and decoded by msgspec."""
    import aiohttp
    import msgspec

    decode = msgspec.json.Decoder().decode
    sessions: list[aiohttp.ClientSession] = []

    async def events(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
        rest = b""
        while data := await content.readany():
            *whole, rest = (rest + data).split(b"\n\n")
            for event in whole:
                yield event.removeprefix(b"data: ")

    async def read() -> Arrivals:
        if not sessions:
            sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        async with sessions[0].post(f"{url}/v1/chat/completions", json=CHAT) as response:
            return [(time.monotonic_ns(), text_of(data, decode)) async for data in events(response.content)]

    async def close() -> None:
        for session in sessions:
            await session.close()

    return read, close


PEERS = {
    "famnb": run_famnb,
    "openai": run_loop(openai_sdk),
    "aiohttp+msgspec": run_loop(aiohttp_msgspec),
}


def main(peer: str, url: str, streams: int, events: int) -> None:
    """Warm up, read, and print one line of JSON; raises unless every event came."""
    run, meter = PEERS[peer], Meter()
    run(f"{url.rpartition('/bulk')[0] or url.rpartition('/live')[0]}/bulk/10", 1, meter)
    arrivals_by_stream = run(url, streams, meter)
    arrivals = [(moment, text) for stream in arrivals_by_stream for moment, text in stream if text]
    if len(arrivals) != streams * events:
        raise AssertionError(f"{len(arrivals)} events came of {streams * events}")
    report: dict[str, Any] = {"events": len(arrivals), "cpu_s": meter.cpu_s, "wall_s": meter.wall_s}
    if "/live/" in url:
        lags = [(moment - int(text)) / 1e6 for moment, text in arrivals]
        report |= {"lag_p50_ms": harness.median(lags), "lag_p99_ms": harness.quantile(lags, 0.99)}
    print(json.dumps({**report, "peak_rss_mb": harness.peak_rss_mb()}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
