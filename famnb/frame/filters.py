"""Which ledger or exported files a frame is read from, and which of their calls."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypedDict, get_args

import numpy as np
import pandas as pd

from famnb.endpoints import ENDPOINTS
from famnb.errors import LedgerError
from famnb.events import Status
from famnb.record import Ledger, serialize
from famnb.record.parquet import Parquet

Moment: TypeAlias = datetime | date | timedelta | np.datetime64 | str
"""A time: a timedelta counts back from now; a text is ISO 8601; what names no zone is UTC."""
Words: TypeAlias = str | Iterable[str]


class Filters(TypedDict, total=False):
    """Which calls, in the words of `calls`."""

    since: Moment | None
    until: Moment | None
    model: Words | None
    endpoint: Words | None
    experiment: Words | None
    variant: Words | None
    tag: Words | None


class HasLedger(Protocol):
    """Anything with a ledger: a `famnb.Client`."""

    @property
    def ledger(self) -> Any:
        """The ledger, or None where nothing is recorded."""


def ledger_of(source: Ledger | str | os.PathLike[str] | HasLedger | None) -> Ledger:
    """The ledger meant: itself, by its path, a client's, or the default one."""
    match source:
        case Ledger():
            return source
        case None | str() | os.PathLike():
            return Ledger(source)
        case _ if isinstance(ledger := getattr(source, "ledger", None), Ledger):
            return ledger
        case _:
            raise TypeError(f"ledger: expected a Ledger, a path, or a client that records; got {source!r}")


def source_of(source: Ledger | str | os.PathLike[str] | HasLedger | None) -> Ledger | Parquet:
    """What calls are read from: the ledger meant, or the exported files that a path or a glob names."""
    match source:
        case str() | os.PathLike() if Path(source).expanduser().is_dir():
            raise LedgerError(f"{source} is a folder: name a ledger in it, or exported files as {source}/*.parquet")
        case str() | os.PathLike() if _exported(source):
            return Parquet(source)
        case _:
            return ledger_of(source)


def _exported(path: str | os.PathLike[str]) -> bool:
    """Whether a path names Parquet files rather than a ledger."""
    text = os.fspath(path)
    return text.endswith(".parquet") or (glob.has_magic(text) and not Path(text).expanduser().exists())


def where(
    *,
    since: Moment | None,
    until: Moment | None,
    model: Words | None,
    endpoint: Words | None,
    experiment: Words | None,
    variant: Words | None,
    tag: Words | None,
    status: Words | None,
) -> tuple[str, list[Any]]:
    """The filters as an SQL condition and its values."""
    conditions, values = ["TRUE"], list[Any]()
    for name, compare, moment in (("since", ">=", since), ("until", "<", until)):
        if moment is not None:
            conditions.append(f"started_us {compare} ?")
            values.append(serialize.microseconds(_moment(name, moment)))
    chosen = {"model": model, "endpoint": endpoint, "experiment": experiment}
    chosen |= {"variant": variant, "tag": tag, "status": status}
    for name, words in chosen.items():
        if words is not None:
            some = _listed(name, words)
            conditions.append(f"{_COLUMNS.get(name, name)} IN ({','.join('?' * len(some)) or 'NULL'})")
            values += some
    return " AND ".join(conditions), values


_KNOWN = {"endpoint": tuple(ENDPOINTS), "status": get_args(Status)}
"""Filters whose words are known: another can never match, which is a slip rather than a filter."""
_COLUMNS = {"status": "standing"}


def _listed(name: str, words: Words) -> list[str]:
    """The words of a filter; raises ValueError for what is none."""
    some = [words] if isinstance(words, str) or not isinstance(words, Iterable) else list(dict.fromkeys(words))
    for word in some:
        if not isinstance(word, str):
            raise ValueError(f"{name}: expected a text or several, got {words!r:.80}")
        if name in _KNOWN and word not in _KNOWN[name]:
            raise ValueError(f"{name}: {word!r} is none of {', '.join(_KNOWN[name])}")
    return some


def _moment(name: str, moment: Moment) -> datetime:
    """A time as a datetime with its zone; raises ValueError for what is none."""
    try:
        # pandas knows NumPy's times as well; its "not a time" would compare with nothing.
        read: Any = pd.Timestamp(moment) if isinstance(moment, np.datetime64) else moment
        match None if read is pd.NaT else read:
            case timedelta():
                then: datetime = datetime.now(UTC) - read
                return then
            case str():
                return _zoned(datetime.fromisoformat(read))
            case datetime():
                return _zoned(read)
            case date():
                return datetime.combine(read, time(), UTC)
    except (ValueError, OverflowError):
        pass
    expected = "a date or time such as '2026-01-31T12:00', or a timedelta back from now"
    raise ValueError(f"{name}: expected {expected}; got {moment!r}")


def _zoned(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
