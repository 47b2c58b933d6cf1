"""JSON Schemas made plain: references and alternatives worked out, types inferred; values are made elsewhere."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
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


class Resolver:
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
