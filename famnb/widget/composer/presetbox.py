"""The composer's presets: a name to save the form under, and the list of those there are, to load and to delete."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from famnb.errors import InvalidRequest
from famnb.widget.composer import presets
from famnb.widget.form.draft import Draft
from famnb.widget.form.form import boxed, labelled
from famnb.widget.text import markup


class PresetBox:
    """Saves what the form holds and loads it again; `load` is told the draft, `draft` gives the form's own."""

    title = "Presets"
    hint = "Save this form under a name, or load one"

    def __init__(self, *, draft: Callable[[], Draft], load: Callable[[Draft], object]) -> None:
        self._draft, self._load = draft, load
        self._path = presets.default_path()
        self._names = labelled(widgets.Dropdown, title="Preset", help="Those saved so far", options=())
        self._name = labelled(
            widgets.Text, title="Save as", help="The name to save this form under", placeholder="a name"
        )
        self._said = widgets.HTML()
        buttons = [
            self._button("Load", "Fill the form from this preset", self._loaded),
            self._button("Delete preset", "Forget this preset", self._deleted),
            self._button("Save preset", "Save the form under this name, in place of one so called", self._saved),
        ]
        old = widgets.HBox([boxed(self._names, kind="preset"), *buttons[:2]])
        new = widgets.HBox([boxed(self._name, kind="preset"), buttons[2]])
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
            self._said.value = f'<p class="famnb-fault" role="alert">{markup.escape(str(error))}</p>'

    def _say(self, *words: str) -> None:
        self._said.value = "".join(f'<p class="famnb-help" role="status">{markup.words(each)}</p>' for each in words)
