"""What every view of ours shares that must be heard while a cell runs, and after its page was reloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget

FRONT = Path(__file__).parents[1] / "front"
"""The folder of the pages' own code and style."""


class Heard(anywidget.AnyWidget):
    """A widget whose page is heard also where ipykernel remembers that another subshell handled it."""

    def _send(self, msg: Any, buffers: Any = None) -> None:
        super()._send(msg, buffers)
        # ipykernel 7.4 has what the page says next handled by the subshell whose request came last before this message.
        # A reload deletes that one, and nothing would be heard any more; a running cell keeps it busy. Without this
        # memory it is the subshell that the page asks for.
        if self.comm is not None:
            self.comm.__dict__.pop("_reply_subshell_id", None)
