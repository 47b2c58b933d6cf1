"""The board's live view: its prompt box, its panes, and what their buttons ask for; sending is left to the board."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from famnb.widget.live.prompt_box import PromptBox


class BoardView(PromptBox):
    """The prompt box of a board and its panes."""

    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    """The names of the panes."""
    pinned = traitlets.Unicode("").tag(sync=True)
    """The pane whose answer was chosen; empty before one is."""
    differences = traitlets.Bool(False).tag(sync=True)
    """Whether the words are marked in which answers differ."""
    ended = traitlets.Bool(False).tag(sync=True)
    """Whether a round is over, so that a winner can be chosen also where its panes are no longer shown."""

    sends_final_snapshot = False

    def __init__(self, *, picked: Callable[[str], object], compared: Callable[[], object], **traits: Any) -> None:
        super().__init__(**traits)
        self._picked = picked
        self._compared = compared

    def redraw(self) -> None:
        """Send everything again."""
        with self._guard:
            self._send_snapshot()

    def _on_message(self, widget: object, message: dict[str, Any], buffers: object) -> None:
        match message:
            case {"kind": "pin", "label": str(label)}:
                self._picked(label)
            case {"kind": "differences"}:
                self._compared()
            case _:
                super()._on_message(widget, message, buffers)
