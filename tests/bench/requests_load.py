"""Short requests on kept connections, and sockets that send half a head, from one process.

usage: requests_load.py JSON with url, path, key, model, requests, connections, half_open
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import uvloop


def request(job: dict[str, Any]) -> bytes:
    """One request for an answer of one token."""
    message = {"role": "user", "content": "Say one word."}
    body = json.dumps({"model": job["model"], "max_tokens": 1, "messages": [message]}).encode()
    head = (
        f"POST {job['path']} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {job['key']}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def ask(host: str, port: int, data: bytes, count: int, latencies: list[float]) -> int:
    """Send a request so many times, one after the other; return how many answers were not 200."""
    reader, writer = await asyncio.open_connection(host, port)
    wrong = 0
    for _ in range(count):
        began = time.perf_counter()
        writer.write(data)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        await reader.readexactly(length)
        latencies.append(time.perf_counter() - began)
        wrong += not head.startswith(b"http/1.1 200")
    writer.close()
    return wrong


async def main(job: dict[str, Any]) -> dict[str, Any]:
    """Open the half-open sockets, then ask; times in seconds."""
    address = urlsplit(job["url"])
    host, port = address.hostname or "", address.port or 0
    data, latencies = request(job), list[float]()
    refused = 0
    half_open = []
    for _ in range(job["half_open"]):
        try:
            half_open.append(await asyncio.open_connection(host, port))
            half_open[-1][1].write(data[:40])
        except OSError:
            refused += 1
    began = time.monotonic()
    share = job["requests"] // job["connections"]
    wrong = sum(await asyncio.gather(*(ask(host, port, data, share, latencies) for _ in range(job["connections"]))))
    wall_s = time.monotonic() - began
    for _, writer in half_open:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    latencies.sort()
    return {
        "wall_s": wall_s,
        "wrong": wrong + refused,
        "p50_ms": latencies[len(latencies) // 2] * 1000,
        "p99_ms": latencies[int(len(latencies) * 0.99)] * 1000,
    }


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print(json.dumps(uvloop.run(main(json.loads(sys.argv[1])))))
