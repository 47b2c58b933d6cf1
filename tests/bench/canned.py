"""A server of canned streams for the clients' benchmark: plain sockets, rendered bytes, a clock in every live event.

POST /bulk/EVENTS/…             all events as fast as the socket takes them
POST /live/EVENTS/PER_SECOND/…  each event by itself, its text the server's monotonic clock in nanoseconds
POST /words/EVENTS/PER_SECOND/… each event by itself, its text a numbered word; the last is END and the time of day
All answer with chat completions, whatever the end of the path is.

usage: canned.py [CERTIFICATE KEY]   with these files it speaks TLS
"""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
import sys
import time
from collections.abc import Callable

import uvloop

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"
MARK = "0123456789012345678"
"""Stands where the clock goes; as long as the clock in nanoseconds, filled with zeros."""


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(delta: dict[str, str], finish: str | None = None) -> bytes:
    """One event of a chat completion, as a chunk."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1700000000, "model": "fam-mini"}
    data = json.dumps({**head, "choices": [choice]}, separators=(",", ":")).encode()
    return _chunk(b"data: %b\n\n" % data)


OPENING, TEXT = event({"role": "assistant", "content": ""}), event({"content": MARK})
CLOSING = event({}, "stop") + _chunk(b"data: [DONE]\n\n") + END


@functools.cache
def bulk(events: int) -> bytes:
    """A whole answer with its head."""
    return HEAD + OPENING + TEXT * events + CLOSING


def moment(_left: int) -> bytes:
    """The text of a live event."""
    return b"%019d" % time.monotonic_ns()


def word(left: int) -> bytes:
    """The text of an event with its number, counted down, as it stands in JSON; now and then a paragraph ends."""
    if left == 1:
        return b"END%019d" % time.time_ns()
    return b"x%03X%s" % (left, b"\\n\\n" if left % 60 == 0 else b" ")


class Connection(asyncio.Protocol):
    """Answers one request after the other."""

    def __init__(self) -> None:
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream's transport writes

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if not blank:
            return
        lines = head.split(b"\r\n")
        lengths = [line.partition(b":")[2] for line in lines if line.lower().startswith(b"content-length:")]
        if len(body) < int(lengths[0] if lengths else 0):
            return
        self._received = b""
        self._answer(lines[0].split(b" ")[1].decode())

    def _answer(self, path: str) -> None:
        assert self._transport is not None
        _, kind, events, *rest = path.split("/")
        if kind == "bulk":
            self._transport.write(bulk(int(events)))
            return
        before, _, after = TEXT.partition(MARK.encode())
        self._transport.write(HEAD + OPENING)
        loop = asyncio.get_running_loop()
        gap = 1 / float(rest[0])
        # Spread by the object's address (a prime, so that its alignment does not matter): streams that start together
        # would else write together for ever.
        due = loop.time() + gap + (hash(self) // 16 % 997) / 997 * gap
        new_text = word if kind == "words" else moment
        self._timer = loop.call_at(due, self._tick, (before, after), new_text, int(events), due, gap)

    def _tick(
        self,
        around: tuple[bytes, bytes],
        new_text: Callable[[int], bytes],
        left: int,
        due: float,
        gap: float,
    ) -> None:
        if self._transport is None:
            return
        if left == 0:
            self._transport.write(CLOSING)
            return
        data = new_text(left).join(around)
        # A text of another length than MARK makes another chunk.
        self._transport.write(data if new_text is moment else _chunk(data.partition(b"\r\n")[2].removesuffix(b"\r\n")))
        due += gap
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(due, self._tick, around, new_text, left - 1, due, gap)


async def main() -> None:
    """Serve until killed; the first line says where."""
    context = None
    if files := sys.argv[1:]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*files)
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=2048, ssl=context)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps(f"https://localhost:{port}" if context else f"http://127.0.0.1:{port}"), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)


if __name__ == "__main__":
    uvloop.run(main())
