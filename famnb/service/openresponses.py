"""The Open Responses profile: what that specification's compliance suite wants of the responses endpoint beyond the
document. A service without the profile never uses this.

    response   + what the request asked for, and every optional field as null, its default or an empty list
    part       + logprobs
    event      + `event:` line, sequence_number, logprobs; content_part.done after a part's text; [DONE] at the end

The fields of the response object are here; `ResponsesWriter` writes the rest where it has an extension.

Source: openresponses.org, specification of 2026-04-24 and the one before it, whose suite wants `logprobs` as well.
"""

from __future__ import annotations

import time
from typing import Any

from famnb.events import Usage
from famnb.reply import Reply
from famnb.request import Request
from famnb.request.responses import BaseResponsesRequest, TextFormat
from famnb.wire import responses
from famnb.wire.responses import ResponsesWriter

REPEATED_FIELDS = frozenset({"metadata", "reasoning.summary"})
"""Fields of a request that its response repeats and nothing else uses."""


class OpenResponsesDialect:
    """The responses dialect as the profile wants it, for the reply to one request."""

    CONVENTIONS = responses.CONVENTIONS
    read = staticmethod(responses.read)
    reader = staticmethod(responses.reader)
    fault = staticmethod(responses.fault)

    def __init__(self, request: BaseResponsesRequest) -> None:
        tools, choice = request.get("tools"), request.get("tool_choice")
        if reasoning := request.get("reasoning"):
            # Values that the profile does not have are null.
            effort = None if reasoning.effort == "minimal" else reasoning.effort
            summary = None if reasoning.summary == "none" else reasoning.summary
            reasoning = {"effort": effort, "summary": summary}
        repeated = ("instructions", "temperature", "top_p", "max_output_tokens", "store")
        self._request_fields: dict[str, Any] = {
            **{name: request.get(name) for name in repeated},
            "previous_response_id": request.continues,
            # Which the document's requests do not have.
            "tools": [tool.model_dump() for tool in tools or ()],
            "tool_choice": "none" if not tools else choice if isinstance(choice, str) else choice.model_dump(),
            "parallel_tool_calls": bool(tools and request.get("parallel_tool_calls")),
            "text": _text(request),
            "reasoning": reasoning,
            "metadata": request.get("metadata") or {},
            # These are the same for every response of this service.
            **dict.fromkeys(("error", "incomplete_details", "max_tool_calls", "safety_identifier", "prompt_cache_key")),
            **dict.fromkeys(("presence_penalty", "frequency_penalty", "top_logprobs"), 0),
            "truncation": "disabled",
            "background": False,
            "service_tier": "default",
        }
        self._completed_at: int | None = None

    @classmethod
    def for_request(cls, request: Request) -> OpenResponsesDialect | None:
        """Return the dialect for the reply to a request; None at an endpoint that the profile does not cover."""
        return cls(request) if isinstance(request, BaseResponsesRequest) else None

    def write(self, reply: Reply, /) -> dict[str, Any]:
        """Return the response object of a whole reply."""
        body = responses.write(reply, logprobs=True)
        if reply.status == "running":
            body["status"] = "in_progress"
        return self.extend_response(body, reply.usage)

    def writer(self, *, include_usage: bool = False, named: bool = False) -> ResponsesWriter:  # noqa: ARG002 - as in Dialect
        """Return a writer for one stream; its events always have their `event:` lines."""
        return ResponsesWriter(named=True, extension=self.extend_response)

    def extend_response(self, response: dict[str, Any], usage: Usage, /) -> dict[str, Any]:
        """Return a response object of the dialect with every field that the profile wants."""
        is_completed = response["status"] == "completed"
        if is_completed and self._completed_at is None:
            # Once: the response that is sent and the one that is stored must be the same.
            self._completed_at = int(time.time())
        totals = {name: getattr(usage, name) for name in ("input_tokens", "output_tokens", "total_tokens")}
        # Zero is untrue where a count is unknown, but the specification has no null here.
        details = {
            "input_tokens_details": {
                "cached_tokens": usage.cached_tokens or 0,
                "cache_write_tokens": usage.cache_write_tokens or 0,
            },
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        }
        return {
            **self._request_fields,
            **response,
            "usage": {**totals, **details} if response["usage"] and None not in totals.values() else None,
            "completed_at": self._completed_at if is_completed else None,
        }


def _text(request: BaseResponsesRequest) -> dict[str, Any]:
    """Return the format of the text as the profile names it."""
    text = request.get("text")
    text_format = (text and text.format) or TextFormat()
    match text_format.type:
        case "text":
            fields: dict[str, Any] = {"type": "text"}
        case "json" | "json_object":
            fields = {"type": "json_object"}
        case "json_schema":
            # The specification wants null in place of the schema.
            fields = {
                "type": "json_schema",
                "name": text_format.name or "",
                "description": None,
                "schema": None,
                "strict": bool(text_format.strict),
            }
    return {"format": fields, "verbosity": (text and text.verbosity) or "medium"}
