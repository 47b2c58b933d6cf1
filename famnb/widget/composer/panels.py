"""The panels beside the composer's form, each opened by a button: presets, history, code and JSON body."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any, Protocol

import ipywidgets as widgets

from famnb.client.client import BlockingClient
from famnb.errors import FamnbError, InvalidRequest
from famnb.formatting import format_duration
from famnb.record import Ledger, RecordedCall
from famnb.request import Request
from famnb.widget.composer import presets
from famnb.widget.composer.code_export import available_kinds, write_cell
from famnb.widget.form import images
from famnb.widget.form.controls import make_cell, make_control
from famnb.widget.form.draft import Draft, Reading
from famnb.widget.html import notices, sanitize
from famnb.widget.live.copy_box import CopyBox


class Panel(Protocol):
    """A panel beside the form."""

    title: str
    """Its name, on its button and above it."""
    hint: str
    """What it is for, on its button."""
    box: widgets.Widget
    """What it shows."""

    def on_open(self) -> None:
        """The panel was opened."""

    def on_edit(self) -> None:
        """The form was edited while the panel is open."""


# Presets


class PresetPanel:
    """Saves the form's draft under a name, and loads or deletes saved ones."""

    title = "Presets"
    hint = "Save this form under a name, or load one"

    def __init__(self, *, draft: Callable[[], Draft], load: Callable[[Draft], object]) -> None:
        """`draft` returns the form's draft, `load` fills the form with another."""
        self._draft, self._load = draft, load
        self._path = presets.default_path()
        self._names = make_control(widgets.Dropdown, title="Preset", help="Those saved so far", options=())
        self._name = make_control(
            widgets.Text, title="Save as", help="The name to save this form under", placeholder="a name"
        )
        self._message = widgets.HTML()
        buttons = [
            self._make_button("Load", "Fill the form from this preset", self._load_preset),
            self._make_button("Delete preset", "Forget this preset", self._delete_preset),
            self._make_button(
                "Save preset", "Save the form under this name, in place of one so called", self._save_preset
            ),
        ]
        old = widgets.HBox([make_cell(self._names, kind="preset"), *buttons[:2]])
        new = widgets.HBox([make_cell(self._name, kind="preset"), buttons[2]])
        self.box = widgets.VBox([old, new, self._message])
        self.box.add_class("famnb-composer-presets")

    def on_open(self) -> None:
        """Read the file again, since another notebook may have saved something."""
        _run_callback(self._refresh, self._message)

    def on_edit(self) -> None:
        """Nothing to do: the draft is read when it is saved."""

    def _refresh(self, selected: str | None = None) -> None:
        names = presets.names(self._path)
        selected = selected or self._names.value
        self._names.options = names
        self._names.value = selected if selected in names else next(iter(names), None)

    def _save_preset(self) -> None:
        name = self._name.value.strip()
        losses = presets.save(self._path, name, self._draft())
        self._refresh(name)
        self._name.value = ""
        self._show_lines(f"“{name}” is saved.", *losses)

    def _load_preset(self) -> None:
        draft, losses = presets.load(self._path, self._read_selected_name())
        self._load(draft)
        self._show_lines(f"“{self._names.value}” is loaded.", *losses)

    def _delete_preset(self) -> None:
        name = self._read_selected_name()
        presets.delete(self._path, name)
        self._refresh()
        self._show_lines(f"“{name}” is deleted.")

    def _read_selected_name(self) -> str:
        if self._names.value is None:
            raise InvalidRequest("preset: there is none yet; write a name and save the form under it")
        return str(self._names.value)

    def _make_button(self, name: str, help: str, action: Callable[[], None]) -> widgets.Button:
        button = widgets.Button(description=name, tooltip=help)
        button.on_click(lambda _: _run_callback(action, self._message))
        return button

    def _show_lines(self, *lines: str) -> None:
        self._message.value = notices.status(*map(sanitize.render_docstring, lines))


# History

