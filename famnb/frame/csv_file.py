"""Calls as CSV that pandas and spreadsheets read, every text in it exact, and the same calls read back from it."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from famnb.errors import FamnbError
from famnb.formatting import escape_controls
from famnb.frame.columns import CALLS

_FORMULA = re.compile(r"'*(?:[=+\-@\t\r]|$)")
"""How a text begins that a spreadsheet takes for a formula; and an empty text, which would read as a missing one."""
_ESCAPE = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4})")
"""What `escape_controls` makes of a character."""
_BY_NAME = {column.name: column for column in CALLS}


def write_csv(frame: pd.DataFrame, target: str | os.PathLike[str] | TextIO) -> None:
    r"""Write calls as CSV: texts in quotes, line ends in them as they are, missing values empty.

    A text that begins with = + - @ a tab or CR, after any number of apostrophes, or that is empty, gets an apostrophe
    in front, so that no spreadsheet takes it for a formula, and what would act on a terminal is an escape such as
    `\x1b`, beside which a backslash is doubled; `read_csv` takes both away again.
    """
    # The others hold no text: numbers, truth values and times.
    columns = frame.select_dtypes(exclude=["number", "bool", "datetime", "datetimetz"])
    texts = {str(name): _guard_column(columns[name]) for name in columns}
    # All texts: Python's own choice leaves a lone CR without quotes (before 3.13), and readers end a line there.
    frame.assign(**texts).to_csv(target, index=False, quoting=csv.QUOTE_NONNUMERIC)


def read_csv(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the calls in a file that `famnb calls --csv` wrote: every text as it was, every column of its type.

    The tags of prompts are texts, since the file does not have their types. FamnbError for any other file.
    """
    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file, strict=True)
        try:
            names = next(rows, [])
            values = list(zip(*rows, strict=True)) or [()] * len(names)
        except (csv.Error, ValueError) as error:
            raise FamnbError(f"{path} is not a CSV file of calls ({error}): famnb calls --csv writes one") from None
    if "call_id" not in names:
        raise FamnbError(f"{path} has no column call_id: expected a file that famnb calls --csv wrote")
    return pd.DataFrame({name: _read_column(name, cells) for name, cells in zip(names, values, strict=True)})


def _guard_column(column: pd.Series[Any]) -> pd.Series[Any]:
    values = column.astype(object)
    if all(isinstance(value, str) for value in values.dropna()):
        # Once for each text, of which most columns have few.
        codes, texts = pd.factorize(values)
        guarded = np.array([*map(_guard, texts), None], dtype=object)
        return pd.Series(guarded[codes], index=column.index)
    return values.map(_guard)


def _guard(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    escaped = "\r".join(map(escape_controls, value.replace("\\", "\\\\").split("\r")))
    if _ESCAPE.search(escaped):
        value = escaped
    return f"'{value}" if _FORMULA.match(value) else value


_PARSERS: dict[str, Callable[[str], Any]] = {"Float64": float, "Int64": int, "boolean": "True".__eq__}


def _read_column(name: str, cells: tuple[str, ...]) -> pd.Series[Any]:
    column = _BY_NAME.get(name)
    if column is not None and column.dtype.startswith("datetime64"):
        moments = pd.to_datetime(pd.Series(cells, dtype=object), utc=True, format="ISO8601")
        # The stubs of pandas know no text such as "datetime64[us, UTC]" for a type.
        return moments.astype(column.dtype)  # type: ignore[call-overload, no-any-return]
    parse = _PARSERS.get(column.dtype if column else "", _unguard)
    values = [None if cell == "" else parse(cell) for cell in cells]
    return column.to_series(values) if column else pd.Series(values, dtype="string", name=name)


def _unguard(text: str) -> str:
    text = text[1:] if text.startswith("'") and _FORMULA.match(text) else text
    if not _ESCAPE.search(text):
        return text
    return re.sub(rf"\\\\|{_ESCAPE.pattern}", lambda match: _unescape(match[0]), text)


def _unescape(escape: str) -> str:
    return "\\" if escape == "\\\\" else chr(int(escape[2:], 16))
