"""Reads and writes the responses dialect, whole and streamed: replies are lists of output items with parts.

{status, output: [item {content: [part …]} …], usage} or
created ── in_progress ── (item.added ── (part.added ── delta … ── done) … ── item.done) … ── completed
A block's address is (output index, content index); the parts of a reasoning summary follow the item's own content, and
the annotations and log-probabilities of its texts follow both. The whole item, which the service wants back, is at
(output index, -1).
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from famnb.events import (
    Address,
    Closed,
    Delta,
    Done,
    Ended,
    Event,
    Fault,
    Noted,
    Opaque,
    Opened,
    Other,
    Started,
    Status,
    Usage,
)
from famnb.reply import Block, Reply
from famnb.wire import errors, lenient_json, sse
from famnb.wire.chat import fault as fault  # the two dialects are of one vendor
from famnb.wire.dialect import Conventions, Sdk, StreamReader, read_attached, read_identity, read_usage, write_usage
from famnb.wire.lenient_json import arguments_json, as_list, as_object, find_text, integer, scalar_text

CONVENTIONS = Conventions(
    new_id=lambda: f"resp_{uuid.uuid4().hex}",
    error_types={429: "rate_limit_error"},
    sdk=Sdk(
        package="openai",
        client="openai.OpenAI",
        path="/responses",
        method="responses",
        answer="reply.output_text",
        print_event='    if event.type == "response.output_text.delta":\n        print(event.delta, end="")',
    ),
)


# Reading

# An item numbers its content and its summary from 0 each; no item has as many parts as this.
_SUMMARY_INDEX = 1000
"""The content index of the first part of a reasoning summary."""

_ATTACHED_INDEX = {"annotations": 2000, "logprobs": 3000}
"""What is attached to a part: its field and kind, and what its content index is above that of the part."""

_PART_TYPES = {
    "output_text": ("text", "text"),
    "text": ("text", "text"),
    "refusal": ("refusal", "refusal"),
    "reasoning_text": ("thinking", "text"),
    "summary_text": ("thinking", "text"),
}
"""For each type of part, its kind of block and the field that holds its text."""

_EVENT_FAMILIES = {
    "response.output_text": ("text", "text"),
    "response.refusal": ("refusal", "refusal"),
    "response.reasoning_text": ("thinking", "text"),
    "response.reasoning": ("thinking", "text"),
    "response.reasoning_summary_text": ("thinking", "text"),
    "response.reasoning_summary": ("thinking", "text"),
    "response.function_call_arguments": ("tool_call", "arguments"),
}
"""For each family of `.delta` and `.done` events, the kind of block and the field of the whole text in `.done`."""

_DELTA_EVENTS = {f"{family}.delta": kind for family, (kind, _) in _EVENT_FAMILIES.items()}
_DONE_EVENTS = {f"{family}.done": fields for family, fields in _EVENT_FAMILIES.items()}
_STATUSES: tuple[Status, ...] = ("completed", "incomplete", "failed", "cancelled")
_TERMINAL_EVENTS = tuple(f"response.{status}" for status in _STATUSES)

_FINISH_REASONS = {"completed": "stop", "max_output_tokens": "length", "max_tokens": "length"}

_RUNNING_STATUSES = ("queued", "in_progress")


def read(body: Any) -> list[Event]:
    """Return the events of a whole response. Raises ResponseFormatError if the body is not one."""
    fields = as_object(body)
    failed = errors.is_failure(fields)
    output = fields.get("output")
    # A convenience property of the vendor's SDK, which some servers send instead of items.
    if not isinstance(output, list) and isinstance(fields.get("output_text"), str):
        output = [{"content": fields["output_text"]}]
    if not isinstance(output, list) and not failed:
        raise lenient_json.not_a_reply_error(body, "a response with an `output` list")
    events: list[Event] = list(read_identity(fields, "created_at"))
    has_calls = False
    for index, item in enumerate(map(as_object, as_list(output))):
        for part in _read_item(index, item):
            has_calls = has_calls or part.kind == "tool_call"
            content = [Delta(part.at, part.kind, part.text)] if part.text else []
            events += [Opened(part.at, part.kind, part.id, part.name), *content, Closed(part.at)]
        for at, kind, values in _read_attached(index, item):
            events += read_attached(at, kind, values)
        events.append(_read_opaque(index, item))
    status = scalar_text(fields.get("status")) or ("failed" if failed else "")
    # A background response that is still generated has no end yet.
    if status in _RUNNING_STATUSES:
        events += _not_ended(fields, status)
    else:
        events.append(_read_end(fields, status, has_calls=has_calls))
    return [*events, *_read_usage(fields)]


class ResponsesReader(StreamReader):
    """Reads the events of one response; bookkeeping events may be missing or repeated."""

    def __init__(self) -> None:
        super().__init__()
        self._started = Started()
        self._indices: dict[str, int] = {}
        """The output index of each item id."""
        self._item = 0
        """The output index of the last event, to which an event without index and id belongs."""
        self._kinds: dict[Address, str] = {}
        self._moved_addresses: dict[tuple[Address, str], Address] = {}
        """Where a block stands whose address was taken by a block of another kind."""
        self._names: dict[Address, tuple[str, str]] = {}
        """The id and name of each tool call; both empty for other blocks."""
        self._final_texts: dict[Address, str] = {}
        self._attached_counts: dict[Address, int] = {}
        """How many annotations or log-probabilities each block of them has so far."""
        self._queued: dict[str, Any] | None = None
        """The response while it is queued and nothing else is known of it."""

    def end(self) -> list[Event]:
        return [] if self._queued is None or self._done else _not_ended(self._queued, "queued")

    def _read(self, event: dict[str, Any]) -> list[Event]:
        type_ = scalar_text(event.get("type"))
        if type_ in _DELTA_EVENTS:
            return self._read_delta(event, _DELTA_EVENTS[type_])
        events: list[Event] = []
        response = as_object(event.get("response"))
        self._queued = response if type_ == "response.queued" or response.get("status") == "queued" else None
        match type_:
            case "response.output_item.added" | "response.output_item.done":
                item = as_object(event.get("item"))
                index = self._output_index(event, scalar_text(item.get("id")))
                self._add_item(events, index, item, whole=type_.endswith("done"))
            case "response.content_part.added" | "response.content_part.done":
                at, part_fields = self._block_address(event), as_object(event.get("part"))
                if block := _read_part(at, part_fields):
                    self._add_part(events, block, whole=type_.endswith("done"))
                for kind in _ATTACHED_INDEX:
                    self._attach(events, _attached_address(at, kind), kind, part_fields.get(kind))
            case "response.output_text.annotation.added":
                at = _attached_address(self._block_address(event), "annotations")
                number = integer(event.get("annotation_index"))
                if number is None or number >= self._attached_counts.get(at, 0):
                    self._attach_next(events, at, "annotations", event.get("annotation"))
            case _ if type_ in _DONE_EVENTS:
                kind, field = _DONE_EVENTS[type_]
                if isinstance(whole := event.get(field), str):
                    self._add_part(events, Block(self._block_address(event), kind, whole), whole=True)
            case _ if type_ in _TERMINAL_EVENTS:
                self._read_terminal(events, event, type_.removeprefix("response."))
            # A field named `error` in an event with another type is not a failure of the response.
            case _ if type_ == "error" or (not type_ and errors.is_failure(event)):
                events.append(errors.read_failure(event))
            case _:
                events += self._read_new_identity(response)
        return events or [Other(type_)]

    def _read_new_identity(self, response: dict[str, Any]) -> list[Started]:
        new = [started for started in read_identity(response, "created_at") if started != self._started]
        self._started = new[0] if new else self._started
        return new

    def _output_index(self, event: dict[str, Any], item_id: str) -> int:
        """Return the output index of an event's item: its own, else that of its id, else that of the event before."""
        number = integer(event.get("output_index"))
        index = self._indices.get(item_id, self._item) if number is None else number
        if item_id:
            self._indices[item_id] = index
        self._item = index
        return index

    def _block_address(self, event: dict[str, Any]) -> Address:
        index = self._output_index(event, scalar_text(event.get("item_id")))
        if "summary_index" in event:
            return index, _SUMMARY_INDEX + (integer(event["summary_index"]) or 0)
        return index, integer(event.get("content_index")) or 0

    def _read_delta(self, event: dict[str, Any], kind: str) -> list[Event]:
        at = self._block_address(event)
        piece = event.get("delta")
        text = piece if type(piece) is str else find_text(piece)
        if logprobs := event.get("logprobs"):
            events = self._read_delta({**event, "logprobs": None}, kind)
            for value in as_list(logprobs):
                self._attach_next(events, _attached_address(at, "logprobs"), "logprobs", value)
            return events
        at, is_new = self._claim_address(at, kind)
        return [*([Opened(at, kind)] if is_new else []), Delta(at, kind, text)]

    def _add_item(self, events: list[Event], index: int, item: dict[str, Any], *, whole: bool) -> None:
        """Add the events for what is new in an item; `whole` says that it is finished."""
        for part in _read_item(index, item):
            self._add_part(events, part, whole=whole)
        for at, kind, values in _read_attached(index, item):
            self._attach(events, at, kind, values)
        if whole:
            events.append(_read_opaque(index, item))

    def _attach(self, events: list[Event], at: Address, kind: str, values: Any) -> None:
        """Add those of an attached list that did not come before, one by one."""
        for value in as_list(values)[self._attached_counts.get(at, 0) :]:
            self._attach_next(events, at, kind, value)

    def _attach_next(self, events: list[Event], at: Address, kind: str, value: Any) -> None:
        self._attached_counts[at] = self._attached_counts.get(at, 0) + 1
        events += read_attached(at, kind, [value])

    def _claim_address(self, at: Address, kind: str) -> tuple[Address, bool]:
        """Return the address of the block of this kind that claims `at`, and whether the block is new."""
        # Without indices, thinking, text and calls all claim the first address: the later one moves behind all others.
        if self._kinds.get(at, kind) != kind:
            free = (max(index for index, _ in self._kinds) + 1, 0)
            at = self._moved_addresses.setdefault((at, kind), free)
        is_new = at not in self._kinds
        self._kinds[at] = kind
        return at, is_new

    def _add_part(self, events: list[Event], part: Block, *, whole: bool) -> None:
        """Add the events for what is new in a part; `whole` says that its text is the final one."""
        # Up to four events repeat a part, and some servers send only one of the four.
        at, is_new = self._claim_address(part.at, part.kind)
        identity = (part.id, part.name)
        if is_new or (any(identity) and self._names.get(at) != identity):
            self._names[at] = identity
            events.append(Opened(at, part.kind, part.id, part.name))
        if whole and self._final_texts.get(at) != part.text:
            self._final_texts[at] = part.text
            # An empty final text is one that the server left out; it must not replace the deltas.
            events.append(Closed(at, part.text or None))

    def _read_terminal(self, events: list[Event], event: dict[str, Any], event_status: str) -> None:
        response = as_object(event.get("response"))
        events += self._read_new_identity(response)
        for position, fields in enumerate(map(as_object, as_list(response.get("output")))):
            # By its id, since the final list may leave out items that were streamed.
            self._add_item(events, self._indices.get(scalar_text(fields.get("id")), position), fields, whole=True)
        status = scalar_text(response.get("status"))
        # Some servers end with the response object as it was at the start; then the name of the event counts.
        status = event_status if status in ("", *_RUNNING_STATUSES) else status
        events.append(_read_end(response, status, has_calls="tool_call" in self._kinds.values()))
        events += _read_usage(response)
        # This dialect has no other terminator.
        events.append(Done())
        self._done = True


