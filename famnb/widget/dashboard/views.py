"""Which calls a dashboard shows, and what its page shows of them."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Literal

import psutil

from famnb.record.filters import parse_moment
from famnb.widget.inspector import CallView
from famnb.widget.runtime.view import View
from famnb.widget.tables import FigureView, Order, RowsView

SESSION, YESTERDAY, ALL = "this session", "yesterday", "all calls"
RANGES = (SESSION, "last 15 minutes", "last hour", "last 24 hours", "last 7 days", "today", YESTERDAY, ALL)
"""Since when calls are shown."""


@dataclasses.dataclass
class DashboardFilters:
    """What is chosen of each filter; "" is any."""

    range: str = SESSION
    model: str = ""
    endpoint: str = ""
    by: str = "model"
    """What the calls are grouped by."""
    order: Order = dataclasses.field(default_factory=Order)
    """How the list is sorted; the latest first unless a column is chosen."""

    @property
    def is_moving(self) -> bool:
        """Whether the range of time ends now, and so moves with the clock."""
        return self.range.startswith("last ")

    @property
    def since(self) -> datetime | None:
        """Since when calls are shown; None for all of them."""
        if self.range == SESSION:
            return datetime.fromtimestamp(psutil.Process().create_time(), UTC)
        return None if self.range == ALL else parse_moment("since", self.range)

    @property
    def until(self) -> datetime | None:
        """Before when calls are shown; None if there is no end."""
        return parse_moment("until", "today") if self.range == YESTERDAY else None


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
