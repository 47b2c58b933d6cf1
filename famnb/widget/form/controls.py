"""The controls of one endpoint's request, made from its fields; `fields` reads and writes their texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, assert_never

import ipywidgets as widgets

from famnb.endpoints import Endpoint
from famnb.request.neutral import FieldPath
from famnb.widget.form.draft import form_fields, usage_texts
from famnb.widget.form.fields import FIRST, GROUPS, MODEL, STREAM, FieldTexts, FormField
from famnb.widget.html import notices, sanitize
from famnb.widget.html.sanitize import SafeHtml

_FAULT = SafeHtml('<span class="famnb-fault" role="alert">{}</span>')


class RequestForm:
    """The controls of an endpoint's request and the text in each.

    A control is made when its group is first shown; `raw` holds the texts of all fields, shown or not.
    """

    def __init__(self, endpoint: Endpoint, *, raw: FieldTexts, on_change: Callable[[], object]) -> None:
        """`raw` are the first texts, of which those that fit are used; `on_change` is called after each edit."""
        self.endpoint = endpoint
        self.fields = form_fields(endpoint)
        self.raw: dict[FieldPath, str] = {
            field.path: raw[field.path] for field in self.fields if field.fits(raw.get(field.path, ""))
        }
        if not self.raw.get(MODEL):
            self.raw[MODEL] = endpoint.models[0]
        self._on_change = on_change
        # One layout for all controls: ipywidgets would make, and send, a model for each.
        self._layout = widgets.Layout()
        self._notes: dict[FieldPath, tuple[widgets.HTML, str]] = {}
        """The text under each control, and the help it shows while there is no fault."""
        self._inputs: dict[FieldPath, Any] = {}
        self._inferred: set[FieldPath] = set()
        """Fields that were set because another field implies them, and are unset with it."""
        self._usage = dict(usage_texts(endpoint))
        """What is set because a stream is to tell its usage, and unset without one."""
        self._faults: Mapping[FieldPath, str] = {}
        self._cells: dict[str, list[widgets.Widget]] = {}
        self._sections: dict[str, widgets.Widget] = {}

    @property
    def groups(self) -> tuple[str, ...]:
        """The headings that have fields here, in their order."""
        groups = {field.group for field in self.fields}
        return tuple(group for group in GROUPS if group in groups)

    def group_controls(self, group: str) -> list[widgets.Widget]:
        """Return the controls under a heading; they are made on the first call."""
        # Most headings are never opened, and each control is several widget models to send to the page.
        if group not in self._cells:
            members = [field for field in self.fields if field.group == group]
            self._cells[group] = [self._control(field) for field in members]
            self.show(self._faults)
        return self._cells[group]

    def section(self, group: str) -> widgets.Widget:
        """Return the controls under a heading as one box."""
        if group not in self._sections:
            self._sections[group] = widgets.VBox(self.group_controls(group), layout=self._layout)
            self._sections[group].add_class("famnb-all")
        return self._sections[group]

    def count_set(self, group: str) -> int:
        """Return how many fields under a heading are set."""
        return sum(bool(self.raw.get(field.path, "").strip()) for field in self.fields if field.group == group)

    def write(self, path: FieldPath, text: str) -> None:
        """Set a field to a text, as if it had been typed."""
        if path in self._inputs:
            self._inputs[path].value = text
        elif self.raw.get(path, "") != text:
            self._on_edit(path, text)

    @property
    def asked_usage(self) -> frozenset[FieldPath]:
        """The fields that were set, not by the user, to have a stream tell its usage."""
        return frozenset(self._inferred & self._usage.keys())

    def ask_usage(self) -> None:
        """Ask a stream for its usage where it would else not tell it, and nothing without a stream."""
        for path, text in self._usage.items():
            self._infer(path, text, wanted=self.raw.get(STREAM) == "true")

    def adopt_usage(self, asked: Collection[FieldPath]) -> None:
        """Take fields that `asked_usage` named of an earlier form as set for the same reason in this one."""
        self._inferred.update(path for path in asked if path in self.raw)

    def close(self) -> None:
        """Close the controls, here and in the page, after those of another form have taken their place."""
        # ipywidgets keeps every widget, and its style, until it is closed.
        for box in (box for boxes in self._cells.values() for box in boxes):
            for widget in box.children:
                widget.style.close()
                widget.close()
            box.close()
        for section in self._sections.values():
            section.close()
        self._layout.close()

    def show(self, faults: Mapping[FieldPath, str]) -> None:
        """Show each fault under its control, in place of the help."""
        self._faults = faults
        for path, (note, help) in self._notes.items():
            fault = faults.get(path)
            note.value = _FAULT.format(fault) if fault else help

    def _control(self, field: FormField) -> widgets.Widget:
        control = self._inputs[field.path] = self._input(field)
        control.observe(lambda change: self._on_edit(field.path, change["new"]), "value")
        text = field.help
        if field.path == (self.endpoint.request.prompt_field,):
            text += " When filled in, it is sent instead of the prompt."
        if field.path == (self.endpoint.traits.system_field,):
            text += " When filled in, it is sent instead of the system text above."
        help = "" if field.group == FIRST else notices.help_text(sanitize.render_docstring(text))
        note = widgets.HTML(help, layout=self._layout)
        self._notes[field.path] = (note, help)
        return make_cell(control, note, kind=field.kind, layout=self._layout)

    def _input(self, field: FormField) -> Any:
        unset_label = field.hint or "not set"
        make = partial(
            make_control, title=field.name, help=field.help, value=self.raw.get(field.path, ""), layout=self._layout
        )
        match field.kind:
            case "choice":
                options = [(choice, choice) for choice in field.choices]
                # No request is valid without a model, so the model cannot be unset.
                return make(widgets.Dropdown, options=options if field.path == MODEL else [(unset_label, ""), *options])
            # A check box has no state for "not set", which leaves the choice to the service.
            case "switch":
                return make(widgets.Dropdown, options=[(unset_label, ""), ("yes", "true"), ("no", "false")])
            # Suggestions only: a service may have models that the document does not name.
            case "text" if field.path == MODEL:
                return make(widgets.Combobox, options=self.endpoint.models)
            case "integer" | "number" | "text":
                return make(widgets.Text, placeholder=unset_label)
            case "json" if field.bare and field.choices:
                return make(widgets.Combobox, options=field.choices, placeholder=unset_label)
            case "json":
                return make(widgets.Textarea, placeholder=unset_label, rows=2)
            case _:
                assert_never(field.kind)

    def _on_edit(self, path: FieldPath, value: str) -> None:
        if path in self._usage and value != self.raw.get(path, ""):
            # Chosen by the user, and not by `_infer`, which writes into `raw` first: so it is left alone from now on.
            del self._usage[path]
        self.raw[path] = value
        self._inferred.discard(path)
        if path in self.endpoint.traits.implied:
            self._infer(*self.endpoint.traits.implied[path], wanted=bool(value.strip()))
        if path == STREAM:
            self.ask_usage()
        self._on_change()

    def _infer(self, path: FieldPath, value: str, *, wanted: bool) -> None:
        """Set what another field implies, or unset it with that field; a value that was chosen stays as it is."""
        if self.raw.get(path) and path not in self._inferred:
            return
        self.raw[path] = value if wanted else ""
        if path in self._inputs:
            self._inputs[path].value = self.raw[path]
        if wanted:
            self._inferred.add(path)


def make_control(kind: Callable[..., Any], *, title: str, help: str, **traits: Any) -> Any:
    """Return a control of a widget class with its label and tooltip."""
    return kind(description=title, tooltip=help, style={"description_width": "initial"}, **traits)


def make_cell(control: widgets.Widget, *below: widgets.Widget, kind: str, **traits: Any) -> widgets.Widget:
    """Return a control and the widgets below it as one cell of the form; `kind` chooses its style."""
    box = widgets.VBox([control, *below], **traits)
    box.add_class("famnb-control")
    box.add_class(f"famnb-{kind}")
    return box