reader = ResponsesReader


def _read_item(index: int, item: dict[str, Any]) -> Iterator[Block]:
    """Yield the blocks of an output item."""
    type_ = scalar_text(item.get("type")) or "message"
    id_ = scalar_text(item.get("call_id")) or scalar_text(item.get("id"))
    name = scalar_text(item.get("name"))
    if type_ == "function_call":
        yield Block((index, 0), "tool_call", arguments_json(item.get("arguments")), id_, name)
        return
    content = item.get("content")
    for number, part in enumerate([content] if isinstance(content, str | dict) else as_list(content)):
        fields = {"type": "output_text", "text": part} if isinstance(part, str) else as_object(part)
        if block := _read_part((index, number), fields):
            yield block
    for number, part in enumerate(as_list(item.get("summary"))):
        yield Block((index, _SUMMARY_INDEX + number), "thinking", find_text(part))
    # An item of an unknown type is passed through as a block of that kind, whose text is its JSON.
    if type_ not in ("message", "reasoning") and not content:
        is_custom = type_ == "custom_tool_call"
        text = scalar_text(item.get("input")) if is_custom else lenient_json.encode(item).decode()
        yield Block((index, 0), type_, text, id_, name)
        if type_ == "image_generation_call" and (picture := scalar_text(item.get("result"))):
            form = scalar_text(item.get("output_format")) or "png"
            yield Block((index, 1), "image", f"data:image/{form};base64,{picture}")


