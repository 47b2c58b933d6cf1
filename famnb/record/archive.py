"""A ledger as one Parquet file and back, lossless: a row a call, its columns as stored, its request, bytes and scores.

The votes, which are between calls, stand in the file's own description.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from famnb.errors import LedgerError
from famnb.record import schema, upkeep

CHUNK = 1000
"""Calls held in memory at once."""
VERSION = b"famnb_ledger_version"
VOTES = b"famnb_votes"
BODY, PIECES, SCORES = "request_body", "pieces", "scores"
"""What a row has besides the columns of the calls table; files of version 3 and before have no scores."""


def _pyarrow() -> Any:
    """The library pyarrow with its Parquet part; a LedgerError that says what to do where it is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise LedgerError('Parquet needs pyarrow; run: pip install "famnb[scale]"') from error
    return pa


def export(ledger: upkeep.File, path: Path) -> int:
    """Write all calls that are over to a Parquet file; how many."""
    pa = _pyarrow()
    ledger.settle()
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    written = 0
    try:
        with ledger.reading() as connection:
            if connection is None:
                raise LedgerError(f"there is no ledger {ledger.path} to export yet; famnb check makes one")
            connection.execute("BEGIN")  # one moment of the ledger, whatever others write meanwhile
            form = _form(pa, connection)
            with pa.parquet.ParquetWriter(partial, form, compression="zstd") as writer:
                for calls in _chunks(connection):
                    writer.write_table(pa.Table.from_pylist(calls, schema=form))
                    written += len(calls)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return written


def load(ledger: upkeep.File, path: Path) -> int:
    """Add the calls of a Parquet file that are not yet there; how many they were."""
    pa = _pyarrow()
    try:
        file = pa.parquet.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise LedgerError(f"{path} is no Parquet file: {error}") from error
    with file:
        marks = file.schema_arrow.metadata or {}
        if VERSION not in marks:
            raise LedgerError(f"{path} holds no ledger; give a file that famnb ledger export wrote")
        if int(marks[VERSION]) > len(schema.MIGRATIONS):
            raise LedgerError(f"{path} was written by a newer famnb: update famnb")
        try:
            with contextlib.closing(schema.open_to_write(ledger.path)) as connection:
                _known(connection, file.schema_arrow.names, path)
                _add_votes(connection, marks.get(VOTES, b"[]"))
                return sum(
                    _add(connection, batch.to_pylist()) for batch in file.iter_batches(CHUNK) if batch.num_rows > 0
                )
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {ledger.path} cannot be changed: {error}") from error


def _form(pa: Any, connection: sqlite3.Connection) -> Any:
    """The columns of the file, named and typed as those of the calls table."""
    kinds = {"TEXT": pa.string(), "INTEGER": pa.int64(), "REAL": pa.float64()}
    fields, scored = (
        [(column["name"], kinds[column["type"]]) for column in connection.execute(f"PRAGMA table_info({table})")]
        for table in ("calls", "scores")
    )
    extra = [(BODY, pa.string()), (PIECES, pa.list_(pa.binary())), (SCORES, pa.list_(pa.struct(scored)))]
    votes = [dict(row) for row in connection.execute("SELECT * FROM votes")]
    marks = {VERSION: str(schema.version(connection)).encode(), VOTES: msgspec.json.encode(votes)}
    return pa.schema([*fields, *extra], metadata=marks)


def _chunks(connection: sqlite3.Connection) -> Iterator[list[dict[str, Any]]]:
    """The calls that are over, oldest first, with request, bytes and scores."""
    sql = f"""
        SELECT calls.*, requests.body AS {BODY} FROM calls LEFT JOIN requests ON requests.key = calls.request_key
        WHERE status <> 'running' ORDER BY started_us, id"""  # noqa: S608 - own text
    cursor = connection.execute(sql)
    while found := cursor.fetchmany(CHUNK):
        calls = {row["id"]: {**dict(row), PIECES: [], SCORES: []} for row in found}
        pieces = f"SELECT call_id, reads FROM pieces WHERE call_id IN ({','.join('?' * len(calls))}) ORDER BY seq"  # noqa: S608 - marks
        for call_id, reads in connection.execute(pieces, list(calls)):
            calls[call_id][PIECES].append(reads)
        scores = f"SELECT * FROM scores WHERE call_id IN ({','.join('?' * len(calls))}) ORDER BY scorer"  # noqa: S608 - marks
        for score in connection.execute(scores, list(calls)):
            calls[score["call_id"]][SCORES].append(dict(score))
        yield list(calls.values())


def _known(connection: sqlite3.Connection, names: list[str], path: Path) -> None:
    """Refuse a file whose columns are not those of the tables, for their names become SQL."""
    known = {row[1] for row in connection.execute("PRAGMA table_info(calls)")}
    extra = {BODY, PIECES}
    strange = ({"id", "request_key"} | extra) - {*names} | {*names} - known - extra - {SCORES}
    if strange:
        raise LedgerError(f"{path} holds no ledger: its columns differ in {', '.join(sorted(strange))}")


def _add(connection: sqlite3.Connection, calls: list[dict[str, Any]]) -> int:
    """Add those of some calls that are not yet there, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    new = sum(_inserted(connection, call) for call in calls)
    connection.execute("COMMIT")
    return new


def _inserted(connection: sqlite3.Connection, call: dict[str, Any]) -> int:
    body, pieces, scores = call.pop(BODY), call.pop(PIECES), call.pop(SCORES, ())
    sql = f"INSERT OR IGNORE INTO calls ({', '.join(call)}) VALUES ({', '.join('?' * len(call))})"  # noqa: S608 - names are checked
    if not connection.execute(sql, tuple(call.values())).rowcount:
        return 0
    if body is not None:
        connection.execute("INSERT OR IGNORE INTO requests VALUES (?, ?)", (call["request_key"], body))
    connection.executemany(
        "INSERT INTO pieces VALUES (?, ?, ?)", [(call["id"], seq, reads) for seq, reads in enumerate(pieces)]
    )
    for score in scores:
        _insert(connection, "scores", score)
    return 1


def _add_votes(connection: sqlite3.Connection, encoded: bytes) -> None:
    """Add those votes that are not yet there."""
    for vote in msgspec.json.decode(encoded, type=list[dict[str, Any]]):
        _insert(connection, "votes", vote)


def _insert(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> None:
    """Add a row of these two tables, unless it is there; a column that they do not have is left out."""
    known = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    names = [name for name in known if name in values]
    sql = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - own names
    connection.execute(sql, [values[name] for name in names])
