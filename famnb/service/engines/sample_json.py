"""Sample values for a JSON Schema, made from the schema alone: `sample_value`.

schema ── SchemaResolver: $ref, allOf, anyOf, oneOf ──> plain schemas ── _SampleBuilder ──> a value
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

from famnb.formatting import shorten

# Far beyond usual schemas: one that demands more is taken for recursive without end.
MAX_DEPTH = 40
"""How many levels a value may have."""
# Nine `allOf` parts with ten alternatives each are a billion combinations: no schema may keep the service busy.
_MAX_STEPS = 20_000
"""How many parts of a schema are looked at for one value."""
# Recursive schemas with optional properties end soon that way; deep enough for the properties of usual ones.
_REQUIRED_ONLY_DEPTH = 4
"""From this level on only required properties are made."""
_TYPE_KEYWORDS = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""Keywords from which the type of a schema without `type` is inferred."""
_FORMATS = {
    "date": "2025-01-31",
    "date-time": "2025-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "someone@example.com",
    "idn-email": "someone@example.com",
    "hostname": "example.com",
    "idn-hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uri-reference": "/example",
    "iri": "https://example.com/",
    "iri-reference": "/example",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "json-pointer": "/example",
    "regex": ".*",
}
_UNSUPPORTED = (
    "pattern",
    "not",
    "if",
    "contains",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "$dynamicRef",
)
"""Keywords whose demands are not worked out here."""


class Unsatisfiable(ValueError):
    """No value could be made; the message names the place in the schema and what to change."""


def sample_value(schema: Any, *, words: tuple[str, ...] = (), approximate: bool = False) -> Any:
    """Return a value that satisfies the schema, its free texts filled with `words`. Raises Unsatisfiable.

    `approximate` accepts a value that is only near: unsupported keywords count as met, and properties that cannot be
    made are left out.
    """
    try:
        return _SampleBuilder(schema, words, approximate=approximate).value(schema, "the schema")
    except Unsatisfiable:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # The schema is the caller's: a keyword of the wrong type shows as any of these, wherever it is used.
        raise Unsatisfiable(f"the schema is not a valid JSON Schema{_describe_invalid(schema)}") from None


def _describe_invalid(schema: Any) -> str:
    """Return what is wrong with a schema, in parentheses; empty if the standard has no objection."""
    # Without its own dialect, which would be fetched from an address that the caller chooses.
    keywords = {name: value for name, value in schema.items() if name != "$schema"} if type(schema) is dict else schema
    try:
        jsonschema_rs.meta.validate(keywords)
    except jsonschema_rs.ValidationError as error:
        location = "/".join(map(str, error.instance_path))
        return f" ({location or 'the schema'}: {shorten(error.message)})"
    return ""


