"""The four endpoints as values: request model, dialect, host, path, models; everything generic reads these."""

from __future__ import annotations

import dataclasses
import difflib
from types import MappingProxyType
from typing import Any

from famnb.errors import InvalidRequest
from famnb.request import ChatRequest, MessagesRequest, Request, ResponsesRequest, WebChatRequest
from famnb.request.structured_output import answer_format
from famnb.request.tools import as_tool
from famnb.request.types import MINI_MODELS, PRO_MODELS
from famnb.validation import check_integer
from famnb.wire import chat, messages, responses
from famnb.wire.dialect import Dialect


@dataclasses.dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint of the API."""

    name: str
    title: str
    request: type[Request]
    dialect: Dialect
    path: str
    alt: bool
    """Whether it is served at `{alt_base_url}`."""
    models: tuple[str, ...]
    """The model ids listed for it; the first is the default."""


ENDPOINTS = MappingProxyType(
    {
        endpoint.name: endpoint
        for endpoint in (
            Endpoint("chat", "Chat completions", ChatRequest, chat, "/v1/chat/completions", False, MINI_MODELS),
            Endpoint("responses", "Responses", ResponsesRequest, responses, "/v1/responses", True, PRO_MODELS),
            Endpoint("web", "Web chat", WebChatRequest, chat, "/v1/web/chat/completions", True, PRO_MODELS),
            Endpoint("messages", "Messages", MessagesRequest, messages, "/v1/messages", True, PRO_MODELS),
        )
    }
)


def endpoint(name: str) -> Endpoint:
    """The endpoint of that name."""
    try:
        return ENDPOINTS[name]
    except KeyError:
        raise InvalidRequest(f"endpoint: no endpoint {name!r}; expected one of {', '.join(ENDPOINTS)}") from None


def endpoint_for(model: str) -> Endpoint:
    """The first endpoint that serves a model: `messages` for the `fam-2-5` models, `chat` for all others."""
    return ENDPOINTS["messages" if model in PRO_MODELS else "chat"]


def compose(
    endpoint_name: str,
    prompt: str,
    *,
    model: str | None = None,
    system: str | None = None,
    max_tokens: int | None = None,
    thinking: int | None = None,
    schema: Any = None,
    **fields: Any,
) -> Request:
    """One neutral prompt as a request of any endpoint; its `losses` say what that endpoint cannot carry.

    `max_tokens` becomes the endpoint's own cap, `system` its system text, `thinking` (tokens) its thinking budget
    or the nearest reasoning effort. `schema` is a type, such as a pydantic model, whose JSON the answer must be;
    `tools` may hold Python functions. A field given as None is unset, a field of another endpoint is a loss, a field
    of none is an InvalidRequest.
    """
    at = endpoint(endpoint_name)
    known = at.request.model_fields
    fields = _with_functions(at, _with_schema(at, schema, fields))
    losses: list[str] = []
    for name in sorted(set(fields) - set(known)):
        homes = [other.name for other in ENDPOINTS.values() if name in other.request.model_fields]
        if not homes:
            close = difflib.get_close_matches(name, {*known, "system", "max_tokens", "thinking"}, 1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise InvalidRequest(f"{name}: no endpoint has such a field{hint} Fields of {at.name}: {', '.join(known)}")
        losses.append(f"`{name}` is left out: {at.name} cannot carry it (only {', '.join(homes)})")
        del fields[name]
    if at.request.prompt_field in fields:
        raise InvalidRequest(f"{at.request.prompt_field}: given beside a prompt; build a {at.request.__name__} instead")
    if thinking is not None:
        check_integer("thinking", thinking, minimum=1, expected="a number of tokens of at least 1, or None")
    fields = {name: value for name, value in fields.items() if value is not None}
    if max_tokens is not None:
        fields.setdefault(at.request.cap, max_tokens)
    if thinking is not None and "thinking" not in known:
        losses.append(
            f"`thinking={thinking}` is carried as the nearest reasoning effort: {at.name} has no token budget"
        )
    request = at.request.compose(prompt, system=system, thinking=thinking, model=model or at.models[0], **fields)
    return request.with_losses(tuple(losses))


def _with_schema(at: Endpoint, schema: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that ask for an answer in JSON by a schema, what the caller set himself left as it is."""
    if schema is None:
        return fields
    if "text" in at.request.model_fields:
        text = fields.get("text") or {}
        if not isinstance(text, dict) or text.get("format"):
            return fields
        return {**fields, "text": {**text, "format": {"type": "json_schema", **answer_format(schema)}}}
    if "response_format" in at.request.model_fields:
        form = {"type": "json_schema", "json_schema": answer_format(schema)}
        return {**fields, "response_format": fields.get("response_format") or form}
    able = [each.name for each in ENDPOINTS.values() if {"text", "response_format"} & set(each.request.model_fields)]
    raise InvalidRequest(f"schema: {at.name} has no field for the form of an answer; use endpoint={_one_of(able)}")


def _with_functions(at: Endpoint, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with Python functions among `tools` as the request has them."""
    tools = fields.get("tools")
    if not isinstance(tools, list | tuple) or not any(map(callable, tools)):
        return fields
    if "tools" not in at.request.model_fields:
        able = [each.name for each in ENDPOINTS.values() if "tools" in each.request.model_fields]
        raise InvalidRequest(f"tools: {at.name} takes no tools; use endpoint={_one_of(able)}")
    return {**fields, "tools": [as_tool(each).declared() if callable(each) else each for each in tools]}


def _one_of(names: list[str]) -> str:
    return " or ".join(repr(name) for name in names)
