"""Parquet files that ledgers were exported to, read through DuckDB as one ledger that nobody writes any more."""

from __future__ import annotations

import contextlib
import glob
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from famnb.errors import LedgerError
from famnb.record import estimate, fitting, rows, schema
from famnb.record.archive import PIECES, VERSION
from famnb.timing import Read

if TYPE_CHECKING:
    import pandas as pd

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
        yield from ((call_id, rows.restored(call_id, found[call_id])) for call_id in wanted if call_id in found)

    def fits(self, model: str) -> Mapping[str | None, estimate.Fit]:
        """A model's tokens per character, by the service that answered, fitted on its own replies."""
        with self.reading() as connection:
            return fitting.fitted(connection.execute(fitting.RATIOS, [model, fitting.REPLIES]).fetchall())

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
