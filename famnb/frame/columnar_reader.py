"""Reads calls from a ledger or from exported files into NumPy columns.

Rows are read in chunks, so that only one chunk's cells are Python objects at once: a million calls of sixty columns
would take gigabytes of them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from famnb.frame.columns import Column
from famnb.record import Ledger, ledger, parquet
from famnb.record.parquet import Parquet

# The objects of larger chunks do not fit in the processor's cache, and smaller ones make more pieces to join.
CHUNK = 10_000
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


def read_columns(
    source: Ledger | Parquet, fields: Iterable[SelectedColumn], condition: str, values: Sequence[Any], limit: int | None
) -> ColumnArrays:
    """Read columns of the calls that an SQL condition selects, oldest first, at most the `limit` newest."""
    distinct = list({field.sql: field for field in fields}.values())
    columns = [_GrowingColumn(field.kind) for field in distinct]
    read_chunks = _read_ledger if isinstance(source, Ledger) else _read_parquet
    for chunk in read_chunks(source, distinct, condition, values, limit):  # type: ignore[arg-type]  # each has its own
        for column, cells in zip(columns, chunk, strict=True):
            column.append(cells)
    return {field.sql: column.take() for field, column in zip(distinct, columns, strict=True)}


def _query(
    columns: str, calls: str, condition: str, values: Sequence[Any], limit: int | None, *, order: str
) -> tuple[str, Sequence[Any]]:
    """The SQL that selects and orders calls, and its values; `limit` has an order of its own."""
    sql = f"SELECT {columns} FROM ({calls}) WHERE {condition}"  # noqa: S608 - values are bound
    if limit is not None:
        newest = f"SELECT id FROM ({calls}) WHERE {condition} ORDER BY started_us DESC, id DESC LIMIT ?"  # noqa: S608 - values are bound
        sql, values = f"{sql} AND id IN ({newest})", (*values, *values, limit)
        # The plus keeps SQLite from walking the index by time through all calls, when it can sort these few.
        order = "+started_us, id"
    return f"{sql} ORDER BY {order}", values


def _read_ledger(
    source: Ledger, columns: Sequence[SelectedColumn], condition: str, values: Sequence[Any], limit: int | None
) -> Iterator[list[Cells]]:
    """Yield chunks of a ledger's calls, each a list of columns; at least one, so that every column has a type."""
    source.settle()
    expressions = ", ".join(
        f"IFNULL({column.sql}, {ABSENT})" if column.kind == "integer" else column.sql for column in columns
    )
    # By time alone, which the index gives; calls of one microsecond come as they were written. To sort those by id,
    # SQLite would pass every row with all its columns through a sorter, an eighth of the time of the whole frame.
    sql, values = _query(expressions, ledger.CALLS_WITH_STANDING, condition, values, limit, order="started_us")
    storage = np.dtype([(column.sql, _STORAGE[column.kind]) for column in columns])
    with source.reading() as connection:
        rows: Iterator[Any] = iter(())
        if connection is not None:
            cursor = connection.cursor()
            cursor.row_factory = None  # plain tuples: `sqlite3.Row` costs time and NumPy does not take it
            rows = cursor.execute(sql, values)
        while True:
            chunk = np.fromiter(itertools.islice(rows, CHUNK), dtype=storage)
            yield [chunk[column.sql] for column in columns]
            if len(chunk) < CHUNK:
                break


def _read_parquet(
    source: Parquet, columns: Sequence[SelectedColumn], condition: str, values: Sequence[Any], limit: int | None
) -> Iterator[list[Cells]]:
    """Yield chunks of exported calls, each a list of columns; at least one, so that every column has a type."""
    expressions = ", ".join(f"{column.duckdb} AS c{number}" for number, column in enumerate(columns))
    # The id decides between calls of one moment: DuckDB's threads would else give another order each time.
    sql, values = _query(expressions, parquet.CALLS_WITH_STANDING, condition, values, limit, order="started_us, id")
    yield [np.empty(0, dtype=_STORAGE[column.kind]) for column in columns]
    for chunk in source.fetch_chunks(sql, values):
        yield [chunk[f"c{number}"].to_numpy(_STORAGE[column.kind]) for number, column in enumerate(columns)]


class _GrowingColumn:
    """A column that is filled chunk by chunk; of words only their codes are kept."""

    def __init__(self, kind: CellKind) -> None:
        self._kind = kind
        self._codes: dict[Any, int] = {}
        self._pieces: list[Any] = []

    def append(self, cells: Cells) -> None:
        """Add cells of a chunk."""
        match self._kind:
            case "word":
                indices, words = pd.factorize(cells)
                codes = [self._codes.setdefault(word, len(self._codes)) for word in words]
                # The -1 at the end is where the index -1 of a missing word points.
                self._pieces.append(np.array([*codes, -1], dtype=np.int32)[indices])
            case "text":
                self._pieces.append(pd.array(cells, dtype="string"))
            case _:
                # A copy: the chunk's memory, with the cells of all other columns, is given back then.
                self._pieces.append(cells.copy())

    def take(self) -> Any:
        """Return the whole column."""
        if self._kind == "text":
            # Part of the interface that pandas documents for extension arrays (2.x and 3.x), its underscore apart.
            return type(self._pieces[0])._concat_same_type(self._pieces)
        values = np.concatenate(self._pieces)
        return CodedWords(values, list(self._codes)) if self._kind == "word" else values


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
