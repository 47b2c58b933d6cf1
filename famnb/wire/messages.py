"""The messages dialect: content blocks, thinking among them; read here, how it is written stands in `messages_writer`.

read   {content: [block …], stop_reason, usage}, or
       message_start ── (block_start ── block_delta … ── block_stop) … ── message_delta ── message_stop and/or [DONE]
"""

from __future__ import annotations

from typing import Any

from famnb.events import Address, Closed, Delta, Done, Ended, Event, Opened, Other, Started, Usage
from famnb.wire import codec, faults
from famnb.wire.messages_writer import COUNTS, MessagesWriter, fault, write
from famnb.wire.reading import StreamReader

__all__ = ["fault", "read", "reader", "write", "writer"]

_FINISH = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls", "refusal": "content_filter"}
_KINDS = {"tool_use": "tool_call", "server_tool_use": "tool_call"}
"""Block types whose kind has another name; all others keep theirs."""
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("tool_call", "partial_json"),
}
"""For each delta type its kind and the field of its piece."""


def read(body: Any) -> list[Event]:
    """The events of a whole message."""
    fields = codec.mapping(body)
    if faults.is_failure(fields):
        return [*_started(fields), faults.ended(body)]
    content = fields.get("content")
    if isinstance(content, str):
        content = [content]
    if not isinstance(content, list):
        raise codec.not_a_reply(body, "a message with a `content` list")
    events: list[Event] = [*_started(fields)]
    for index, item in enumerate(content):
        at: Address = (0, index)
        block = {"type": "text", "text": item} if isinstance(item, str) else codec.mapping(item)
        events += _begun(at, block)
        if call := _input(block):
            events.append(Delta(at, "tool_call", call))
        events.append(Closed(at, latency_ms=codec.integer(block.get("thinking_latency_ms"))))
    return [*events, _ended(fields), *_usage(codec.mapping(fields.get("usage")))]


def reader() -> MessagesReader:
    """A reader for one stream."""
    return MessagesReader()


def writer(*, include_usage: bool = False, named: bool = False) -> MessagesWriter:  # noqa: ARG001 - as in Dialect
    """A writer for one stream; it always ends with usage, so `include_usage` changes nothing."""
    return MessagesWriter(named=named)


class MessagesReader(StreamReader):
    """Reads the events of one message."""

    __slots__ = ("_at", "_counts", "_inputs", "_latencies")

    def __init__(self) -> None:
        super().__init__()
        self._at: Address = (0, 0)
        self._counts: dict[str, int] = {}
        self._inputs: dict[Address, str] = {}
        self._latencies: dict[Address, int | None] = {}

    def _read(self, event: dict[str, Any]) -> list[Event]:
        type_ = event.get("type")
        if type_ == "content_block_delta":
            return self._delta(event)
        return self._bookkeeping(codec.word(type_), event) or [Other(codec.word(type_))]

    def _bookkeeping(self, type_: str, event: dict[str, Any]) -> list[Event]:
        match type_:
            case "content_block_start":
                return self._start(self._place(event), codec.mapping(event.get("content_block")))
            case "content_block_stop":
                return self._stop(self._place(event), event)
            case "message_start":
                message = codec.mapping(event.get("message"))
                return [*_started(message), *self._report(message.get("usage"), opening=True)]
            case "message_delta":
                delta = codec.mapping(event.get("delta"))
                ended = [_ended(delta)] if delta.get("stop_reason") else []
                return [*ended, *self._report(event.get("usage"), opening=False)]
            case "message_stop":
                self._done = True
                return [Done()]
            case _:
                return [faults.ended(event)] if faults.is_failure(event) else []

    def _place(self, event: dict[str, Any]) -> Address:
        """The block an event is about: by its index, else the one before."""
        index = event.get("index")
        if type(index) is not int:
            index = codec.integer(index)
        if index is not None:
            self._at = (0, index)
        return self._at

    def _start(self, at: Address, block: dict[str, Any]) -> list[Event]:
        if call := _input(block):
            self._inputs[at] = call
        self._latencies[at] = codec.integer(block.get("thinking_latency_ms"))
        return _begun(at, block)

    def _delta(self, event: dict[str, Any]) -> list[Event]:
        at = self._place(event)
        delta = codec.mapping(event.get("delta"))
        type_ = delta.get("type")
        kind, field = _DELTAS.get(type_, ("", "")) if type(type_) is str else ("", "")
        piece = delta.get(field)
        if type(piece) is not str:
            return [Other(codec.word(type_))]
        if kind == "tool_call":
            self._inputs.pop(at, None)
        return [Delta(at, kind, piece)]

    def _stop(self, at: Address, event: dict[str, Any]) -> list[Event]:
        latency = codec.integer(event.get("thinking_latency_ms"))
        closed = Closed(at, latency_ms=self._latencies.get(at) if latency is None else latency)
        call = self._inputs.pop(at, "")
        return [Delta(at, "tool_call", call), closed] if call else [closed]

    def _report(self, usage: Any, *, opening: bool) -> list[Event]:
        """The usage so far; a zero of a stream says nothing, nor does a count of output before there is any.

        Only the cache counts may be zero, beside an input that is not.
        """
        fields = codec.mapping(usage)
        counts = {name: count for name in COUNTS if (count := codec.integer(fields.get(name))) is not None}
        if opening:
            counts.pop("output_tokens", None)
        fed = any(count for name, count in counts.items() if name != "output_tokens")
        self._counts |= {name: count for name, count in counts.items() if count or (fed and name.startswith("cache_"))}
        return _usage(self._counts)


def _started(message: dict[str, Any]) -> list[Started]:
    started = Started(codec.word(message.get("id")), codec.word(message.get("model")))
    return [] if started == Started() else [started]


def _begun(at: Address, block: dict[str, Any]) -> list[Event]:
    """What a content block says of itself, whole or as it starts."""
    type_ = codec.word(block.get("type")) or "text"
    kind = _KINDS.get(type_, type_)
    events: list[Event] = [Opened(at, kind, codec.word(block.get("id")), codec.word(block.get("name")))]
    said = "" if kind == "tool_call" else codec.text(block.get(kind, block))
    if said:
        events.append(Delta(at, kind, said))
    if signature := codec.word(block.get("signature")) or codec.word(block.get("data")):
        events.append(Delta(at, "signature", signature))
    return events


def _input(block: dict[str, Any]) -> str:
    """A tool call's whole input as JSON text; empty while it is to come in deltas."""
    called = codec.word(block.get("type")) in _KINDS and block.get("input")
    return codec.arguments(block["input"]) if called else ""


def _ended(fields: dict[str, Any]) -> Ended:
    said = codec.word(fields.get("stop_reason"))
    return Ended(_FINISH.get(said, said) or None, said or None, codec.word(fields.get("stop_sequence")) or None)


def _usage(fields: dict[str, Any]) -> list[Event]:
    """The usage, normalised: this dialect counts cached input beside `input_tokens`, famnb inside."""
    fresh, output, written, cached = (codec.integer(fields.get(name)) for name in COUNTS)
    usage = Usage(input_tokens=fresh, output_tokens=output, cached_tokens=cached, cache_write_tokens=written)
    if fresh is not None and (cached or written):
        whole = fresh + (cached or 0) + (written or 0)
        usage = usage.then(Usage(input_tokens=whole, derived=("input_tokens",)))
    return [] if usage == Usage() else [usage]