def _read_opaque(index: int, item: dict[str, Any]) -> Opaque:
    return Opaque((index, -1), lenient_json.encode(item).decode())


def _read_part(at: Address, part: dict[str, Any]) -> Block | None:
    type_ = scalar_text(part.get("type"))
    kind, field = _PART_TYPES.get(type_, (type_ or "text", "text"))
    return Block(at, kind, find_text(part.get(field))) if part else None


def _read_attached(index: int, item: dict[str, Any]) -> Iterator[tuple[Address, str, list[Any]]]:
    """Yield what is attached to the parts of an output item: address, kind and values."""
    for number, part in enumerate(as_list(item.get("content"))):
        for kind in _ATTACHED_INDEX:
            if values := as_list(as_object(part).get(kind)):
                yield _attached_address((index, number), kind), kind, values


def _attached_address(part: Address, kind: str) -> Address:
    return part[0], part[1] + _ATTACHED_INDEX[kind]


def _not_ended(response: dict[str, Any], status: str) -> list[Event]:
    """Return the end, for now, of a response that the service has accepted and not finished."""
    progress = "has not begun it" if status == "queued" else "still works on it"
    id_ = scalar_text(response.get("id"))
    note = (
        f"the response{f' {id_}' if id_ else ''} is {status!r}: the service has accepted it for the background and "
        f"{progress}; `client.fetch(reply)` has it later"
    )
    return [Noted(note), Ended(stop_reason=status, status="running")]


