"""Calls as CSV that pandas and spreadsheets read, every text in it as it is but for what would act on them."""

from __future__ import annotations

import csv
import os
import re
from typing import Any, TextIO

import pandas as pd

from famnb.formatting import escape_controls

_FORMULA = re.compile(r"[=+\-@\t\r]")
"""How a text begins that a spreadsheet takes for a formula."""


def write_csv(frame: pd.DataFrame, target: str | os.PathLike[str] | TextIO) -> None:
    r"""Write calls as CSV: texts in quotes, line ends in them as they are, missing values empty.

    A text that begins with = + - @ a tab or CR gets an apostrophe in front, so that no spreadsheet takes it for a
    formula, and what would act on a terminal is an escape such as `\x1b`.
    """
    # The others hold no text: numbers, truth values and times.
    columns = frame.select_dtypes(exclude=["number", "bool", "datetime", "datetimetz"])
    texts = {str(name): columns[name].map(_guard) for name in columns}
    # All texts: Python's own choice leaves a lone CR without quotes (before 3.13), and readers end a line there.
    frame.assign(**texts).to_csv(target, index=False, quoting=csv.QUOTE_NONNUMERIC)


def _guard(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    # A CR is a line end here.
    text = "\r".join(map(escape_controls, value.split("\r")))
    return f"'{text}" if _FORMULA.match(text) else text