class _SampleBuilder:
    """Makes values for the parts of one schema. `path` is where a part stands, for error messages."""

    def __init__(self, root: Any, words: tuple[str, ...], *, approximate: bool) -> None:
        self._approximate = approximate
        self._resolver = SchemaResolver(root)
        self._words = iter(words)

    def value(self, schema: Any, path: str, depth: int = 0, serial: int = 0) -> Any:
        """Return a value for a schema; values of different `serial` differ where the schema leaves room."""
        self._resolver.count_step(path, depth)
        if schema is True:
            return "anything"
        if schema is False:
            raise Unsatisfiable(f"{path}: `false` allows no value")
        *others, last = self._resolver.alternatives(schema, path)
        for plain in others:
            try:
                return self._plain_value(plain, path, depth, serial)
            except Unsatisfiable:
                continue  # another alternative may do
        return self._plain_value(last, path, depth, serial)

    def _plain_value(self, schema: Mapping[str, Any], path: str, depth: int, serial: int) -> Any:
        """Return a value for a schema without references and alternatives."""
        unsupported = [name for name in _UNSUPPORTED if name in schema]
        if unsupported and not self._approximate:
            raise Unsatisfiable(
                f"{path}: the simulated engine cannot satisfy `{unsupported[0]}`; leave it out to try the rest"
            )
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            if not schema["enum"]:
                raise Unsatisfiable(f"{path}: no value is in every `enum`")
            return schema["enum"][serial % len(schema["enum"])]
        match infer_type(schema):
            case "object":
                return self._object(schema, path, depth)
            case "array":
                return self._array(schema, path, depth)
            case "string":
                return self._string(schema, path, serial)
            case "integer":
                return _number(schema, path, serial, is_integer=True)
            case "number":
                return _number(schema, path, serial, is_integer=False)
            case "boolean":
                return serial % 2 == 0
            case "null":
                return None
            case other:
                raise Unsatisfiable(f"{path}: {shorten(json.dumps(other))} is no type of JSON Schema")

    def _object(self, schema: Mapping[str, Any], path: str, depth: int) -> dict[str, Any]:
        properties: Mapping[str, Any] = schema.get("properties", {})
        required = dict.fromkeys(schema.get("required", ()))
        optional = [name for name in properties if name not in required]
        max_count = schema.get("maxProperties", math.inf)
        additional = schema.get("additionalProperties", {})
        result: dict[str, Any] = {}
        for name in required:
            try:
                result[name] = self.value(properties.get(name, additional), f"{path}.{name}", depth + 1)
            except Unsatisfiable:
                if not self._approximate:
                    raise
        for name in optional if depth < _REQUIRED_ONLY_DEPTH else ():
            if len(result) < max_count:
                try:
                    result[name] = self.value(properties[name], f"{path}.{name}", depth + 1)
                except Unsatisfiable:
                    continue  # an optional property may be left out
        for number in itertools.count(1):
            if len(result) >= schema.get("minProperties", 0):
                # In the schema's order, as a model writes them.
                return {name: result[name] for name in (*properties, *result) if name in result}
            result[f"extra_{number}"] = self.value(additional, f"{path}.extra_{number}", depth + 1)
        raise AssertionError("an endless count ended")

    def _array(self, schema: Mapping[str, Any], path: str, depth: int) -> list[Any]:
        prefix = list(schema.get("prefixItems", ()))
        item_schema = schema.get("items", {})
        min_count, max_count = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        # Two items show that it is a list; deep down none is made that need not be.
        usual_count = 0 if depth >= _REQUIRED_ONLY_DEPTH or item_schema is False else 2
        count = min(max(min_count, len(prefix), usual_count), max_count)
        result: list[Any] = []
        # Not as many as a schema may name: a `minItems` of a billion is refused below instead.
        for index in range(min(int(count), 1000)):
            schema_at_index = prefix[index] if index < len(prefix) else item_schema
            result.append(self.value(schema_at_index, f"{path}[{index}]", depth + 1, index))
        if schema.get("uniqueItems"):
            result = list({json.dumps(item, sort_keys=True): item for item in result}.values())
        if len(result) < min_count:
            raise Unsatisfiable(f"{path}: no {min_count} items could be made")
        return result

    def _string(self, schema: Mapping[str, Any], path: str, serial: int) -> str:
        format_ = schema.get("format")
        text = _FORMATS.get(format_, "") if isinstance(format_, str) else ""
        min_length, max_length = schema.get("minLength", 0), schema.get("maxLength", math.inf)
        if not text:
            label = path.rpartition(".")[2].partition("[")[0].replace("_", " ")
            text = next(self._words, "") or f"sample {label if label != 'the schema' else 'text'}"
            text = f"{text} {serial + 1}" if serial else text
            # Padded up to a limit: a `minLength` of a billion is refused below instead.
            text = text + "." * max(0, min(min_length, 100_000) - len(text))
            text = text[: int(min(max_length, len(text)))]
        if not min_length <= len(text) <= max_length:
            raise Unsatisfiable(f"{path}: no text of {min_length} to {max_length} characters could be made")
        return text


def _number(schema: Mapping[str, Any], path: str, serial: int, *, is_integer: bool) -> int | float:
    step = schema.get("multipleOf", 1)
    low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf))
    high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf))
    for number in _candidate_numbers(low, high, step, serial, is_integer=is_integer):
        if (
            schema.get("minimum", -math.inf) <= number <= schema.get("maximum", math.inf)
            and schema.get("exclusiveMinimum", -math.inf) < number < schema.get("exclusiveMaximum", math.inf)
            and ("multipleOf" not in schema or math.isclose(number / step, round(number / step), abs_tol=1e-9))
        ):
            return int(number) if float(number).is_integer() else number
    raise Unsatisfiable(f"{path}: no {'integer' if is_integer else 'number'} from {low} to {high} could be made")


