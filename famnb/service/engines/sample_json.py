"""JSON values that satisfy a JSON Schema, made from the schema alone; who asked for them and why is left to others.

MERGED: JSON Schemas made plain: references and alternatives worked out, types inferred; values are made elsewhere.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

DEEPEST = 40
"""How many levels a value may have; a schema that demands more never ends."""
_STEPS = 20_000
"""How many parts of a schema are looked at for one value, so that no schema keeps the service busy."""
_SIGNS = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""Keywords that tell the type of a schema without `type`."""


class Unsatisfiable(ValueError):
    """No value could be made; the message names the place in the schema and what to change."""


class SchemaResolver:
    """Works out the parts of one schema, within a budget of steps."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = _STEPS

    def step(self, at: str, depth: int) -> None:
        """Count one step; raises Unsatisfiable when the schema is too deep or too large."""
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            raise Unsatisfiable(f"{at}: the schema demands too deep or too large a value; bound its recursion")

    def alternatives(self, schema: Mapping[str, Any], at: str, depth: int = 0) -> list[dict[str, Any]]:
        """The schema as plain schemas of which any one will do: `$ref`, `allOf`, `anyOf` and `oneOf` are worked out."""
        options = [{name: value for name, value in schema.items() if name not in ("$ref", "allOf", "anyOf", "oneOf")}]
        branches = [[self._referred(schema["$ref"], at)]] if "$ref" in schema else []
        branches += [[branch] for branch in schema.get("allOf", ())]
        branches += [list(schema[name]) for name in ("anyOf", "oneOf") if name in schema]
        for branch in branches:
            grown: list[dict[str, Any]] = []
            for option, found in itertools.product(options, branch):
                self.step(at, depth)
                if isinstance(found, bool):
                    grown += [option] if found else []
                else:
                    grown += [merged(option, inner) for inner in self.alternatives(found, at, depth + 1)]
            options = grown
        if not options:
            raise Unsatisfiable(f"{at}: none of the alternatives allows a value")
        return options

    def _referred(self, reference: str, at: str) -> Any:
        if reference != "#" and not reference.startswith("#/"):
            raise Unsatisfiable(f"{at}: `$ref` {reference!r} is not of the form `#/…`; put the definition into `$defs`")
        found = self._root
        for part in reference.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            found = found[int(key)] if isinstance(found, list) else found[key]
        return found


def type_of(schema: Mapping[str, Any]) -> Any:
    """The type to make: the first that is not `null`, else what the other keywords tell, else an object."""
    given = schema.get("type")
    if isinstance(given, list):
        return next((name for name in given if name != "null"), "null")
    if given is not None:
        return given
    return next((name for name, signs in _SIGNS.items() if any(sign in schema for sign in signs)), "string")


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """What satisfies both: the stricter limit of the two, the properties and requirements of either."""
    made = dict(first)
    for name, value in second.items():
        if name not in made:
            made[name] = value
            continue
        match name:
            case "properties":
                both = made[name].keys() & value.keys()
                made[name] = {**made[name], **value, **{key: {"allOf": [made[name][key], value[key]]} for key in both}}
            case "required":
                made[name] = list(dict.fromkeys([*made[name], *value]))
            case "enum":
                allowed = {_canonical(choice) for choice in value}
                made[name] = [choice for choice in made[name] if _canonical(choice) in allowed]
            case "type":
                made[name] = _common(made[name], value)
            case "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties":
                made[name] = max(made[name], value)
            case "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties":
                made[name] = min(made[name], value)
            case _:
                made[name] = value
    return made


def _canonical(value: Any) -> str:
    """What equal JSON values have in common: `1` equals `1.0`, and is not `true`."""
    whole = isinstance(value, float) and value.is_integer()
    return json.dumps(int(value) if whole else value, sort_keys=True)


def _common(first: Any, second: Any) -> list[str]:
    """The types that both allow; an integer is a number."""
    one, other = ([given] if isinstance(given, str) else list(given) for given in (first, second))
    found = [name for name in one if name in other or (name == "integer" and "number" in other)]
    return found or ["integer"] if "number" in one and "integer" in other else found


_LEAN = 4
"""From this level on only what is required is made, so that recursive schemas end soon."""
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
_UNMET = (
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


def instance(schema: Any, *, words: tuple[str, ...] = (), nearly: bool = False) -> Any:
    """A value that satisfies the schema, its free texts filled with `words`; raises Unsatisfiable.

    `nearly` is content with less: keywords that are not worked out here count as met, what cannot be made is left out.
    """
    try:
        return _Maker(schema, words, nearly=nearly).value(schema, "the schema")
    except Unsatisfiable:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # A schema is the caller's: a keyword of the wrong type shows as any of these, wherever it is used.
        raise Unsatisfiable(f"the schema is not a valid JSON Schema ({type(error).__name__}: {error})") from None


class _Maker:
    """Makes values for the parts of one schema."""

    def __init__(self, root: Any, words: tuple[str, ...], *, nearly: bool) -> None:
        self._nearly = nearly
        self._resolver = SchemaResolver(root)
        self._words = iter(words)

    def value(self, schema: Any, at: str, depth: int = 0, serial: int = 0) -> Any:
        """A value for a schema; those of different `serial` differ where the schema leaves room."""
        self._resolver.step(at, depth)
        if schema is True:
            return "anything"
        if schema is False:
            raise Unsatisfiable(f"{at}: `false` allows no value")
        *others, last = self._resolver.alternatives(schema, at)
        for plain in others:
            try:
                return self._made(plain, at, depth, serial)
            except Unsatisfiable:
                continue  # another alternative may do
        return self._made(last, at, depth, serial)

    def _made(self, schema: Mapping[str, Any], at: str, depth: int, serial: int) -> Any:
        if not self._nearly and (unmet := [name for name in _UNMET if name in schema]):
            raise Unsatisfiable(f"{at}: the simulated engine cannot satisfy `{unmet[0]}`; leave it out to try the rest")
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            if not schema["enum"]:
                raise Unsatisfiable(f"{at}: no value is in every `enum`")
            return schema["enum"][serial % len(schema["enum"])]
        match type_of(schema):
            case "object":
                return self._object(schema, at, depth)
            case "array":
                return self._array(schema, at, depth)
            case "string":
                return self._string(schema, at, serial)
            case "integer":
                return _number(schema, at, serial, whole=True)
            case "number":
                return _number(schema, at, serial, whole=False)
            case "boolean":
                return serial % 2 == 0
            case "null":
                return None
            case other:
                raise Unsatisfiable(f"{at}: {other!r} is no type of JSON Schema")

    def _object(self, schema: Mapping[str, Any], at: str, depth: int) -> dict[str, Any]:
        properties: Mapping[str, Any] = schema.get("properties", {})
        required = dict.fromkeys(schema.get("required", ()))
        optional = [name for name in properties if name not in required]
        most = schema.get("maxProperties", math.inf)
        others = schema.get("additionalProperties", {})
        made: dict[str, Any] = {}
        for name in required:
            try:
                made[name] = self.value(properties.get(name, others), f"{at}.{name}", depth + 1)
            except Unsatisfiable:
                if not self._nearly:
                    raise
        for name in optional if depth < _LEAN else ():
            if len(made) < most:
                try:
                    made[name] = self.value(properties[name], f"{at}.{name}", depth + 1)
                except Unsatisfiable:
                    continue  # an optional property may be left out
        for number in itertools.count(1):
            if len(made) >= schema.get("minProperties", 0):
                return {name: made[name] for name in (*properties, *made) if name in made}
            made[f"extra_{number}"] = self.value(others, f"{at}.extra_{number}", depth + 1)
        raise AssertionError("an endless count ended")

    def _array(self, schema: Mapping[str, Any], at: str, depth: int) -> list[Any]:
        firsts = list(schema.get("prefixItems", ()))
        rest = schema.get("items", {})
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        usual = 0 if depth >= _LEAN or rest is False else 2
        length = min(max(least, len(firsts), usual), most)
        made: list[Any] = []
        for place in range(min(int(length), 1000)):
            inner = firsts[place] if place < len(firsts) else rest
            made.append(self.value(inner, f"{at}[{place}]", depth + 1, place))
        if schema.get("uniqueItems"):
            made = list({json.dumps(item, sort_keys=True): item for item in made}.values())
        if len(made) < least:
            raise Unsatisfiable(f"{at}: no {least} items could be made")
        return made

    def _string(self, schema: Mapping[str, Any], at: str, serial: int) -> str:
        name = schema.get("format")
        made = _FORMATS.get(name, "") if isinstance(name, str) else ""
        least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
        if not made:
            label = at.rpartition(".")[2].partition("[")[0].replace("_", " ")
            made = next(self._words, "") or f"sample {label if label != 'the schema' else 'text'}"
            made = f"{made} {serial + 1}" if serial else made
            made = made + "." * max(0, min(least, 100_000) - len(made))
            made = made[: int(min(most, len(made)))]
        if not least <= len(made) <= most:
            raise Unsatisfiable(f"{at}: no text of {least} to {most} characters could be made")
        return made


def _number(schema: Mapping[str, Any], at: str, serial: int, *, whole: bool) -> int | float:
    step = schema.get("multipleOf", 1)
    low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf))
    high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf))
    for made in _candidates(low, high, step, serial, whole=whole):
        if (
            schema.get("minimum", -math.inf) <= made <= schema.get("maximum", math.inf)
            and schema.get("exclusiveMinimum", -math.inf) < made < schema.get("exclusiveMaximum", math.inf)
            and ("multipleOf" not in schema or math.isclose(made / step, round(made / step), abs_tol=1e-9))
        ):
            return int(made) if float(made).is_integer() else made
    raise Unsatisfiable(f"{at}: no {'integer' if whole else 'number'} from {low} to {high} could be made")


def _candidates(low: float, high: float, step: float, serial: int, *, whole: bool) -> Iterator[float]:
    """Numbers worth trying: multiples of the step from 1 or the lower bound on, then the middle of the range."""
    start = 1 if low < 1 <= high else low if math.isfinite(low) else high if math.isfinite(high) else 1
    first = math.ceil(start / step)
    for place in (first + serial, first, first + 1, first - 1):
        if not whole or float(place * step).is_integer():
            yield place * step
    if not whole and math.isfinite(low) and math.isfinite(high):
        yield low + (high - low) / 2
