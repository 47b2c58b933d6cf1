"""How the responses dialect is written, whole and streamed; reading it stands in `responses`."""

from __future__ import annotations

import dataclasses
from typing import Any

from famnb.events import Address, Closed, Delta, Done, Ended, Event, Fault, Opened, Started, Usage
from famnb.reply import Reply
from famnb.wire import codec, sse

_PARTS = {"text": ("output_text", "text"), "refusal": ("refusal", "refusal")}
"""For each kind of a message item its part type and the field of its text."""
_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclasses.dataclass(slots=True)
class _Block:
    """A part of a message item, or the call of a function item, while it is written."""

    kind: str
    index: int
    head: bytes
    """What each of its deltas begins with, rendered once."""
    pieces: list[str] = dataclasses.field(default_factory=list)
    whole: str | None = None
    """The final text once it was written."""


@dataclasses.dataclass(slots=True)
class _Item:
    """An output item while it is written."""

    id: str
    index: int
    kind: str
    call_id: str = ""
    name: str = ""
    blocks: list[_Block] = dataclasses.field(default_factory=list)
    status: str = "in_progress"

    def body(self) -> dict[str, Any]:
        """The item as it stands on the wire."""
        if self.kind == "function_call":
            arguments = (self.blocks[0].whole or "") if self.blocks else ""
            return _call(self.id, self.call_id, self.name, arguments, self.status)
        content = [_part(block.kind, block.whole or "") for block in self.blocks]
        return _message(self.id, content, self.status)


class ResponsesWriter:
    """Writes the events of one response; `named` adds `event:` lines."""

    __slots__ = ("_begun", "_blocks", "_ended", "_items", "_messages", "_named", "_started", "_unsaid", "_usage")

    def __init__(self, *, named: bool) -> None:
        self._named = named
        self._begun = False
        self._started = Started()
        self._unsaid: set[Address] = set()
        self._items: list[_Item] = []
        self._messages: dict[int, _Item] = {}
        self._blocks: dict[Address, tuple[_Item, _Block]] = {}
        self._ended: Ended | None = None
        self._usage = Usage()

    def write(self, event: Event, /) -> list[bytes]:
        match event:
            case Delta():
                frames = [] if event.at in self._blocks else self._opened(event.at, event.kind)
                found = self._blocks.get(event.at)
                if found is None or found[1].kind != event.kind:
                    return frames
                block = found[1]
                block.pieces.append(event.text)
                frames.append(b"%b%b}\n\n" % (block.head, codec.encode(event.text)))
                return frames
            case Opened():
                return self._opened(event.at, event.kind, event.id, event.name)
            case Closed():
                return self._closed(event.at, event.text)
            case Started() if not self._begun:
                self._begun = True
                self._started = event
                response = self._response("in_progress", [], None)
                return [self._frame(f"response.{word}", {"response": response}) for word in ("created", "in_progress")]
            case Usage():
                self._usage = self._usage.then(event)
            case Ended():
                return self._end(event)
            case Done():
                return self._done()
            case _:
                pass
        return []

    def _frame(self, type_: str, fields: dict[str, Any]) -> bytes:
        return sse.encode(codec.encode({"type": type_, **fields}), type_ if self._named else None)

    def _response(self, status: str, output: list[dict[str, Any]], usage: dict[str, Any] | None) -> dict[str, Any]:
        return _response(self._started.id, self._started.created, self._started.model, status, output, usage)

    def _opened(self, at: Address, kind: str, id_: str = "", name: str = "") -> list[bytes]:
        if at in self._blocks:
            item = self._blocks[at][0]
            item.call_id, item.name = id_ or item.call_id, name or item.name
            return []
        if kind == "tool_call":
            frames, item = self._added("function_call", id_, name)
            place = {"item_id": item.id, "output_index": item.index}
            block = _Block(kind, 0, self._head("response.function_call_arguments.delta", place))
        elif kind in _PARTS:
            frames, item = self._message(at[0])
            place = {"item_id": item.id, "output_index": item.index, "content_index": len(item.blocks)}
            frames.append(self._frame("response.content_part.added", {**place, "part": _part(kind, "")}))
            block = _Block(kind, len(item.blocks), self._head(f"response.{_PARTS[kind][0]}.delta", place))
        else:
            self._unsaid.add(at)
            return []
        item.blocks.append(block)
        self._blocks[at] = (item, block)
        return frames

    def _message(self, index: int) -> tuple[list[bytes], _Item]:
        """The message item for the blocks at an output index, added where it is not open."""
        item = self._messages.get(index)
        if item is not None and item.status == "in_progress":
            return [], item
        frames, item = self._added("message")
        self._messages[index] = item
        return frames, item

    def _added(self, kind: str, call_id: str = "", name: str = "") -> tuple[list[bytes], _Item]:
        """A new item; the message items before it that are finished are done."""
        frames = [
            frame
            for item in self._items
            if item.kind == "message" and all(block.whole is not None for block in item.blocks)
            for frame in self._item_done(item, "completed")
        ]
        index = len(self._items)
        item = _Item(_item_id(kind, self._started.id, index), index, kind, call_id, name)
        frames.append(self._frame("response.output_item.added", {"output_index": index, "item": item.body()}))
        self._items.append(item)
        return frames, item

    def _head(self, type_: str, place: dict[str, Any]) -> bytes:
        name = f"event: {type_}\n".encode() if self._named else b""
        return b'%bdata: %b,"delta":' % (name, codec.encode({"type": type_, **place})[:-1])

    def _closed(self, at: Address, text: str | None) -> list[bytes]:
        found = self._blocks.get(at)
        if found is None:
            if not text or at in self._unsaid:
                return []
            return [*self._opened(at, "text"), *self._closed(at, text)]
        item, block = found
        if block.whole is not None:
            return []
        block.whole = "".join(block.pieces) if text is None else text
        place: dict[str, Any] = {"item_id": item.id, "output_index": item.index}
        if item.kind == "function_call":
            done = {**place, "arguments": block.whole}
            return [self._frame("response.function_call_arguments.done", done), *self._item_done(item, "completed")]
        part, field = _PARTS[block.kind]
        return [self._frame(f"response.{part}.done", {**place, "content_index": block.index, field: block.whole})]

    def _item_done(self, item: _Item, status: str) -> list[bytes]:
        if item.status != "in_progress":
            return []
        item.status = status
        return [self._frame("response.output_item.done", {"output_index": item.index, "item": item.body()})]

    def _end(self, ended: Ended) -> list[bytes]:
        """Finish every block and item, except at a failure: what it cuts off is not finished."""
        if self._ended is not None and (self._ended.fault is not None or ended.fault is None):
            return []
        self._ended = ended
        if ended.fault is not None:
            return []
        frames = [frame for at in self._blocks for frame in self._closed(at, None)]
        status = "completed" if _status(ended) == "completed" else "incomplete"
        return frames + [frame for item in self._items for frame in self._item_done(item, status)]

    def _done(self) -> list[bytes]:
        ended = self._ended
        if ended is None:
            return []
        status = _status(ended)
        output = [item.body() for item in self._items if item.status != "in_progress"]
        response = self._response(status, output, _totals(self._usage.with_total()))
        _add_outcome(response, ended.finish_reason, ended.fault)
        return [self._frame(f"response.{status}", {"response": response})]