def _read_end(response: dict[str, Any], status: str, *, has_calls: bool) -> Ended:
    """Return the end of a response object with this status."""
    if status == "failed" or response.get("error"):
        failure = errors.parse_fault({"error": response.get("error")} if response.get("error") else {})
        code = f" ({failure.code})" if failure.code else ""
        message = failure.message or f"the service reported a failed response{code} without a message"
        return Ended("error", status or None, None, "failed", Fault(message, failure.type, failure.code, failure.param))
    reason = scalar_text(as_object(response.get("incomplete_details")).get("reason")) or status
    # This dialect has no reason of its own for tool calls: the response is `completed`.
    finish = "tool_calls" if has_calls and reason == "completed" else _FINISH_REASONS.get(reason, reason)
    known_status = next((known for known in _STATUSES if known == status), None)
    return Ended(finish or None, reason or None, None, known_status)


_BILLED_ITEMS = ("file_search_call", "code_interpreter_call", "image_generation_call", "shell_call_output")
"""Types of items that the vendor bills, and not by the tokens of the reply."""


def _read_usage(response: dict[str, Any]) -> list[Event]:
    """Return the usage of a response, with what it bills besides tokens."""
    types = [scalar_text(as_object(item).get("type")) for item in as_list(response.get("output"))]
    counts = read_usage(
        as_object(response.get("usage")),
        ("input_tokens", "output_tokens"),
        details=("input_tokens_details", "output_tokens_details"),
        total="total_tokens",
        tier=response.get("service_tier"),
        unpriced=[type_ for type_ in types if type_ in _BILLED_ITEMS],
    )
    # Of the actions of a search, opening a page and looking for words in it are free.
    searches = sum(
        item.get("type") == "web_search_call" and as_object(item.get("action")).get("type") in (None, "search")
        for item in map(as_object, as_list(response.get("output")))
    )
    if searches:
        counts = msgspec.structs.replace(counts, billing=msgspec.structs.replace(counts.billing, searches=searches))
    return [] if counts == Usage() else [counts]


