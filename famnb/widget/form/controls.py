"""Labelled ipywidgets controls, for the tools that are still made of them: Dashboard and Inspector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def make_control(kind: Callable[..., Any], *, title: str, help: str, **traits: Any) -> Any:
    """Return a control of a widget class with its label and tooltip."""
    return kind(description=title, tooltip=help, style={"description_width": "initial"}, **traits)
