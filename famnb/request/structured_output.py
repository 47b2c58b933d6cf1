"""A Python type as the JSON Schema of an answer, and a text read as that type; asking for it is left to others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pydantic
import pydantic_core

from famnb.errors import InvalidRequest

_NAMED = ("properties", "$defs", "patternProperties", "dependentSchemas")
"""Keywords whose value maps names, not keywords, to schemas."""
_VALUES = ("enum", "const", "default", "examples", "required")
"""Keywords whose value is no schema."""


def answer_format(kind: Any) -> dict[str, Any]:
    """A type as `name`, `schema` and `strict`; raises InvalidRequest for a type that is no JSON object.

    It is strict, every property required and no other allowed, unless the type itself leaves its keys open, as a
    `dict[str, int]` does.
    """
    schema = _closed(_schema(kind))
    if schema.get("type") != "object":
        raise InvalidRequest(
            f"schema: expected a type whose JSON is an object, such as a pydantic model, a dataclass or a TypedDict, "
            f"got {kind!r:.80}; put it into a field of a model"
        )
    name = re.sub(r"[^a-zA-Z0-9_-]+", "_", getattr(kind, "__name__", "answer"))[:64]
    return {"name": name, "schema": schema, "strict": not _open(schema)}


def read(text: str, kind: Any) -> Any:
    """The instance of a type that a JSON text holds; raises pydantic.ValidationError."""
    return pydantic.TypeAdapter(kind).validate_json(text)


def growing(text: str) -> Any:
    """The value of a JSON text as far as it has come, a cut text included; None while that is nothing or no JSON."""
    try:
        return pydantic_core.from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return None


def rewritten(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A JSON Schema with every schema in it changed, the inner ones first."""
    if isinstance(schema, list):
        return [rewritten(each, change) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {}
    for name, value in schema.items():
        if name in _NAMED:
            made[name] = {key: rewritten(inner, change) for key, inner in value.items()}
        else:
            made[name] = value if name in _VALUES else rewritten(value, change)
    return change(made)


def _schema(kind: Any) -> dict[str, Any]:
    try:
        schema = pydantic.TypeAdapter(kind).json_schema()
    except (pydantic.PydanticUserError, pydantic_core.SchemaError) as error:
        words = str(error).partition("\n")[0]
        raise InvalidRequest(f"schema: {kind!r:.80} has no JSON Schema ({words}); give a pydantic model") from None
    # A type that contains itself is named at the top only, where services want the object itself.
    place = schema.get("$ref", "").removeprefix("#/$defs/")
    return {**schema["$defs"][place], "$defs": schema["$defs"]} if place else schema


def _closed(schema: Any) -> Any:
    def close(each: dict[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in each.items() if name not in ("title", "default")}
        if "properties" in kept:
            kept |= {"required": list(kept["properties"]), "additionalProperties": False}
        return kept

    return rewritten(schema, close)


def _open(schema: Any) -> bool:
    """Whether some object in the schema may have keys that it does not name."""
    found: list[bool] = []

    def look(each: dict[str, Any]) -> dict[str, Any]:
        found.append(each.get("type") == "object" and "properties" not in each)
        return each

    rewritten(schema, look)
    return any(found)
