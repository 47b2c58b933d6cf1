"""uvicorn, with TLS of its own on a second port, in front of another server: what comes of a body is passed on at once.

usage: uvicorn_proxy.py FILE      FILE holds JSON with plain, tls, upstream, certificate, key
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

SETTINGS = json.loads(Path(sys.argv[1]).read_text())
OF_ONE_CONNECTION = ("connection", "transfer-encoding", "content-length", "date", "server")
UPSTREAM = httpx.AsyncClient(base_url=SETTINGS["upstream"], trust_env=False, timeout=30)


async def forward(request: Request) -> Response:
    """Send the request to the upstream; 502 where nothing comes."""
    headers = [header for header in request.headers.raw if header[0] not in (b"host", b"connection")]
    sent = UPSTREAM.build_request(request.method, request.url.path, headers=headers, content=await request.body())
    try:
        answer = await UPSTREAM.send(sent, stream=True)
    except httpx.HTTPError as error:
        return PlainTextResponse(f"the upstream does not answer: {error}", 502)

    async def pass_on() -> AsyncIterator[bytes]:
        try:
            async for chunk in answer.aiter_raw():
                yield chunk
        finally:
            await answer.aclose()

    headers = {name: value for name, value in answer.headers.items() if name not in OF_ONE_CONNECTION}
    return StreamingResponse(pass_on(), answer.status_code, headers)


async def main() -> None:
    """Serve until a signal comes."""
    app = Starlette(routes=[Route("/{path:path}", forward, methods=["GET", "POST"])])
    tls = {"ssl_certfile": SETTINGS["certificate"], "ssl_keyfile": SETTINGS["key"]}
    servers = [
        uvicorn.Server(uvicorn.Config(app, port=SETTINGS[port], log_level="critical", timeout_keep_alive=1, **files))
        for port, files in (("plain", {}), ("tls", tls))
    ]
    await asyncio.gather(*(server.serve() for server in servers))


if __name__ == "__main__":
    uvloop.run(main())