def write(reply: Reply) -> dict[str, Any]:
    """The response object that says this reply."""
    ended = Ended(reply.finish_reason, status=reply.status, fault=reply.fault)
    status = _status(ended)
    item_status = "completed" if status == "completed" else "incomplete"
    output: list[dict[str, Any]] = []
    messages: dict[int, dict[str, Any]] = {}
    for block in reply.blocks:
        id_ = _item_id("function_call" if block.kind == "tool_call" else "message", reply.id, len(output))
        if block.kind == "tool_call":
            output.append(_call(id_, block.id, block.name, block.text, "completed"))
        elif block.kind in _PARTS:
            if block.at[0] not in messages:
                messages[block.at[0]] = _message(id_, [], item_status)
                output.append(messages[block.at[0]])
            messages[block.at[0]]["content"].append(_part(block.kind, block.text))
    response = _response(reply.id, reply.created, reply.model, status, output, _usage(reply.usage))
    _add_outcome(response, reply.finish_reason, reply.fault)
    return response


def fault(fault: Fault) -> dict[str, Any]:
    """The error body of the responses endpoint."""
    fields = {"message": fault.message, "type": fault.type, "code": fault.code}
    return {"error": {**fields, "param": fault.param} if fault.param else fields}


def _item_id(kind: str, response_id: str, index: int) -> str:
    prefix = "fc" if kind == "function_call" else "msg"
    return f"{prefix}_{response_id.removeprefix('resp_')}_{index}"


def _message(id_: str, content: list[dict[str, Any]], status: str) -> dict[str, Any]:
    return {"id": id_, "type": "message", "role": "assistant", "status": status, "content": content}


def _call(id_: str, call_id: str, name: str, arguments: str, status: str) -> dict[str, Any]:
    fields = {"id": id_, "type": "function_call", "status": status}
    return {**fields, "call_id": call_id, "name": name, "arguments": arguments}


def _part(kind: str, text: str) -> dict[str, Any]:
    type_, field = _PARTS[kind]
    part: dict[str, Any] = {"type": type_, field: text}
    return {**part, "annotations": []} if kind == "text" else part


def _response(
    id_: str, created: int | None, model: str, status: str, output: list[dict[str, Any]], usage: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "id": id_,
        "object": "response",
        "status": status,
        "created_at": created or 0,
        "model": model,
        "output": output,
        "usage": usage,
    }


def _status(ended: Ended) -> str:
    """The response's status: the reply's own where this dialect has it, else as the reason says."""
    if ended.fault is not None or ended.finish_reason == "error":
        return "failed"
    if ended.finish_reason in _REASONS:
        return "incomplete"
    return ended.status if ended.status in ("incomplete", "cancelled", "failed") else "completed"


def _add_outcome(response: dict[str, Any], finish_reason: str | None, fault: Fault | None) -> None:
    """Add what only an unfinished response has: its error, or why it is incomplete."""
    if fault is not None:
        response["error"] = {"code": fault.code, "message": fault.message}
    elif response["status"] == "incomplete":
        response["incomplete_details"] = {"reason": _REASONS.get(finish_reason or "", finish_reason)}


def _totals(usage: Usage) -> dict[str, Any] | None:
    totals = {name: getattr(usage, name) for name in ("input_tokens", "output_tokens", "total_tokens")}
    return None if all(count is None for count in totals.values()) else totals


def _usage(usage: Usage) -> dict[str, Any] | None:
    fields = _totals(usage)
    if fields is not None and usage.reasoning_tokens is not None:
        fields["output_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    if fields is not None and usage.cached_tokens is not None:
        fields["input_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    return fields
