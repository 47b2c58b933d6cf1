"""A bare Starlette StreamingResponse on uvicorn, as fast as it can be set up: sends given blocks, one write each.

usage: bare.py FILE GAP_S      FILE holds a JSON list of blocks; GAP_S 0 only gives the loop a turn between them
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

BLOCKS = [block.encode() for block in json.loads(Path(sys.argv[1]).read_text())]
GAP_S = float(sys.argv[2])


async def blocks() -> AsyncIterator[bytes]:
    for block in BLOCKS:
        await asyncio.sleep(GAP_S)
        yield block


async def answer(request: Request) -> StreamingResponse:
    await request.body()
    return StreamingResponse(blocks(), media_type="text/event-stream")


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}"}), flush=True)
    app = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
    config = uvicorn.Config(app, http="httptools", loop="uvloop", log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])
