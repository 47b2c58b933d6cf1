"""What the page of a dashboard shows."""

from __future__ import annotations

from typing import Literal

from famnb.widget.inspector import CallView
from famnb.widget.runtime.view import View
from famnb.widget.tables import FigureView, RowsView


class FilterView(View, frozen=True):
    """What is chosen of one filter, and what can be; "" is any."""

    key: str
    label: str
    value: str
    choices: tuple[str, ...]


class CallGroupView(View, frozen=True):
    """A model or an endpoint: its colour in the charts, and its line of the table."""

    key: str
    """Its name."""
    is_filter: bool
    """Whether all can be narrowed to it: not to what has no name, nor to the rest."""
    colour: str
    cycle: int
    """How often all colours were used before it; tells groups of one colour apart."""
    cells: tuple[str, ...]


class ChartView(View, frozen=True):
    """A chart over time: stacked bars, or a line a group."""

    key: str
    """Its name."""
    kind: Literal["bars", "lines"]
    top: float
    """The end of its axis; 0 if there is nothing to draw."""
    ticks: tuple[tuple[float, str], ...]
    """Values of its axis, and how they are written."""
    values: tuple[tuple[float | None, ...], ...]
    """Of each group, one a span."""
    words: tuple[str, ...]
    """Each span in words."""


class OverviewView(View, frozen=True):
    """What the calls say that filters let through; there is at least one."""

    figures: tuple[FigureView, ...]
    note: str
    unpriced: tuple[str, ...]
    """The models whose calls have no cost for lack of a price."""
    spans: tuple[str, ...]
    """The spans of time of all charts, in words."""
    ticks: tuple[tuple[int, str], ...]
    """Some of these, and when they begin."""
    charts: tuple[ChartView, ...]
    head: tuple[str, ...]
    """The head of the table of groups, whose first cell is the filter that they are values of."""
    groups: tuple[CallGroupView, ...]
    calls: RowsView


class DashboardView(View, frozen=True):
    """The dashboard."""

    filters: tuple[FilterView, ...]
    is_reading: bool
    empty: str
    """Why there is no overview."""
    overview: OverviewView | None
    call: CallView | None
    """The call that is open."""
