"""Reads calls from a ledger into columns: floats with NaN where missing, `pandas.Categorical`, pandas' arrays of texts.

Rows are read in chunks, so that only one chunk's cells are Python objects at once: a million calls of sixty columns
would take gigabytes of them. To make these objects takes most of the time, so the words of a call come as one JSON
text, which is decoded once for all calls of a chunk that have the same.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from famnb.frame.columns import Column
from famnb.record import Ledger, ledger

try:
    import pyarrow as pa
except ImportError:  # without the extra `scale`, texts take pandas four times as long
    pa = None

# The objects of larger chunks do not fit in the processor's cache, and smaller ones make more pieces.
CHUNK = 500
"""Rows that are Python objects at once."""

CellKind: TypeAlias = Literal["number", "word", "text", "object"]
_KIND_OF_DTYPE: Mapping[str, CellKind] = {"category": "word", "boolean": "word", "string": "text"}
_REPEATED = frozenset({"url", "repeat", "attempts", "http_status", "max_tokens", "thinking"})
"""Texts and integers of which a ledger has few: read as words."""


@dataclasses.dataclass(frozen=True, slots=True)
class SelectedColumn:
    """A column to read: the SQL expression that gives it, by which it is also named, and the kind of its cells."""

    sql: str
    kind: CellKind = "number"

    @classmethod
    def of(cls, column: Column) -> SelectedColumn:
        """Return what a frame's column is read from."""
        kind = "word" if column.name in _REPEATED else _KIND_OF_DTYPE.get(column.dtype, "number")
        return cls(column.sql or column.name, kind)


ColumnArrays: TypeAlias = dict[str, Any]
"""Whole columns by their SQL. Integers are floats too, since the ledger has none that a float does not hold. One of
numbers that are all missing cannot be written to."""


def read_columns(
    source: Ledger, fields: Iterable[SelectedColumn], condition: str, values: Sequence[Any], limit: int | None
) -> ColumnArrays:
    """Return columns of the calls that an SQL condition selects, and `started_us`; at most the `limit` newest.

    The oldest call is the first. LedgerError if the file cannot be read.
    """
    columns = {field.sql: _GrowingColumn(field.kind) for field in (SelectedColumn("started_us"), *fields)}
    words = [name for name, column in columns.items() if column.kind == "word"]
    names = [name for name in columns if name not in words]
    calls = f"({ledger.CALLS_WITH_STANDING}) WHERE {condition}"
    query = f"SELECT json_array({', '.join(words)}), {', '.join(names)} FROM {calls}"  # noqa: S608 - values are bound
    values = list(values)
    if limit is not None:
        newest = f"SELECT id FROM {calls} ORDER BY started_us DESC, id DESC LIMIT ?"  # noqa: S608 - values are bound
        query, values = f"{query} AND id IN ({newest})", [*values, *values, limit]
    source.settle()
    with source.reading() as connection:
        if connection is not None:
            cursor = connection.cursor()
            cursor.row_factory = None  # plain tuples: `sqlite3.Row` costs time
            cursor.execute(query, values)
            while rows := cursor.fetchmany(CHUNK):
                texts, *cells_of_names = zip(*rows, strict=True)
                for name, cells in zip(names, cells_of_names, strict=True):
                    columns[name].append(cells)
                distinct = dict(zip(dict.fromkeys(texts), itertools.count(), strict=False))
                places = np.fromiter(map(distinct.__getitem__, texts), np.intp, len(texts))
                decoded = msgspec.json.decode(f"[{','.join(distinct)}]")
                for name, cells in zip(words, zip(*decoded, strict=True), strict=True):
                    columns[name].append(cells, places)
    # Popped, so that few columns are in memory twice.
    arrays: ColumnArrays = {name: columns.pop(name).take() for name in [*columns]}
    # Sorted here: in SQLite's sorter each row would pass with all its columns. Calls of one microsecond stay as they
    # were written.
    if (np.diff(arrays["started_us"]) < 0).any():
        order = np.argsort(arrays["started_us"], kind="stable")
        arrays = {name: column.take(order) for name, column in arrays.items()}
    return arrays


