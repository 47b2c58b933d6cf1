"""A box that shows a text and copies it.

The text is sent to the page as a message, not as a trait, so that none of it is saved with the notebook.
"""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from famnb.widget.live.base import FRONT, join_front

COPY_TABS_CLASS = "famnb-inspector"
"""The CSS class of tabs that hold copy boxes; copy_box.css makes their names easier to read."""


class CopyBox(anywidget.AnyWidget):
    """A text in a box that scrolls, with a button that copies the whole of it."""

    _esm = join_front("copy_box.js")
    _css = FRONT / "copy_box.css"

    label = traitlets.Unicode("").tag(sync=True)
    """The name of the text, for the button and for screen readers."""

    bare = traitlets.Bool(False).tag(sync=True)
    """Whether only the button is drawn, because the text is shown elsewhere."""

    def __init__(self, label: str, *, bare: bool = False) -> None:
        super().__init__(label=label, bare=bare)
        self._text = self._preview = ""
        self.on_msg(self._on_message)

    def show(self, text: str, *, preview: str | None = None) -> None:
        """Show a text, or only a `preview` of one that is too long to read; the whole text is copied."""
        self._text, self._preview = text, text if preview is None else preview
        self._send_text()

    @property
    def text(self) -> str:
        """The text that is copied."""
        return self._text

    def _send_text(self) -> None:
        is_whole = not self.bare and self._preview == self._text
        self.send({"kind": "text", "text": "" if self.bare else self._preview, "whole": is_whole})

    def _on_message(self, _widget: object, message: dict[str, Any], _buffers: object) -> None:
        match message:
            case {"kind": "ready"}:
                self._send_text()
            case {"kind": "copy"}:
                self.send({"kind": "copied", "text": self._text})
            case _:
                pass
