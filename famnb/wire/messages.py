"""Reads and writes the messages dialect, whole and streamed: replies are lists of content blocks, with thinking.

{content: [block …], stop_reason, usage}, or
message_start ── (block_start ── block_delta … ── block_stop) … ── message_delta ── message_stop and/or [DONE]
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from famnb.events import (
    Address,
    Closed,
    Delta,
    Done,
    Ended,
    Event,
    Fault,
    Iteration,
    Opaque,
    Opened,
    Other,
    Started,
    Usage,
)
from famnb.reply import Block, Reply
from famnb.wire import errors, lenient_json, sse
from famnb.wire.dialect import Conventions, Sdk, StreamReader, join_pieces, read_attached, read_identity, read_usage
from famnb.wire.lenient_json import arguments_json, as_list, as_object, find_text, first_integer, integer, scalar_text

CONVENTIONS = Conventions(
    new_id=lambda: f"msg_{uuid.uuid4().hex}",
    error_types={401: "authentication_error", 429: "rate_limit_error"},
    server_error="api_error",
    key_header="x-api-key",
    names_events="anthropic-version",
    request_id_header="request-id",
    sdk=Sdk(
        package="anthropic",
        client="anthropic.Anthropic",
        path="/v1/messages",
        method="messages",
        # Newer versions of the SDK have no parameters for these; older ones take them in this way too.
        extra_fields=("temperature", "top_p", "top_k", "output_format", "chat_template_kwargs"),
        wants_cap=True,
        answer="reply.content",
        print_event=(
            '    if event.type == "content_block_delta" and event.delta.type == "text_delta":\n'
            '        print(event.delta.text, end="")'
        ),
    ),
)

COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""The fields of the usage, in the order of the document."""
THREAD_UNSUPPORTED = "thread_unsupported_request"
"""The code by which the vendor's SDK knows that a service keeps no conversation."""


# Reading

_FINISH_REASONS = {
    "end_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "model_context_window_exceeded": "length",
}

# The caller has nothing to do for the others: the server calls its own tools, and goes on.
_CALLER_TOOL = "tool_use"
"""The type of a block that calls a tool of the caller's; its kind is `tool_call`, all other kinds keep their type."""
_TOOL_BLOCKS = (_CALLER_TOOL, "server_tool_use", "mcp_tool_use")
"""Types of blocks that have an input."""
_KNOWN_FIELDS = {
    "text": ("text",),
    "thinking": ("thinking", "signature", "thinking_latency_ms"),
    "redacted_thinking": ("data",),
    _CALLER_TOOL: ("id", "name", "input"),
}
"""The fields of a block that its events hold, for each type; of any other type the service wants back all."""
_READABLE_TYPES = (*_KNOWN_FIELDS, *_TOOL_BLOCKS, "compaction")
"""Types of blocks whose text is that of a field; that of any other type is its JSON."""

_DELTA_TYPES = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("tool_call", "partial_json"),
}
"""For each type of delta, the kind of block and the field that holds the piece."""


def read(body: Any) -> list[Event]:
    """Return the events of a whole message. Raises ResponseFormatError if the body is not one."""
    fields = as_object(body)
    if errors.is_failure(fields):
        return [*read_identity(fields), errors.read_failure(body)]
    content = fields.get("content")
    if isinstance(content, str):
        content = [content]
    if not isinstance(content, list):
        raise lenient_json.not_a_reply_error(body, "a message with a `content` list")
    events: list[Event] = [*read_identity(fields)]
    for index, item in enumerate(content):
        block = {"type": "text", "text": item} if isinstance(item, str) else as_object(item)
        events += _read_whole_block((0, index), block)
    return [*events, _read_end(fields), *_read_usage(as_object(fields.get("usage")))]