# Writing

_WRITTEN_KINDS = {
    "text": ("message", "output_text", "text"),
    "refusal": ("message", "refusal", "refusal"),
    "thinking": ("reasoning", "reasoning_text", "text"),
    "tool_call": ("function_call", "function_call_arguments", "arguments"),
}
"""For each kind of block its type of item, its type of part, after which its events are named, and the field of its
whole text."""
_ID_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc"}

_INCOMPLETE_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclasses.dataclass(slots=True)
class _OpenBlock:
    """A part of an item, or the call of a function item, that is being written."""

    kind: str
    family: str
    """The name of its events, without `.delta` and `.done`."""
    address_fields: dict[str, Any]
    """The fields of its events that identify it."""
    pieces: list[str] = dataclasses.field(default_factory=list)
    final_text: str | None = None
    """The final text; None until it is written."""
    logprobs: list[Any] | None = None
    """The log-probabilities of a text; None where the item has no list of them."""

    def part(self) -> dict[str, Any]:
        """Return the JSON object of a part, as far as it is written."""
        _, type_, field = _WRITTEN_KINDS[self.kind]
        part: dict[str, Any] = {"type": type_, field: self.final_text or ""}
        if self.kind == "text":
            part["annotations"] = []
            if self.logprobs is not None:
                part["logprobs"] = self.logprobs
        return part


@dataclasses.dataclass(slots=True)
class _OpenItem:
    """An output item that is being written."""

    id: str
    index: int
    type: str
    call_id: str = ""
    name: str = ""
    blocks: list[_OpenBlock] = dataclasses.field(default_factory=list)
    status: str = "in_progress"

    @property
    def is_closed(self) -> bool:
        """Whether all its parts are finished."""
        return all(block.final_text is not None for block in self.blocks)

    def body(self) -> dict[str, Any]:
        """Return the item's JSON object, as far as it is written."""
        fields = {"id": self.id, "type": self.type}
        if self.type == "function_call":
            arguments = (self.blocks[0].final_text or "") if self.blocks else ""
            call = {"call_id": self.call_id, "name": self.name, "arguments": arguments}
            return {**fields, "status": self.status, **call}
        content = [block.part() for block in self.blocks]
        if self.type == "reasoning":
            return {**fields, "status": self.status, "summary": [], "content": content}
        return {**fields, "role": "assistant", "status": self.status, "content": content}


def write(reply: Reply, *, logprobs: bool = False) -> dict[str, Any]:
    """Return a reply as the body of a response; with `logprobs`, each text has a list of them, which may be empty."""
    stream = ResponsesWriter(logprobs=logprobs)
    stream.write(Started(reply.id, reply.model, reply.created))
    for block in reply.blocks:
        stream.write(Opened(block.at, block.kind, block.id, block.name))
        for text in [lenient_json.encode(e).decode() for e in block.entries] or filter(None, [block.text]):
            stream.write(Delta(block.at, block.kind, text))
        if block.closed:
            stream.write(Closed(block.at))
    stream.write(Ended(reply.finish_reason, status=reply.status, fault=reply.fault))
    return stream.response(write_usage(reply.usage, "input", "output"))


ResponseExtension: TypeAlias = Callable[[dict[str, Any], Usage], dict[str, Any]]
"""Returns a response object with the fields that a specification requires beyond the API's document."""


