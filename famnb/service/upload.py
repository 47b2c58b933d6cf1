"""Reading a body: no larger than allowed, no slower than allowed; what it says is left to validation."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from famnb.service.refusal import Refusal


async def body_of(request: Request, *, limit: int, within: float) -> bytes:
    """The whole body; raises Refusal 413 beyond `limit` bytes and 408 after `within` seconds.

    What a refused caller goes on sending is dropped by the server as it comes, so that it lives to read the answer.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(within):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
                chunks.append(chunk)
    except TimeoutError:
        raise Refusal(
            408,
            f"the body did not arrive within {within:g} s ({size:,} bytes did); send it faster or smaller",
            headers={"connection": "close"},
        ) from None
    return b"".join(chunks)


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"the body is larger than {limit:,} bytes; send less")
