"""The responses dialect: output items and their parts, read here; how they are written stands in `responses_writer`.

read   {status, output: [item {content: [part …]} …], usage} or
       created ── in_progress ── (item.added ── (part.added ── delta … ── done) … ── item.done) … ── completed
A block stands at (output index, content index); a reasoning summary's parts follow the item's own content.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from famnb.events import Address, Closed, Delta, Done, Ended, Event, Fault, Opened, Other, Started, Status, Usage
from famnb.wire import codec, faults
from famnb.wire.reading import StreamReader
from famnb.wire.responses_writer import ResponsesWriter, fault, write

__all__ = ["fault", "read", "reader", "write", "writer"]

_SUMMARY = 1000
"""Where the content indices of a reasoning summary begin, out of the way of the item's own content."""
_KINDS = {
    "output_text": ("text", "text"),
    "text": ("text", "text"),
    "refusal": ("refusal", "refusal"),
    "reasoning_text": ("thinking", "text"),
    "summary_text": ("thinking", "text"),
}
"""For each part type its kind and the field of its text."""
_PIECES = {
    "response.output_text": ("text", "text"),
    "response.refusal": ("refusal", "refusal"),
    "response.reasoning_text": ("thinking", "text"),
    "response.reasoning": ("thinking", "text"),
    "response.reasoning_summary_text": ("thinking", "text"),
    "response.reasoning_summary": ("thinking", "text"),
    "response.function_call_arguments": ("tool_call", "arguments"),
}
"""For each family of `.delta` and `.done` events its kind and the field of the whole text."""
_DELTAS = {f"{family}.delta": kind for family, (kind, _) in _PIECES.items()}
_DONES = {f"{family}.done": fields for family, fields in _PIECES.items()}
_TERMINAL = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_STATUSES: dict[str, Status] = {
    "completed": "completed",
    "incomplete": "incomplete",
    "failed": "failed",
    "cancelled": "cancelled",
}
_FINISH = {"completed": "stop", "max_output_tokens": "length", "max_tokens": "length"}
_RUNNING = ("queued", "in_progress")


class _Part(NamedTuple):
    """One block of an output item."""

    at: Address
    kind: str
    text: str
    id: str = ""
    name: str = ""


def read(body: Any) -> list[Event]:
    """The events of a whole response."""
    fields = codec.mapping(body)
    failed = faults.is_failure(fields)
    output = fields.get("output")
    if not isinstance(output, list) and isinstance(fields.get("output_text"), str):
        output = [{"content": fields["output_text"]}]
    if not isinstance(output, list) and not failed:
        raise codec.not_a_reply(body, "a response with an `output` list")
    events: list[Event] = list(_started(fields))
    called = False
    for index, item in enumerate(codec.array(output)):
        for part in _parts(index, codec.mapping(item)):
            called = called or part.kind == "tool_call"
            events.append(Opened(part.at, part.kind, part.id, part.name))
            if part.text:
                events.append(Delta(part.at, part.kind, part.text))
            events.append(Closed(part.at))
    status = codec.word(fields.get("status")) or ("failed" if failed else "")
    if status not in _RUNNING:
        events.append(_ended(fields, status, called=called))
    return [*events, *_usage(fields.get("usage"))]


def reader() -> ResponsesReader:
    """A reader for one stream."""
    return ResponsesReader()


def writer(*, include_usage: bool = False, named: bool = False) -> ResponsesWriter:  # noqa: ARG001 - as in Dialect
    """A writer for one stream; it always ends with usage, so `include_usage` changes nothing."""
    return ResponsesWriter(named=named)


