"""The endpoints as values, `ENDPOINTS`; the choice of one; `compose`, which makes a request for any of them.

An endpoint is a module in `famnb.request` (what can be asked), one in `famnb.wire` (how replies are written) and an
entry here. Nothing else matches on an endpoint's name or request class.

To add an endpoint: in `request/` a base with all but the fields, of which the vendors' requests are built too, the
document's request, derived from it alone, and `TRAITS`; in `wire/` its dialect and `CONVENTIONS`; an entry here, its
name in `_BY_PREFERENCE` and `EndpointName`; its model in `request/__init__.py`, in `famnb/__init__.py` (under
`_UNLISTED`, where the names that are listed are 30) and `famnb/__init__.pyi`; its table of fields in
`request/gateway_fields.py`, where `CONVENTIONS` name the `extra_fields` that the vendor's SDK does not have; and in
`_REQUESTS` of `profiles/local.py` if models on this machine have it, with `usage_fields` in its traits where a stream
has its usage only if asked. `tests/test_endpoints.py` names which of these is missing, but for the last and the `.pyi`.
README's first sentence names the endpoints.

Its bytes go into `tests/wire/fixtures` and `test_dialect_document.py` beside them, its dialect into `DIALECTS` of
`tests/support/strategies.py`, its stream into `tests/support/wire_payloads.py`, and its fields into `CASES` of
`tests/service/test_field_effects.py`. Then the tests of `request`, `cli`, `service` and `widget` try it too; those that
need what it does not have (turns, a system text, images, tools, thinking, `top_p`, usage in a stream) leave it out.

A request's own methods say how it carries a text, parts and a system text; what it cannot carry goes into
`with_losses`. Where its prompt is a plain text, `with_earlier` and `with_content` are its own, and the latter replaces
all of it. A field that no engine has is `Annotated[…, UNUSED]`. A variant of chat's dialect has its own `read`, `write`
and `CONVENTIONS`, and overrides `_read`, `_render_chunk`, and where it has no thinking or tools `_write_delta` and
`_write_call`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from famnb.errors import InvalidRequest
from famnb.request import Request, chat, messages, responses, web
from famnb.request.base import RequestTraits
from famnb.request.fields import field_type
from famnb.request.structured_output import json_format
from famnb.request.tools import as_tool
from famnb.request.types import MINI_MODELS, PRO_MODELS, ProModel
from famnb.validation import check_integer
from famnb.wire import chat as chat_wire
from famnb.wire import messages as messages_wire
from famnb.wire import responses as responses_wire
from famnb.wire.dialect import Conventions, Dialect


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One endpoint of the API."""

    name: str
    title: str
    request: type[Request]
    """The pydantic model of its request."""
    dialect: Dialect
    """How its replies are read and written."""
    path: str
    alt: bool
    """Whether it is served at `{alt_base_url}`."""
    models: tuple[str, ...]
    """The ids of the models that the document lists for it; the first is the default."""

    @property
    def conventions(self) -> Conventions:
        """The ids, error types, headers and vendor's SDK of its dialect."""
        return self.dialect.CONVENTIONS

    @property
    def traits(self) -> RequestTraits:
        """What its requests can carry."""
        return self.request.traits

    def serves(self, model: str) -> bool:
        """Whether the document has this model at the endpoint."""
        try:
            _model_type(self.request).validate_python(model)
        except ValidationError:
            return False
        return True

    @property
    def takes_tools(self) -> bool:
        """Whether a request can offer functions to call."""
        return "tools" in self.request.model_fields


@functools.cache
def _model_type(request: type[Request]) -> TypeAdapter[Any]:
    return TypeAdapter(field_type(request.model_fields["model"]))


