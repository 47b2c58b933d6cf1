"""The fields of a request model as a form needs them: path, kind, choices, limits as text, and heading.

request model ── JSON Schema ── FormField … ── texts ── body ── validated request, or a fault per field
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
import pydantic

from famnb.endpoints import Endpoint
from famnb.request.base import describe_fault, format_location
from famnb.request.neutral import FieldPath
from famnb.widget.runtime.view import View

FIRST: Final = ""
"""The fields that stand above all headings, which every request needs."""
# Named, since the editor adds controls of its own under these headings.
TOOLS: Final = "Tools"
FORM: Final = "Output form"
OTHER: Final = "More"
"""The heading of fields that have none of their own."""
GROUPS = ("Sampling", "Reasoning", FORM, TOOLS, "Conversation", "Stream", "Metadata", OTHER)
"""The headings in the order of the form."""
EXACT = ("fields as JSON",)
"""The path of the control for fields that are sent as they stand, whatever the other controls say."""
EXTRA: Final = "extra_body"
"""The field of vendors' requests for what famnb does not know of them."""
MODEL: FieldPath = ("model",)
STREAM: FieldPath = ("stream",)


FieldKind: TypeAlias = Literal["model", "choice", "switch", "integer", "number", "text", "json"]
_TEXT_KINDS = ("model", "choice", "text")
_KINDS: Mapping[Any, FieldKind] = {"string": "text", "boolean": "switch", "integer": "integer", "number": "number"}
"""The kinds of fields by their type in a JSON Schema."""
FieldTexts: TypeAlias = Mapping[FieldPath, str]
"""The text in each control; an empty text is an unset field."""


