"""One question up to its reply: composed, its tools run, its answer read by a schema; sending is left to others."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any

import pydantic

from famnb.client.exchange import labelled
from famnb.client.rounds import Tools, rounds
from famnb.client.steps import Steps
from famnb.endpoints import compose, endpoint_for
from famnb.errors import ParseError
from famnb.reply import Reply
from famnb.request import Request, schemas
from famnb.request.base import expected, where


def ask(
    prompt: str,
    *,
    model: str | None,
    endpoint: str | None,
    tools: Any,
    schema: Any,
    labels: Mapping[str, str] | None,
    options: Mapping[str, Any],
    **fields: Any,
) -> Steps:
    """The steps of `Client.ask`; what cannot be sent is said at once, what the endpoint cannot carry is a warning."""
    able = Tools.among(tools, **options)
    name = endpoint or fitting(model, able, schema)
    if tools is not None:
        fields["tools"] = tools
    request = compose(name, prompt, model=model, schema=schema, **fields)
    for loss in request.losses:
        warnings.warn(loss, stacklevel=3)
    return _steps(request, labelled(labels or {}), able, schema)


def fitting(model: str | None, tools: Tools, schema: Any, *, default: str = "messages") -> str:
    """The endpoint for a question that names none: one that serves the model and can carry what is asked for."""
    if model is not None and endpoint_for(model).name == "chat":
        return "chat"
    if tools.functions:
        return "web"
    if schema is not None:
        return "responses"
    return default


def parsed(reply: Reply, schema: Any) -> Reply:
    """The reply with `parsed`, an instance of the schema; raises ParseError when its answer is none.

    A reply that was stopped, or that calls tools, is returned as it is.
    """
    if schema is None or reply.status == "cancelled" or reply.tool_calls:
        return reply
    refusal = "".join(block.text for block in reply.blocks if block.kind == "refusal")
    if refusal or reply.finish_reason == "content_filter":
        raise _unparsed(reply, "refused", f"the model refused: {refusal[:200] or 'the answer was filtered'}")
    if reply.status == "incomplete" or reply.finish_reason == "length":
        cap = getattr(reply.request, "cap", "the token cap")
        raise _unparsed(reply, "incomplete", f"the answer was cut short; give more than it needs as {cap}")
    try:
        instance = schemas.read(reply.text, schema)
    except pydantic.ValidationError as error:
        faults = [f"{where(each['loc']) or 'the answer'}: {expected(each)}" for each in error.errors(include_url=False)]
        name = getattr(schema, "__name__", schema)
        raise _unparsed(reply, "invalid", f"the answer is no {name}: {'; '.join(faults)}") from None
    return dataclasses.replace(reply, parsed=instance)


def _steps(request: Request, labels: Mapping[str, str], tools: Tools, schema: Any) -> Steps:
    reply = yield from rounds(request, labels, tools)
    return parsed(reply, schema)


def _unparsed(reply: Reply, reason: Any, words: str) -> ParseError:
    error = ParseError(words, reason=reason, partial=schemas.growing(reply.text))
    error.reply = reply
    return error
