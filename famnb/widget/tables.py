"""Headline figures and lists of rows, as several tools show them (front/parts/tables.js)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from famnb.widget.runtime.view import View

if TYPE_CHECKING:
    import pandas as pd

Direction: TypeAlias = Literal["", "ascending", "descending"]


class FigureView(View, frozen=True):
    """One headline figure."""

    key: str
    """Its name."""
    value: str
    note: str = ""
    """What the value is of, and what it leaves out."""
    link: str = ""
    """The text of a button that opens the call `call_id`; empty for none."""
    call_id: str = ""


class ColumnView(View, frozen=True):
    """A column of a list."""

    name: str
    kind: Literal["word", "number", "status", "text"]
    """Words are set left, numbers right; a text takes the room that is left."""
    is_minor: bool = False
    """Whether it goes first where room is scarce."""
    order: Direction = ""
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


class Order(NamedTuple):
    """The column that a list is sorted by; none until one is chosen."""

    column: str = ""
    is_descending: bool = True

    def toggle(self, column: str) -> Self:
        """Sort by a column, the largest first, and the other way round the second time."""
        return type(self)(column, column != self.column or not self.is_descending)

    def direction(self, column: str) -> Direction:
        """Return how rows are sorted by a column."""
        return "" if column != self.column else "descending" if self.is_descending else "ascending"

    def positions(self, values: pd.Series[Any]) -> pd.Index[int]:
        """Return the positions of values in this order, what is missing last."""
        values = values.reset_index(drop=True)
        if values.dtype in (object, "category"):  # values of several types have no order among them
            values = values.astype(object).where(values.isna(), values.astype(str))
        return values.sort_values(ascending=not self.is_descending, kind="stable").index
