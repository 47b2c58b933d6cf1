"""Reading a request: no larger than allowed, no slower than allowed; what it says is left to validation."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from famnb.service.refusal import Refusal

HEAD_LIMIT = 65_536
"""How many bytes of a request's address and headers are kept."""
HEAD_TOO_LARGE = "head_too_large"
"""Where the state of a request says that some of its head was not kept."""


def checked_head(request: Request) -> None:
    """Raise Refusal 431 for a request whose head is too large to be kept; to be asked once its key is known."""
    if getattr(request.state, HEAD_TOO_LARGE, False):
        raise head_too_large()


def head_too_large() -> Refusal:
    """The answer to a head beyond the limit."""
    said = f"the address and headers are larger than {HEAD_LIMIT:,} bytes; send fewer or shorter ones"
    return Refusal(431, said, headers={"connection": "close"})


async def body_of(request: Request, *, limit: int, within: float) -> bytes:
    """The whole body; raises Refusal 400 if it is compressed, 413 beyond `limit` bytes, 408 after `within` seconds.

    What a refused caller goes on sending is dropped by the server as it comes, so that it lives to read the answer.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        said = f"content-encoding: expected a body as it is, got one in {encoding[:40]!r}; send plain JSON"
        raise Refusal(400, said, code="invalid_json", param="content-encoding")
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
