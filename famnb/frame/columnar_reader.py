"""Calls of a ledger or of exported files as NumPy columns, read in pieces so that cells do not stay Python objects."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from famnb.frame.columns import Column
from famnb.record import Ledger, ledger, parquet
from famnb.record.parquet import Parquet

CHUNK = 20_000
"""Rows that are Python objects at once."""
ABSENT = -(2**63)
"""What stands for a missing integer while columns are read; no count and no time is this one."""

Kind: TypeAlias = Literal["real", "integer", "word", "text"]
Numbers: TypeAlias = npt.NDArray[Any]

_KINDS: Mapping[str, Kind] = {
    "Float64": "real",
    "Int64": "integer",
    "boolean": "integer",
    "datetime64[us, UTC]": "integer",
    "category": "word",
    "string": "text",
}
_STORAGE = {"real": "f8", "integer": "i8", "word": "O", "text": "O"}


@dataclasses.dataclass(slots=True)
class Coded:
    """Words as numbers: -1 where missing, else the place in `words`."""

    codes: npt.NDArray[np.int32]
    words: list[str]

    def coded(self, word: str) -> int:
        """A word's number, a new one for a new word."""
        if word not in self.words:
            self.words.append(word)
        return self.words.index(word)

    def categorical(self, categories: Sequence[str] | None) -> pd.Categorical:
        """As pandas has it; without `categories` those that occur, sorted."""
        wanted = list(categories) if categories is not None else sorted(self.words)
        place = {word: number for number, word in enumerate(wanted)}
        moved = np.array([*(place.get(word, -1) for word in self.words), -1], dtype=np.int32)
        return pd.Categorical.from_codes(moved[self.codes], categories=pd.Index(wanted, dtype=object))


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """A column to read, named by its SQL."""

    sql: str
    kind: Kind

    @classmethod
    def of(cls, column: Column) -> Field:
        """What a frame's column is read from."""
        return cls(column.sql or column.name, _KINDS[column.dtype])

    @property
    def expression(self) -> str:
        """The SQL that gives SQLite's value as one that NumPy can hold."""
        return f"IFNULL({self.sql}, {ABSENT})" if self.kind == "integer" else self.sql

    @property
    def cast(self) -> str:
        """The same for DuckDB, which keeps types apart."""
        match self.kind:
            case "integer":
                return f"IFNULL(CAST({self.sql} AS BIGINT), {ABSENT})"
            case "real":
                return f"CAST({self.sql} AS DOUBLE)"
            case _:
                return self.sql


Columns: TypeAlias = dict[str, Any]
"""By their SQL: float64 with NaN, int64 with ABSENT, `Coded`, or a pandas array of strings."""


def read(
    source: Ledger | Parquet, fields: Iterable[Field], condition: str, values: Sequence[Any], limit: int | None
) -> Columns:
    """These columns of the calls that a condition chooses, oldest first, at most the `limit` newest."""
    wanted = list({field.sql: field for field in fields}.values())
    pieces: dict[str, list[Any]] = {field.sql: [] for field in wanted}
    words: dict[str, dict[str, int]] = {field.sql: {} for field in wanted if field.kind == "word"}
    chosen = wanted, condition, values, limit
    for chunk in _stored(source, *chosen) if isinstance(source, Ledger) else _exported(source, *chosen):
        for field, cells in zip(wanted, chunk, strict=True):
            pieces[field.sql].append(_piece(cells, field.kind, words.get(field.sql)))
    return {field.sql: _whole(pieces.pop(field.sql), field.kind, words.get(field.sql)) for field in wanted}


def _query(
    columns: str, calls: str, condition: str, values: Sequence[Any], limit: int | None
) -> tuple[str, Sequence[Any]]:
    """The SQL that chooses and orders, and its values."""
    sql = f"SELECT {columns} FROM ({calls}) WHERE {condition}"  # noqa: S608 - values are bound
    if limit is not None:
        newest = f"SELECT id FROM ({calls}) WHERE {condition} ORDER BY started_us DESC, id DESC LIMIT ?"  # noqa: S608 - values are bound
        sql, values = f"{sql} AND id IN ({newest})", (*values, *values, limit)
    order = "started_us" if limit is None else "+started_us"  # few rows are sorted, not searched for by time
    return f"{sql} ORDER BY {order}, id", values


def _stored(
    source: Ledger, wanted: Sequence[Field], condition: str, values: Sequence[Any], limit: int | None
) -> Iterator[list[Numbers]]:
    """The cells of a ledger, column by column, some rows at a time; at least once."""
    source.settle()
    columns = ", ".join(field.expression for field in wanted)
    sql, values = _query(columns, ledger.STANDING, condition, values, limit)
    storage = np.dtype([(f"c{place}", _STORAGE[field.kind]) for place, field in enumerate(wanted)])
    with source.reading() as connection:
        rows: Iterable[Any] = ()
        if connection is not None:
            cursor = connection.cursor()
            cursor.row_factory = None
            rows = cursor.execute(sql, values)
        rows = iter(rows)
        while True:
            chunk = np.fromiter(itertools.islice(rows, CHUNK), dtype=storage)
            yield [chunk[f"c{place}"] for place in range(len(wanted))]
            if len(chunk) < CHUNK:
                break


def _exported(
    source: Parquet, wanted: Sequence[Field], condition: str, values: Sequence[Any], limit: int | None
) -> Iterator[list[Numbers]]:
    """The cells of exported files, column by column, some rows at a time; at least once."""
    columns = ", ".join(f"{field.cast} AS c{place}" for place, field in enumerate(wanted))
    sql, values = _query(columns, parquet.STANDING, condition, values, limit)
    yield [np.empty(0, dtype=_STORAGE[field.kind]) for field in wanted]
    for piece in source.pieces(sql, values):
        yield [piece[f"c{place}"].to_numpy(_STORAGE[field.kind]) for place, field in enumerate(wanted)]


def _piece(cells: Numbers, kind: Kind, words: dict[str, int] | None) -> Any:
    """Some cells of a column in their final form."""
    match kind:
        case "real" | "integer":
            return cells.copy()
        case "word":
            assert words is not None
            codes, found = pd.factorize(cells)
            numbers = [words.setdefault(word, len(words)) for word in found]
            return np.array([*numbers, -1], dtype=np.int32)[codes]
        case "text":
            return pd.array(cells, dtype="string")


def _whole(pieces: list[Any], kind: Kind, words: dict[str, int] | None) -> Any:
    """A column of its pieces."""
    if kind == "text":
        return type(pieces[0])._concat_same_type(pieces)
    joined = np.concatenate(pieces)
    return Coded(joined, list(words)) if words is not None else joined


def array(column: Column, values: Any) -> Any:
    """What was read as a frame's column; without copying where that can be."""
    match column.dtype:
        case "Float64":
            return pd.arrays.FloatingArray(values, np.isnan(values))
        case "Int64":
            return pd.arrays.IntegerArray(values, values == ABSENT)
        case "boolean":
            return pd.arrays.BooleanArray(values == 1, values == ABSENT)
        case "category":
            return values.categorical(column.categories)
        case "string":
            return values
        case _:
            return pd.DatetimeIndex(values.view("M8[us]")).tz_localize("UTC")