_ENDPOINTS = (
    Endpoint(
        name="chat",
        title="Chat completions",
        request=chat.ChatRequest,
        dialect=chat_wire,
        path="/v1/chat/completions",
        alt=False,
        models=MINI_MODELS,
    ),
    Endpoint(
        name="responses",
        title="Responses",
        request=responses.ResponsesRequest,
        dialect=responses_wire,
        path="/v1/responses",
        alt=True,
        models=PRO_MODELS,
    ),
    Endpoint(
        name="web",
        title="Web chat",
        request=web.WebChatRequest,
        dialect=chat_wire,
        path="/v1/web/chat/completions",
        alt=True,
        models=PRO_MODELS,
    ),
    Endpoint(
        name="messages",
        title="Messages",
        request=messages.MessagesRequest,
        dialect=messages_wire,
        path="/v1/messages",
        alt=True,
        models=PRO_MODELS,
    ),
)
ENDPOINTS = MappingProxyType({endpoint.name: endpoint for endpoint in _ENDPOINTS})
"""The endpoints by name."""
# Of those that serve the `fam-2-5` models, messages alone shows thinking.
_BY_PREFERENCE = MappingProxyType({name: ENDPOINTS[name] for name in ("messages", "responses", "web", "chat")})
"""The same, the one first that is chosen where several would do."""
FALLBACK = ENDPOINTS["web"]
"""The endpoint whose error format the service uses at a path that belongs to no endpoint."""
UPSTREAM = ENDPOINTS["chat"]
"""The endpoint that upstream servers are expected to have, since most know no other dialect."""


Endpoints: TypeAlias = Mapping[str, Endpoint]
"""The endpoints of one service, by name; the first is the default."""
# Editors complete the literals; any other text may be an endpoint or a model of another service.
EndpointName: TypeAlias = Literal["chat", "responses", "web", "messages"] | str
ModelName: TypeAlias = ProModel | Literal["fam-mini"] | str


def endpoint(name: str, endpoints: Endpoints = ENDPOINTS) -> Endpoint:
    """Return the endpoint of that name. Raises InvalidRequest if there is none."""
    try:
        return endpoints[name]
    except KeyError:
        raise InvalidRequest(f"endpoint: no endpoint {name!r}; expected one of {', '.join(endpoints)}") from None


def resolve_endpoint(name: str | None, model: str | None, endpoints: Endpoints = ENDPOINTS) -> Endpoint:
    """Return the endpoint of that name; without a name the default one of the model."""
    return endpoint_able_to(model, endpoints=endpoints) if name is None else endpoint(name, endpoints)


def is_foreign(model: str | None) -> bool:
    """Whether a model is by its name none of the document's, so that a vendor's endpoints decide."""
    return model is not None and not model.startswith("fam-")


def endpoint_able_to(
    model: str | None,
    *,
    tools: bool = False,
    schema: bool = False,
    keep_conversation: bool = False,
    endpoints: Endpoints = ENDPOINTS,
) -> Endpoint:
    """Return the first endpoint that serves the model and can carry what is asked for, as far as there is one.

    For a model that none serves it is `UPSTREAM`, or the last of `endpoints`, those of another service, the default
    first.
    """
    candidates = list((_BY_PREFERENCE if endpoints is ENDPOINTS else endpoints).values())
    fallback = UPSTREAM if endpoints is ENDPOINTS else candidates[-1]
    serving = [candidate for candidate in candidates if model is None or candidate.serves(model)] or [fallback]
    if tools:
        serving = [candidate for candidate in serving if candidate.takes_tools] or serving
    if schema:
        serving = [candidate for candidate in serving if candidate.traits.format] or serving
    if keep_conversation:
        serving = [candidate for candidate in serving if candidate.traits.stores_replies] or serving
    return serving[0]


