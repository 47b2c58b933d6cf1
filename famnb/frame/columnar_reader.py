"""Reads calls from a ledger or from exported files into NumPy columns.

Rows are read in chunks, so that only one chunk's cells are Python objects at once: a million calls of sixty columns
would take gigabytes of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import os
import sqlite3
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from famnb.errors import LedgerError
from famnb.frame.columns import Column
from famnb.record import Ledger, ledger, parquet
from famnb.record.ledger import HasLedger, ledger_of
from famnb.record.parquet import Parquet

# The objects of larger chunks do not fit in the processor's cache, and smaller ones make more pieces to join.
CHUNK = 2000
"""Rows that are Python objects at once."""
# NumPy's integers have no missing value; no count or time is the least of them.
ABSENT = -(2**63)
"""Stands for a missing integer while columns are read."""

CellKind: TypeAlias = Literal["real", "integer", "word", "text"]
Cells: TypeAlias = npt.NDArray[Any]
"""Some cells of one column, as the database has them."""

_KIND_OF_DTYPE: Mapping[str, CellKind] = {
    "Float64": "real",
    "Int64": "integer",
    "boolean": "word",
    "datetime64[us, UTC]": "integer",
    "category": "word",
    "string": "text",
}
_STORAGE = {"real": "f8", "integer": "i8", "word": "O", "text": "O"}
_REPEATED_TEXTS = frozenset({"url"})
"""Texts of which a ledger has few: read as words."""


@dataclasses.dataclass(slots=True)
class CodedWords:
    """A column of words, or of truth values, as integers: -1 where missing, else an index into `words`."""

    codes: npt.NDArray[np.int32]
    words: list[Any]

    def code_of(self, word: str) -> int:
        """Return the code of a word, which is added if it is new."""
        if word not in self.words:
            self.words.append(word)
        return self.words.index(word)

    def take(self, positions: npt.NDArray[Any]) -> CodedWords:
        """Return the elements at these positions, with the words that occur there."""
        codes = self.codes[positions]
        used = np.flatnonzero(np.bincount(codes + 1, minlength=len(self.words) + 1)[1:])
        # The -1 at the end is where the code -1 of a missing word points.
        new_codes = np.full(len(self.words) + 1, -1, dtype=np.int32)
        new_codes[used] = np.arange(len(used))
        return CodedWords(new_codes[codes], [self.words[code] for code in used])

    def isin(self, words: Container[str]) -> npt.NDArray[np.bool_]:
        """Return which elements are one of some words."""
        codes = [code for code, word in enumerate(self.words) if word in words]
        return np.isin(self.codes, codes)

    def categorical(self, categories: Sequence[str] | None) -> pd.Categorical:
        """Return the column for pandas; without `categories`, those that occur, sorted."""
        names = list(categories) if categories is not None else sorted(self.words)
        index = {word: number for number, word in enumerate(names)}
        # The -1 at the end is where the code -1 of a missing word points.
        new_codes = np.array([*(index.get(word, -1) for word in self.words), -1])
        return pd.Categorical.from_codes(new_codes[self.codes], categories=pd.Index(names, dtype=object))

    def texts(self) -> pd.api.extensions.ExtensionArray:
        """Return the column for pandas as texts."""
        return pd.array([*self.words, None], dtype="string").take(self.codes)

    def truth_values(self) -> npt.NDArray[np.bool_]:
        """Return which elements are true, of a column of truth values."""
        return np.isin(self.codes, [code for code, word in enumerate(self.words) if word])


@dataclasses.dataclass(frozen=True, slots=True)
class SelectedColumn:
    """A column to read: the SQL expression that gives it, by which it is also named, and the kind of its cells."""

    sql: str
    kind: CellKind

    @classmethod
    def of(cls, column: Column) -> SelectedColumn:
        """Return what a frame's column is read from."""
        kind = "word" if column.name in _REPEATED_TEXTS else _KIND_OF_DTYPE[column.dtype]
        return cls(column.sql or column.name, kind)

    @property
    def sqlite(self) -> str:
        """The expression for SQLite."""
        return f"IFNULL({self.sql}, {ABSENT})" if self.kind == "integer" else self.sql

    @property
    def duckdb(self) -> str:
        """The expression for DuckDB, which needs casts: it tells integers and booleans from numbers."""
        match self.kind:
            case "integer":
                return f"IFNULL(CAST({self.sql} AS BIGINT), {ABSENT})"
            case "real":
                return f"CAST({self.sql} AS DOUBLE)"
            case _:
                return self.sql