# More than anyone scrolls through, and few enough to be drawn without a pause; older ones are found by the filter.
HISTORY_LENGTH = 100
"""Calls in the list."""
_FILTER_COLUMNS = ("prompt", "model", "endpoint", "standing", "error")
_FILTER = " OR ".join(
    [
        *(f"{column} LIKE ? ESCAPE '\\'" for column in _FILTER_COLUMNS),
        "request_key IN (SELECT key FROM requests WHERE body LIKE ? ESCAPE '\\')",
    ]
)
"""The SQL condition for a call that has a text in one of these columns, or in the request's body."""


class HistoryPanel:
    """The latest calls of the ledger, filtered by a text; a call is opened in the form, its reply below the list."""

    title = "History"
    hint = "Open a past call again"

    def __init__(self, ledger: Ledger | None, *, load: Callable[[RecordedCall], object]) -> None:
        """`load` fills the form with the request of a call. Without a `ledger` the panel only says so."""
        self._ledger, self._load = ledger, load
        self._filter = make_control(
            widgets.Text,
            title="Filter calls",
            help="Show the calls that have this in prompt, settings, model, status or error",
            placeholder="all calls",
        )
        self._calls = make_control(widgets.Select, title="Latest calls", help="The latest first", options=(), rows=7)
        open_button = widgets.Button(description="Open in the form", tooltip="Fill the form with this call's request")
        look_button = widgets.Button(description="Look inside", tooltip="Show its reply and what went over the wire")
        refresh_button = widgets.Button(description="Refresh", tooltip="Look at the ledger again")
        self._message, self._below = widgets.HTML(), widgets.VBox()
        self._inspector: Any = None
        buttons = widgets.HBox([open_button, look_button, refresh_button])
        calls = make_cell(self._calls, kind="calls")
        self.box = widgets.VBox([make_cell(self._filter, kind="filter"), calls, buttons, self._message, self._below])
        self.box.add_class("famnb-composer-past")
        self._filter.observe(lambda _: _run_callback(self._refresh, self._message), "value")
        open_button.on_click(lambda _: _run_callback(self._open_call, self._message))
        look_button.on_click(lambda _: _run_callback(self._inspect_call, self._message))
        refresh_button.on_click(lambda _: _run_callback(self._refresh, self._message))

    def on_open(self) -> None:
        """Read the ledger."""
        _run_callback(self._refresh, self._message)

    def on_edit(self) -> None:
        """Nothing to do: past calls do not depend on the form."""

    def _refresh(self) -> None:
        if self._ledger is None:
            self._message.value = notices.remark("This client keeps no ledger, so there is no history.")
            return
        rows = _search(self._ledger, self._filter.value.strip())
        selected = self._calls.value
        options = tuple((_history_line(row), row["id"]) for row in reversed(rows))
        self._calls.options = options
        ids = [call_id for _, call_id in options]
        self._calls.value = selected if selected in ids else next(iter(ids), None)
        self._message.value = "" if options else notices.status("There are no such calls.")

    def _open_call(self) -> None:
        """Fill the form with the selected call's request, and show its reply below the list."""
        call = self._read_selected_call()
        if call is not None:
            self._load(call)
            self._inspect_call()
            self._message.value = notices.status(f"Call {call.call_id} is in the form.")

    def _inspect_call(self) -> None:
        call = self._read_selected_call()
        if call is None:
            return
        if self._inspector is None:
            # Imported on first use: it needs matplotlib and pandas, which a form alone does without.
            self._inspector = importlib.import_module("famnb.widget.inspector").Inspector(call)
            self._below.children = (self._inspector,)
        else:
            self._inspector.show(call)

    def _read_selected_call(self) -> RecordedCall | None:
        if self._ledger is None or self._calls.value is None:
            self._message.value = notices.fault("Choose a call first.")
            return None
        return self._ledger.call(self._calls.value)


def _search(ledger: Ledger, text: str) -> list[Any]:
    """The latest rows of the ledger that hold a text, by _FILTER; without a text, the latest of all."""
    if not text:
        return list(ledger.select(limit=HISTORY_LENGTH))
    # In the body, which is JSON, quotes and line ends are escaped.
    in_json = json.dumps(text, ensure_ascii=False)[1:-1]
    patterns = [*[_like_pattern(text)] * len(_FILTER_COLUMNS), _like_pattern(in_json)]
    return list(ledger.select(_FILTER, patterns, limit=HISTORY_LENGTH))


