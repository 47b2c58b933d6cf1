"""Reads the body of an answer: into the intake as it comes, or whole when it is an error's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from famnb.client.call import Call
from famnb.client.transport import Answer
from famnb.client.watch import Watch
from famnb.errors import StreamInterrupted

DRAIN_S = 0.25
"""How long a finished stream may take to end its body, so that its connection can be used again."""
ERROR_BODY_S = 5.0
"""How long the body of an error may take; then what has come of it must do."""
ERROR_BODY_BYTES = 1_000_000


async def taken(
    call: Call, watch: Watch, answer: Answer, *, streamed: bool, mask: Callable[[bytes], bytes] = bytes
) -> None:
    """Read a body to its end, or to the end of what it means; raises unless that is a complete reply."""
    intake, grew = call.begin_intake(streamed=streamed, mask=mask), call.handover.grew
    sent_ns, clock = call.sent_ns or 0, call.clock
    begun = not streamed
    if begun:
        watch.streaming()
    signs = 0
    async with aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            if intake.feed(chunk, clock() - sent_ns):
                grew()
                if not begun:
                    begun = True
                    watch.streaming()
                if intake.finished:
                    await drained(chunks)
                    break
            if begun and intake.signs != signs:
                signs = intake.signs
                watch.alive()
        intake.end(call.elapsed())


async def drained(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read on to the end of the body: a connection whose body was not read to its end cannot be used again."""
    with contextlib.suppress(StreamInterrupted, TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass


async def error_body(answer: Answer) -> bytes:
    """The body of an error, as far as it comes within reason."""
    body = bytearray()
    with contextlib.suppress(StreamInterrupted, TimeoutError):
        async with asyncio.timeout(ERROR_BODY_S), aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > ERROR_BODY_BYTES:
                    break
    return bytes(body)
