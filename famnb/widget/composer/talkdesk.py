"""The composer's desk: its prompt box, the turns of a conversation, and what their buttons ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import traitlets

from famnb.widget.composer.turnpane import TurnPane
from famnb.widget.view.desk import Desk


class TalkDesk(Desk):
    """A prompt box with a conversation below; what is done with either is told to others."""

    turns = traitlets.Int(0).tag(sync=True)
    """How many turns there are to look at."""
    talking = traitlets.Bool(False).tag(sync=True)
    """Whether they are shown, each with its buttons, and a box for the next one."""

    def __init__(self, *, told: Callable[[dict[str, Any]], object], **traits: Any) -> None:
        super().__init__(**traits)
        self._told = told

    def show(self, panes: Sequence[TurnPane]) -> None:
        """Show these panes, all of which have ended."""
        self.follow([], after=panes)

    def redraw(self, pane: TurnPane) -> None:
        """Draw one pane anew, if it is shown."""
        with self._guard:
            if pane.id in self._panes and not self._hidden:
                self._say({"kind": "changes", "panes": {}, "anew": [pane.snapshot()]})

    def _message(self, widget: object, message: dict[str, Any], buffers: object) -> None:
        match message:
            case {"kind": "talk" | "reply" | "edit" | "again" | "version" | "decide"}:
                self._told(message)
                self.send({"kind": "taken"})
            case {"kind": "stop"}:
                super()._message(widget, message, buffers)
                self._told(message)
            case _:
                super()._message(widget, message, buffers)
