"""How the chat-completions dialect is written, whole and streamed; reading it stands in `chat`.

Thinking is left out: this dialect shows none.
"""

from __future__ import annotations

from typing import Any

from famnb.events import Address, Closed, Delta, Done, Ended, Event, Fault, Opened, Started, Usage
from famnb.reply import Reply
from famnb.wire import codec, sse

_FINISH = {"stop_sequence": "stop", "cancelled": "stop"}
"""Finish reasons that this dialect has another word for."""


class ChatWriter:
    """Writes the chunks of one completion."""

    __slots__ = ("_calls", "_ended", "_head", "_include_usage", "_kinds", "_role", "_said", "_text_head", "_usage")

    def __init__(self, *, include_usage: bool) -> None:
        self._include_usage = include_usage
        self._usage = Usage()
        self._kinds: dict[Address, str] = {}
        self._calls: dict[Address, int] = {}
        self._said: set[Address] = set()
        self._role = True
        self._ended = False
        self._begin(Started())

    def write(self, event: Event, /) -> list[bytes]:
        match event:
            case Delta():
                self._said.add(event.at)
                if event.kind == "text" and not self._role:
                    return [b'%b%b},"finish_reason":null}]}\n\n' % (self._text_head, codec.encode(event.text))]
                return self._delta(event.at, event.kind, event.text)
            case Opened():
                self._kinds[event.at] = event.kind
                return self._call(event.at, event.id, event.name, "") if event.kind == "tool_call" else []
            case Closed(text=str() as text) if text and event.at not in self._said:
                return self._delta(event.at, self._kinds.get(event.at, "text"), text)
            case Started():
                self._begin(event)
            case Usage():
                self._usage = self._usage.then(event)
            case Ended() if not self._ended or event.fault is not None:
                self._ended = True
                return [self._failure(event.fault) if event.fault else self._chunk({}, _finish(event.finish_reason))]
            case Done():
                known = self._include_usage and self._usage != Usage()
                return [*([self._usage_chunk()] if known else []), sse.encode(sse.DONE)]
            case _:
                pass
        return []

    def _begin(self, started: Started) -> None:
        """Render once what every chunk begins with."""
        fields = {
            "id": started.id,
            "object": "chat.completion.chunk",
            "created": started.created or 0,
            "model": started.model,
        }
        self._head = b'data: %b,"choices":' % codec.encode(fields)[:-1]
        self._text_head = self._head + b'[{"index":0,"delta":{"content":'

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        if delta and self._role:
            delta = {"role": "assistant", **delta}
            self._role = False
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return b"%b%b}\n\n" % (self._head, codec.encode(choices))

    def _usage_chunk(self) -> bytes:
        return b'%b[],"usage":%b}\n\n' % (self._head, codec.encode(_usage(self._usage.with_total())))

    def _failure(self, found: Fault) -> bytes:
        return sse.encode(codec.encode(fault(found)))

    def _delta(self, at: Address, kind: str, text: str) -> list[bytes]:
        match kind:
            case "text":
                return [self._chunk({"content": text})]
            case "refusal":
                return [self._chunk({"refusal": text})]
            case "tool_call":
                return self._call(at, "", "", text)
            case _:
                return []

    def _call(self, at: Address, id_: str, name: str, arguments: str) -> list[bytes]:
        new = at not in self._calls
        call: dict[str, Any] = {"index": self._calls.setdefault(at, len(self._calls))}
        if id_:
            call["id"] = id_
        if new:
            call["type"] = "function"
        call["function"] = {**({"name": name} if name else {}), "arguments": arguments}
        return [self._chunk({"tool_calls": [call]})]


def write(reply: Reply) -> dict[str, Any]:
    """The chat completion that says this reply."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if refusal := "".join(block.text for block in reply.blocks if block.kind == "refusal"):
        message["refusal"] = refusal
    if reply.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
            for call in reply.tool_calls
        ]
    return {
        "id": reply.id,
        "object": "chat.completion",
        "created": reply.created or 0,
        "model": reply.model,
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(reply.finish_reason)}],
        "usage": _usage(reply.usage),
    }


def fault(fault: Fault) -> dict[str, Any]:
    """The error body of the chat endpoints."""
    fields = {"message": fault.message, "type": fault.type, "code": fault.code}
    return {"error": {**fields, "param": fault.param} if fault.param else fields}


def _finish(reason: str | None) -> str:
    return _FINISH.get(reason, reason) if reason else "stop"


def _usage(usage: Usage) -> dict[str, Any] | None:
    """The usage; null where nothing of it is known."""
    if usage == Usage():
        return None
    fields: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }
    if usage.reasoning_tokens is not None:
        fields["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    if usage.cached_tokens is not None:
        fields["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    return fields
