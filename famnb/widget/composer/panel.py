"""What stands beside the composer's form and can be opened: presets, history, code, JSON body."""

from __future__ import annotations

from typing import Protocol

import ipywidgets as widgets


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
