"""Ledgers as Parquet files: export and import of one without loss, and reading of one or more as if they were one.

A row is a call: its columns as stored, its request, pieces and scores. Votes, which are between calls, stand in the
file's metadata. Writing needs pyarrow, reading DuckDB.
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
from famnb.record import schema, serialize, sql, token_estimates
from famnb.timing import Read

if TYPE_CHECKING:
    import pandas as pd


# Larger groups of rows are smaller and quicker to read; but a call's bytes come with it, so memory is a bound as well.
CHUNK = 20_000
"""Calls held in memory at once, also the rows of a group in the file; fewer if they pass CHUNK_BYTES."""
CHUNK_BYTES = 64_000_000
"""Bytes of requests and streams held in memory at once."""
VERSION = b"famnb_calls_version"
VOTES = b"famnb_votes"
"""Names in the file's metadata."""
BODY, PIECES, SCORES = "request_body", "pieces", "scores"
"""Columns besides those of the calls table."""


def _import_pyarrow() -> Any:
    """Import pyarrow with its Parquet part. Raises LedgerError, saying what to install."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise LedgerError('Parquet needs pyarrow; run: pip install "famnb[scale]"') from error
    return pa


def export(connection: sqlite3.Connection, path: Path, condition: str = "TRUE", values: Sequence[Any] = ()) -> int:
    """Write the calls that are over, and for which an SQL condition holds, to a Parquet file; return how many."""
    pa = _import_pyarrow()
    # Beside the file and moved over it at the end. Not `atomic_write`, since all of it never is in memory.
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    written = 0
    try:
        connection.execute("BEGIN")  # one moment of the ledger, whatever others write meanwhile
        file_schema = _file_schema(pa, connection)
        with pa.parquet.ParquetWriter(partial, file_schema, compression="zstd") as writer:
            for table in _read_tables(pa, connection, file_schema, condition, values):
                writer.write_table(table)
                written += table.num_rows
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return written


def load(ledger_path: Path, path: Path) -> int:
    """Add the calls of a Parquet file that a ledger does not have yet; return how many they were."""
    pa = _import_pyarrow()
    try:
        file = pa.parquet.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise LedgerError(f"{path} is not a Parquet file: {error}") from error
    with file:
        # The votes and columns below become rows and SQL, so the file has to prove first whose it is.
        metadata = file.schema_arrow.metadata or {}
        if VERSION not in metadata:
            raise LedgerError(f"{path} holds no ledger; give a file that famnb ledger export wrote")
        if int(metadata[VERSION]) > len(schema.MIGRATIONS):
            raise LedgerError(f"{path} was written by a newer famnb: update famnb")
        try:
            with contextlib.closing(schema.open_to_write(ledger_path)) as connection:
                names, columns = {*file.schema_arrow.names}, {*schema.CALL_COLUMNS}
                extra = {BODY, PIECES, SCORES}
                if differing := ({"id", "request_key"} | extra) - names | names - columns - extra:
                    reason = f"its columns differ in {', '.join(sorted(differing))}"
                    raise LedgerError(f"{path} holds no ledger: {reason}")
                for vote in msgspec.json.decode(metadata.get(VOTES, b"[]"), type=list[dict[str, Any]]):
                    _insert_rating(connection, "votes", vote)
                return sum(
                    _add_calls(connection, batch.to_pylist())
                    for batch in file.iter_batches(sql.CHUNK)
                    if batch.num_rows > 0
                )
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {ledger_path} cannot be changed: {error}") from error


def _file_schema(pa: Any, connection: sqlite3.Connection) -> Any:
    """The columns of the file, named and typed as those of the calls and scores."""
    arrow_types = {"TEXT": pa.string(), "INTEGER": pa.int64(), "REAL": pa.float64()}
    fields = [(name, arrow_types[sql_type.partition(" ")[0]]) for name, sql_type in schema.CALL_COLUMNS.items()]
    score_fields = [(name, arrow_types[sql_type]) for name, sql_type in _columns(connection, "scores").items()]
    extra = [(BODY, pa.string()), (PIECES, pa.list_(pa.binary())), (SCORES, pa.list_(pa.struct(score_fields)))]
    cursor = connection.execute("SELECT * FROM votes")
    names = [column[0] for column in cursor.description]
    votes = [dict(zip(names, row, strict=True)) for row in cursor]
    metadata = {VERSION: str(schema.version(connection)).encode(), VOTES: msgspec.json.encode(votes)}
    return pa.schema([*fields, *extra], metadata=metadata)


def _read_tables(
    pa: Any, connection: sqlite3.Connection, file_schema: Any, condition: str, values: Sequence[Any]
) -> Iterator[Any]:
    """Yield Arrow tables of the calls that are over, oldest first, with request, bytes and scores."""
    reader = connection.cursor()
    reader.row_factory = None  # plain tuples, which cost less than a `sqlite3.Row`
    cursor = connection.cursor()
    cursor.row_factory = None
    query = f"""
        SELECT {", ".join(schema.CALL_COLUMNS)}, requests.body FROM (SELECT *, status AS standing FROM calls)
        LEFT JOIN requests ON requests.key = request_key
        WHERE status <> 'running' AND {condition} ORDER BY started_us, id"""  # noqa: S608 - values are bound
    cursor.execute(query, values)
    while True:
        rows, pieces, scores = list[Any](), dict[str, list[bytes]](), dict[str, list[dict[str, Any]]]()
        size = 0
        while len(rows) < CHUNK and size < CHUNK_BYTES and (batch := cursor.fetchmany(sql.CHUNK)):
            ids = [row[0] for row in batch]
            pieces |= {call_id: [] for call_id in ids}
            scores |= {call_id: [] for call_id in ids}
            query = f"SELECT call_id, reads FROM pieces WHERE call_id IN {sql.placeholders(ids)} ORDER BY call_id, seq"  # noqa: S608 - placeholders
            for call_id, reads in reader.execute(query, ids):
                pieces[call_id].append(reads)
                size += len(reads)
            query = f"SELECT * FROM scores WHERE call_id IN {sql.placeholders(ids)} ORDER BY call_id, scorer"  # noqa: S608 - placeholders
            for score in connection.execute(query, ids):
                scores[score["call_id"]].append(dict(score))
            size += sum(len(row[-1] or "") for row in batch)
            rows += batch
        if not rows:
            return
        columns = [*zip(*rows, strict=True), pieces.values(), scores.values()]
        arrays = [pa.array(values, field.type) for field, values in zip(file_schema, columns, strict=True)]
        yield pa.table(arrays, schema=file_schema)


def _add_calls(connection: sqlite3.Connection, calls: list[dict[str, Any]]) -> int:
    """Add those of these calls that are not yet there with all that belongs to them; return how many they were."""
    connection.execute("BEGIN IMMEDIATE")
    query = f"SELECT id FROM calls WHERE id IN {sql.placeholders(calls)}"  # noqa: S608 - placeholders
    present = {call_id for (call_id,) in connection.execute(query, [call["id"] for call in calls])}
    new_calls = {call["id"]: call for call in calls if call["id"] not in present}
    for call_id, call in new_calls.items():
        body, pieces, scores = call.pop(BODY), call.pop(PIECES), call.pop(SCORES)
        connection.execute(sql.insert("calls", tuple(call), otherwise="IGNORE"), tuple(call.values()))
        if body is not None:
            connection.execute("INSERT OR IGNORE INTO requests VALUES (?, ?)", (call["request_key"], body))
        connection.executemany(
            "INSERT INTO pieces VALUES (?, ?, ?)", [(call_id, seq, reads) for seq, reads in enumerate(pieces)]
        )
        for score in scores:
            _insert_rating(connection, "scores", score)
    connection.execute("COMMIT")
    return len(new_calls)


def _insert_rating(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> None:
    """Add a score or a vote, unless it is there.

    A column that the table does not have is left out: nothing checks these names, and they become SQL.
    """
    names = [name for name in _columns(connection, table) if name in values]
    connection.execute(sql.insert(table, tuple(names), otherwise="IGNORE"), [values[name] for name in names])


def _columns(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    """The columns of a table with their SQL types."""
    return {row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({table})")}


VECTORS = 5
"""Vectors of DuckDB, of 2,048 rows each, that are fetched at once."""
CALLS_WITH_STANDING = """
    SELECT *, status AS standing, row_number() OVER (ORDER BY started_us, id) AS place FROM calls"""
"""The calls with the two columns that a ledger's have: exported calls are over, so `standing` is their status."""

