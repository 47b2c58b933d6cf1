"""An engine that never ends: every chat completion is the same chunk, as fast as its caller reads, until he leaves."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import uvloop

CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "endless"}
EVENT = b"data: %b\n\n" % json.dumps({**CHUNK, "choices": [{"index": 0, "delta": {"content": "word "}}]}).encode()
PIECE = EVENT * 50
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
MODELS = b'{"data":[{"id":"endless"}]}'
LISTING = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(MODELS), MODELS)


class Connection(asyncio.Protocol):
    """Answers a GET with the model's name, and a POST for ever."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._task: asyncio.Task[None] | None = None

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"GET"):
            self._transport.write(LISTING)
        elif data.startswith(b"POST"):
            self._task = asyncio.create_task(self._speak())

    async def _speak(self) -> None:
        self._transport.write(STREAM)
        while True:
            await self._may_write.wait()
            self._transport.write(b"%x\r\n%b\r\n" % (len(PIECE), PIECE))
            await asyncio.sleep(0)

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def connection_lost(self, error: Exception | None) -> None:
        if self._task is not None:
            self._task.cancel()


async def main() -> None:
    """Serve until killed; the first line says where."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps(f"http://127.0.0.1:{port}"), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)


if __name__ == "__main__":
    uvloop.run(main())
