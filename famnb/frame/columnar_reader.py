"""Reads calls from a ledger or from exported files into NumPy columns.

Rows are read in chunks, so that only one chunk's cells are Python objects at once: a million calls of sixty columns
would take gigabytes of them. And since making a Python object of each cell is what takes most of the time, a ledger's
words come as a few JSON texts a row, which are mostly the same and decoded once, and its integers as one text.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from famnb.frame.columns import Column
from famnb.record import Ledger, ledger, parquet
from famnb.record.parquet import Parquet

# The objects of larger chunks do not fit in the processor's cache, and smaller ones make more pieces to join.
CHUNK = 10_000
"""Rows that are Python objects at once."""
# A limit of calls may be any number.
MAX_EXPECTED = 10_000_000
"""Rows that room is made for beforehand, at most."""
# NumPy's integers have no missing value; no count or time is the least of them.
ABSENT = -(2**63)
"""Stands for a missing integer while columns are read."""

CellKind: TypeAlias = Literal["real", "integer", "word", "text"]
Cells: TypeAlias = npt.NDArray[Any]
"""Some cells of one column, as the database has them."""
_Piece: TypeAlias = Cells | tuple[npt.NDArray[np.intp], Iterable[Any]]
"""A piece of a column: its cells; of words an index for each row, -1 where missing, and what they point to."""
_Unpack: TypeAlias = Callable[[Cells], dict[str, _Piece]]
"""Makes pieces of columns, by their SQL, of the cells in which a ledger has packed them."""

_KIND_OF_DTYPE: Mapping[str, CellKind] = {
    "Float64": "real",
    "Int64": "integer",
    "boolean": "word",
    "datetime64[us, UTC]": "integer",
    "category": "word",
    "string": "text",
}
_STORAGE = {"real": "f8", "integer": "i8", "word": "O", "text": "O"}
_MISSING = {"real": np.float64(np.nan), "integer": np.int64(ABSENT)}
# Together with these, the words of two calls would seldom be the same.
_VARYING_WORDS = (("experiment", "variant"), ("prompt_id", "prompt_tags", "tag"))
"""Words that are read apart from the others, those of a group together."""
_REPEATED_TEXTS = frozenset({"url"})
"""Texts of which a ledger has few: read as words."""


@dataclasses.dataclass(slots=True)
class CodedWords:
    """A column of words, or of truth values, as integers: -1 where missing, else an index into `words`."""

    codes: npt.NDArray[np.signedinteger[Any]]
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
        new_codes = np.array([*(index.get(word, -1) for word in self.words), -1], dtype=_code_type(names))
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
    query = distinct, condition, values, limit
    expected = source.count(condition, values) if limit is None and isinstance(source, Ledger) else limit or 0
    columns = [_GrowingColumn(field.kind, min(expected, MAX_EXPECTED)) for field in distinct]
    for chunk in _read_ledger(source, *query) if isinstance(source, Ledger) else _read_parquet(source, *query):
        for column, cells in zip(columns, chunk, strict=True):
            column.append(cells)
    # Popped one by one, so that a column's pieces and their whole are in memory for one column only.
    columns.reverse()
    return {field.sql: columns.pop().take() for field in distinct}


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
) -> Iterator[list[_Piece]]:
    """Yield chunks of a ledger's calls, each a list of columns; at least one, so that every column has a type."""
    source.settle()
    packed = _pack(columns)
    expressions = ", ".join(sql for sql, _, _ in packed)
    # By time alone, which the index gives; calls of one microsecond come as they were written. To sort those by id,
    # SQLite would pass every row with all its columns through a sorter, an eighth of the time of the whole frame.
    sql, values = _query(expressions, ledger.CALLS_WITH_STANDING, condition, values, limit, order="started_us")
    storage = np.dtype([(sql, cell_type) for sql, cell_type, _ in packed])
    with source.reading() as connection:
        rows: Iterator[Any] = iter(())
        if connection is not None:
            cursor = connection.cursor()
            cursor.row_factory = None  # plain tuples: `sqlite3.Row` costs time and NumPy does not take it
            rows = cursor.execute(sql, values)
        while True:
            chunk = np.fromiter(itertools.islice(rows, CHUNK), dtype=storage)
            pieces = {name: piece for sql, _, unpack in packed for name, piece in unpack(chunk[sql]).items()}
            yield [pieces[column.sql] for column in columns]
            if len(chunk) < CHUNK:
                break


def _pack(columns: Sequence[SelectedColumn]) -> list[tuple[str, str, _Unpack]]:
    """What to select from a ledger: an expression, NumPy's type of its cells, and what makes columns of them."""
    names = {kind: [column.sql for column in columns if column.kind == kind] for kind in _STORAGE}
    varying = [[name for name in group if name in names["word"]] for group in _VARYING_WORDS]
    constant = [name for name in names["word"] if name not in itertools.chain(*varying)]
    packed: list[tuple[str, str, _Unpack]] = [
        (f"json_array({', '.join(words)})", "O", functools.partial(_unpack_words, words))
        for words in (*varying, constant)
        if words
    ]
    if integers := names["integer"]:
        # Digits of a fixed width are read at once. Real numbers cannot come like this: SQLite's text of one is inexact.
        expressions = (f"IFNULL({name}, {ABSENT})" for name in integers)
        digits = f"printf('{'%016x' * len(integers)}', {', '.join(expressions)})"
        packed.append((digits, "O", functools.partial(_unpack_integers, integers)))
    for kind in ("real", "text"):
        packed += [(name, _STORAGE[kind], functools.partial(_unpack_as_is, name)) for name in names[kind]]
    return packed


def _unpack_as_is(name: str, cells: Cells) -> dict[str, _Piece]:
    return {name: cells}


