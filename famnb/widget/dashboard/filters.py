"""Which calls a dashboard shows."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import psutil

from famnb.record.filters import parse_moment
from famnb.widget.tables import Order

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