class FormField(View, frozen=True, kw_only=True):
    """What one control of the form takes."""

    name: str
    """Its place in the body as it is written in messages: thinking.budget_tokens."""
    kind: FieldKind
    help: str
    choices: tuple[str, ...] = ()
    """All values of a choice; suggestions for any other kind."""
    is_closed: bool = False
    """Whether a model is one of the choices."""
    hint: str = ""
    """Default and limits as text, which an empty control shows."""
    takes_text: bool = False
    """Whether a `json` field also takes a plain text without quotes, such as `required` for a tool choice."""
    group: str = OTHER
    """The heading under which it stands."""

    @property
    def path(self) -> FieldPath:
        """Its place in the body."""
        return tuple(self.name.split("."))

    def read(self, raw: str) -> Any:
        """Return the value that a text means. Raises ValueError, whose message is shown under the control."""
        if self.kind in _TEXT_KINDS or (self.takes_text and raw[:1] not in ("{", "[")):
            return raw
        try:
            return json.loads(raw, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as fault:
            if self.kind == "json":
                raise ValueError(f"this is not JSON yet: {fault}") from None
            expectation = {"integer": "a whole number", "number": "a number"}.get(self.kind, "true or false")
            raise ValueError(f"{expectation} is expected, got {raw[:40]!r}") from None

    def fits(self, text: str) -> bool:
        """Return whether a control of this field can hold a text; a list can hold only its choices."""
        if self.kind == "switch":
            return text in ("true", "false")
        return text in self.choices if self.kind == "choice" or self.is_closed else bool(text)

    def write(self, value: Any) -> str:
        """Return the text for a value. `read` may refuse it, or read another value: not every value has a text."""
        if isinstance(value, str) and (self.kind != "json" or (self.takes_text and value[:1] not in ("{", "["))):
            return value
        return json.dumps(value, indent=2, ensure_ascii=False)


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


# Cached, since a draft is read on each key that is typed.
@functools.cache
def request_fields(endpoint: Endpoint) -> tuple[FormField, ...]:
    """Return every field that can be set, nested ones by their own path, in the order of the request model."""
    model = endpoint.request
    schema = model.model_json_schema()
    groups = {**endpoint.traits.groups, model.prompt_field: "Conversation", model.cap: FIRST}
    replaced = {(model.prompt_field,): "the prompt", (endpoint.traits.system_field,): "the system text above"}
    fields = []
    for field in _walk(schema, (), schema.get("$defs", {})):
        path = field.path
        changes: dict[str, Any] = {"group": groups.get(path[0], OTHER)}
        if path in replaced:
            changes["help"] = f"{field.help} When filled in, it is sent instead of {replaced[path]}."
        if path == MODEL:
            # Suggestions only, unless it is a choice: a service may have models that the document does not name.
            changes |= {"kind": "model", "is_closed": field.kind == "choice", "choices": tuple(endpoint.models)}
        fields.append(msgspec.structs.replace(field, **changes))
    return tuple(fields)


def _walk(schema: Mapping[str, Any], parent: FieldPath, definitions: Mapping[str, Any]) -> Iterator[FormField]:
    for name, node in schema["properties"].items():
        path = (*parent, name)
        variants = list(_variants(node, definitions))
        if len(variants) == 1 and "properties" in variants[0]:
            yield from _walk(variants[0], path, definitions)
            continue
        values: list[Any] = []
        default = node.get("default")
        hints = [] if default is None else [f"default {_format_limit(default)}"]
        for variant in variants:
            values += [variant["const"]] if "const" in variant else variant.get("enum", ())
            if (low := variant.get("minimum")) is not None:
                limit, high = _format_limit(low), variant.get("maximum")
                hints.append(f"≥ {limit}" if high is None else f"{limit} – {_format_limit(high)}")
        types = [variant.get("type") for variant in variants]
        kind = _KINDS.get(types[0], "json") if len(types) == 1 else "json"
        yield FormField(
            name=".".join(path),
            kind="choice" if kind == "text" and values else kind,
            help=node.get("description", ""),
            choices=tuple(map(str, values)),
            hint=" · ".join([*hints, *(map(str, [*values, "JSON"]) if kind == "json" else ())]),
            takes_text=kind == "json" and "string" in types,
        )


def _variants(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that a node may have, references followed, without null."""
    if variants := node.get("anyOf") or node.get("oneOf"):
        for variant in variants:
            yield from _variants(variant, definitions)
    elif "$ref" in node:
        yield from _variants(definitions[node["$ref"].rpartition("/")[2]], definitions)
    elif node.get("type") != "null":
        yield node


def _format_limit(value: Any) -> str:
    """Return a default or limit as text: no, 0.1, 2, 16,384."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return f"{value:,g}" if isinstance(value, float) else f"{value:,}"
        case _:
            return str(value)


def read_texts(fields: Sequence[FormField], raw: FieldTexts) -> tuple[dict[str, Any], dict[FieldPath, str]]:
    """Return the body that the texts make, without the empty ones, and the faults of those that cannot be read."""
    body: dict[str, Any] = {}
    faults: dict[FieldPath, str] = {}
    for field in fields:
        text = raw.get(field.path, "").strip()
        if not text:
            continue
        try:
            value = field.read(text)
        except ValueError as fault:
            faults[field.path] = str(fault)
            continue
        parent = body
        for step in field.path[:-1]:
            parent = parent.setdefault(step, {})
        parent[field.path[-1]] = value
    return body, faults


def faults_of(fields: Sequence[FormField], error: pydantic.ValidationError) -> dict[FieldPath, str]:
    """Return the faults of a validation by the path of the field that each belongs to; () if it belongs to none."""
    paths = {field.path for field in fields}
    faults: dict[FieldPath, str] = {}
    for fault in error.errors(include_url=False):
        # Between the names of fields stand indexes of lists and tags of unions, such as "<text>".
        steps = tuple(step for step in fault["loc"] if isinstance(step, str) and not step.startswith("<"))
        path = next((steps[:length] for length in range(len(steps), 0, -1) if steps[:length] in paths), None)
        # A fault of a group, say a schema that is missing, stands at the group's first field.
        path = path or next((other.path for other in fields if steps and other.path[: len(steps)] == steps), ())
        location = format_location(fault["loc"])
        prefix = f"{location}: " if location != ".".join(path) else ""
        faults.setdefault(path, prefix + describe_fault(fault).removeprefix("input "))
    return faults
