"""Filters of calls, as frames and exports take them, and the SQL that they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, cast, get_args

from famnb.endpoints import ENDPOINTS
from famnb.errors import InvalidRequest
from famnb.events import Status
from famnb.record import serialize, sql

if TYPE_CHECKING:
    import numpy as np

Moment: TypeAlias = "datetime | date | timedelta | np.datetime64 | str"
"""A time: a timedelta counts back from now; a text is ISO 8601, UTC if it names no zone, or "today", "yesterday" (when
that day began, by the clock of this machine) or "last 7 days"."""
_LENGTHS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(1), "week": timedelta(7)}
_LAST = re.compile(rf"last (?:(\d{{1,6}}) )?({'|'.join(_LENGTHS)})s?")
OneOrMore: TypeAlias = str | Iterable[str]
"""A text, or several of which any will do."""


class Filters(TypedDict, total=False):
    """The filters of calls."""

    since: Moment | None
    until: Moment | None
    model: OneOrMore | None
    endpoint: OneOrMore | None
    profile: OneOrMore | None
    experiment: OneOrMore | None
    variant: OneOrMore | None
    tag: OneOrMore | None
    status: OneOrMore | None


_VALUES = {"endpoint": tuple(ENDPOINTS), "status": get_args(Status)}
"""Filters whose values are known: another can never match, which is a slip rather than a filter."""


def where(filters: Filters) -> tuple[str, list[Any]]:
    """Return the SQL condition for filters, and its values.

    Raises InvalidRequest for a value that cannot be one, TypeError for an unknown filter.
    """
    conditions, values = ["TRUE"], list[Any]()
    for name, value in filters.items():
        if name not in Filters.__annotations__:
            raise TypeError(f"{name!r} is not a filter of calls; there are {', '.join(Filters.__annotations__)}")
        if value is None:
            continue
        if name in ("since", "until"):
            conditions.append(f"started_us {'>=' if name == 'since' else '<'} ?")
            values.append(serialize.microseconds(parse_moment(name, cast("Moment", value))))
        else:
            is_one = isinstance(value, str) or not isinstance(value, Iterable)
            allowed = [value] if is_one else list(dict.fromkeys(cast("Iterable[str]", value)))
            for text in allowed:
                if not isinstance(text, str):
                    raise InvalidRequest(f"{name}: expected a text or several, got {text!r:.80}")
                if name in _VALUES and text not in _VALUES[name]:
                    raise InvalidRequest(f"{name}: {text!r} is not one of {', '.join(_VALUES[name])}")
            # A call whose process died is stored as running.
            conditions.append(f"{'standing' if name == 'status' else name} IN {sql.placeholders(allowed)}")
            values += allowed
    return " AND ".join(conditions), values


def parse_moment(name: str, moment: Moment) -> datetime:
    """Return a moment as a datetime with a time zone. Raises InvalidRequest if it is not a moment."""
    try:
        # NumPy's own times have an `item`, which is a datetime to the microsecond; nanoseconds would be an integer.
        value: Any = moment.astype("M8[us]").item() if hasattr(moment, "astype") else moment
        # The "not a time" of pandas is a datetime that equals nothing, itself included.
        match value if value == value else None:
            case timedelta():
                then: datetime = datetime.now(UTC) - value
                return then
            case "today" | "yesterday":
                midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
                # By the calendar: with a change of the clock between them a day has not 24 hours.
                return midnight if value == "today" else (midnight.replace(tzinfo=None) - timedelta(1)).astimezone()
            case str() if match := _LAST.fullmatch(value):
                return datetime.now(UTC) - int(match[1] or 1) * _LENGTHS[match[2]]
            case str():
                return _with_zone(datetime.fromisoformat(value))
            case datetime():
                return _with_zone(value)
            case date():
                return datetime.combine(value, time(), UTC)
    except (TypeError, ValueError, OverflowError):
        pass
    expected = "a date or time such as '2026-01-31T12:00', 'yesterday', 'last 7 days', or a timedelta back from now"
    raise InvalidRequest(f"{name}: expected {expected}; got {moment!r}")


def _with_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
