"""What a frame is read from, a ledger or exported files, and the SQL for filters of calls."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, get_args

import numpy as np
import pandas as pd

from famnb.endpoints import ENDPOINTS
from famnb.errors import InvalidRequest, LedgerError
from famnb.events import Status
from famnb.record import Ledger, serialize, sql
from famnb.record.ledger import HasLedger, ledger_of
from famnb.record.parquet import Parquet

Moment: TypeAlias = datetime | date | timedelta | np.datetime64 | str
"""A time: a timedelta counts back from now; a text is ISO 8601; what names no zone is UTC."""
OneOrMore: TypeAlias = str | Iterable[str]
"""A text, or several of which any will do."""


class Filters(TypedDict, total=False):
    """The filters of `calls` that other frames take too."""

    since: Moment | None
    until: Moment | None
    model: OneOrMore | None
    endpoint: OneOrMore | None
    profile: OneOrMore | None
    experiment: OneOrMore | None
    variant: OneOrMore | None
    tag: OneOrMore | None


def source_of(source: Ledger | str | os.PathLike[str] | HasLedger | None) -> Ledger | Parquet:
    """Return what calls are read from: a ledger, or the exported files that a path or a glob names."""
    match source:
        case str() | os.PathLike() if Path(source).expanduser().is_dir():
            raise LedgerError(f"{source} is a folder: name a ledger in it, or exported files as {source}/*.parquet")
        # A ledger may have brackets in its path, which are no glob if there is such a file.
        case str() | os.PathLike() if os.fspath(source).endswith(".parquet") or (
            glob.has_magic(os.fspath(source)) and not Path(source).expanduser().exists()
        ):
            return Parquet(source)
        case _:
            return ledger_of(source)


def where(
    *,
    since: Moment | None,
    until: Moment | None,
    model: OneOrMore | None,
    endpoint: OneOrMore | None,
    profile: OneOrMore | None,
    experiment: OneOrMore | None,
    variant: OneOrMore | None,
    tag: OneOrMore | None,
    status: OneOrMore | None,
) -> tuple[str, list[Any]]:
    """Return the SQL condition for these filters, and its values."""
    conditions, values = ["TRUE"], list[Any]()
    for name, comparison, moment in (("since", ">=", since), ("until", "<", until)):
        if moment is not None:
            conditions.append(f"started_us {comparison} ?")
            values.append(serialize.microseconds(_parse_moment(name, moment)))
    by_column = {"model": model, "endpoint": endpoint, "profile": profile, "experiment": experiment}
    by_column |= {"variant": variant, "tag": tag, "status": status}
    for name, texts in by_column.items():
        if texts is not None:
            allowed = _parse_texts(name, texts)
            conditions.append(f"{_COLUMNS.get(name, name)} IN {sql.placeholders(allowed)}")
            values += allowed
    return " AND ".join(conditions), values


_VALUES = {"endpoint": tuple(ENDPOINTS), "status": get_args(Status)}
"""Filters whose values are known: another can never match, which is a slip rather than a filter."""
_COLUMNS = {"status": "standing"}
"""Where a filter's column has another name: a call whose process died is stored as running."""


def _parse_texts(name: str, texts: OneOrMore) -> list[str]:
    """The texts of one filter. Raises ValueError if it holds anything else."""
    several = [texts] if isinstance(texts, str) or not isinstance(texts, Iterable) else list(dict.fromkeys(texts))
    for text in several:
        if not isinstance(text, str):
            raise InvalidRequest(f"{name}: expected a text or several, got {texts!r:.80}")
        if name in _VALUES and text not in _VALUES[name]:
            raise InvalidRequest(f"{name}: {text!r} is not one of {', '.join(_VALUES[name])}")
    return several


def _parse_moment(name: str, moment: Moment) -> datetime:
    """The moment as a datetime with a time zone. Raises InvalidRequest if it is not a moment."""
    try:
        # pandas knows NumPy's times as well; its "not a time" would compare with nothing.
        value: Any = pd.Timestamp(moment) if isinstance(moment, np.datetime64) else moment
        match None if value is pd.NaT else value:
            case timedelta():
                then: datetime = datetime.now(UTC) - value
                return then
            case str():
                return _with_zone(datetime.fromisoformat(value))
            case datetime():
                return _with_zone(value)
            case date():
                return datetime.combine(value, time(), UTC)
    except (ValueError, OverflowError):
        pass
    expected = "a date or time such as '2026-01-31T12:00', or a timedelta back from now"
    raise InvalidRequest(f"{name}: expected {expected}; got {moment!r}")


def _with_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