class ResponsesWriter:
    """Writes the events of one response; `named` adds `event:` lines, `logprobs` a list of them to each text.

    They always end with usage, so `include_usage` changes nothing. With an `extension`, events are numbered, texts have
    `logprobs`, parts have a `content_part.done` event, and the stream ends with `[DONE]`, as the Open Responses
    specification requires.
    """

    def __init__(
        self,
        *,
        include_usage: bool = False,  # noqa: ARG002 - as in Dialect
        named: bool = False,
        logprobs: bool = False,
        extension: ResponseExtension | None = None,
    ) -> None:
        self._named = named
        self._extension = extension
        self._logprobs = logprobs or extension is not None
        """Whether each text has a list of log-probabilities, be it empty."""
        self._number = 0
        """The `sequence_number` of the next event; only counted with an extension."""
        self._has_started = False
        self._started = Started()
        self._unwritable: set[Address] = set()
        """Blocks of a kind that this dialect cannot carry."""
        self._items: list[_OpenItem] = []
        self._open_items: dict[tuple[int, str], _OpenItem] = {}
        """The items of parts by the output index of their blocks, and their type."""
        self._blocks: dict[Address, tuple[_OpenItem, _OpenBlock]] = {}
        self._last_text: _OpenBlock | None = None
        """The text that log-probabilities belong to."""
        self._ended: Ended | None = None
        self._usage = Usage()

    def write(self, event: Event, /) -> list[bytes]:
        match event:
            case Delta(kind="logprobs"):
                if self._last_text is not None:
                    entry = lenient_json.decode(event.text.encode())
                    self._last_text.logprobs = [*(self._last_text.logprobs or ()), entry]
            case Delta():
                frames = [] if event.at in self._blocks else self._write_open(event.at, event.kind)
                entry = self._blocks.get(event.at)
                if entry is None or entry[1].kind != event.kind:
                    return frames
                block = entry[1]
                block.pieces.append(event.text)
                return [*frames, self._render_block(block, "delta", {"delta": event.text})]
            case Opened():
                return self._write_open(event.at, event.kind, event.id, event.name)
            case Closed():
                return self._write_close(event.at, event.text)
            case Started() if not self._has_started:
                self._has_started = True
                self._started = event
                response = self._response("in_progress", [], None)
                return [self._render_response(name, response) for name in ("created", "in_progress")]
            case Usage():
                self._usage = self._usage.merge(event)
            case Ended():
                return self._write_end(event)
            case Done() if self._ended is not None:
                # The usage at the end of a stream has just the totals, as the document shows.
                usage = self._usage.with_total()
                totals = Usage(usage.input_tokens, usage.output_tokens, total_tokens=usage.total_tokens)
                response = self.response(write_usage(totals, "input", "output"))
                frames = [self._render_response(response["status"], response)]
                return [*frames, sse.encode(sse.DONE)] if self._extension is not None else frames
            case Done() if self._extension is not None:
                return [sse.encode(sse.DONE)]
            case _:
                pass
        return []

    def response(self, usage: dict[str, Any] | None) -> dict[str, Any]:
        """Return the response object once its end is written."""
        ended = self._ended or Ended()
        status = _status(ended)
        output = [item.body() for item in self._items if item.status != "in_progress"]
        response = self._response(status, output, usage)
        if ended.fault is not None:
            response["error"] = {"code": ended.fault.code, "message": ended.fault.message}
        elif status == "incomplete":
            reason = ended.finish_reason or ""
            response["incomplete_details"] = {"reason": _INCOMPLETE_REASONS.get(reason, ended.finish_reason)}
        return response

    def _render(self, type_: str, fields: dict[str, Any]) -> bytes:
        if self._extension is not None:
            fields = {"sequence_number": self._number, **fields}
            self._number += 1
        return sse.encode(lenient_json.encode({"type": type_, **fields}), type_ if self._named else None)

    def _render_block(self, block: _OpenBlock, event: str, fields: dict[str, Any]) -> bytes:
        if block.logprobs is not None:
            fields = {**fields, "logprobs": block.logprobs if event == "done" else []}
        return self._render(f"{block.family}.{event}", {**block.address_fields, **fields})

    def _render_item(self, event: str, item: _OpenItem) -> bytes:
        return self._render(f"response.output_item.{event}", {"output_index": item.index, "item": item.body()})

    def _render_response(self, name: str, response: dict[str, Any]) -> bytes:
        if self._extension is not None:
            response = self._extension(response, self._usage.with_total())
        return self._render(f"response.{name}", {"response": response})

    def _response(self, status: str, output: list[dict[str, Any]], usage: dict[str, Any] | None) -> dict[str, Any]:
        return {
            "id": self._started.id,
            "object": "response",
            "status": status,
            "created_at": self._started.created or 0,
            "model": self._started.model,
            "output": output,
            "usage": usage,
        }

    def _write_open(self, at: Address, kind: str, id_: str = "", name: str = "") -> list[bytes]:
        if at in self._blocks:
            item = self._blocks[at][0]
            item.call_id, item.name = id_ or item.call_id, name or item.name
            return []
        if kind not in _WRITTEN_KINDS:
            self._unwritable.add(at)
            return []
        type_, part_type, _ = _WRITTEN_KINDS[kind]
        frames: list[bytes] = []
        open_item = None if kind == "tool_call" else self._open_items.get((at[0], type_))
        if open_item is None or open_item.status != "in_progress":
            # The items before that are finished are done once another one begins.
            frames = [frame for item in self._items if item.is_closed for frame in self._close_item(item, "completed")]
            id_suffix = f"{self._started.id.removeprefix('resp_')}_{len(self._items)}"
            # Derived from the response's id, so that a stream and the response stored from it have the same ids.
            open_item = _OpenItem(f"{_ID_PREFIXES[type_]}_{id_suffix}", len(self._items), type_, id_, name)
            frames.append(self._render_item("added", open_item))
            self._items.append(open_item)
            self._open_items[at[0], type_] = open_item
        address_fields = {"item_id": open_item.id, "output_index": open_item.index}
        if kind != "tool_call":
            address_fields["content_index"] = len(open_item.blocks)
        block = _OpenBlock(kind, f"response.{part_type}", address_fields)
        if kind == "text":
            self._last_text = block
            block.logprobs = [] if self._logprobs else None
        if kind != "tool_call":
            frames.append(self._render("response.content_part.added", {**address_fields, "part": block.part()}))
        open_item.blocks.append(block)
        self._blocks[at] = (open_item, block)
        return frames

    def _write_close(self, at: Address, text: str | None, item_status: str = "completed") -> list[bytes]:
        """Return the frames that close a block, and its item if that is done with it, with this status."""
        entry = self._blocks.get(at)
        if entry is None:
            if not text or at in self._unwritable:
                return []
            # An engine may send a text only when its block closes.
            return [*self._write_open(at, "text"), *self._write_close(at, text)]
        item, block = entry
        if block.final_text is not None:
            return []
        block.final_text = "".join(block.pieces) if text is None else text
        frames = [self._render_block(block, "done", {_WRITTEN_KINDS[block.kind][2]: block.final_text})]
        if item.type == "function_call":
            return [*frames, *self._close_item(item, item_status)]
        if self._extension is not None:
            part = {**block.address_fields, "part": block.part()}
            frames.append(self._render("response.content_part.done", part))
        # A message may get further parts until another item begins, so only then is it known to be done.
        if item is not self._items[-1] and item.is_closed:
            frames += self._close_item(item, item_status)
        return frames

    def _close_item(self, item: _OpenItem, status: str) -> list[bytes]:
        if item.status != "in_progress":
            return []
        item.status = status
        return [self._render_item("done", item)]

    def _write_end(self, ended: Ended) -> list[bytes]:
        """Close every block and item as it is, after a failure as well: what the caller has is part of the response."""
        if self._ended is not None and (self._ended.fault is not None or ended.fault is None):
            return []
        self._ended = ended
        status = "completed" if _status(ended) == "completed" else "incomplete"
        frames = [frame for at in self._blocks for frame in self._write_close(at, None, status)]
        return frames + [frame for item in self._items for frame in self._close_item(item, status)]


writer = ResponsesWriter


def response_id(item_id: str) -> str:
    """Return the id of the response that an output item with this id belongs to."""
    return f"resp_{item_id.partition('_')[2].rpartition('_')[0]}"


def _status(ended: Ended) -> str:
    """Return the response's status: the reply's own if this dialect has it, else what follows from the reason."""
    if ended.fault is not None or ended.finish_reason == "error":
        return "failed"
    if ended.finish_reason in _INCOMPLETE_REASONS:
        return "incomplete"
    return ended.status if ended.status in ("incomplete", "cancelled", "failed") else "completed"
