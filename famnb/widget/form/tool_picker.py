"""Check boxes for the Python functions and the answer type that a composer was made with.

Ticking a box writes the form's JSON fields, and editing those fields ticks the boxes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets

from famnb.request.neutral import FieldPath
from famnb.request.structured_output import json_format
from famnb.request.tools import FunctionTool
from famnb.widget.form.controls import RequestForm

_TOOLS: FieldPath = ("tools",)


class ToolPicker:
    """A check box for each function and for the answer type; the form's texts alone decide which are ticked."""

    def __init__(self, functions: Mapping[str, FunctionTool], schema: Any) -> None:
        self._declarations = {name: function.declaration() for name, function in functions.items()}
        self._type = schema
        self._schema = None if schema is None else json_format(schema)
        self._form: RequestForm | None = None
        self._is_reading = False
        self.tools = [self._box(name, self._on_function, self._summary(name)) for name in functions]
        """A box for each function."""
        name = getattr(schema, "__name__", "the given type")
        self.schemas = (
            [] if schema is None else [self._box(f"{name} as JSON", self._on_schema, "Ask for JSON of this type")]
        )
        """A box for the type, if there is one."""

    @property
    def answer_type(self) -> Any:
        """The type that an answer shall be JSON of, if its box is ticked; else None."""
        return self._type if any(box.value for box in self.schemas) else None

    def attach(self, form: RequestForm) -> None:
        """Read and write this form from now on, in place of another."""
        self._form = form
        self.read()

    def tick(self, form: RequestForm) -> None:
        """Tick every box whose field the form's endpoint has."""
        self.attach(form)
        for box in self.tools:
            box.value = form.endpoint.takes_tools
        for box in self.schemas:
            box.value = form.endpoint.traits.format is not None

    def read(self) -> None:
        """Tick the boxes of what the form's texts hold, and no others."""
        if self._form is None:
            return
        self._is_reading = True
        try:
            names = [_tool_name(tool) for tool in _parse_list(self._form.raw.get(_TOOLS, "")) or ()]
            for box, name in zip(self.tools, self._declarations, strict=True):
                box.value = name in names
            for box in self.schemas:
                box.value = self._holds_schema()
        finally:
            self._is_reading = False

    def _box(self, name: str, on_click: Callable[[str, bool], None], help: str) -> widgets.Checkbox:
        box = widgets.Checkbox(description=name, tooltip=help, indent=False)

        def on_change(change: Any) -> None:
            # `read` ticks boxes too, which must not write the form in turn.
            if not self._is_reading:
                on_click(name, change["new"])

        box.observe(on_change, "value")
        return box

    def _summary(self, name: str) -> str:
        """Return the first line of a function's description, or its name."""
        return str(self._declarations[name]["function"].get("description", name)).partition("\n")[0]

    def _on_function(self, name: str, ticked: bool) -> None:
        """Add a function to the form's tools, or remove it."""
        if self._form is None:
            return
        tools = _parse_list(self._form.raw.get(_TOOLS, ""))
        # While the text is no JSON list, the form shows a fault under it; nothing is written over it.
        if tools is None:
            self.read()
            return
        kept = [tool for tool in tools if _tool_name(tool) != name] + ([self._declarations[name]] if ticked else [])
        self._form.write(_TOOLS, json.dumps(kept, indent=2, ensure_ascii=False) if kept else "")

    def _on_schema(self, _name: str, ticked: bool) -> None:
        """Write the type's schema where this endpoint has it, or remove it."""
        form = self._form
        if form is None or self._schema is None:
            return
        paths = form.endpoint.traits.format
        if paths is None:
            return
        fields = {field.path: field for field in form.fields}
        for name, value in self._schema.items():
            path = (*paths.inner, name)
            form.write(path, fields[path].write(value) if ticked else "")
        form.write(paths.type, "json_schema" if ticked else "")

    def _holds_schema(self) -> bool:
        if self._form is None or self._schema is None or (paths := self._form.endpoint.traits.format) is None:
            return False
        try:
            return bool(json.loads(self._form.raw.get(paths.schema, "null")) == self._schema["schema"])
        except ValueError:
            return False


def _parse_list(text: str) -> list[Any] | None:
    """Return the JSON list in a text, or None if the text is not one."""
    try:
        tools = json.loads(text or "[]")
    except ValueError:
        return None
    return tools if isinstance(tools, list) else None


def _tool_name(tool: Any) -> Any:
    match tool:
        case {"function": {"name": name}}:
            return name
        case _:
            return None
