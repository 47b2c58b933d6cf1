"""The composer's presets: a name to save the form under, and the list of those there are, to load and to delete.

MERGED: The composer's JSON body: exactly what is sent, as the form has it now.
MERGED: The composer's code: a cell that repeats the request, of a kind that is chosen, to look at and to copy.
MERGED: What stands beside the composer's form and can be opened: presets, history, code, JSON body.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol

import ipywidgets as widgets

from famnb.client.client import BlockingClient
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.widget.composer import presets
from famnb.widget.composer.code_export import code, kinds
from famnb.widget.form import images
from famnb.widget.form.controls import make_cell, make_control
from famnb.widget.form.draft import Draft, Reading
from famnb.widget.html import sanitize
from famnb.widget.live.copy_box import CopyBox


class PresetBox:
    """Saves what the form holds and loads it again; `load` is told the draft, `draft` gives the form's own."""

    title = "Presets"
    hint = "Save this form under a name, or load one"

    def __init__(self, *, draft: Callable[[], Draft], load: Callable[[Draft], object]) -> None:
        self._draft, self._load = draft, load
        self._path = presets.default_path()
        self._names = make_control(widgets.Dropdown, title="Preset", help="Those saved so far", options=())
        self._name = make_control(
            widgets.Text, title="Save as", help="The name to save this form under", placeholder="a name"
        )
        self._said = widgets.HTML()
        buttons = [
            self._button("Load", "Fill the form from this preset", self._loaded),
            self._button("Delete preset", "Forget this preset", self._deleted),
            self._button("Save preset", "Save the form under this name, in place of one so called", self._saved),
        ]
        old = widgets.HBox([make_cell(self._names, kind="preset"), *buttons[:2]])
        new = widgets.HBox([make_cell(self._name, kind="preset"), buttons[2]])
        self.box = widgets.VBox([old, new, self._said])
        self.box.add_class("famnb-composer-presets")

    def changed(self) -> None:
        """Nothing to do: what the form holds is asked for when it is saved."""

    def opened(self) -> None:
        """Look at the file again: another notebook may have saved something."""
        self._guarded(self._renew)

    def _renew(self, chosen: str | None = None) -> None:
        there = presets.names(self._path)
        chosen = chosen or self._names.value
        self._names.options = there
        self._names.value = chosen if chosen in there else next(iter(there), None)

    def _saved(self) -> None:
        name = self._name.value.strip()
        left_out = presets.save(self._path, name, self._draft())
        self._renew(name)
        self._name.value = ""
        self._say(f"“{name}” is saved.", *left_out)

    def _loaded(self) -> None:
        draft, left_out = presets.load(self._path, self._chosen())
        self._load(draft)
        self._say(f"“{self._names.value}” is loaded.", *left_out)

    def _deleted(self) -> None:
        name = self._chosen()
        presets.delete(self._path, name)
        self._renew()
        self._say(f"“{name}” is deleted.")

    def _chosen(self) -> str:
        if self._names.value is None:
            raise InvalidRequest("preset: there is none yet; write a name and save the form under it")
        return str(self._names.value)

    def _button(self, name: str, help: str, press: Callable[[], None]) -> widgets.Button:
        button = widgets.Button(description=name, tooltip=help)
        button.on_click(lambda _: self._guarded(press))
        return button

    def _guarded(self, press: Callable[[], None]) -> None:
        try:
            press()
        except (InvalidRequest, OSError) as error:
            self._said.value = f'<p class="famnb-fault" role="alert">{sanitize.escape(str(error))}</p>'

    def _say(self, *words: str) -> None:
        self._said.value = "".join(
            f'<p class="famnb-help" role="status">{sanitize.render_docstring(each)}</p>' for each in words
        )


class BodyBox:
    """Shows the body, and keeps it up to date while it is open."""

    title = "JSON body"
    hint = "Show exactly what is sent"

    def __init__(self, *, reading: Callable[[], Reading]) -> None:
        self._reading = reading
        self._said = widgets.HTML()
        self._body = CopyBox("JSON body")
        self.box = widgets.VBox([self._said, self._body])

    def opened(self) -> None:
        """Show the body as it is now."""
        self.changed()

    def changed(self) -> None:
        """The form was edited."""
        reading = self._reading()
        valid = "" if reading.request else ", not valid yet"
        self._said.value = f'<span class="famnb-help">POST {reading.path}{valid}</span>'
        text = json.dumps(reading.body, indent=2, ensure_ascii=False)
        self._body.show(text, preview=images.shorten_image_data(text))


_SAFE = "It runs as it stands; the key is read from the environment."


class CodeBox:
    """Shows the form's request as code, and keeps it up to date while it is open."""

    title = "Code"
    hint = "Show a cell that repeats this request"

    def __init__(self, client: BlockingClient, *, request: Callable[[], Request]) -> None:
        self._client, self._request = client, request
        self._kind = make_control(widgets.Dropdown, title="As", help="What the code is for", options=("famnb",))
        self._said = widgets.HTML()
        self._code = CopyBox("code")
        self.box = widgets.VBox([make_cell(self._kind, kind="kind"), self._said, self._code])
        self._renewing = False
        """Whether the kinds change by themselves, so that nothing was chosen."""
        self._kind.observe(lambda _: self.changed(), "value")

    def opened(self) -> None:
        """Show the request as it is now."""
        self.changed()

    def changed(self) -> None:
        """The form was edited, or another kind chosen."""
        if self._renewing:
            return
        try:
            request = self._request()
        except InvalidRequest as fault:
            self._said.value = f'<p class="famnb-remark">{sanitize.escape(f"There is no code yet. {fault}")}</p>'
            return
        there, chosen = kinds(request), self._kind.value
        if self._kind.options != there:
            # The last is the vendor's SDK, whichever fits.
            chosen = chosen if chosen in there else there[-1]
            self._renewing = True
            self._kind.options, self._kind.value = there, chosen
            self._renewing = False
        made = code(request, kind=chosen, base_url=self._client.base_url(request.endpoint))
        self._said.value = f'<span class="famnb-help">{_SAFE}</span>'
        self._code.show(made, preview=images.shorten_image_data(made))


class Panel(Protocol):
    """Something beside the form; all it needs otherwise it is told when it is made."""

    title: str
    """What it is called, on its button and above it."""
    hint: str
    """What it is for, on its button."""
    box: widgets.Widget
    """What it shows."""

    def opened(self) -> None:
        """It has come into view."""

    def changed(self) -> None:
        """The form was edited while it is in view."""