def _like_pattern(text: str) -> str:
    """The pattern of SQL's LIKE for values that hold a text, whatever is in it; the escape character is a backslash."""
    # The backslash first, or it would double those that the others add.
    for character in "\\%_":
        text = text.replace(character, f"\\{character}")
    return f"%{text}%"


def _history_line(row: Any) -> str:
    """A call as one line of the list; when and what stand first, since a narrow page cuts off the rest."""
    # For the row alone: this reads neither the body nor the recorded reads.
    started_at = RecordedCall(row=row, body={}, load=tuple).started_at.astimezone()
    duration = "" if row["e2e_s"] is None else format_duration(row["e2e_s"], brief=True)
    prompt = " ".join(sanitize.visible(row["prompt"] or "").split())
    facts = f"{row['endpoint']:<9} {row['model']:<12} {row['standing']:<11} {duration:>7}"
    return f"{started_at:%d %b %H:%M}  {prompt:<44.44}  {facts}"


# Code and JSON body

_CODE_NOTE = "It runs as it stands; the key is read from the environment."


class CodePanel:
    """The form's request as a cell of a chosen kind that repeats it; follows the form while it is open."""

    title = "Code"
    hint = "Show a cell that repeats this request"

    def __init__(self, client: BlockingClient, *, request: Callable[[], Request]) -> None:
        """`request` returns the form's request, or raises InvalidRequest."""
        self._client, self._request = client, request
        self._kind = make_control(widgets.Dropdown, title="As", help="What the code is for", options=("famnb",))
        self._message = widgets.HTML()
        self._code = CopyBox("code")
        self.box = widgets.VBox([make_cell(self._kind, kind="kind"), self._message, self._code])
        self._is_updating = False
        """Whether `on_edit` is changing the control itself, so that the change is not a choice of the user's."""
        self._kind.observe(lambda _: self.on_edit(), "value")

    def on_open(self) -> None:
        """Show the request as it is now."""
        self.on_edit()

    def on_edit(self) -> None:
        """Show the request as it is now."""
        if self._is_updating:
            return
        try:
            request = self._request()
        except InvalidRequest as fault:
            self._message.value = notices.remark(f"There is no code yet. {fault}")
            return
        kinds, kind = available_kinds(request), self._kind.value
        if self._kind.options != kinds:
            # An SDK that does not speak the new endpoint gives way to the last kind, the one that does.
            kind = kind if kind in kinds else kinds[-1]
            self._is_updating = True
            self._kind.options, self._kind.value = kinds, kind
            self._is_updating = False
        text = write_cell(request, kind=kind, base_url=self._client.base_url(request.endpoint))
        self._message.value = notices.help_text(_CODE_NOTE)
        self._code.show(text, preview=images.shorten_image_data(text))


class BodyPanel:
    """The JSON body that the form's request is sent with; follows the form while it is open."""

    title = "JSON body"
    hint = "Show exactly what is sent"

    def __init__(self, *, reading: Callable[[], Reading]) -> None:
        """`reading` returns the form's request and body, valid or not."""
        self._reading = reading
        self._message = widgets.HTML()
        self._body = CopyBox("JSON body")
        self.box = widgets.VBox([self._message, self._body])

    def on_open(self) -> None:
        """Show the body as it is now."""
        self.on_edit()

    def on_edit(self) -> None:
        """Show the body as it is now."""
        reading = self._reading()
        validity = "" if reading.request else ", not valid yet"
        self._message.value = notices.help_text(f"POST {reading.path}{validity}")
        text = json.dumps(reading.body, indent=2, ensure_ascii=False)
        self._body.show(text, preview=images.shorten_image_data(text))


def _run_callback(action: Callable[[], None], message: widgets.HTML) -> None:
    """Run a callback, and show in `message` why it failed; any other error is a defect, and is logged by ipywidgets."""
    try:
        action()
    except (FamnbError, KeyError, OSError) as error:
        message.value = notices.fault(str(error))
