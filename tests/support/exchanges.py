"""Calls as they look when they are over, made by hand: what came, and when, to the millisecond."""

import json
from datetime import UTC, datetime
from typing import Any

from famnb import endpoints
from famnb.client.engine import new_call_id
from famnb.client.exchange import Exchange
from famnb.client.response_reader import reply_from_reads
from famnb.timing import Read

MS = 1_000_000


def at(ms: float, *events: Any) -> Read:
    """One read: events that came together, JSON unless they are bytes already."""
    return Read(round(ms * MS), tuple(e if isinstance(e, bytes) else json.dumps(e).encode() for e in events))


def chunk(delta: dict[str, Any] | None = None, *, finish: str | None = None) -> dict[str, Any]:
    """A chunk of a chat stream."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "fam-mini", "choices": [choice]}


def usage(prompt: int, completion: int) -> dict[str, Any]:
    """The usage chunk of a chat stream."""
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": counts}


def spoken(*texts: str, counts: tuple[int, int] | None = None) -> list[Read]:
    """A chat stream: a role at 100 ms, a text each 100 ms from 200 ms on, then its end."""
    reads = [at(100, chunk({"role": "assistant"}))]
    reads += [at(200 + 100 * index, chunk({"content": text})) for index, text in enumerate(texts)]
    closing = [chunk(finish="stop"), *([usage(*counts)] if counts else []), b"[DONE]"]
    return [*reads, at(200 + 100 * len(texts), *closing)]


def exchange(
    reads: list[Read] | None = None,
    *,
    endpoint: str = "chat",
    prompt: str = "Why is the sky blue?",
    streamed: bool = True,
    status: int | None = 200,
    service: str | None = None,
    started_at: datetime | None = None,
    labels: dict[str, str] | None = None,
    **fields: Any,
) -> Exchange:
    """A call that is over, its reply read from `reads`; a fresh one each time."""
    call = Exchange(
        id=new_call_id(),
        request=endpoints.compose(endpoint, prompt, stream=streamed, **fields),
        endpoint=endpoints.endpoint(endpoint),
        url="http://127.0.0.1/v1",
        started_at=started_at or datetime.now(UTC),
        labels=labels or {},
    )
    call.reads = spoken("Hello, ", "world") if reads is None else reads
    call.attempts, call.http_status, call.service, call.streamed = 1, status, service, streamed
    call.headers_ns, call.end_ns = 90 * MS, call.reads[-1].t_ns if call.reads else 90 * MS
    call.reply = reply_from_reads(
        call.endpoint, streamed=streamed, reads=call.reads, headers_ns=call.headers_ns, end_ns=call.end_ns
    )
    return call
