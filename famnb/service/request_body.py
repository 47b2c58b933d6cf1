"""Bodies of requests: read, decoded and validated.

read_body (400, 408, 413) ── parse_request (400) ── Request
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pydantic
from starlette.requests import Request as HTTPRequest

from famnb.endpoints import Endpoint
from famnb.request import Request
from famnb.request.base import describe_fault, format_location
from famnb.request.gateway_fields import GATEWAY_MODELS, leave_out_foreign
from famnb.request.types import StrictModel, Unused
from famnb.service.errors import ServiceError
from famnb.wire import lenient_json
from famnb.wire.messages import THREAD_UNSUPPORTED

# Far below Python's recursion limit of 1,000: schemas in a body are walked recursively, some calls a level.
MAX_DEPTH = 100
"""How many levels of lists and objects a body may have."""
_OPEN_OBJECTS = frozenset({"parameters", "schema", "input_schema", "metadata"})
"""Fields whose content is the caller's own, so that a null in it means null."""


async def read_body(request: HTTPRequest, *, limit: int, timeout: float) -> bytes:  # noqa: ASYNC109 - it is reported
    """Return the whole body.

    Raises ServiceError 400 if it is compressed, 413 beyond `limit` bytes, 408 after `timeout` seconds. What the caller
    goes on sending after an error is dropped by the server as it comes; a closed connection would lose the answer.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        message = f"content-encoding: expected a body as it is, got one in {encoding[:40]!r}; send plain JSON"
        raise ServiceError(400, message, code="invalid_json", param="content-encoding")
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise ServiceError(413, f"the body is larger than {limit:,} bytes; send less")
                chunks.append(chunk)
    except TimeoutError:
        raise ServiceError(
            408,
            f"the body did not arrive within {timeout:g} s ({size:,} bytes did); send it faster or smaller",
            headers={"connection": "close"},
        ) from None
    return b"".join(chunks)


def parse_request(
    endpoint: Endpoint, body: bytes, *, strict: bool = False, compat: bool = False
) -> tuple[Request, tuple[str, ...]]:
    """Return the request that a body holds, and the paths of its fields without effect, such as `tools[].cache`.

    Raises ServiceError 400, which names the field, if the body is not a valid request; if `strict`, also for a field
    that is unknown. With `compat` the vendors' own fields are known.
    """
    value = _decode_object(body)
    # A quick look spares nearly every request the walk through its body.
    fields = _without_nulls(value) if b"null" in body else value
    system = endpoint.traits.system_field
    if system is not None and fields.get(system) in ("", []):
        fields = {name: field for name, field in fields.items() if name != system}
    # Its SDK then sends the whole conversation, instead of the last message alone.
    if compat and isinstance(fields.get("thread"), dict):
        message = "this service keeps no threads: send the whole conversation, without `thread`"
        raise ServiceError(400, message, code=THREAD_UNSUPPORTED, param="thread")
    foreign: list[str] = []
    if compat and not strict:
        fields, foreign = leave_out_foreign(fields, endpoint.request.prompt_field)
    try:
        model = GATEWAY_MODELS[endpoint.request] if compat else endpoint.request
        request = model.model_validate(fields, extra="forbid" if strict else "ignore")
    except pydantic.ValidationError as error:
        raise _validation_error(error) from None
    ignored = [*foreign, *_ignored_fields(fields, request)]
    # What the messages of the system hold beside their text is lost, for engines get one text of all of them. As for
    # nulls: hardly any request needs the second reading of its turns.
    if b"image" in body or b'"name"' in body:
        if request.system_turn is not None and request.system_turn.images:
            ignored.append(f"{system}[].image_url")
        for turn in request.turns():
            if turn.role in ("system", "developer"):
                ignored += [f"{request.prompt_field}[].content[].image_url"] if turn.images else []
                ignored += [f"{request.prompt_field}[].name"] if turn.name else []
    return request, tuple(dict.fromkeys(ignored))


def _ignored_fields(fields: dict[str, Any], model: StrictModel | Request) -> Iterator[str]:
    """Yield the paths of the fields that a model does not have, that are marked as unused, or idle beside others."""
    yield from model.idle_fields()
    known = _known_fields(type(model))
    for name, value in fields.items():
        hashable = tuple(value) if type(value) is list else value
        attribute, unused = known.get(name, ("", None))
        if not attribute or (unused and value and hashable not in unused.neutral):
            yield name
        elif type(value) is dict or type(value) is list:
            inner = getattr(model, attribute)
            is_list = isinstance(inner, list)
            path = f"{name}[]." if is_list else f"{name}."
            pairs: Iterable[tuple[Any, Any]] = zip(value, inner, strict=True) if is_list else [(value, inner)]
            for item, item_model in pairs:
                if isinstance(item_model, StrictModel):
                    yield from (path + rest for rest in _ignored_fields(item, item_model))


@functools.cache
def _known_fields(model: type[pydantic.BaseModel]) -> dict[str, tuple[str, Unused | None]]:
    """Return for each name of a field in JSON its attribute, and the mark of one that has no effect."""
    return {
        field.alias or name: (name, next((mark for mark in field.metadata if isinstance(mark, Unused)), None))
        for name, field in model.model_fields.items()
    }


def _decode_object(body: bytes) -> dict[str, Any]:
    too_deep = ServiceError(
        400, f"the body is nested more than {MAX_DEPTH} levels deep; flatten it", code="invalid_json"
    )
    try:
        # Some editors and shells put a byte order mark before what they write.
        body = body.removeprefix(b"\xef\xbb\xbf")
        value = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        problem = "the body is empty" if not body.strip() else f"the body is not valid JSON ({error})"
        raise ServiceError(400, f"{problem}; send one JSON object", code="invalid_json") from None
    except UnicodeDecodeError as error:
        problem = f"the body is not valid UTF-8 (at byte {error.start:,} of a text)"
        raise ServiceError(400, f"{problem}; send one JSON object", code="invalid_json") from None
    except RecursionError:
        raise too_deep from None
    if not isinstance(value, dict):
        type_name = {type(None): "null", bool: "a boolean", str: "a string", list: "an array"}.get(
            type(value), "a number"
        )
        raise ServiceError(400, f"the body is {type_name}; send one JSON object", code="invalid_json")
    # Counting brackets is cheap, and settles it for all but large bodies.
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise too_deep
    return value


def _without_nulls(value: Any) -> Any:
    """Return a value of a body without the fields that are null, which mean the same as fields that are left out."""
    match value:
        case dict():
            return {
                name: field if name in _OPEN_OBJECTS else _without_nulls(field)
                for name, field in value.items()
                if field is not None
            }
        case list():
            return [_without_nulls(item) for item in value]
        case _:
            return value


def _is_deeper(value: Any, limit: int) -> bool:
    """Whether lists and objects are nested more than `limit` levels."""
    children = value.values() if type(value) is dict else value if type(value) is list else None
    return children is not None and (limit == 0 or any(_is_deeper(child, limit - 1) for child in children))


def _validation_error(error: pydantic.ValidationError) -> ServiceError:
    """Return the error for an invalid request: `param` is the first wrong field, the message names all."""
    details = error.errors(include_url=False)
    fields = [format_location(detail["loc"]) for detail in details]
    # In the terms of JSON, which the caller wrote; alternatives of one field may report the same problem.
    problems = dict.fromkeys(
        f"{field or 'the body'}: "
        + describe_fault(detail, show=lambda value: lenient_json.encode(value).decode()).replace(
            "a valid list", "an array"
        )
        for field, detail in zip(fields, details, strict=True)
    )
    more = f"; and {len(problems) - 10} more" if len(problems) > 10 else ""
    # Cut, since field names include keys of the caller's own, which may be as long as the body.
    message = "; ".join(list(problems)[:10])[:2000] + more
    first, code = details[0], "invalid_value"
    if first["type"] == "missing":
        code = "missing_required_parameter"
    elif first["loc"] == ("model",) and isinstance(first["input"], str):
        code = "model_not_found"
    return ServiceError(400, message, code=code, param=fields[0][:200] or None)
