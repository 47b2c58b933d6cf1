"""Which of the functions and the answer type that a composer was made with its form asks for.

The texts of the form's JSON fields alone decide that: ticking a box writes them, and editing them ticks the boxes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from famnb.endpoints import Endpoint
from famnb.request.neutral import FieldPath
from famnb.request.structured_output import json_format
from famnb.request.tools import FunctionTool
from famnb.widget.form.fields import FORM, TOOLS, FieldTexts, request_fields
from famnb.widget.form.views import BoxView

TOOLS_PATH: FieldPath = ("tools",)


class ToolPicker:
    """Functions and a type of answer, each of which a form's texts can hold."""

    def __init__(self, functions: Mapping[str, FunctionTool], schema: Any) -> None:
        self._functions = functions
        self._type = schema
        self._schema = None if schema is None else json_format(schema)
        self._type_box = f"{getattr(schema, '__name__', 'the given type')} as JSON"

    def answer_type(self, endpoint: Endpoint, texts: FieldTexts) -> Any:
        """Return the type that an answer shall be JSON of, if the texts ask for it; else None."""
        return self._type if self._holds_schema(endpoint, texts) else None

    def boxes(self, endpoint: Endpoint, texts: FieldTexts) -> dict[str, tuple[BoxView, ...]]:
        """Return a box for each function and for the type that the endpoint can carry, by their headings."""
        chosen = [_tool_name(tool) for tool in parse_list(texts.get(TOOLS_PATH, "")) or ()]
        # The first line of its description says what it is for.
        tools = tuple(
            BoxView(key=name, help=function.description.partition("\n")[0], is_on=name in chosen)
            for name, function in self._functions.items()
            if endpoint.takes_tools
        )
        schema: tuple[BoxView, ...] = ()
        if self._schema is not None and endpoint.traits.format is not None:
            schema = (BoxView(key=self._type_box, help="", is_on=self._holds_schema(endpoint, texts)),)
        return {heading: boxes for heading, boxes in ((TOOLS, tools), (FORM, schema)) if boxes}

    def texts_with(self, endpoint: Endpoint, texts: FieldTexts, box: str, *, is_on: bool) -> dict[FieldPath, str]:
        """Return the texts of the form after a box was ticked, or no longer is."""
        return (
            self._texts_with_schema(endpoint, is_on=is_on)
            if box == self._type_box
            else self._texts_with_tool(endpoint, texts, box, is_on=is_on)
        )

    def initial_texts(self, endpoint: Endpoint) -> dict[FieldPath, str]:
        """Return the texts that ask for every function and the type, as far as the endpoint can carry them."""
        texts: dict[FieldPath, str] = {}
        for boxes in self.boxes(endpoint, texts).values():
            for box in boxes:
                texts |= self.texts_with(endpoint, texts, box.key, is_on=True)
        return texts

    def _texts_with_tool(
        self, endpoint: Endpoint, texts: FieldTexts, name: str, *, is_on: bool
    ) -> dict[FieldPath, str]:
        """Return the text of the form's tools with a function added, as the endpoint's dialect has it, or removed."""
        tools = parse_list(texts.get(TOOLS_PATH, ""))
        # While the text is no JSON list, the form shows a fault at it; nothing is written over it.
        if tools is None or name not in self._functions:
            return {}
        function = self._functions[name]
        declaration = endpoint.request.declare_tool(function.name, function.description, function.parameters)
        kept = [tool for tool in tools if _tool_name(tool) != name] + ([declaration] if is_on else [])
        return {TOOLS_PATH: json.dumps(kept, indent=2, ensure_ascii=False) if kept else ""}

    def _texts_with_schema(self, endpoint: Endpoint, *, is_on: bool) -> dict[FieldPath, str]:
        """Return the texts that ask for JSON of the type where this endpoint has them, or that no longer do."""
        paths = endpoint.traits.format
        if self._schema is None or paths is None:
            return {}
        fields = {field.path: field for field in request_fields(endpoint)}
        texts = {(*paths.inner, name): value for name, value in self._schema.items() if name in paths.names}
        written = {path: fields[path].write(value) if is_on else "" for path, value in texts.items()}
        return {**written, paths.type: "json_schema" if is_on else ""}

    def _holds_schema(self, endpoint: Endpoint, texts: FieldTexts) -> bool:
        paths = endpoint.traits.format
        if self._schema is None or paths is None:
            return False
        try:
            return bool(json.loads(texts.get(paths.schema, "") or "null") == self._schema["schema"])
        except ValueError:
            return False


def parse_list(text: str) -> list[Any] | None:
    """Return the JSON list in a text, or None if the text is not one."""
    try:
        tools = json.loads(text or "[]")
    except ValueError:
        return None
    return tools if isinstance(tools, list) else None


def parse_tool(tool: Any) -> tuple[str, str, Mapping[str, Any]] | None:
    """Return name, description and JSON Schema of a function in any dialect's declaration; None for anything else."""
    match tool:
        case {"function": {"name": str(name), **fields}} | {"name": str(name), **fields}:
            parameters: Any = fields.get("parameters") or fields.get("input_schema") or {}
            return name, str(fields.get("description") or ""), parameters
        case _:
            return None


def _tool_name(tool: Any) -> str | None:
    parsed = parse_tool(tool)
    return parsed[0] if parsed else None