class MessagesReader(StreamReader):
    """Reads the events of one message."""

    def __init__(self) -> None:
        super().__init__()
        self._at: Address = (0, 0)
        """The block of the last event, to which an event without an index belongs."""
        self._offset = 0
        """The index of the first block; above 0 where a proxy has begun the message anew within the stream."""
        self._blocks: dict[Address, list[dict[str, Any]]] = {}
        """For each open block what the service wants back: how it began, and the pieces that no event holds."""
        self._counts: dict[str, int] = {}
        self._figures: dict[str, Any] = {}
        """The other figures of the usage so far."""
        self._inputs: dict[Address, str] = {}
        """Inputs of tool calls that came whole with the start of their block; deltas replace them."""
        self._kinds: dict[Address, str] = {}

    def _read(self, event: dict[str, Any]) -> list[Event]:
        type_ = scalar_text(event.get("type"))
        return self._read_typed(type_, event) or [Other(type_)]

    def _read_typed(self, type_: str, event: dict[str, Any]) -> list[Event]:
        match type_:
            case "content_block_delta":
                return self._read_delta(event)
            case "content_block_start":
                at, block = self._block_address(event), as_object(event.get("content_block"))
                if arguments := _read_input(block):
                    self._inputs[at] = arguments
                self._kinds[at] = _kind(block)
                self._blocks[at] = [block]
                return _read_block(at, block)
            case "content_block_stop":
                return self._read_stop(self._block_address(event), event)
            case "message_start":
                message = as_object(event.get("message"))
                self._offset = max((index + 1 for _, index in self._kinds), default=0)
                events: list[Event] = [*read_identity(message)]
                # An answer that the service had already, as between the calls of a program, begins with its content.
                for index, block in enumerate(as_list(message.get("content"))):
                    events += _read_whole_block((0, index), as_object(block))
                if not message.get("stop_reason"):
                    return [*events, *self._read_counts(message.get("usage"), opening=True)]
                return [*events, _read_end(message), *_read_usage(as_object(message.get("usage")))]
            case "message_delta":
                delta = as_object(event.get("delta"))
                ended = [_read_end(delta)] if delta.get("stop_reason") else []
                return [*ended, *self._read_counts(event.get("usage"), opening=False)]
            case "message_stop":
                # The terminator of the vendor's API; a `[DONE]` after it says nothing new.
                self._done = True
                return [Done()]
            case _:
                return [errors.read_failure(event)] if errors.is_failure(event) else []

    def _block_address(self, event: dict[str, Any]) -> Address:
        """Return the address of an event's block: by its index, else that of the event before."""
        if (index := integer(event.get("index"))) is not None:
            self._at = (0, self._offset + index)
        return self._at

    def _read_delta(self, event: dict[str, Any]) -> list[Event]:
        at = self._block_address(event)
        delta = as_object(event.get("delta"))
        type_ = scalar_text(delta.get("type"))
        kind, field = _DELTA_TYPES.get(type_, ("", ""))
        piece = delta.get(field)
        if type(piece) is not str:
            pieces = {name: value for name, value in delta.items() if name != "type"}
            if type_ == "citations_delta":
                pieces = {"citations": [delta.get("citation")]}
            if at in self._blocks:
                self._blocks[at].append(pieces)
            if type_ == "citations_delta":
                return read_attached((1, at[1]), "citations", pieces["citations"])
            text = find_text(pieces) if self._kinds.get(at) in _READABLE_TYPES else ""
            return [Delta(at, self._kinds[at], text)] if text else [Other(type_)]
        if kind == "tool_call":
            self._inputs.pop(at, None)
            kind = self._kinds.get(at, kind)
            # The input of a call of the caller's is in its block.
            if kind != "tool_call" and at in self._blocks:
                self._blocks[at].append({"input": piece})
        return [Delta(at, kind, piece)]

    def _read_stop(self, at: Address, event: dict[str, Any]) -> list[Event]:
        arguments = self._inputs.pop(at, "")
        events: list[Event] = [Delta(at, self._kinds.get(at, "tool_call"), arguments)] if arguments else []
        start, *pieces = self._blocks.pop(at, [{}])
        latencies = (fields.get("thinking_latency_ms") for fields in (event, start))
        closed = Closed(at, latency_ms=first_integer(*latencies))
        if not pieces:
            return [*events, *_read_opaque(at, start), closed]
        added = as_object(join_pieces(pieces))
        if isinstance(added.get("input"), str):
            with contextlib.suppress(ValueError):  # of a call that was cut short
                added["input"] = lenient_json.decode(added["input"].encode() or b"{}")
        return [*events, *_read_opaque(at, {**start, **added}), closed]

    def _read_counts(self, usage: Any, *, opening: bool) -> Sequence[Event]:
        """Return the usage so far, without the counts that the stream does not know yet."""
        fields = as_object(usage)
        self._figures |= {name: value for name, value in fields.items() if name not in COUNTS and value is not None}
        counts = {name: count for name in COUNTS if (count := integer(fields.get(name))) is not None}
        # Before any output, a count of it is a placeholder.
        if opening:
            counts.pop("output_tokens", None)
        # This API opens its streams with zeros and ends them with `output_tokens` only: a zero means "not known".
        # A cache count may truly be zero, but is believed only beside an input count that is known.
        has_input = any(count for name, count in counts.items() if name != "output_tokens")
        self._counts |= {
            name: count for name, count in counts.items() if count or (has_input and name.startswith("cache_"))
        }
        return _read_usage({**self._figures, **self._counts})


