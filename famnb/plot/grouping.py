"""Which calls belong together: the values of a column, the rarest of many taken together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

MOST = 12
"""So many groups are told apart; of more, the rarest become one."""
NONE = "(none)"


def need(frame: pd.DataFrame, *columns: str | None) -> None:
    """Raise KeyError naming the first column that the frame does not have."""
    for column in columns:
        if column is not None and column not in frame.columns:
            raise KeyError(f"the frame has no column {column!r}; it has {', '.join(map(str, frame.columns))}")


def numbers(frame: pd.DataFrame, column: str, expected: str) -> np.ndarray[Any, Any]:
    """A column as floats, NaN where missing; ValueError where it holds something else."""
    try:
        values: np.ndarray[Any, Any] = frame[column].to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        raise ValueError(f"the column {column!r} holds no numbers; {expected}") from None
    if np.isinf(values).any():
        raise ValueError(f"the column {column!r} has infinite numbers; leave them out, or mark them as missing")
    return values


def moments(frame: pd.DataFrame, column: str = "started_at") -> pd.Series[Any]:
    """A column as times in its own zone, read where it is text as in a CSV file; ValueError where it holds no times."""
    values = frame[column]
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return values
    try:
        if pd.api.types.is_numeric_dtype(values.dtype) and len(values):
            raise TypeError
        return pd.to_datetime(values, utc=True, format="ISO8601")
    except (TypeError, ValueError):
        raise ValueError(f"the column {column!r} holds no times; expected datetimes, or text in ISO 8601") from None


def grouped(values: pd.Series[Any]) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Each row's group as a number, and the groups' names in order; the rarest beyond MOST are the last group."""
    codes, found = pd.factorize(values)
    names = np.array([str(value) for value in found] + [NONE], dtype=object)
    codes = np.where(codes < 0, len(names) - 1, codes)
    sizes = np.bincount(codes, minlength=len(names))
    present = [code for code in range(len(names)) if sizes[code]]
    kept, rest = present, list[int]()
    if len(present) > MOST:
        ranked = sorted(present, key=lambda code: -int(sizes[code]))
        kept, rest = ranked[: MOST - 1], ranked[MOST - 1 :]
    kept = sorted(kept, key=lambda code: names[code])
    place = np.full(len(names), len(kept))
    place[kept] = np.arange(len(kept))
    labels = [str(names[code]) for code in kept]
    return place[codes], [*labels, f"{len(rest)} others"] if rest else labels
