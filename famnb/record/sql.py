"""Pieces of SQL that several queries need: lists of bound values, in parts that SQLite can take."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

# Enough that a query's own cost does not count, few enough that their reads fit in memory; and SQLite binds at most
# 32,766 values (999 before 3.32), so that a list of any length cannot be one query.
CHUNK = 500
"""Calls fetched at once."""


def placeholders(values: Collection[Any]) -> str:
    """Return the right side of an `IN` for these values, such as `(?,?,?)`; `(NULL)`, which nothing is in, for none."""
    return f"({','.join('?' * len(values)) or 'NULL'})"


def insert(table: str, columns: Iterable[str], *, otherwise: str) -> str:
    """Return an INSERT of a row into these columns; `otherwise`, IGNORE or REPLACE, says what to do if it is there.

    The names become SQL, so they have to be our own or checked.
    """
    names = list(columns)
    return f"INSERT OR {otherwise} INTO {table} ({', '.join(names)}) VALUES {placeholders(names)}"  # noqa: S608 - names


def iter_chunks(values: Iterable[str], size: int = CHUNK) -> Iterator[list[str]]:
    """Yield the values in lists of at most `size`, in their order."""
    remaining = list(values)
    for start in range(0, len(remaining), size):
        yield remaining[start : start + size]
