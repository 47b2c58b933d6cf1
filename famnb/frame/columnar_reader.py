"""Reads calls from a ledger into columns: floats with NaN where missing, `pandas.Categorical`, arrays of texts.

Rows are read in chunks, so that only one chunk's cells are Python objects at once: a million calls of sixty columns
would take gigabytes of them. To make these objects takes most of the time, so the words of a call come as one JSON
text, which is decoded once for all calls of a chunk that have the same.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import pandas as pd

from famnb.frame.columns import Column
from famnb.record import Ledger, ledger

# The objects of larger chunks do not fit in the processor's cache, and smaller ones make more pieces.
CHUNK = 2000
"""Rows that are Python objects at once."""

CellKind: TypeAlias = Literal["number", "word", "text"]
_KINDS: Mapping[str, CellKind] = {"category": "word", "boolean": "word", "string": "text"}
"""The kind of the cells of a frame's column by its dtype, where that is not a number."""
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
        kind = "word" if column.name in _REPEATED else _KINDS.get(column.dtype, "number")
        return cls(column.sql or column.name, kind)


ColumnArrays: TypeAlias = dict[str, Any]
"""Whole columns by their SQL. Integers are floats too, since the ledger has none that a float does not hold."""


def read_columns(
    source: Ledger, fields: Iterable[SelectedColumn], condition: str, values: Sequence[Any], limit: int | None
) -> ColumnArrays:
    """Return columns of the calls that an SQL condition selects, and `started_us`; at most the `limit` newest.

    The oldest call is the first. LedgerError if the file cannot be read.
    """
    kinds = {field.sql: field.kind for field in (SelectedColumn("started_us"), *fields)}
    words = [name for name, kind in kinds.items() if kind == "word"]
    names = [name for name in kinds if name not in words]
    # A word that is new takes the next number.
    codes = {name: collections.defaultdict[Any, int](itertools.count().__next__, {None: -1}) for name in words}
    # Numbers and codes grow in one piece each: many small ones would leave as much memory to the process once they are
    # joined as the frame takes.
    numbers = {name: array.array("i" if kind == "word" else "d") for name, kind in kinds.items() if kind != "text"}
    texts_in_chunks: dict[str, list[Any]] = {name: [] for name, kind in kinds.items() if kind == "text"}
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
                    if kinds[name] == "text":
                        # Texts take a fraction of the memory there that they take as objects.
                        texts_in_chunks[name].append(pd.Series(np.array(cells, object), dtype="string"))
                    else:
                        numbers[name].frombytes(np.array(cells, float).tobytes())
                distinct = dict(zip(dict.fromkeys(texts), itertools.count(), strict=False))
                places = np.fromiter(map(distinct.__getitem__, texts), np.intp, len(texts))
                decoded = msgspec.json.decode(f"[{','.join(distinct)}]")
                for name, cells in zip(words, zip(*decoded, strict=True), strict=True):
                    word_codes = np.fromiter(map(codes[name].__getitem__, cells), np.int32)
                    numbers[name].frombytes(word_codes[places].tobytes())
    arrays: ColumnArrays = {}
    for name, kind in kinds.items():
        match kind:
            case "number":
                arrays[name] = np.asarray(numbers[name])
            case "text":
                # Popped, so that few columns are in memory twice.
                chunks = texts_in_chunks.pop(name)
                arrays[name] = pd.concat([pd.Series(dtype="string"), *chunks]).array
            case "word":
                categories = pd.Index([*codes[name]][1:], dtype=object)
                arrays[name] = pd.Categorical.from_codes(np.asarray(numbers.pop(name)), categories)
    # Sorted here: in SQLite's sorter each row would pass with all its columns. Calls of one microsecond stay as they
    # were written.
    if (np.diff(arrays["started_us"]) < 0).any():
        order = np.argsort(arrays["started_us"], kind="stable")
        arrays = {name: column.take(order) for name, column in arrays.items()}
    return arrays
