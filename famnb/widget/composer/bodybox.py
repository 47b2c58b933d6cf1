"""The composer's JSON body: exactly what is sent, as the form has it now."""

from __future__ import annotations

import json
from collections.abc import Callable

import ipywidgets as widgets

from famnb.widget.form import pictures
from famnb.widget.form.draft import Reading
from famnb.widget.view.copyable import Copyable


class BodyBox:
    """Shows the body, and keeps it up to date while it is open."""

    title = "JSON body"
    hint = "Show exactly what is sent"

    def __init__(self, *, reading: Callable[[], Reading]) -> None:
        self._reading = reading
        self._said = widgets.HTML()
        self._body = Copyable("JSON body")
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
        self._body.show(text, shown=pictures.brief(text))