reader = MessagesReader


def _read_whole_block(at: Address, block: dict[str, Any]) -> list[Event]:
    events = _read_block(at, block)
    if arguments := _read_input(block):
        events.append(Delta(at, _kind(block), arguments))
    return [*events, *_read_opaque(at, block), Closed(at, latency_ms=integer(block.get("thinking_latency_ms")))]


def _read_block(at: Address, block: dict[str, Any]) -> list[Event]:
    """Return the events of a content block, whole or as it starts."""
    type_ = scalar_text(block.get("type")) or "text"
    kind = _kind(block)
    id_ = scalar_text(block.get("id")) or scalar_text(block.get("tool_use_id"))
    events: list[Event] = [Opened(at, kind, id_, scalar_text(block.get("name")))]
    if type_ == "fallback":
        events.append(Started(model=scalar_text(as_object(block.get("to")).get("model"))))
    is_readable = type_ in _READABLE_TYPES and type_ not in _TOOL_BLOCKS
    if is_readable and (text := find_text(block.get(kind, block))):
        events.append(Delta(at, kind, text))
    # `data` is the content of redacted thinking: unreadable, and wanted back like a signature.
    if signature := scalar_text(block.get("signature")) or scalar_text(block.get("data")):
        events.append(Delta(at, "signature", signature))
    # A block that comes after all content.
    return events + read_attached((1, at[1]), "citations", block.get("citations"))


def _read_opaque(at: Address, block: dict[str, Any]) -> list[Event]:
    """Return what of a finished block no other event holds: all of it, where famnb has no word for its type."""
    type_ = scalar_text(block.get("type")) or "text"
    known = _KNOWN_FIELDS.get(type_)
    if known is not None:
        block = {name: value for name, value in block.items() if name not in ("type", *known) and value}
    if not block:
        return []
    opaque = lenient_json.encode(block).decode()
    return [Opaque(at, opaque), *([] if type_ in _READABLE_TYPES else [Delta(at, type_, opaque)])]


def _kind(block: dict[str, Any]) -> str:
    type_ = scalar_text(block.get("type")) or "text"
    return "tool_call" if type_ == _CALLER_TOOL else type_


def _read_input(block: dict[str, Any]) -> str:
    """Return a tool call's input as JSON text; empty if it is still to come in deltas."""
    has_input = scalar_text(block.get("type")) in _TOOL_BLOCKS and block.get("input")
    return arguments_json(block["input"]) if has_input else ""


def _read_end(fields: dict[str, Any]) -> Ended:
    reason = scalar_text(fields.get("stop_reason"))
    return Ended(
        _FINISH_REASONS.get(reason, reason) or None,
        reason or None,
        scalar_text(fields.get("stop_sequence")) or None,
    )