_CALLS = f"""
    CREATE TEMP VIEW calls AS SELECT * EXCLUDE ({BODY}, {SCORES}) FROM read_parquet(
        {{files}}, union_by_name = true, hive_partitioning = false, filename = 'exported_to') {{once}}"""  # noqa: S608 - own names
_ONCE = "QUALIFY row_number() OVER (PARTITION BY id ORDER BY exported_to DESC) = 1"
"""A call in several files counts once, as the last file by name has it. Filters are applied after it, so each time the
same file decides; but they cannot skip parts of files then, which is slow, so it is added only if there are any."""


class Parquet:
    """The calls in one or more Parquet files, read as those of a `Ledger` are. Needs the `scale` extra."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Find the files that `path`, a file or a glob such as "folder/*.parquet", names.

        LedgerError where none is found, DuckDB is not installed, or a file is not what `Ledger.export` wrote.
        """
        self.path = Path(path).expanduser()
        """The path or glob, as given."""
        self.files = tuple(sorted(glob.glob(str(self.path), recursive=True)))  # noqa: PTH207 - a Path has no root to glob from
        """The files, sorted by name."""
        if not self.files:
            raise LedgerError(
                f"no file matches {self.path}: Ledger.export or `famnb ledger export` writes such files, "
                "and a relative path counts from the current folder"
            )
        self._duckdb = _import_duckdb()

    def settle(self) -> None:
        """Do nothing: no exported call is unfinished."""

    @contextlib.contextmanager
    def reading(self) -> Iterator[Any]:
        """Open a DuckDB connection with a view `calls`. LedgerError if the files cannot be read."""
        # DuckDB would else fetch extensions from the network when a query could use one.
        config = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        with contextlib.closing(self._duckdb.connect(config=config)) as connection:
            try:
                connection.execute("SET enable_progress_bar = false")
                self._create_view(connection)
                yield connection
            except self._duckdb.Error as error:
                raise LedgerError(f"the Parquet files {self.path} cannot be read: {error}") from error

    def select(
        self, where: str = "TRUE", values: Sequence[Any] = (), *, limit: int | None = None
    ) -> list[dict[str, Any]]:
        """Return calls, newest last, at most the `limit` newest; `where` is SQL over the columns and `standing`."""
        newest = "" if limit is None else f"LIMIT {int(limit)}"
        order = f"ORDER BY started_us DESC, id DESC {newest}"
        query = f"SELECT * EXCLUDE ({PIECES}) FROM ({CALLS_WITH_STANDING}) WHERE {where} {order}"  # noqa: S608 - values are bound
        with self.reading() as connection:
            cursor = connection.execute(query, list(values))
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()][::-1]

    def reads(self, call_ids: Iterable[str]) -> Iterator[tuple[str, tuple[Read, ...]]]:
        """Yield what came from the socket for each of these calls, if anything did, in the order given."""
        ids = list(call_ids)
        query = f"SELECT id, {PIECES} FROM calls WHERE id IN (SELECT unnest(?::VARCHAR[])) AND len({PIECES}) > 0"  # noqa: S608 - own text
        with self.reading() as connection:
            pieces = dict(connection.execute(query, [ids]).fetchall())
        yield from ((call_id, serialize.read_pieces(call_id, pieces[call_id])) for call_id in ids if call_id in pieces)

    def fits(self, model: str) -> Mapping[str | None, token_estimates.TokenFit]:
        """Return a model's tokens per character, by the service that answered, fitted on its own replies."""
        with self.reading() as connection:
            return token_estimates.fit_by_service(
                connection.execute(token_estimates.RATIOS, [model, token_estimates.REPLIES]).fetchall()
            )

    def __repr__(self) -> str:
        return f"<Parquet {self.path}, {len(self.files)} files>"

    def _create_view(self, connection: Any) -> None:
        """Create the view `calls`. Raises LedgerError for a file not of `Ledger.export`, or of a newer famnb."""
        names = [glob.escape(file).replace("'", "''") for file in self.files]
        files = "[" + ", ".join(f"'{name}'" for name in names) + "]"
        metadata = f"SELECT file_name, decode(value) FROM parquet_kv_metadata({files}) WHERE decode(key) = ?"  # noqa: S608 - quoted
        versions = dict(connection.execute(metadata, [VERSION.decode()]).fetchall())
        if other_files := [file for file in self.files if file not in versions]:
            raise LedgerError(f"{other_files[0]} holds no ledger; give files that `famnb ledger export` wrote")
        if newer := [file for file, number in versions.items() if int(number) > len(schema.MIGRATIONS)]:
            raise LedgerError(f"{newer[0]} was written by a newer famnb: update famnb")
        has_doubles = f"SELECT count(*) > count(DISTINCT id) FROM read_parquet({files})"  # noqa: S608 - quoted
        once = _ONCE if len(self.files) > 1 and connection.execute(has_doubles).fetchone()[0] else ""
        connection.execute(_CALLS.format(files=files, once=once))


def fetch_chunks(connection: Any, query: str, values: Sequence[Any]) -> Iterator[pd.DataFrame]:
    """Yield the rows of a query of DuckDB's, some thousand at a time."""
    cursor = connection.execute(query, list(values))
    while len(chunk := cursor.fetch_df_chunk(VECTORS)):
        yield chunk


def _import_duckdb() -> Any:
    """Import DuckDB. Raises LedgerError, saying what to install."""
    try:
        import duckdb
    except ImportError as error:
        raise LedgerError('calls are read from Parquet by DuckDB; run: pip install "famnb[scale]"') from error
    return duckdb