def _candidate_numbers(low: float, high: float, step: float, serial: int, *, is_integer: bool) -> Iterator[float]:
    """Numbers worth trying: multiples of the step from 1 or the lower bound on, then the middle of the range."""
    start = 1 if low < 1 <= high else low if math.isfinite(low) else high if math.isfinite(high) else 1
    first = math.ceil(start / step)
    # The neighbours too: a bound may be exclusive.
    for factor in (first + serial, first, first + 1, first - 1):
        if not is_integer or float(factor * step).is_integer():
            yield factor * step
    if not is_integer and math.isfinite(low) and math.isfinite(high):
        yield low + (high - low) / 2


class SchemaResolver:
    """Resolves references and alternatives in the parts of one schema, within a budget of steps."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._steps_left = _MAX_STEPS

    def count_step(self, path: str, depth: int) -> None:
        """Count one step. Raises Unsatisfiable if the schema is too deep or too large."""
        self._steps_left -= 1
        if depth > MAX_DEPTH or self._steps_left < 0:
            raise Unsatisfiable(f"{path}: the schema demands too deep or too large a value; bound its recursion")

    def alternatives(self, schema: Mapping[str, Any], path: str, depth: int = 0) -> list[dict[str, Any]]:
        """Return plain schemas, any of which will do: without `$ref`, `allOf`, `anyOf` and `oneOf`."""
        plain_schemas = [
            {name: value for name, value in schema.items() if name not in ("$ref", "allOf", "anyOf", "oneOf")}
        ]
        # Each entry is a list of schemas of which one must hold, beside all the other entries.
        choices = [[self._resolve_reference(schema["$ref"], path)]] if "$ref" in schema else []
        choices += [[part] for part in schema.get("allOf", ())]
        choices += [list(schema[name]) for name in ("anyOf", "oneOf") if name in schema]
        for choice in choices:
            combined: list[dict[str, Any]] = []
            for plain, part in itertools.product(plain_schemas, choice):
                self.count_step(path, depth)
                if isinstance(part, bool):
                    combined += [plain] if part else []
                else:
                    combined += [merge_schemas(plain, inner) for inner in self.alternatives(part, path, depth + 1)]
            plain_schemas = combined
        if not plain_schemas:
            raise Unsatisfiable(f"{path}: none of the alternatives allows a value")
        return plain_schemas

    def _resolve_reference(self, reference: str, path: str) -> Any:
        if reference != "#" and not reference.startswith("#/"):
            raise Unsatisfiable(
                f"{path}: `$ref` {reference!r} is not of the form `#/…`; put the definition into `$defs`"
            )
        target = self._root
        for part in reference.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")  # the escapes of a JSON pointer
            target = target[int(key)] if isinstance(target, list) else target[key]
        return target


def infer_type(schema: Mapping[str, Any]) -> Any:
    """Return the type to make: the first that is not `null`, else what other keywords imply, else `string`."""
    type_ = schema.get("type")
    if isinstance(type_, list):
        return next((name for name in type_ if name != "null"), "null")
    if type_ is not None:
        return type_
    return next(
        (name for name, keywords in _TYPE_KEYWORDS.items() if any(keyword in schema for keyword in keywords)), "string"
    )


def merge_schemas(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that satisfies both: the stricter of their limits, the properties and requirements of either."""
    result = dict(first)
    for name, value in second.items():
        if name not in result:
            result[name] = value
            continue
        match name:
            case "properties":
                common = result[name].keys() & value.keys()
                result[name] = {
                    **result[name],
                    **value,
                    **{key: {"allOf": [result[name][key], value[key]]} for key in common},
                }
            case "required":
                result[name] = list(dict.fromkeys([*result[name], *value]))
            case "enum":
                allowed = {_canonical_json(choice) for choice in value}
                result[name] = [choice for choice in result[name] if _canonical_json(choice) in allowed]
            case "type":
                result[name] = _common_types(result[name], value)
            case "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties":
                result[name] = max(result[name], value)
            case "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties":
                result[name] = min(result[name], value)
            case _:
                result[name] = value
    return result


def _canonical_json(value: Any) -> str:
    """Return a text that equal JSON values share: `1` equals `1.0`, and is not `true`."""
    is_whole = isinstance(value, float) and value.is_integer()
    return json.dumps(int(value) if is_whole else value, sort_keys=True)


def _common_types(first: Any, second: Any) -> list[str]:
    """Return the types that both allow; an integer is a number."""
    types, others = ([names] if isinstance(names, str) else list(names) for names in (first, second))
    common = [name for name in types if name in others or (name == "integer" and "number" in others)]
    return common or ["integer"] if "number" in types and "integer" in others else common
