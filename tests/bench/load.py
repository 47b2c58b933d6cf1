"""Many streams at once from one server, kept as bytes and compared afterwards with what they should say.

usage: load.py JSON with url, path, key, model, streams, and `texts`: for each prompt the text of the right answer
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import uvloop

END = b"0\r\n\r\n"


def request(job: dict[str, Any], prompt: str) -> bytes:
    """One request for a stream."""
    fields = {"model": job["model"], "stream": True, "messages": [{"role": "user", "content": prompt}]}
    body = json.dumps(fields).encode()
    head = (
        f"POST {job['path']} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {job['key']}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Stream(asyncio.Protocol):
    """Sends a request and keeps everything up to the end of the chunked body."""

    def __init__(self, request: bytes) -> None:
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pieces: list[bytes] = []
        self._request = request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)
        if b"".join(self.pieces[-2:]).endswith(b"\r\n" + END) and not self.over.done():
            self.over.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)


def parse_stream(data: bytes) -> tuple[str, int]:
    """Return the text of a chat stream and how many events it had; the text is empty if its end is missing."""
    _, _, body = data.partition(b"\r\n\r\n")
    plain = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        plain.append(body[:length])
        body = body[length + 2 :]
    *events, rest = b"".join(plain).split(b"\n\n")
    if rest or not events or events[-1] != b"data: [DONE]":
        return "", len(events)
    chunks = [json.loads(event.removeprefix(b"data: ")) for event in events[:-1]]
    return "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"]), len(events)


async def main(job: dict[str, Any]) -> dict[str, Any]:
    """Hold all streams, then compare; `wrong` counts streams with a lost, repeated or reordered event."""
    address = urlsplit(job["url"])
    loop, texts = asyncio.get_running_loop(), list(job["texts"].items())
    pairs = [texts[n % len(texts)] for n in range(job["streams"])]
    began = time.monotonic()
    connections = await asyncio.gather(
        *(
            loop.create_connection(lambda p=prompt: Stream(request(job, p)), address.hostname, address.port)
            for prompt, _ in pairs
        )
    )
    streams = [stream for _, stream in connections]
    await asyncio.gather(*(stream.over for stream in streams))
    wall_s = time.monotonic() - began
    replies = [parse_stream(b"".join(stream.pieces)) for stream in streams]
    wrong = sum(text != right for (text, _), (_, right) in zip(replies, pairs, strict=True))
    return {"events": sum(count for _, count in replies), "wall_s": wall_s, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(main(json.loads(sys.argv[1])))))