ColumnArrays: TypeAlias = dict[str, Any]
"""Whole columns by their SQL: float64 with NaN, int64 with ABSENT, `CodedWords`, or a pandas array of strings."""


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


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnReader:
    """Reads columns of the calls that an SQL condition selects, oldest first, at most the `limit` newest."""

    connection: Any
    """SQLite's for a ledger, DuckDB's for exported files; None for a ledger that is not there yet."""
    condition: str
    values: Sequence[Any]
    limit: int | None

    def read(self, fields: Iterable[SelectedColumn], *, only: str = "TRUE") -> ColumnArrays:
        """Return these columns; `only` is an SQL condition that a call has to meet besides."""
        distinct = {field.sql: field for field in fields}
        if self.connection is None:
            return {name: _GrowingColumn(field.kind).take() for name, field in distinct.items()}
        if isinstance(self.connection, sqlite3.Connection):
            return self._read_ledger(distinct, only)
        return self._read_parquet(distinct, only)

    def _query(self, columns: str, calls: str, only: str) -> tuple[str, list[Any]]:
        query, values = f"SELECT {columns} FROM ({calls}) WHERE {self.condition} AND {only}", list(self.values)  # noqa: S608 - values are bound
        if self.limit is not None:
            newest = f"SELECT id FROM ({calls}) WHERE {self.condition} ORDER BY started_us DESC, id DESC LIMIT ?"  # noqa: S608 - values are bound
            query, values = f"{query} AND id IN ({newest})", [*values, *self.values, self.limit]
        return query, values

    def _read_ledger(self, fields: Mapping[str, SelectedColumn], only: str) -> ColumnArrays:
        fields = {"started_us": SelectedColumn("started_us", "integer"), **fields}
        query, values = self._query(
            ", ".join(field.sqlite for field in fields.values()), ledger.CALLS_WITH_STANDING, only
        )
        columns = {name: _GrowingColumn(field.kind) for name, field in fields.items()}
        cursor = self.connection.cursor()
        cursor.row_factory = None  # plain tuples: `sqlite3.Row` costs time
        cursor.execute(query, values)
        while rows := cursor.fetchmany(CHUNK):
            for column, cells in zip(columns.values(), zip(*rows, strict=True), strict=True):
                column.append(cells)
        arrays: ColumnArrays = {name: column.take() for name, column in columns.items()}
        # Sorted here: in SQLite's sorter each row would pass with all its columns. Calls of one microsecond stay as
        # they were written.
        if (np.diff(arrays["started_us"]) < 0).any():
            order = np.argsort(arrays["started_us"], kind="stable")
            arrays = {name: column.take(order) for name, column in arrays.items()}
        return arrays

    def _read_parquet(self, fields: Mapping[str, SelectedColumn], only: str) -> ColumnArrays:
        expressions = ", ".join(f"{field.duckdb} AS c{number}" for number, field in enumerate(fields.values()))
        query, values = self._query(expressions, parquet.CALLS_WITH_STANDING, only)
        columns = {name: _GrowingColumn(field.kind) for name, field in fields.items()}
        # The id decides between calls of one moment: DuckDB's threads would else give another order each time.
        for chunk in parquet.fetch_chunks(self.connection, f"{query} ORDER BY started_us, id", values):
            for number, column in enumerate(columns.values()):
                column.append(chunk[f"c{number}"].to_numpy(_STORAGE[column.kind]))
        return {name: column.take() for name, column in columns.items()}


@contextlib.contextmanager
def open_reader(
    source: Ledger | Parquet, condition: str = "TRUE", values: Sequence[Any] = (), limit: int | None = None
) -> Iterator[ColumnReader]:
    """Yield a reader for which the calls stay as they are, whatever others write meanwhile."""
    source.settle()
    with source.reading() as connection:
        if connection is not None:
            connection.execute("BEGIN")
        try:
            yield ColumnReader(connection, condition, values, limit)
        finally:
            if connection is not None:
                # After a fault of the file there may be no transaction left.
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")


class _GrowingColumn:
    """A column that is filled chunk by chunk; of words only their codes are kept."""

    def __init__(self, kind: CellKind) -> None:
        self.kind = kind
        self._codes: dict[Any, int] = {}
        self._pieces: list[Any] = []

    def append(self, cells: Cells | Sequence[Any]) -> None:
        """Add cells of a chunk."""
        match self.kind:
            case "word":
                indices, words = pd.factorize(np.asarray(cells, dtype=object))
                codes = [self._codes.setdefault(word, len(self._codes)) for word in words]
                # The -1 at the end is where the index -1 of a missing word points.
                self._pieces.append(np.array([*codes, -1], dtype=np.int32)[indices])
            case "text":
                self._pieces.append(pd.array(np.asarray(cells, dtype=object), dtype="string"))
            case "real":
                self._pieces.append(np.array(cells, dtype=np.float64))
            case _:
                self._pieces.append(np.array(cells, dtype=np.int64))

    def take(self) -> Any:
        """Return the whole column."""
        if not self._pieces:
            self.append(())
        pieces, self._pieces = self._pieces, []
        if self.kind == "text":
            # Part of the interface that pandas documents for extension arrays (2.x and 3.x), its underscore apart.
            return type(pieces[0])._concat_same_type(pieces)
        values = np.concatenate(pieces)
        return CodedWords(values, list(self._codes)) if self.kind == "word" else values


def as_floats(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return counts as floats, NaN where they are missing."""
    values = counts.astype(np.float64)
    values[counts == ABSENT] = np.nan
    return values


def as_integers(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return counts as integers, ABSENT where they are NaN, or have no upper end."""
    # ABSENT is a power of two, which a float holds exactly.
    return np.where(np.isfinite(counts), counts, ABSENT).astype(np.int64)


def to_pandas(column: Column, values: Any) -> Any:
    """Return what was read as an array for a frame's column, without a copy if possible."""
    match column.dtype:
        case "Float64":
            return pd.arrays.FloatingArray(values, np.isnan(values))
        case "Int64":
            return pd.arrays.IntegerArray(values, values == ABSENT)
        case "boolean":
            return pd.arrays.BooleanArray(values.truth_values(), values.codes < 0)
        case "category":
            return values.categorical(column.categories)
        case "string":
            return values.texts() if isinstance(values, CodedWords) else values
        case _:
            return pd.DatetimeIndex(values.view("M8[us]")).tz_localize("UTC")
