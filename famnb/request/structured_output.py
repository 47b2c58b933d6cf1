"""A Python type as the JSON Schema of an answer, and the text of an answer parsed as that type."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import jsonschema_rs
import pydantic
import pydantic_core

from famnb.errors import InvalidRequest

_NAME_MAPS = ("properties", "$defs", "patternProperties", "dependentSchemas")
"""Keywords whose value maps names, not keywords, to schemas."""
_PLAIN_VALUES = ("enum", "const", "default", "examples", "required")
"""Keywords whose value is data, not a schema."""


def json_format(kind: Any) -> dict[str, Any]:
    """Return the `name`, `schema` and `strict` of a type. Raises InvalidRequest if its JSON is not an object.

    The schema is strict, with every property required and no other allowed, unless the type itself leaves its keys
    open, as `dict[str, int]` does. A JSON Schema as a dict is left as it is.
    """
    if isinstance(kind, Mapping):
        _validator(kind)
        schema, is_strict = dict(kind), _close_objects(kind)[0] == kind
    else:
        schema, is_strict = _close_objects(_schema(kind))
    if schema.get("type") != "object":
        raise InvalidRequest(
            f"schema: expected a type whose JSON is an object, such as a pydantic model, a dataclass or a TypedDict, "
            f"got {kind!r:.80}; put it into a field of a model"
        )
    title = str(schema.get("title", "answer")) if isinstance(kind, Mapping) else getattr(kind, "__name__", "answer")
    name = re.sub(r"[^a-zA-Z0-9_-]+", "_", title)[:64]
    return {"name": name, "schema": schema, "strict": is_strict}


def parse(text: str, kind: Any) -> Any:
    """Return a JSON text as an instance of a type, or an object of a JSON Schema. Raises pydantic.ValidationError."""
    if not isinstance(kind, Mapping):
        return pydantic.TypeAdapter(kind).validate_json(text)
    value = pydantic.TypeAdapter(dict[str, Any]).validate_json(text)
    faults: list[pydantic_core.InitErrorDetails] = [
        {
            "type": pydantic_core.PydanticCustomError("schema", "{fault}", {"fault": error.message}),
            "loc": tuple(error.instance_path),
            "input": error.instance,
        }
        for error in _validator(kind).iter_errors(value)
    ]
    if faults:
        raise pydantic_core.ValidationError.from_exception_data("answer", faults)
    return value


def _validator(schema: Mapping[str, Any]) -> Any:
    """Return the validator of a JSON Schema; raises InvalidRequest if the schema is invalid."""
    try:
        return jsonschema_rs.validator_for(dict(schema))
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise InvalidRequest(f"schema: this dict is no JSON Schema ({str(error).partition(chr(10))[0]})") from None


def parse_partial(text: str) -> Any:
    """Return the value of a JSON text as far as it has come; None as long as that is nothing or no JSON."""
    try:
        return pydantic_core.from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return None


def rewrite_schema(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Return a JSON Schema with every schema in it changed by `change`, the inner ones first."""
    if isinstance(schema, list):
        return [rewrite_schema(item, change) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {}
    for name, value in schema.items():
        if name in _NAME_MAPS:
            copy[name] = {key: rewrite_schema(inner, change) for key, inner in value.items()}
        else:
            copy[name] = value if name in _PLAIN_VALUES else rewrite_schema(value, change)
    return change(copy)


def _schema(kind: Any) -> dict[str, Any]:
    try:
        schema = pydantic.TypeAdapter(kind).json_schema()
    except (pydantic.PydanticUserError, pydantic_core.SchemaError) as error:
        message = str(error).partition("\n")[0]
        raise InvalidRequest(f"schema: {kind!r:.80} has no JSON Schema ({message}); give a pydantic model") from None
    # Pydantic writes a type that contains itself as a reference; services want an object at the top.
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return {**schema["$defs"][name], "$defs": schema["$defs"]} if name else schema


def _close_objects(schema: Any) -> tuple[Any, bool]:
    """Return the schema with every property required and no other allowed, and whether every object names some."""
    are_closed = True

    def close(node: dict[str, Any]) -> dict[str, Any]:
        nonlocal are_closed
        closed = {name: value for name, value in node.items() if name not in ("title", "default")}
        if "properties" in closed:
            closed |= {"required": list(closed["properties"]), "additionalProperties": False}
        elif closed.get("type") == "object":
            are_closed = False
        return closed

    return rewrite_schema(schema, close), are_closed
