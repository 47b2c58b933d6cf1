"""Parquet files that ledgers were exported to, read through DuckDB as one ledger that nobody writes any more.

MERGED: A ledger as one Parquet file and back, lossless: a row a call, its columns as stored, its request, bytes and
scores.

The votes, which are between calls, stand in the file's own description.
"""

from __future__ import annotations

import contextlib
import glob
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from famnb.errors import LedgerError
from famnb.record import maintenance, schema, serialize, token_estimates
from famnb.timing import Read

if TYPE_CHECKING:
    import pandas as pd


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


def export(ledger: maintenance.File, path: Path) -> int:
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


def load(ledger: maintenance.File, path: Path) -> int:
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


VECTORS = 10
"""Vectors of DuckDB (2,048 rows each) that are Python objects at once."""
STANDING = "SELECT *, status AS standing FROM calls"
"""The calls with one more column, as a ledger has it: exported calls are over, so it is their status."""

_CALLS = """
    CREATE TEMP VIEW calls AS SELECT {columns} FROM read_parquet({files}, union_by_name = true,
        hive_partitioning = false, filename = 'exported_to') {once}"""
_ONCE = "QUALIFY row_number() OVER (PARTITION BY id ORDER BY exported_to DESC) = 1"
"""A call that stands in several files counts once, as the last file by name has it; filters do not pass this."""


class Parquet:
    """The calls in one or more Parquet files, read like those of a `Ledger`; needs the `scale` extra."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Find the files that `path`, a file or a glob such as "folder/*.parquet", names.

        LedgerError where none is found, DuckDB is not installed, or a file is not what `Ledger.export` wrote.
        """
        self.path = Path(path).expanduser()
        """As given."""
        self.files = tuple(sorted(glob.glob(str(self.path), recursive=True)))  # noqa: PTH207 - a Path has no root to glob from
        """The files, sorted by name."""
        if not self.files:
            raise LedgerError(
                f"no file matches {self.path}: Ledger.export or `famnb ledger export` writes such files, "
                "and a relative path counts from the current folder"
            )
        self._duckdb = _duckdb()

    def settle(self) -> None:
        """Do nothing: no exported call is unfinished."""

    @contextlib.contextmanager
    def reading(self) -> Iterator[Any]:
        """A DuckDB connection with a view `calls`: today's columns, NULL where a file does not have one."""
        config = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        with contextlib.closing(self._duckdb.connect(config=config)) as connection:
            try:
                connection.execute("SET enable_progress_bar = false")
                self._view(connection)
                yield connection
            except self._duckdb.Error as error:
                raise LedgerError(f"the Parquet files {self.path} cannot be read: {error}") from error

    def pieces(self, sql: str, values: Sequence[Any]) -> Iterator[pd.DataFrame]:
        """What a query finds, some thousand rows at a time."""
        with self.reading() as connection:
            cursor = connection.execute(sql, list(values))
            while len(piece := cursor.fetch_df_chunk(VECTORS)):
                yield piece

    def select(
        self, where: str = "TRUE", values: Sequence[Any] = (), *, limit: int | None = None
    ) -> list[dict[str, Any]]:
        """Rows of the calls, newest last, at most the `limit` newest; `where` is SQL over columns and `standing`."""
        newest = "" if limit is None else f"LIMIT {int(limit)}"
        sql = f"SELECT * EXCLUDE ({PIECES}) FROM ({STANDING}) WHERE {where} ORDER BY started_us DESC, id DESC {newest}"  # noqa: S608 - values are bound
        with self.reading() as connection:
            cursor = connection.execute(sql, list(values))
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()][::-1]

    def reads(self, call_ids: Iterable[str]) -> Iterator[tuple[str, tuple[Read, ...]]]:
        """What came from the socket for each of these calls, where anything did, in the order given."""
        wanted = list(call_ids)
        sql = f"SELECT id, {PIECES} FROM calls WHERE id IN (SELECT unnest(?::VARCHAR[])) AND len({PIECES}) > 0"  # noqa: S608 - own text
        with self.reading() as connection:
            found = dict(connection.execute(sql, [wanted]).fetchall())
        yield from ((call_id, serialize.restored(call_id, found[call_id])) for call_id in wanted if call_id in found)

    def fits(self, model: str) -> Mapping[str | None, token_estimates.Fit]:
        """A model's tokens per character, by the service that answered, fitted on its own replies."""
        with self.reading() as connection:
            return token_estimates.fit_by_service(
                connection.execute(token_estimates.RATIOS, [model, token_estimates.REPLIES]).fetchall()
            )

    def __repr__(self) -> str:
        return f"<Parquet {self.path}, {len(self.files)} files>"

    def _view(self, connection: Any) -> None:
        """Make the view `calls`; LedgerError for a file that no ledger was exported to, or by a newer famnb."""
        files = f"[{', '.join(map(_quoted, map(glob.escape, self.files)))}]"
        marks = f"SELECT file_name, decode(value) FROM parquet_kv_metadata({files}) WHERE decode(key) = ?"  # noqa: S608 - quoted
        versions = dict(connection.execute(marks, [VERSION.decode()]).fetchall())
        if strange := [file for file in self.files if file not in versions]:
            raise LedgerError(f"{strange[0]} holds no ledger; give files that `famnb ledger export` wrote")
        if newer := [file for file, mark in versions.items() if int(mark) > len(schema.MIGRATIONS)]:
            raise LedgerError(f"{newer[0]} was written by a newer famnb: update famnb")
        described = f"DESCRIBE SELECT * FROM read_parquet({files}, union_by_name = true, hive_partitioning = false)"  # noqa: S608 - quoted
        there = {row[0] for row in connection.execute(described).fetchall()}
        columns = [name if name in there else f"NULL::{kind} AS {name}" for name, kind in _columns().items()]
        twice = f"SELECT count(*) > count(DISTINCT id) FROM read_parquet({files})"  # noqa: S608 - quoted
        once = _ONCE if len(self.files) > 1 and connection.execute(twice).fetchone()[0] else ""
        connection.execute(_CALLS.format(columns=", ".join([*columns, PIECES]), files=files, once=once))


def _columns() -> dict[str, str]:
    """The columns of today's calls table, each with DuckDB's type for it."""
    kinds = {"TEXT": "VARCHAR", "INTEGER": "BIGINT", "REAL": "DOUBLE"}
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.migrate(connection)
        return {row[1]: kinds[row[2]] for row in connection.execute("PRAGMA table_info(calls)")}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _duckdb() -> Any:
    """The library DuckDB; a LedgerError that says what to do where it is not installed."""
    try:
        import duckdb
    except ImportError as error:
        raise LedgerError('calls are read from Parquet by DuckDB; run: pip install "famnb[scale]"') from error
    return duckdb