def _read_usage(fields: dict[str, Any]) -> list[Usage]:
    """Return the usage with cached input counted as input."""
    counts = read_usage(
        fields,
        ("input_tokens", "output_tokens"),
        details=("input_tokens_details", "output_tokens_details"),
        cached=("cache_read_input_tokens",),
        tier=fields.get("service_tier"),
        unpriced=[
            name
            for name, count in as_object(fields.get("server_tool_use")).items()
            if count and name not in ("web_search_requests", "web_fetch_requests")
        ],
    )
    iterations = tuple(_read_iteration(as_object(item)) for item in as_list(fields.get("iterations")))
    if len(iterations) > 1:
        billing = msgspec.structs.replace(counts.billing, iterations=iterations)
        counts = msgspec.structs.replace(counts, billing=billing)
    uncached, cached, written = counts.input_tokens, counts.cached_tokens, counts.cache_write_tokens
    # This dialect counts cached input beside `input_tokens`, the others count it within.
    if uncached is not None and (cached or written):
        input_tokens = uncached + (cached or 0) + (written or 0)
        counts = counts.merge(Usage(input_tokens=input_tokens, derived=("input_tokens",)))
    return [] if counts == Usage() else [counts]


def _read_iteration(fields: dict[str, Any]) -> Iteration:
    counts = _read_usage({**fields, "iterations": None})[0] if fields else Usage()
    written = (counts.cache_write_tokens or 0) - (counts.cache_write_1h_tokens or 0)
    return Iteration(
        scalar_text(fields.get("model")),
        counts.input_tokens or 0,
        counts.output_tokens or 0,
        counts.cached_tokens or 0,
        written,
        counts.cache_write_1h_tokens or 0,
    )


# Writing

_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
    "cancelled": "end_turn",
}

_WRITTEN_KINDS = ("thinking", "text", "refusal", "tool_call")
"""The kinds of block that this dialect can carry; it carries a refusal as text."""

_WRITTEN_DELTAS = {
    "thinking": ("thinking_delta", "thinking"),
    "text": ("text_delta", "text"),
    "refusal": ("text_delta", "text"),
    "signature": ("signature_delta", "signature"),
    "tool_call": ("input_json_delta", "partial_json"),
}
"""For each kind of delta, its type and the field that holds the piece."""


def write(reply: Reply) -> dict[str, Any]:
    """Return a reply as the body of a message."""
    return {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "content": [_block_fields(block) for block in reply.blocks if block.kind in _WRITTEN_KINDS],
        "model": reply.model,
        "stop_reason": _stop_reason(reply.finish_reason),
        "stop_sequence": reply.stop_sequence,
        "usage": _usage_fields(reply.usage),
    }