def compose(
    endpoint_name: EndpointName,
    prompt: str,
    *,
    model: ModelName | None = None,
    system: str | None = None,
    max_tokens: int | None = None,
    thinking: int | None = None,
    schema: Any = None,
    endpoints: Endpoints = ENDPOINTS,
    **fields: Any,
) -> Request:
    """Return a prompt as a request of any endpoint; its `losses` say what that endpoint cannot carry.

    `max_tokens` becomes the endpoint's own cap, `system` its system text, `thinking` (tokens) its thinking budget or
    the nearest reasoning effort. `schema` is a type, or a JSON Schema, whose JSON the answer must be; `tools`
    may hold Python functions. With `stream=True` usage is requested where a stream would not have it otherwise
    (`stream_options` on web chat; `stream_options=None` leaves that out). All other fields keep the API's own names and
    limits, and only what is set is sent. A field given as None is unset, and a field that only other endpoints have is
    a loss. `endpoints` are those of another service, as a profile has them. Raises InvalidRequest for a field that no
    endpoint has.
    """
    target = endpoint(endpoint_name, endpoints)
    known = target.request.model_fields
    fields = _with_functions(target, _with_schema(target, schema, fields, endpoints), endpoints)
    losses: list[str] = []
    check_fields(target, fields, endpoints)
    for name in sorted(set(fields) - set(known)):
        owners = [other.name for other in endpoints.values() if name in other.request.model_fields]
        losses.append(f"`{name}` is left out: {target.name} cannot carry it (only {', '.join(owners)})")
        del fields[name]
    prompt_field = target.request.prompt_field
    if prompt_field in fields:
        raise InvalidRequest(f"{prompt_field}: given beside a prompt; build a {target.request.__name__} instead")
    if thinking is not None:
        check_integer("thinking", thinking, minimum=1, expected="a number of tokens of at least 1, or None")
    if fields.get("stream"):
        # Before fields are unset: who gives one of these as None does not want to ask.
        fields = {**target.traits.usage_fields, **fields}
    fields = {name: value for name, value in fields.items() if value is not None}
    if max_tokens is not None:
        fields.setdefault(target.request.cap, max_tokens)
    if thinking is not None and target.traits.thinking == "effort":
        losses.append(
            f"`thinking={thinking}` is carried as the nearest reasoning effort: {target.name} has no token budget"
        )
    request = target.request.compose(
        prompt, system=system, thinking=thinking, model=model or target.models[0], **fields
    )
    # A request may have losses of its own, such as a vendor's model without a token budget.
    return request.with_losses((*request.losses, *losses))


def check_fields(target: Endpoint, fields: Iterable[str], endpoints: Endpoints, *, besides: Sequence[str] = ()) -> None:
    """Raise InvalidRequest for a field that no endpoint has, nor `compose`; `besides` are names to suggest as well."""
    neutral = ("system", "max_tokens", "thinking", "schema", *besides)
    accepted = target.request.model_fields
    known = {name for endpoint in endpoints.values() for name in endpoint.request.model_fields}
    for name in fields:
        if name not in known and name not in neutral:
            import difflib  # late, since most fields are right

            close = difflib.get_close_matches(name, (*accepted, *neutral), 1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            if "extra_body" in accepted:
                hint += f" A field that famnb does not know goes into extra_body={{{name!r}: …}}."
            raise InvalidRequest(
                f"{name}: no endpoint has such a field{hint} Fields of {target.name}: {', '.join(accepted)}"
            )


def _with_schema(target: Endpoint, schema: Any, fields: dict[str, Any], endpoints: Endpoints) -> dict[str, Any]:
    """Return the fields with those that ask for JSON by a schema; a format that the caller has set stays as it is."""
    if schema is None:
        return fields
    paths = target.traits.format
    if paths is None:
        able = " or ".join(repr(other.name) for other in endpoints.values() if other.traits.format)
        raise InvalidRequest(f"schema: {target.name} has no field for the form of an answer; use endpoint={able}")
    root, *rest = paths.outer
    value = fields.get(root) or {}
    if not isinstance(value, dict) or (value.get(rest[0]) if rest else value):
        return fields
    # `name`, `schema` and `strict` stand in the format, or in a field of it.
    inner = paths.inner[len(paths.outer) :]
    parts = {name: part for name, part in json_format(schema).items() if name in paths.names}
    form = {"type": "json_schema", **({inner[0]: parts} if inner else parts)}
    return {**fields, root: {**value, rest[0]: form} if rest else form}


def _with_functions(target: Endpoint, fields: dict[str, Any], endpoints: Endpoints) -> dict[str, Any]:
    """Return the fields with each Python function in `tools` replaced by its declaration."""
    tools = fields.get("tools")
    if not isinstance(tools, list | tuple) or not any(map(callable, tools)):
        return fields
    if not target.takes_tools:
        able = " or ".join(repr(other.name) for other in endpoints.values() if other.takes_tools)
        raise InvalidRequest(f"tools: {target.name} takes no tools; use endpoint={able}")

    def declare(item: Any) -> Any:
        if not callable(item):
            return item
        tool = as_tool(item)
        return target.request.declare_tool(tool.name, tool.description, tool.parameters)

    return {**fields, "tools": list(map(declare, tools))}
