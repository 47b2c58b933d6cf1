"""From a body's bytes to a valid request, or to a Refusal that names the field; what follows is left to others."""

from __future__ import annotations

from typing import Any

import msgspec
import pydantic

from famnb.endpoints import Endpoint
from famnb.request import Request
from famnb.request.base import expected, where
from famnb.service.refusal import Refusal

DEEPEST = 100
"""How many levels of lists and objects a body may have."""


def parsed(endpoint: Endpoint, body: bytes, *, strict: bool = False) -> Request:
    """The request that a body holds; unknown fields are ignored unless `strict`. Raises Refusal."""
    value = _decoded(body)
    try:
        return endpoint.request.model_validate(value, extra="forbid" if strict else "ignore")
    except pydantic.ValidationError as error:
        raise _refused(error) from None


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        said = "the body is empty" if not body.strip() else f"the body is not valid JSON ({error})"
        raise Refusal(400, f"{said}; send one JSON object", code="invalid_json") from None
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(value, dict):
        kind = {type(None): "null", bool: "a boolean", str: "a string", list: "an array"}.get(type(value), "a number")
        raise Refusal(400, f"the body is {kind}; send one JSON object", code="invalid_json")
    # Counting brackets is cheap, and settles it for all but large bodies.
    if body.count(b"[") + body.count(b"{") > DEEPEST and _deeper(value, DEEPEST):
        raise _too_deep()
    return value


def _too_deep() -> Refusal:
    return Refusal(400, f"the body is nested more than {DEEPEST} levels deep; flatten it", code="invalid_json")


def _deeper(value: dict[str, Any], limit: int) -> bool:
    """Whether lists and objects are nested more than `limit` levels, without recursion."""
    level: list[Any] = [value]
    for _ in range(limit):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return False
    return True


def _refused(error: pydantic.ValidationError) -> Refusal:
    """The refusal for what is wrong with a body: it names the first field at fault and says all faults."""
    faults = error.errors(include_url=False)
    places = [where(fault["loc"]) for fault in faults]
    said = dict.fromkeys(
        f"{place or 'the body'}: {expected(fault)}" for place, fault in zip(places, faults, strict=True)
    )
    shown = list(said)[:10]
    more = f"; and {len(said) - len(shown)} more" if len(said) > len(shown) else ""
    # Places hold the caller's own keys, which may be as long as the body.
    return Refusal(400, "; ".join(shown)[:2000] + more, code=_code(faults[0]), param=places[0][:200] or None)


def _code(fault: Any) -> str:
    if fault["type"] == "missing":
        return "missing_required_parameter"
    if fault["loc"] == ("model",) and isinstance(fault["input"], str):
        return "model_not_found"
    return "invalid_value"
