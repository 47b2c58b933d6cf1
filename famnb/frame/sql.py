"""The recorded calls as tables of SQL: a query over the documented columns, whose rows are a frame."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from famnb.errors import InvalidRequest
from famnb.frame.calls import COMPUTED, calls
from famnb.frame.columns import CALLS
from famnb.record import Ledger, schema
from famnb.record.ledger import STANDING, HasLedger, ledger_of

_TIME = "strftime('%Y-%m-%d %H:%M:%S', {0} / 1000000, 'unixepoch') || printf('.%06d', {0} % 1000000)"
_COMPUTED = tuple(column.name for column in CALLS if column.name in COMPUTED)
_EXPRESSIONS = {
    **{column.name: column.sql or column.name for column in CALLS},
    **{name: f"computed.{name}" for name in _COMPUTED},
    "status": STANDING,
    "started_at": _TIME.format("started_us"),
}
_AT = _TIME.format("at_us")
_VOTE_COLUMNS = ("experiment", "voter", "left_cell", "right_cell", "winner", "detail", "judge_call_id")
_SCORER = "substr(scorer, 1, instr(scorer || '#', '#') - 1)"
_VIEWS: Mapping[str, Mapping[str, str]] = {
    "calls": _EXPRESSIONS,
    "requests": {"call_id": "id", "body": "body"},
    "scores": {name: name for name in ("call_id", "value", "detail", "judge_call_id")} | {"scorer": _SCORER, "at": _AT},
    "votes": {name: name for name in _VOTE_COLUMNS} | {"at": _AT},
}
"""The tables that a query may name: the expressions of their columns, by name."""
_SOURCES = {
    "calls": "main.calls LEFT JOIN computed ON computed.call_id = id",
    "requests": "main.calls JOIN main.requests ON key = request_key",
    "scores": "main.scores",
    "votes": "main.votes",
}
_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB}


def sql(
    query: str,
    ledger: Ledger | str | os.PathLike[str] | HasLedger | None = None,
    *,
    params: Sequence[Any] | Mapping[str, Any] = (),
) -> pd.DataFrame:
    """Return the rows of a SELECT, in SQLite's SQL, as a frame; nothing can be written.

        famnb.sql("SELECT model, COUNT(*) AS n, AVG(ttft_s) AS ttft_s FROM calls WHERE status = ? GROUP BY model",
                  params=["completed"])

    The table `calls` has the columns of `famnb.calls`, with the same values: counts estimated where they are missing,
    costs by today's price book. Times are texts such as '2026-01-31 12:00:00.000000', UTC, and truth values 1 and 0.
    Beside it are `requests` (call_id, body as JSON), `scores` (call_id, scorer, value, detail, judge_call_id, at) and
    `votes` (experiment, voter, left_cell, right_cell, winner, detail, judge_call_id, at). `params` are the values of
    `?` or `:name`; `ledger` is as with `famnb.calls`.
    Raises InvalidRequest for a query that SQLite does not understand or that would write, naming the columns there
    are; LedgerError if the file cannot be read.
    """
    source = ledger_of(ledger)
    source.settle()
    with source.reading() as opened, _or_empty(opened) as connection:
        columns = ", ".join(_COMPUTED)
        connection.execute(f"CREATE TEMP TABLE computed (call_id TEXT PRIMARY KEY, {columns}) WITHOUT ROWID")
        for name, expressions in _VIEWS.items():
            columns = ", ".join(f"{expression} AS {column}" for column, expression in expressions.items())
            connection.execute(f"CREATE TEMP VIEW {name} AS SELECT {columns} FROM {_SOURCES[name]}")  # noqa: S608 - own names
        used = set[str]()

        def authorize(action: int, table: str | None, column: str | None, *_: str | None) -> int:
            if action == sqlite3.SQLITE_READ and table == "computed" and column:
                used.add(column)
            return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY

        try:
            connection.set_authorizer(authorize)
            # Only prepared, which tells the columns that it reads: counts and costs are computed if it does.
            connection.execute(f"EXPLAIN {query}", params)
            if used := used & {*_COMPUTED}:
                connection.set_authorizer(None)
                frame = calls(source, columns=["call_id", *used])
                columns, marks = ", ".join(frame.columns), ", ".join("?" * len(frame.columns))
                values = [column.astype(object).where(column.notna(), None) for _, column in frame.items()]
                insert = f"INSERT INTO temp.computed ({columns}) VALUES ({marks})"  # noqa: S608 - own names
                connection.executemany(insert, zip(*values, strict=True))
                connection.set_authorizer(authorize)
            cursor = connection.cursor()
            cursor.row_factory = None
            cursor.execute(query, params)
            names = [column[0] for column in cursor.description or ()]
            frame = pd.DataFrame(cursor.fetchall(), columns=names).convert_dtypes()
        except (sqlite3.Error, sqlite3.Warning) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
                raise
            raise InvalidRequest(f"sql: {_explain(str(error))}") from None
        finally:
            connection.set_authorizer(None)
            # The connection may be shared with other readings.
            for name in _VIEWS:
                connection.execute(f"DROP VIEW IF EXISTS temp.{name}")
            connection.execute("DROP TABLE IF EXISTS temp.computed")
    if "started_at" in names and names.count("started_at") == 1:
        # Another expression may have been given the name.
        with contextlib.suppress(ValueError, TypeError):
            frame["started_at"] = pd.to_datetime(frame["started_at"], utc=True, format="ISO8601").dt.as_unit("us")
    return frame


@contextlib.contextmanager
def _or_empty(connection: sqlite3.Connection | None) -> Iterator[sqlite3.Connection]:
    """Yield the connection, or one to tables without rows if there is no ledger yet."""
    if connection is not None:
        yield connection
        return
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        schema.migrate(empty)
        empty.create_function("standing", 3, lambda *_: None)
        yield empty


def _explain(error: str) -> str:
    """Return SQLite's error for a query, with the tables and columns that exist."""
    if match := re.match(r"no such (column|table): (\S+)", error):
        columns = {column for view in _VIEWS.values() for column in view} if match[1] == "column" else ()
        similar = difflib.get_close_matches(match[2].rpartition(".")[2], columns, 3)
        hint = f" (did you mean {' or '.join(similar)}?)" if similar else ""
        there_is = "; ".join(f"{view} has {', '.join(columns)}" for view, columns in _VIEWS.items())
        return f"there is no {match[1]} {match[2]}{hint}; {there_is}"
    if re.search("not authorized|cannot modify|one statement|readonly", error):
        return "expected one SELECT, which only reads"
    return error
