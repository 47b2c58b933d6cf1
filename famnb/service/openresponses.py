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
        self._request_fields = _request_fields(request)
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
        return ResponsesWriter(named=True, extension=self)

    def extend_response(self, response: dict[str, Any], usage: Usage, /) -> dict[str, Any]:
        """Return a response object of the dialect with every field that the profile wants."""
        is_completed = response["status"] == "completed"
        if is_completed and self._completed_at is None:
            # Once: the response that is sent and the one that is stored must be the same.
            self._completed_at = int(time.time())
        return {
            **self._request_fields,
            **response,
            "usage": _usage(usage) if response["usage"] else None,
            "completed_at": self._completed_at if is_completed else None,
        }


def _request_fields(request: BaseResponsesRequest) -> dict[str, Any]:
    """Return what a response repeats of its request, and the fields that are the same for every one of this service."""
    return {
        "incomplete_details": None,
        "previous_response_id": request.continues,
        "instructions": request.get("instructions"),
        "error": None,
        **_tools(request),
        "truncation": "disabled",
        "text": _text(request),
        "top_p": request.get("top_p"),
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "top_logprobs": 0,
        "temperature": request.get("temperature"),
        "reasoning": _reasoning(request),
        "max_output_tokens": request.get("max_output_tokens"),
        "max_tool_calls": None,
        "store": request.get("store"),
        "background": False,
        "service_tier": "default",
        "metadata": request.get("metadata") or {},
        "safety_identifier": None,
        "prompt_cache_key": None,
    }


def _tools(request: BaseResponsesRequest) -> dict[str, Any]:
    """Return the tools of the request, which the document's requests do not have, and how they are called."""
    tools, choice = request.get("tools"), request.get("tool_choice")
    if not tools:
        return {"tools": [], "tool_choice": "none", "parallel_tool_calls": False}
    return {
        "tools": [tool.model_dump() for tool in tools],
        "tool_choice": choice if isinstance(choice, str) else choice.model_dump(),
        "parallel_tool_calls": bool(request.get("parallel_tool_calls")),
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


def _reasoning(request: BaseResponsesRequest) -> dict[str, Any] | None:
    """Return the reasoning asked for; values that the profile does not have are null."""
    reasoning = request.get("reasoning")
    if reasoning is None:
        return None
    effort, summary = reasoning.effort, reasoning.summary
    return {"effort": None if effort == "minimal" else effort, "summary": None if summary == "none" else summary}


def _usage(usage: Usage) -> dict[str, Any] | None:
    """Return the counts with details, 0 where an engine does not report them; None unless all totals are known."""
    totals = {name: getattr(usage, name) for name in ("input_tokens", "output_tokens", "total_tokens")}
    if None in totals.values():
        return None
    # Zero is untrue where it is unknown, but the specification has no null here.
    return {
        **totals,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens or 0,
            "cache_write_tokens": usage.cache_write_tokens or 0,
        },
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
    }
