"""The ranges of time whose calls a dashboard shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

SESSION, TODAY, ALL = "this session", "today", "all calls"
RANGES: dict[str, timedelta | None] = {
    SESSION: None,
    "last 15 minutes": timedelta(minutes=15),
    "last hour": timedelta(hours=1),
    "last 24 hours": timedelta(days=1),
    "last 7 days": timedelta(days=7),
    TODAY: None,
    ALL: None,
}
"""Since when calls are shown; with a length where it moves with the clock."""


def find_start(name: str, session_start: datetime) -> datetime | None:
    """Return since when calls of a range are shown; None for all of them."""
    length = RANGES[name]
    if length is not None:
        return datetime.now(UTC) - length
    midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return {SESSION: session_start, TODAY: midnight}.get(name)
