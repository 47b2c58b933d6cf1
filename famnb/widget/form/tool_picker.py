"""Python functions and an answer's type, given to the composer: boxes to tick that write and read the form's JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets

from famnb.request.structured_output import answer_format
from famnb.request.tools import FunctionTool
from famnb.widget.form.controls import RequestForm
from famnb.widget.form.fields import FieldPath

_TOOLS: FieldPath = ("tools",)


class ToolPicker:
    """What the caller gave, as boxes to tick. The form's texts alone say what is ticked."""

    def __init__(self, functions: Mapping[str, FunctionTool], schema: Any) -> None:
        self._declared = {name: function.declared() for name, function in functions.items()}
        self._type = schema
        self._schema = None if schema is None else answer_format(schema)
        self._form: RequestForm | None = None
        self._reading = False
        self.tools = [self._box(name, self._picked, self._about(name)) for name in functions]
        """A box for each function."""
        name = getattr(schema, "__name__", "the given type")
        self.schemas = (
            [] if schema is None else [self._box(f"{name} as JSON", self._formed, "Ask for JSON of this type")]
        )
        """A box for the type, if there is one."""

    @property
    def expected(self) -> Any:
        """The type that the form asks an answer of; None if it asks none of it."""
        return self._type if any(box.value for box in self.schemas) else None

    def attach(self, form: RequestForm) -> None:
        """Read and write this form from now on."""
        self._form = form
        self.read()

    def tick(self, form: RequestForm) -> None:
        """Tick every box that has a place in this form."""
        self.attach(form)
        places = [(box, form.endpoint.takes_tools) for box in self.tools]
        places += [(box, form.endpoint.traits.format is not None) for box in self.schemas]
        for box, fits in places:
            box.value = fits

    def read(self) -> None:
        """Tick what the form's texts hold."""
        if self._form is None:
            return
        self._reading = True
        try:
            names = [_name(tool) for tool in _listed(self._form.raw.get(_TOOLS, "")) or ()]
            for box, name in zip(self.tools, self._declared, strict=True):
                box.value = name in names
            for box in self.schemas:
                box.value = self._holds_schema()
        finally:
            self._reading = False

    def _box(self, name: str, act: Callable[[str, bool], None], help: str) -> widgets.Checkbox:
        box = widgets.Checkbox(description=name, tooltip=help, indent=False)

        def ticked(change: Any) -> None:
            if not self._reading:
                act(name, change["new"])

        box.observe(ticked, "value")
        return box

    def _about(self, name: str) -> str:
        return str(self._declared[name]["function"].get("description", name)).partition("\n")[0]

    def _picked(self, name: str, on: bool) -> None:
        """Put a function among the form's tools, or take it out."""
        if self._form is None:
            return
        tools = _listed(self._form.raw.get(_TOOLS, ""))
        if tools is None:  # what is written there is no list yet: it is the form's business to say so
            self.read()
            return
        kept = [tool for tool in tools if _name(tool) != name] + ([self._declared[name]] if on else [])
        self._form.write(_TOOLS, json.dumps(kept, indent=2, ensure_ascii=False) if kept else "")

    def _formed(self, _name: str, on: bool) -> None:
        """Put the type's schema where this endpoint has it, or take it out."""
        form = self._form
        if form is None or self._schema is None:
            return
        paths = form.endpoint.traits.format
        if paths is None:
            return
        known = {field.path: field for field in form.fields}
        for name, value in self._schema.items():
            path = (*paths.inner, name)
            form.write(path, known[path].write(value) if on else "")
        form.write(paths.type, "json_schema" if on else "")

    def _holds_schema(self) -> bool:
        if self._form is None or self._schema is None or (paths := self._form.endpoint.traits.format) is None:
            return False
        try:
            return bool(json.loads(self._form.raw.get(paths.schema, "null")) == self._schema["schema"])
        except ValueError:
            return False


def _listed(text: str) -> list[Any] | None:
    """The tools that a text lists; None if it is no list."""
    try:
        tools = json.loads(text or "[]")
    except ValueError:
        return None
    return tools if isinstance(tools, list) else None


def _name(tool: Any) -> Any:
    match tool:
        case {"function": {"name": name}}:
            return name
        case _:
            return None
