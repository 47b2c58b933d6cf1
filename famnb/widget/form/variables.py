"""Variables of a prompt: names in braces, such as `{city}`, and a table of values for them.

A variable without a value is sent as it stands, so that a prompt about JSON or code means what it says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

VariableRow: TypeAlias = Mapping[str, str]
"""The values of one row of the table, by the name of the variable."""

_VARIABLE = re.compile(r"\{([A-Za-z_]\w*)\}")
# More than anyone fills in by hand; a table this long is an experiment.
MAX_ROWS = 50
"""Rows that a table can have."""


def find_variables(*texts: str) -> tuple[str, ...]:
    """Return the names of the variables in some texts, each once, in the order in which they first appear."""
    return tuple(dict.fromkeys(match[1] for text in texts for match in _VARIABLE.finditer(text)))


def fill_in(text: str, row: VariableRow) -> str:
    """Return the text with the row's values in the place of its variables."""
    return _VARIABLE.sub(lambda match: row.get(match[1]) or match[0], text)


def read_rows(rows: Any) -> list[dict[str, str]]:
    """Return the rows of a table that the page sends; what is no text is left out."""
    if not isinstance(rows, list):
        return []
    return [
        {str(name): value for name, value in row.items() if isinstance(value, str)}
        for row in rows[:MAX_ROWS]
        if isinstance(row, dict)
    ]


def row_label(row: VariableRow, names: Sequence[str]) -> str:
    """Return a row's values on one line: the label of its pane on a board."""
    return ", ".join(row[name] for name in names if row.get(name)) or "as it stands"
