"""A server of canned streams for the clients' benchmark: plain sockets, rendered bytes, a clock in every live event.

POST /bulk/EVENTS/…             all events as fast as the socket takes them
POST /live/EVENTS/PER_SECOND/…  each event by itself, its text the server's monotonic clock in nanoseconds
POST /words/EVENTS/PER_SECOND/… each event by itself, its text a numbered word; the last is END and the time of day
The end of the path chooses the dialect: `…/messages` has `event:` lines, everything else is chat completions.

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
from typing import Any

import uvloop

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"
MARK = "0123456789012345678"
"""Stands where the clock goes; as long as the clock in nanoseconds, filled with zeros."""


def _event(payload: Any) -> bytes:
    name = f"event: {payload['type']}\n".encode() if isinstance(payload, dict) and "type" in payload else b""
    data = payload if isinstance(payload, bytes) else json.dumps(payload, separators=(",", ":")).encode()
    return b"%bdata: %b\n\n" % (name, data)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def chat() -> tuple[list[bytes], bytes, list[bytes]]:
    """What opens a chat completion, one event of text, and what closes it."""

    def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        head = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1700000000, "model": "fam-mini"}
        return _chunk(_event({**head, "choices": [choice]}))

    opening = [chunk({"role": "assistant", "content": ""})]
    return opening, chunk({"content": MARK}), [chunk({}, "stop"), _chunk(_event(b"[DONE]"))]


def messages() -> tuple[list[bytes], bytes, list[bytes]]:
    """The same of the messages dialect."""
    message = {
        "id": "msg_bench",
        "type": "message",
        "role": "assistant",
        "model": "fam-2-5-pro",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 1},
    }
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": MARK}}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    closing = [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    opening = [_event({"type": "message_start", "message": message}), _event(start)]
    return [_chunk(block) for block in opening], _chunk(_event(delta)), [_chunk(_event(event)) for event in closing]


DIALECTS = {"chat": chat(), "messages": messages()}


@functools.cache
def bulk(dialect: str, events: int) -> bytes:
    """A whole answer with its head."""
    opening, event, closing = DIALECTS[dialect]
    return b"".join([HEAD, *opening, event * events, *closing, END])


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
        dialect = "messages" if path.endswith("messages") else "chat"
        if kind == "bulk":
            self._transport.write(bulk(dialect, int(events)))
            return
        opening, event, _ = DIALECTS[dialect]
        before, _, after = event.partition(MARK.encode())
        self._transport.write(b"".join([HEAD, *opening]))
        loop = asyncio.get_running_loop()
        gap = 1 / float(rest[0])
        # Spread by the object's address (a prime, so that its alignment does not matter): streams that start together
        # would else write together for ever.
        due = loop.time() + gap + (hash(self) // 16 % 997) / 997 * gap
        new_text = word if kind == "words" else moment
        self._timer = loop.call_at(due, self._tick, (before, after), new_text, dialect, int(events), due, gap)

    def _tick(
        self,
        around: tuple[bytes, bytes],
        new_text: Callable[[int], bytes],
        dialect: str,
        left: int,
        due: float,
        gap: float,
    ) -> None:
        if self._transport is None:
            return
        if left == 0:
            self._transport.write(b"".join([*DIALECTS[dialect][2], END]))
            return
        data = new_text(left).join(around)
        # A text of another length than MARK makes another chunk.
        self._transport.write(data if new_text is moment else _chunk(data.partition(b"\r\n")[2].removesuffix(b"\r\n")))
        due += gap
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(due, self._tick, around, new_text, dialect, left - 1, due, gap)


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