class _GrowingColumn:
    """A column that is filled chunk by chunk; of words only their codes are kept."""

    def __init__(self, kind: CellKind) -> None:
        self.kind = kind
        self._codes: dict[Any, int] = collections.defaultdict(itertools.count().__next__, {None: -1})
        """The code of each word; a new word takes the next one."""
        self._buffer = bytearray()
        """Numbers, or codes of words."""
        self._leading_gaps = 0
        """Missing numbers before the first chunk that has any: many a column has nothing in it, and takes no memory."""
        self._pieces: list[Any] = []
        """Texts of each chunk, or objects."""

    def append(self, cells: Sequence[Any], places: npt.NDArray[np.intp] | slice = slice(None)) -> None:
        """Add cells of a chunk, of words those at these places."""
        match self.kind:
            case "word":
                codes = np.fromiter(map(self._codes.__getitem__, cells), np.int32, len(cells))
                self._buffer += codes[places].tobytes()
            case "text" if pa is None:
                self._pieces.append(pd.array(np.array(cells, dtype=object), dtype="string"))
            case "text":
                self._pieces.append(pa.array(cells, pa.large_string()))
            case "object":
                self._pieces += cells
            case _:
                try:
                    # NumPy takes many times as long to look at each object.
                    self._buffer += struct.pack(f"{len(cells)}d", *cells)
                except struct.error:  # some are missing
                    if not self._buffer and cells.count(None) == len(cells):
                        self._leading_gaps += len(cells)
                    else:
                        self._buffer += np.array(cells, dtype=np.float64).tobytes()

    def take(self) -> Any:
        """Return the whole column."""
        match self.kind:
            case "word":
                codes = np.frombuffer(self._buffer, np.int32)
                return pd.Categorical.from_codes(codes, categories=pd.Index([*self._codes][1:], dtype=object))
            case "text" if pa is None:
                # Part of the interface that pandas documents for extension arrays (2.x and 3.x), its underscore apart.
                pieces = self._pieces or [pd.array([], dtype="string")]
                return type(pieces[0])._concat_same_type(pieces)
            case "text":
                return pd.array(pa.chunked_array(self._pieces, pa.large_string()), dtype="string")
            case "object":
                return np.array(self._pieces, dtype=object)
            case _:
                values = np.frombuffer(self._buffer)
                if not self._leading_gaps:
                    return values
                gaps = np.broadcast_to(np.nan, self._leading_gaps)
                return np.concatenate([gaps, values]) if len(values) else gaps


def to_pandas(column: Column, values: Any) -> Any:
    """Return what was read as an array for a frame's column, without a copy if possible."""
    match column.dtype:
        case "category":
            return values.set_categories(pd.Index(column.categories or sorted(values.categories), dtype=object))
        case "string":
            return values.astype("string") if isinstance(values, pd.Categorical) else values
        case "datetime64[us, UTC]":
            return pd.DatetimeIndex(values.astype(np.int64).view("M8[us]")).tz_localize("UTC")
        case "boolean":
            return pd.arrays.BooleanArray(np.asarray(values == 1), values.isna())
    if isinstance(values, pd.Categorical):
        values = np.array([*values.categories, np.nan], dtype=np.float64)[values.codes]  # the last for the code -1
    # An estimated count that nothing limits has no upper end.
    is_missing = np.isnan(values) if column.dtype == "Float64" else ~np.isfinite(values)
    is_float = column.dtype == "Float64"
    if is_missing.all():
        # Zeros that are never looked at take no memory.
        values = np.zeros(len(values), dtype=np.float64 if is_float else np.int64)
    elif not is_float:
        values = np.where(is_missing, 0, values).astype(np.int64)
    return (pd.arrays.FloatingArray if is_float else pd.arrays.IntegerArray)(values, is_missing)
