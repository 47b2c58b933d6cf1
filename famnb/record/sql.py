"""Pieces of SQL that several queries need: lists of bound values, in parts that SQLite can take."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator
from typing import Any

# Enough that a query's own cost does not count, few enough that their reads fit in memory; and SQLite binds at most
# 32,766 values (999 before 3.32), so that a list of any length cannot be one query.
CHUNK = 500
"""Calls fetched at once."""


def placeholders(values: Collection[Any]) -> str:
    """Return the right side of an `IN` for these values, such as `(?,?,?)`; `(NULL)`, which nothing is in, for none."""
    return f"({','.join('?' * len(values)) or 'NULL'})"


# Cached, since the texts are of a few kinds, and each of thousands of records that wait for a full disk has one.
@functools.lru_cache(maxsize=100)
def insert(table: str, columns: tuple[str, ...], *, otherwise: str) -> str:
    """Return an INSERT of a row into these columns; `otherwise`, such as REPLACE, is what to do if it is there.

    The names become SQL, so they have to be our own or checked.
    """
    return f"INSERT OR {otherwise} INTO {table} ({', '.join(columns)}) VALUES {placeholders(columns)}"  # noqa: S608 - names


@functools.lru_cache(maxsize=100)
def upsert(table: str, key: str, columns: tuple[str, ...]) -> str:
    """Return an INSERT of a row, or an UPDATE of these columns, whose names have to be our own, if its key is there."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
    return f"{insert(table, columns, otherwise='ABORT')} ON CONFLICT ({key}) DO UPDATE SET {changes}"


@functools.lru_cache(maxsize=100)
def update(table: str, columns: tuple[str, ...], *, only_if: str) -> str:
    """Return an UPDATE of these columns, whose names have to be our own, of the rows for which a condition holds."""
    return f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in columns)} WHERE {only_if}"  # noqa: S608 - own names


def iter_chunks(values: Iterable[str]) -> Iterator[list[str]]:
    """Yield the values in lists of at most `CHUNK`, in their order."""
    remaining = list(values)
    for start in range(0, len(remaining), CHUNK):
        yield remaining[start : start + CHUNK]
