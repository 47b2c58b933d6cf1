"""Which calls a dashboard shows."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import psutil

from famnb.record.filters import parse_moment

SESSION, TODAY, YESTERDAY, ALL = "this session", "today", "yesterday", "all calls"
RANGES: dict[str, timedelta | None] = {
    SESSION: None,
    "last 15 minutes": timedelta(minutes=15),
    "last hour": timedelta(hours=1),
    "last 24 hours": timedelta(days=1),
    "last 7 days": timedelta(days=7),
    TODAY: None,
    YESTERDAY: None,
    ALL: None,
}
"""Since when calls are shown; with a length where it moves with the clock."""


@dataclasses.dataclass
class DashboardFilters:
    """What is chosen of each filter; "" is any."""

    range: str = SESSION
    model: str = ""
    endpoint: str = ""
    by: str = "model"
    """What the calls are grouped by."""

    @property
    def is_moving(self) -> bool:
        """Whether the range of time ends now, and so moves with the clock."""
        return RANGES[self.range] is not None

    @property
    def since(self) -> datetime | None:
        """Since when calls are shown; None for all of them."""
        if (length := RANGES[self.range]) is not None:
            return datetime.now(UTC) - length
        match self.range:
            case "this session":
                return datetime.fromtimestamp(psutil.Process().create_time(), UTC)
            case "today" | "yesterday" as day:
                return parse_moment("since", day)
            case _:
                return None

    @property
    def until(self) -> datetime | None:
        """Before when calls are shown; None if there is no end."""
        return parse_moment("until", TODAY) if self.range == YESTERDAY else None