class ResponsesReader(StreamReader):
    """Reads the events of one response; bookkeeping events may be missing or repeated."""

    __slots__ = ("_final", "_indices", "_item", "_kinds", "_moved", "_names", "_started")

    def __init__(self) -> None:
        super().__init__()
        self._started = Started()
        self._indices: dict[str, int] = {}
        self._item = 0
        self._kinds: dict[Address, str] = {}
        self._moved: dict[tuple[Address, str], Address] = {}
        self._names: dict[Address, tuple[str, str]] = {}
        self._final: dict[Address, str] = {}

    def _read(self, event: dict[str, Any]) -> list[Event]:
        type_ = event.get("type")
        kind = _DELTAS.get(type_) if type(type_) is str else None
        if kind is not None:
            return self._delta(event, kind)
        return self._bookkeeping(codec.word(type_), event)

    def _bookkeeping(self, type_: str, event: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        match type_:
            case "response.output_item.added" | "response.output_item.done":
                item = codec.mapping(event.get("item"))
                index = self._output_index(event, codec.word(item.get("id")))
                for part in _parts(index, item):
                    self._part(events, part, whole=type_.endswith("done"))
            case "response.content_part.added" | "response.content_part.done":
                if found := _part(self._place(event), codec.mapping(event.get("part"))):
                    self._part(events, found, whole=type_.endswith("done"))
            case _ if type_ in _DONES:
                kind, field = _DONES[type_]
                if isinstance(whole := event.get(field), str):
                    self._part(events, _Part(self._place(event), kind, whole), whole=True)
            case _ if type_ in _TERMINAL:
                self._terminal(events, event, type_.removeprefix("response."))
            case _ if type_ == "error" or (not type_ and faults.is_failure(event)):
                events.append(faults.ended(event))
            case _:
                events += self._identity(codec.mapping(event.get("response")))
        return events or [Other(type_)]

    def _identity(self, response: dict[str, Any]) -> list[Event]:
        for started in _started(response):
            if started != self._started:
                self._started = started
                return [started]
        return []

    def _output_index(self, event: dict[str, Any], item_id: str) -> int:
        """The item an event is about: by its index, else by its id, else the one before."""
        index = event.get("output_index")
        if type(index) is not int:
            found = codec.integer(index)
            index = self._indices.get(item_id, self._item) if found is None else found
        if item_id:
            self._indices[item_id] = index
        self._item = index
        return index

    def _place(self, event: dict[str, Any]) -> Address:
        index, place = event.get("output_index"), event.get("content_index")
        if type(index) is int and type(place) is int:
            self._item = index
            return index, place
        index = self._output_index(event, codec.word(event.get("item_id")))
        if "summary_index" in event:
            return index, _SUMMARY + (codec.integer(event["summary_index"]) or 0)
        return index, codec.integer(event.get("content_index")) or 0

    def _delta(self, event: dict[str, Any], kind: str) -> list[Event]:
        at = self._place(event)
        piece = event.get("delta")
        said = piece if type(piece) is str else codec.text(piece)
        if self._kinds.get(at) == kind:
            return [Delta(at, kind, said)]
        at, new = self._settled(at, kind)
        return [*([Opened(at, kind)] if new else []), Delta(at, kind, said)]

    def _settled(self, at: Address, kind: str) -> tuple[Address, bool]:
        """Where a block of this kind stands, and whether it is new.

        Where indices are missing, blocks of two kinds may claim one place: the later one then stands behind all others.
        """
        if self._kinds.get(at, kind) != kind:
            free = (max(index for index, _ in self._kinds) + 1, 0)
            at = self._moved.setdefault((at, kind), free)
        new = at not in self._kinds
        self._kinds[at] = kind
        return at, new

    def _part(self, events: list[Event], part: _Part, *, whole: bool) -> None:
        """What a part says that is new: that it exists, a tool call's id and name, its final text where it is told."""
        at, new = self._settled(part.at, part.kind)
        named = (part.id, part.name)
        if new or (any(named) and self._names.get(at) != named):
            self._names[at] = named
            events.append(Opened(at, part.kind, part.id, part.name))
        if whole and self._final.get(at) != part.text:
            self._final[at] = part.text
            events.append(Closed(at, part.text or None))

    def _terminal(self, events: list[Event], event: dict[str, Any], said: str) -> None:
        response = codec.mapping(event.get("response"))
        events += self._identity(response)
        for position, item in enumerate(codec.array(response.get("output"))):
            fields = codec.mapping(item)
            index = self._indices.get(codec.word(fields.get("id")), position)
            for part in _parts(index, fields):
                self._part(events, part, whole=True)
        status = codec.word(response.get("status"))
        status = said if status in ("", *_RUNNING) else status
        events.append(_ended(response, status, called="tool_call" in self._kinds.values()))
        events += _usage(response.get("usage"))
        events.append(Done())
        self._done = True


def _parts(index: int, item: dict[str, Any]) -> Iterator[_Part]:
    """The blocks of an output item."""
    type_ = codec.word(item.get("type")) or "message"
    if type_ == "function_call":
        id_ = codec.word(item.get("call_id")) or codec.word(item.get("id"))
        name = codec.word(item.get("name"))
        yield _Part((index, 0), "tool_call", codec.arguments(item.get("arguments")), id_, name)
        return
    content = item.get("content")
    for place, part in enumerate([content] if isinstance(content, str | dict) else codec.array(content)):
        fields = {"type": "output_text", "text": part} if isinstance(part, str) else codec.mapping(part)
        if found := _part((index, place), fields):
            yield found
    for place, part in enumerate(codec.array(item.get("summary"))):
        yield _Part((index, _SUMMARY + place), "thinking", codec.text(part))
    if type_ not in ("message", "reasoning") and not content:
        yield _Part((index, 0), type_, codec.text(item))


def _part(at: Address, part: dict[str, Any]) -> _Part | None:
    type_ = codec.word(part.get("type"))
    kind, field = _KINDS.get(type_, (type_ or "text", "text"))
    return _Part(at, kind, codec.text(part.get(field))) if part else None


def _started(response: dict[str, Any]) -> list[Started]:
    started = Started(
        codec.word(response.get("id")), codec.word(response.get("model")), codec.integer(response.get("created_at"))
    )
    return [] if started == Started() else [started]


def _ended(response: dict[str, Any], status: str, *, called: bool) -> Ended:
    """The end that a response object with this status reports."""
    if status == "failed" or response.get("error"):
        found = faults.fault({"error": response.get("error")} if response.get("error") else {})
        code = f" ({found.code})" if found.code else ""
        said = found.message or f"the service reported a failed response{code} without a message"
        return Ended("error", status or None, None, "failed", Fault(said, found.type, found.code, found.param))
    reason = codec.word(codec.mapping(response.get("incomplete_details")).get("reason")) or status
    finish = "tool_calls" if called and reason == "completed" else _FINISH.get(reason, reason)
    return Ended(finish or None, reason or None, None, _STATUSES.get(status))


def _usage(value: Any) -> list[Event]:
    fields = codec.mapping(value)
    usage = Usage(
        input_tokens=codec.integer(fields.get("input_tokens")),
        output_tokens=codec.integer(fields.get("output_tokens")),
        reasoning_tokens=codec.integer(codec.mapping(fields.get("output_tokens_details")).get("reasoning_tokens")),
        cached_tokens=codec.integer(codec.mapping(fields.get("input_tokens_details")).get("cached_tokens")),
        total_tokens=codec.integer(fields.get("total_tokens")),
    )
    return [] if usage == Usage() else [usage]
