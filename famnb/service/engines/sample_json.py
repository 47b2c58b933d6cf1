"""Sample values for a JSON Schema: `sample_value`.

schema ── _Sampler: the plainest value, with the first of all alternatives ── validator: right? ── else the second …
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from famnb.formatting import shorten

# Far beyond usual schemas: one that demands more is taken for recursive without end.
MAX_DEPTH = 40
"""How many levels a value may have."""
_MAX_STEPS = 20_000
"""How many parts of a schema are looked at for one value."""
# Recursive schemas with optional properties end soon that way; deep enough for the properties of usual ones.
_REQUIRED_ONLY_DEPTH = 4
"""From this level on only required properties are made."""
_MAX_CHOICES = 5
"""How many alternatives are tried of `anyOf`, `oneOf` and `enum`."""
_TYPE_KEYWORDS = {
    "object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"},
    "string": {"minLength", "maxLength", "format", "pattern"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}
"""Keywords from which the type of a schema without `type` is inferred."""
_FORMATS = {
    "date": "2025-01-31",
    "date-time": "2025-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}


class Unsatisfiable(ValueError):
    """No value could be made; the message says why."""


def sample_value(schema: Any, *, words: tuple[str, ...] = (), approximate: bool = False) -> Any:
    """Return a value that satisfies the schema, its free texts filled with `words`. Raises Unsatisfiable.

    `approximate` accepts one that is only near, such as a text that does not match its `pattern`.
    """
    # Without its own dialect, which would be fetched from an address that the caller chooses.
    keywords = {name: value for name, value in schema.items() if name != "$schema"} if type(schema) is dict else schema
    try:
        validator = jsonschema_rs.Draft202012Validator(keywords, retriever=_refuse_to_fetch)
    except ValueError as error:
        location = "/".join(map(str, getattr(error, "instance_path", ()))) or "the schema"
        message = shorten(getattr(error, "message", str(error)))
        raise Unsatisfiable(f"the schema is not a valid JSON Schema ({location}: {message})") from None
    problems = []
    for choice in range(_MAX_CHOICES):
        try:
            value = _Sampler(schema, words, choice).value(schema)
        except Unsatisfiable as error:
            problems.append(str(error))
            continue
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            # A `$ref` may point at a value that is not a schema.
            problems.append("the simulated engine cannot follow the schema")
            continue
        fault = None if approximate else next(iter(validator.iter_errors(value)), None)
        if fault is None:
            return value
        location = ".".join(map(str, ("the answer", *fault.instance_path)))
        problems.append(f"the simulated engine found no value for the schema ({location}: {shorten(fault.message)})")
    raise Unsatisfiable(problems[0])


def _refuse_to_fetch(address: str) -> Any:
    raise ValueError(address)


class _Sampler:
    """Makes values for the parts of one schema, which may miss what a part demands."""

    def __init__(self, root: Any, words: tuple[str, ...], choice: int) -> None:
        """`choice` is the alternative to take, the last where there are fewer."""
        self._root = root
        self._words = iter(words)
        self._choice = choice
        self._steps = 0

    def value(self, schema: Any, name: str = "text", depth: int = 0, serial: int = 0) -> Any:
        """Return a value for a part called `name`; values of different `serial` differ if there is room."""
        schema = self._join(schema, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][(serial + self._choice) % len(schema["enum"])]
        # The first type that is not `null`, else what other keywords imply, else a string.
        types = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", ())
        types = types or [kind for kind, keywords in _TYPE_KEYWORDS.items() if keywords & schema.keys()]
        match next((kind for kind in types if kind != "null"), "null" if types else "string"):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "string":
                return self._string(schema, name, serial)
            case "integer" | "number" as kind:
                return _number(schema, serial, is_integer=kind == "integer")
            case "boolean":
                return serial % 2 == 0
            case _:
                return None

    def _join(self, schema: Any, depth: int) -> dict[str, Any]:
        """Return a schema with what it refers to, and one of its alternatives, merged into it."""
        self._steps += 1
        if depth > MAX_DEPTH or self._steps > _MAX_STEPS:
            raise Unsatisfiable("the schema demands too deep or too large a value; bound its recursion")
        if schema is False:
            raise Unsatisfiable("the schema is `false` where a value is needed")
        if schema is True:
            return {"const": "anything"}
        parts = list(schema.get("allOf", ()))
        if "$ref" in schema:
            target = self._root
            for step in schema["$ref"].split("/")[1:]:
                key = step.replace("~1", "/").replace("~0", "~")
                target = target[int(key)] if isinstance(target, list) else target[key]
            parts.insert(0, target)
        parts += [
            schema[name][min(self._choice, len(schema[name]) - 1)] for name in ("anyOf", "oneOf") if name in schema
        ]
        joined = {name: value for name, value in schema.items() if name not in ("$ref", "allOf", "anyOf", "oneOf")}
        for part in parts:
            inner = {} if part is True else self._join(part, depth + 1)
            properties = dict(joined.get("properties", {}))
            for name, value in inner.get("properties", {}).items():
                properties[name] = {"allOf": [properties[name], value]} if name in properties else value
            required = [*joined.get("required", ()), *inner.get("required", ())]
            joined |= inner
            joined |= {"properties": properties} if properties else {}
            joined |= {"required": required} if required else {}
        return joined

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), dict.fromkeys(schema.get("required", ()))
        additional = schema.get("additionalProperties", {})
        result: dict[str, Any] = {}
        # In the schema's order, as a model writes them.
        for name in dict.fromkeys((*properties, *required)):
            free = schema.get("maxProperties", math.inf) - len(result) - len(required.keys() - result.keys())
            if name in required or (depth < _REQUIRED_ONLY_DEPTH and free > 0):
                try:
                    result[name] = self.value(properties.get(name, additional), name.replace("_", " "), depth + 1)
                except Unsatisfiable:
                    continue  # it may do without
        for number in itertools.count(1):
            if len(result) >= schema.get("minProperties", 0):
                break
            result[f"extra_{number}"] = self.value(additional, f"extra {number}", depth + 1)
        return result

    def _array(self, schema: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        prefix, items = schema.get("prefixItems", ()), schema.get("items", {})
        # Two items show that it is a list; deep down none is made that need not be.
        usual_count = 0 if depth >= _REQUIRED_ONLY_DEPTH or items is False else 2
        count = min(max(schema.get("minItems", 0), len(prefix), usual_count), schema.get("maxItems", math.inf), 1000)
        result = [
            self.value(prefix[index] if index < len(prefix) else items, name, depth + 1, index)
            for index in range(int(count))
        ]
        if schema.get("uniqueItems"):
            return list({json.dumps(item, sort_keys=True): item for item in result}.values())
        return result

    def _string(self, schema: Mapping[str, Any], name: str, serial: int) -> str:
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        text = next(self._words, "") or f"sample {name}"
        text = f"{text} {serial + 1}" if serial else text
        text = text.ljust(int(min(schema.get("minLength", 0), 100_000)), ".")
        return text[: int(min(schema.get("maxLength", len(text)), len(text)))]


def _number(schema: Mapping[str, Any], serial: int, *, is_integer: bool) -> int | float:
    """Return a multiple of the step from 1 or the lower limit on; else the highest one, or the middle of the range."""
    step, too_low, too_high = (schema.get(name) for name in ("multipleOf", "exclusiveMinimum", "exclusiveMaximum"))
    low = max(value for value in (schema.get("minimum"), too_low, -math.inf) if value is not None)
    high = min(value for value in (schema.get("maximum"), too_high, math.inf) if value is not None)
    multiple = step or 1
    number = (math.ceil(min(max(1, low), high) / multiple) + serial) * multiple
    if number == too_low:
        number += multiple
    if number > high or number == too_high:
        if step is None and not is_integer and math.isfinite(low):
            return (low + high) / 2
        number = math.floor(high / multiple) * multiple
        number -= multiple if number == too_high else 0
    return int(number) if float(number).is_integer() else number