class MessagesWriter:
    """Writes the events of one message; they always end with usage, so `include_usage` changes nothing.

    `named` adds what the vendor's SDK wants: `event:` lines, `message_stop`, an empty signature where thinking starts,
    and all counts that are known at the end.
    """

    def __init__(self, *, include_usage: bool = False, named: bool = False) -> None:  # noqa: ARG002 - as in Dialect
        self._named = named
        self._has_started = False
        self._indices: dict[Address, int] = {}
        self._kinds: dict[Address, str] = {}
        self._with_deltas: set[Address] = set()
        self._closed: set[Address] = set()
        self._usage = Usage()
        self._ended: Ended | None = None

    def write(self, event: Event, /) -> list[bytes]:
        match event:
            case Delta():
                return self._write_delta(event)
            case Opened():
                return self._write_open(event)
            case Closed():
                return self._write_close(event.at, event.text)
            case Started() if not self._has_started:
                self._has_started = True
                # Zeros are what the document shows; the vendor's SDK gets the count that is known already.
                usage = dict.fromkeys(COUNTS, 0)
                if self._named and event.input_tokens is not None:
                    usage["input_tokens"] = event.input_tokens
                head = {"id": event.id, "type": "message", "role": "assistant", "content": [], "model": event.model}
                message = {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}
                return [self._render("message_start", {"message": message})]
            case Usage():
                self._usage = self._usage.merge(event)
            case Ended(fault=None):
                self._ended = self._ended or event
            case Ended(fault=Fault() as failure):
                self._ended = event
                return [self._render("error", {"error": _error_fields(failure)})]
            case Done():
                return [*self._write_end(), sse.encode(sse.DONE)]
            case _:
                pass
        return []

    def _render(self, type_: str, fields: dict[str, Any]) -> bytes:
        return sse.encode(lenient_json.encode({"type": type_, **fields}), type_ if self._named else None)

    def _write_open(self, event: Opened) -> list[bytes]:
        at = event.at
        self._kinds.setdefault(at, event.kind)
        if at in self._indices or event.kind not in _WRITTEN_KINDS:
            return []
        index = self._indices[at] = len(self._indices)
        block = _block_fields(Block(at, event.kind, id=event.id, name=event.name))
        if self._named and event.kind == "thinking":
            block["signature"] = ""
        return [self._render("content_block_start", {"index": index, "content_block": block})]

    def _write_delta(self, event: Delta) -> list[bytes]:
        at, kind = event.at, event.kind
        self._with_deltas.add(at)
        frames = self._write_open(Opened(at, "thinking" if kind == "signature" else kind))
        if at not in self._indices or kind not in _WRITTEN_DELTAS:
            return []
        type_, field = _WRITTEN_DELTAS[kind]
        fields = {"index": self._indices[at], "delta": {"type": type_, field: event.text}}
        return [*frames, self._render("content_block_delta", fields)]

    def _write_close(self, at: Address, text: str | None) -> list[bytes]:
        frames = [] if not text or at in self._with_deltas else self.write(Delta(at, self._kinds.get(at, "text"), text))
        if at in self._indices and at not in self._closed:
            self._closed.add(at)
            frames.append(self._render("content_block_stop", {"index": self._indices[at]}))
        return frames

    def _write_end(self) -> list[bytes]:
        """Return what comes between the last block and the terminator; nothing after a failure."""
        ended = self._ended
        if ended is None or ended.fault is not None:
            return []
        frames = [frame for at in self._indices for frame in self._write_close(at, None)]
        delta: dict[str, Any] = {"stop_reason": _stop_reason(ended.finish_reason)}
        if ended.stop_sequence is not None:
            delta["stop_sequence"] = ended.stop_sequence
        usage = {"output_tokens": self._usage.output_tokens or 0}
        if self._named:
            known = {name: count for name, count in _usage_fields(self._usage).items() if count is not None}
            usage = {**known, **usage}
        frames.append(self._render("message_delta", {"delta": delta, "usage": usage}))
        return [*frames, self._render("message_stop", {})] if self._named else frames


writer = MessagesWriter


def fault(fault: Fault, *, named: bool = False) -> dict[str, Any]:
    """Return the error body of the messages endpoint; `named` adds what the vendor's own has in other places."""
    error: dict[str, Any] = {"type": "error", "error": _error_fields(fault)}
    if not named:
        return {"error": error}
    details = {"details": {"error_code": fault.code, "unsupported": []}} if fault.code == THREAD_UNSUPPORTED else {}
    return {"type": "error", "error": {**error, "message": fault.message, **details}}


def _error_fields(fault: Fault) -> dict[str, Any]:
    fields: dict[str, Any] = {"type": fault.type or "api_error", "message": fault.message}
    return {**fields, "param": fault.param} if fault.param else fields


def _block_fields(block: Block) -> dict[str, Any]:
    match block.kind:
        case "thinking":
            fields: dict[str, Any] = {"type": "thinking", "thinking": block.text}
            if block.signature:
                fields["signature"] = block.signature
            if block.latency_ms is not None:
                fields["thinking_latency_ms"] = block.latency_ms
            return fields
        case "tool_call":
            # An object in this dialect; arguments that are not valid JSON are kept as text rather than lost.
            arguments = block.arguments if block.valid else block.text
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": arguments}
        case _:
            return {"type": "text", "text": block.text}


def _stop_reason(reason: str | None) -> str:
    return _STOP_REASONS.get(reason, reason) if reason else "end_turn"


def _usage_fields(usage: Usage) -> dict[str, Any]:
    """Return the four counts, cached input not counted as input; a count that is absent is null."""
    written, cached = usage.cache_write_tokens, usage.cached_tokens
    uncached = None if usage.input_tokens is None else max(usage.input_tokens - (written or 0) - (cached or 0), 0)
    return dict(zip(COUNTS, (uncached, usage.output_tokens, written, cached), strict=True))
