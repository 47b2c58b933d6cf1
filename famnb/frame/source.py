"""Which ledger or exported files a frame is read from, and which of their calls."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypedDict, get_args

from famnb.endpoints import ENDPOINTS
from famnb.events import Status
from famnb.record import Ledger, rows
from famnb.record.parquet import Parquet

Moment: TypeAlias = datetime | date | timedelta | str
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
    for compare, moment in ((">=", since), ("<", until)):
        if moment is not None:
            conditions.append(f"started_us {compare} ?")
            values.append(rows.microseconds(_moment(moment)))
    _known("endpoint", endpoint, tuple(ENDPOINTS))
    _known("status", status, get_args(Status))
    chosen = {"model": model, "endpoint": endpoint, "experiment": experiment}
    chosen |= {"variant": variant, "tag": tag, "standing": status}
    for name, words in chosen.items():
        if words is not None:
            some = _listed(words)
            conditions.append(f"{name} IN ({','.join('?' * len(some)) or 'NULL'})")
            values += some
    return " AND ".join(conditions), values


def _listed(words: Words) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


def _known(name: str, words: Words | None, known: tuple[str, ...]) -> None:
    """Refuse a word that can never match, which is a slip rather than a filter."""
    for word in _listed(words or ()):
        if word not in known:
            raise ValueError(f"{name}: {word!r} is none of {', '.join(known)}")


def _moment(moment: Moment) -> datetime:
    match moment:
        case timedelta():
            return datetime.now(UTC) - moment
        case str():
            try:
                return _moment(datetime.fromisoformat(moment))
            except ValueError:
                raise ValueError(f"expected a date or time such as '2026-01-31T12:00', got {moment!r}") from None
        case datetime():
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        case date():
            return datetime.combine(moment, time(), UTC)
