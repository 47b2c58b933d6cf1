"""How the messages dialect is written, whole and streamed; reading it stands in `messages`."""

from __future__ import annotations

from typing import Any

from famnb.events import Address, Closed, Delta, Done, Ended, Event, Fault, Opened, Started, Usage
from famnb.reply import Block, Reply
from famnb.wire import codec, sse

COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""The names of the usage's counts."""
_FINISH = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
    "cancelled": "end_turn",
}
_KINDS = ("thinking", "text", "refusal", "tool_call")
"""The kinds of block that this dialect can say; a refusal is said as text."""
_DELTAS = {
    "thinking": ("thinking_delta", "thinking"),
    "text": ("text_delta", "text"),
    "refusal": ("text_delta", "text"),
    "signature": ("signature_delta", "signature"),
    "tool_call": ("input_json_delta", "partial_json"),
}
"""For each kind of delta its type and the field of its piece."""


class MessagesWriter:
    """Writes the events of one message; `named` adds `event:` lines and `message_stop`."""

    __slots__ = ("_begun", "_ended", "_heads", "_indices", "_kinds", "_named", "_said", "_stopped", "_usage")

    def __init__(self, *, named: bool) -> None:
        self._named = named
        self._begun = False
        self._indices: dict[Address, int] = {}
        self._kinds: dict[Address, str] = {}
        self._heads: dict[tuple[Address, str], bytes] = {}
        self._said: set[Address] = set()
        self._stopped: set[Address] = set()
        self._usage = Usage()
        self._ended: Ended | None = None

    def write(self, event: Event, /) -> list[bytes]:
        match event:
            case Delta():
                self._said.add(event.at)
                head = self._heads.get((event.at, event.kind))
                if head is not None:
                    return [b"%b%b}}\n\n" % (head, codec.encode(event.text))]
                return self._delta(event)
            case Opened():
                return self._opened(event)
            case Closed():
                return self._closed(event.at, event.text)
            case Started() if not self._begun:
                self._begun = True
                return [self._start(event)]
            case Usage():
                self._usage = self._usage.then(event)
            case Ended(fault=None):
                self._ended = self._ended or event
            case Ended(fault=Fault() as found):
                self._ended = event
                return [self._frame("error", {"error": _inner(found)})]
            case Done():
                return [*self._end(), sse.encode(sse.DONE)]
            case _:
                pass
        return []

    def _frame(self, type_: str, fields: dict[str, Any]) -> bytes:
        return sse.encode(codec.encode({"type": type_, **fields}), type_ if self._named else None)

    def _start(self, started: Started) -> bytes:
        message: dict[str, Any] = {
            "id": started.id,
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": started.model,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": dict.fromkeys(COUNTS, 0),
        }
        return self._frame("message_start", {"message": message})

    def _opened(self, event: Opened) -> list[bytes]:
        at = event.at
        self._kinds.setdefault(at, event.kind)
        if at in self._indices or event.kind not in _KINDS:
            return []
        index = self._indices[at] = len(self._indices)
        block = _block(Block(at, event.kind, id=event.id, name=event.name))
        return [self._frame("content_block_start", {"index": index, "content_block": block})]

    def _delta(self, event: Delta) -> list[bytes]:
        """The first delta of its kind in a block: what all of them begin with is rendered once."""
        at, kind = event.at, event.kind
        frames = self._opened(Opened(at, "thinking" if kind == "signature" else kind))
        if at not in self._indices or kind not in _DELTAS:
            return []
        type_, field = _DELTAS[kind]
        start = {"type": "content_block_delta", "index": self._indices[at], "delta": {"type": type_, field: ""}}
        name = b"event: content_block_delta\n" if self._named else b""
        self._heads[at, kind] = b"%bdata: %b" % (name, codec.encode(start).removesuffix(b'""}}'))
        return [*frames, *self.write(event)]

    def _closed(self, at: Address, text: str | None) -> list[bytes]:
        frames = [] if not text or at in self._said else self.write(Delta(at, self._kinds.get(at, "text"), text))
        if at in self._indices and at not in self._stopped:
            self._stopped.add(at)
            frames.append(self._frame("content_block_stop", {"index": self._indices[at]}))
        return frames

    def _end(self) -> list[bytes]:
        """What stands between the last block and the terminator: after a failure, nothing."""
        ended = self._ended
        if ended is None or ended.fault is not None:
            return []
        frames = [frame for at in self._indices for frame in self._closed(at, None)]
        delta: dict[str, Any] = {"stop_reason": _finish(ended.finish_reason)}
        if ended.stop_sequence is not None:
            delta["stop_sequence"] = ended.stop_sequence
        usage = {"output_tokens": self._usage.output_tokens or 0}
        frames.append(self._frame("message_delta", {"delta": delta, "usage": usage}))
        return [*frames, self._frame("message_stop", {})] if self._named else frames


def write(reply: Reply) -> dict[str, Any]:
    """The message that says this reply."""
    return {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "content": [_block(block) for block in reply.blocks if block.kind in _KINDS],
        "model": reply.model,
        "stop_reason": _finish(reply.finish_reason),
        "stop_sequence": reply.stop_sequence,
        "usage": _usage(reply.usage),
    }


def fault(fault: Fault) -> dict[str, Any]:
    """The error body of the messages endpoint."""
    return {"error": {"type": "error", "error": _inner(fault)}}


def _inner(fault: Fault) -> dict[str, Any]:
    fields: dict[str, Any] = {"type": fault.type or "api_error", "message": fault.message}
    return {**fields, "param": fault.param} if fault.param else fields


def _block(block: Block) -> dict[str, Any]:
    match block.kind:
        case "thinking":
            fields: dict[str, Any] = {"type": "thinking", "thinking": block.text}
            if block.signature:
                fields["signature"] = block.signature
            if block.latency_ms is not None:
                fields["thinking_latency_ms"] = block.latency_ms
            return fields
        case "tool_call":
            given = block.arguments if block.valid else block.text
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": given}
        case _:
            return {"type": "text", "text": block.text}


def _finish(reason: str | None) -> str:
    return _FINISH.get(reason, reason) if reason else "end_turn"


def _usage(usage: Usage) -> dict[str, Any]:
    """The four counts, cached input apart from the rest; a count that is absent is null."""
    written, cached = usage.cache_write_tokens, usage.cached_tokens
    fresh = None if usage.input_tokens is None else max(usage.input_tokens - (written or 0) - (cached or 0), 0)
    return dict(zip(COUNTS, (fresh, usage.output_tokens, written, cached), strict=True))
