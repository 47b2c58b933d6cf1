"""The Open Responses profile: what that specification's compliance suite wants of the responses endpoint beyond the
document, added to what the dialect writes; a service without the profile never comes here.

    response   + what the request asked for, and every optional field as null, its default or an empty list
    part       + logprobs
    event      + `event:` line, sequence_number, logprobs; content_part.done after a part's text; [DONE] at the end

Source: openresponses.org, specification of 2026-04-24 and the one before it, whose suite wants `logprobs` as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from famnb.events import Done, Event, Usage
from famnb.reply import Reply
from famnb.request import Request, ResponsesRequest
from famnb.request.responses import TextFormat
from famnb.wire import lenient_json, responses, sse
from famnb.wire.responses import ResponsesWriter

_DATA = len(b"data: ")
_DONES = ("response.output_text.done", "response.refusal.done")
"""What ends the text of a part, after which the part itself is done."""
_TEXTS = ("response.output_text.delta", "response.output_text.done")


class OpenResponsesDialect:
    """The responses dialect as the profile wants it, for the reply to one request."""

    read = staticmethod(responses.read)
    reader = staticmethod(responses.reader)
    fault = staticmethod(responses.fault)

    def __init__(self, request: ResponsesRequest, *, clock: Callable[[], float] = time.time) -> None:
        self._asked = _asked(request)
        self._clock = clock
        self._completed_at: int | None = None

    @classmethod
    def for_request(cls, request: Request) -> OpenResponsesDialect | None:
        """Return the dialect for the reply to a request; None at an endpoint that the profile says nothing of."""
        return cls(request) if isinstance(request, ResponsesRequest) else None

    def write(self, reply: Reply, /) -> dict[str, Any]:
        """The response object of a whole reply."""
        body = responses.write(reply)
        return self.filled(body if reply.status != "running" else {**body, "status": "in_progress"}, reply.usage)

    def writer(self, *, include_usage: bool = False, named: bool = False) -> Writer:  # noqa: ARG002 - as in Dialect
        """A writer for one stream; its events always have their `event:` lines."""
        return Writer(self)

    def filled(self, response: dict[str, Any], usage: Usage) -> dict[str, Any]:
        """A response object of the dialect with every field that the profile wants."""
        if response["status"] == "completed" and self._completed_at is None:
            # Once: a response that is sent and stored must be the same.
            self._completed_at = int(self._clock())
        return {
            **self._asked,
            **response,
            "output": [filled_item(item) for item in response["output"]],
            "usage": _usage(usage) if response["usage"] else None,
            "completed_at": self._completed_at if response["status"] == "completed" else None,
        }


class Writer:
    """Writes the events of one response as the dialect does, and adds to each."""

    def __init__(self, dialect: OpenResponsesDialect) -> None:
        self._dialect = dialect
        self._inner = ResponsesWriter(named=False)
        self._usage = Usage()
        self._next = 0

    def write(self, event: Event, /) -> list[bytes]:
        if type(event) is Usage:
            self._usage = self._usage.then(event)
        frames = [
            frame for block in self._inner.write(event) for frame in self._frames(lenient_json.decode(block[_DATA:]))
        ]
        return [*frames, sse.encode(b"[DONE]")] if type(event) is Done else frames

    def _frames(self, event: dict[str, Any]) -> list[bytes]:
        """An event of the dialect, and what the profile wants after it."""
        type_ = event["type"]
        if type_ in _TEXTS:
            event["logprobs"] = []
        if "part" in event:
            event["part"] = filled_part(event["part"])
        if "item" in event:
            event["item"] = filled_item(event["item"])
        if "response" in event:
            event["response"] = self._dialect.filled(event["response"], self._usage.with_total())
        frames = [self._frame(event)]
        if type_ in _DONES:
            frames.append(self._frame(_part_done(event)))
        return frames

    def _frame(self, event: dict[str, Any]) -> bytes:
        """An event with its place in the stream."""
        type_ = event.pop("type")
        numbered = {"type": type_, "sequence_number": self._next, **event}
        self._next += 1
        return sse.encode(lenient_json.encode(numbered), type_)


def filled_item(item: dict[str, Any]) -> dict[str, Any]:
    """An output item whose parts have every field."""
    return {**item, "content": [filled_part(part) for part in item["content"]]} if "content" in item else item


def filled_part(part: dict[str, Any]) -> dict[str, Any]:
    """A part with every field."""
    return {**part, "logprobs": []} if part["type"] == "output_text" else part


def _part_done(event: dict[str, Any]) -> dict[str, Any]:
    """The event that ends a part, made of the one that ended its text."""
    place = {name: event[name] for name in ("item_id", "output_index", "content_index")}
    if "text" in event:
        part = filled_part({"type": "output_text", "text": event["text"], "annotations": []})
    else:
        part = {"type": "refusal", "refusal": event["refusal"]}
    return {"type": "response.content_part.done", **place, "part": part}


def _asked(request: ResponsesRequest) -> dict[str, Any]:
    """What a request asked for, as a response repeats it, and what this service always answers."""
    return {
        "incomplete_details": None,
        "previous_response_id": request.previous_response_id,
        "instructions": request.instructions,
        "error": None,
        "tools": [],
        "tool_choice": "none",
        "truncation": "disabled",
        "parallel_tool_calls": False,
        "text": _text(request),
        "top_p": request.top_p,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "top_logprobs": 0,
        "temperature": request.temperature,
        "reasoning": _reasoning(request),
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": None,
        "store": request.store,
        "background": False,
        "service_tier": "default",
        "metadata": request.metadata or {},
        "safety_identifier": None,
        "prompt_cache_key": None,
    }


def _text(request: ResponsesRequest) -> dict[str, Any]:
    """The form of the text as the profile names it."""
    form = (request.text and request.text.format) or TextFormat()
    match form.type:
        case "text":
            said: dict[str, Any] = {"type": "text"}
        case "json" | "json_object":
            said = {"type": "json_object"}
        case "json_schema":
            # The specification wants null where the schema stood.
            named = {"name": form.name or "", "description": None, "schema": None, "strict": bool(form.strict)}
            said = {"type": "json_schema", **named}
    return {"format": said, "verbosity": (request.text and request.text.verbosity) or "medium"}


def _reasoning(request: ResponsesRequest) -> dict[str, Any] | None:
    """The reasoning asked for; words that the profile does not have are null."""
    if request.reasoning is None:
        return None
    effort, summary = request.reasoning.effort, request.reasoning.summary
    return {"effort": None if effort == "minimal" else effort, "summary": None if summary == "none" else summary}


def _usage(usage: Usage) -> dict[str, Any] | None:
    """The counts with their details, 0 where an engine does not tell them; None unless all three totals are known."""
    totals = {name: getattr(usage, name) for name in ("input_tokens", "output_tokens", "total_tokens")}
    if None in totals.values():
        return None
    return {
        **totals,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
    }