def _unpack_words(names: Sequence[str], texts: Cells) -> dict[str, _Piece]:
    """Columns of words out of JSON arrays, one a row; each that occurs is decoded once."""
    codes, distinct = pd.factorize(texts)
    rows = msgspec.json.decode(f"[{','.join(distinct)}]")
    return {name: (codes, [row[number] for row in rows]) for number, name in enumerate(names)}


def _unpack_integers(names: Sequence[str], texts: Cells) -> dict[str, _Piece]:
    """Columns of integers out of texts of hexadecimal digits, one a row, 16 digits an integer."""
    table = np.frombuffer(bytes.fromhex("".join(texts)), dtype=">i8").reshape(-1, len(names))
    return dict(zip(names, table.T, strict=True))


def _read_parquet(
    source: Parquet, columns: Sequence[SelectedColumn], condition: str, values: Sequence[Any], limit: int | None
) -> Iterator[list[_Piece]]:
    """Yield chunks of exported calls, each a list of columns; at least one, so that every column has a type."""
    expressions = ", ".join(f"{column.duckdb} AS c{number}" for number, column in enumerate(columns))
    # The id decides between calls of one moment: DuckDB's threads would else give another order each time.
    sql, values = _query(expressions, parquet.CALLS_WITH_STANDING, condition, values, limit, order="started_us, id")
    yield [_piece(np.empty(0, dtype=_STORAGE[column.kind]), column.kind) for column in columns]
    for chunk in source.fetch_chunks(sql, values):
        yield [
            _piece(chunk[f"c{number}"].to_numpy(_STORAGE[column.kind]), column.kind)
            for number, column in enumerate(columns)
        ]


def _piece(cells: Cells, kind: CellKind) -> _Piece:
    return pd.factorize(cells) if kind == "word" else cells


class _GrowingColumn:
    """A column that is filled chunk by chunk.

    Numbers and codes go straight to their final place: kept in pieces and joined, a million calls took twice the
    memory, most of which the allocator did not give back. A number that no call has, as many are, takes no memory:
    the system gives it where something is written.
    """

    def __init__(self, kind: CellKind, rows: int) -> None:
        """Make room for as many `rows` as are expected."""
        self._kind = kind
        self._words: dict[str, int] = {}
        self._texts: list[Any] = []
        self._values: npt.NDArray[Any] = np.empty(rows, dtype=_code_type(()) if kind == "word" else _STORAGE[kind])
        self._count = 0
        self._has_values = kind not in _MISSING

    def append(self, piece: _Piece) -> None:
        """Add a piece."""
        if isinstance(piece, tuple):
            cells = self._encode(*piece)
        elif self._kind == "text":
            self._texts.append(pd.array(piece, dtype="string"))
            return
        else:
            cells = piece
        end = self._count + len(cells)
        if end > len(self._values):
            # Calls may have been recorded since they were counted; without a count, a few large steps.
            self._values = np.concatenate([self._values, np.empty_like(self._values, shape=max(len(cells), end // 2))])
        if not self._has_values and not _is_missing(cells).all():
            self._values[: self._count] = _MISSING[self._kind]
            self._has_values = True
        if self._has_values:
            self._values[self._count : end] = cells
        self._count = end

    def take(self) -> Any:
        """Return the whole column; numbers can only be read where none is known."""
        if not self._has_values:
            return np.broadcast_to(_MISSING[self._kind], self._count)
        if self._kind == "text":
            # Part of the interface that pandas documents for extension arrays (2.x and 3.x), its underscore apart.
            return type(self._texts[0])._concat_same_type(self._texts)
        values = self._values if self._count == len(self._values) else self._values[: self._count].copy()
        return CodedWords(values, list(self._words)) if self._kind == "word" else values

    def _encode(self, codes: npt.NDArray[np.intp], words: Iterable[Any]) -> npt.NDArray[np.signedinteger[Any]]:
        """The codes of words in the whole column; a new word takes the next one."""
        new_codes = [-1 if word is None else self._words.setdefault(word, len(self._words)) for word in words]
        code_type = _code_type(self._words)
        if code_type != self._values.dtype:
            self._values = self._values.astype(code_type)
        return np.array([*new_codes, -1], dtype=code_type)[codes]


def _code_type(words: Collection[Any]) -> np.dtype[np.signedinteger[Any]]:
    """The smallest type for the codes of these words, and of some more that `CodedWords.code_of` adds."""
    code_type: np.dtype[Any] = np.min_scalar_type(-len(words) - 10)
    return code_type


def to_pandas(column: Column, values: Any) -> Any:
    """Return what was read as an array for a frame's column, without a copy if possible."""
    match column.dtype:
        case "Float64":
            return pd.arrays.FloatingArray(*_with_mask(values))
        case "Int64":
            return pd.arrays.IntegerArray(*_with_mask(values))
        case "boolean":
            return pd.arrays.BooleanArray(values.truth_values(), values.codes < 0)
        case "category":
            return values.categorical(column.categories)
        case "string":
            return values.texts() if isinstance(values, CodedWords) else values
        case _:
            return pd.DatetimeIndex(values.view("M8[us]")).tz_localize("UTC")


def _with_mask(values: Cells) -> tuple[Cells, npt.NDArray[np.bool_]]:
    """The values of a column, and which are missing."""
    mask = _is_missing(values)
    # New zeros take no memory until they are written.
    return np.zeros(values.shape, values.dtype) if mask.all() else values, mask


def _is_missing(values: Cells) -> npt.NDArray[np.bool_]:
    """Which numbers are missing."""
    mask: npt.NDArray[np.bool_] = np.isnan(values) if values.dtype.kind == "f" else values == ABSENT
    return mask
