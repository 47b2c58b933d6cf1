"""Headline figures and lists of rows, as several tools show them (front/parts/tables.js)."""

from __future__ import annotations

from typing import Literal

from famnb.widget.runtime.view import View


class FigureView(View, frozen=True):
    """One headline figure."""

    key: str
    """Its name."""
    value: str
    note: str = ""
    """What the value is of, and what it leaves out."""


class ColumnView(View, frozen=True):
    """A column of a list."""

    name: str
    kind: Literal["word", "number", "status", "text"]
    """Words are set left, numbers right; a text takes the room that is left."""
    is_minor: bool = False
    """Whether it goes first where room is scarce."""
    order: Literal["", "ascending", "descending"] = ""
    """How rows are sorted by it."""


class RowView(View, frozen=True):
    """A row of a list, which opens."""

    key: str
    cells: tuple[str, ...]
    label: str
    """What screen readers call it."""
    is_failed: bool = False


class RowsView(View, frozen=True):
    """A list of rows that open, with a line above it."""

    title: str
    columns: tuple[ColumnView, ...]
    rows: tuple[RowView, ...]
