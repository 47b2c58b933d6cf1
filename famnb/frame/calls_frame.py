"""CallsFrame, a DataFrame of calls that shows the columns people look for first, and those columns as text.

A plain DataFrame of sixty columns shows its first ten and its last ten, digits to the microsecond and no word on which
figures are estimates. Options of pandas would change that for every frame of the notebook, so calls have a class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from famnb.formatting import FormatValue, escape_html, format_count, format_estimate, format_number, format_usd

SHOWN = (
    *("model", "endpoint", "variant", "prompt_id", "status", "error", "ttft_s", "e2e_s"),
    *("input_tokens", "output_tokens", "cost_usd", "prompt", "started_at", "call_id"),
)
"""The columns that a CallsFrame shows, and after `cost_usd` scores; one without any value is left out."""
_OF_CALLS = {"model", "endpoint", "status", "ttft_s", "e2e_s", "cost_usd", "prompt", "call_id"}
"""The columns that a frame of calls has."""
MISSING = "–"
LEGEND = "times in s, started_at in UTC, ≈ is an estimate"
_ENDS = {
    **{count: (f"{count}_low", f"{count}_high") for count in ("input_tokens", "output_tokens")},
    "cost_usd": ("cost_low_usd", "cost_high_usd"),
}
"""The columns of the low and the high end, by the column of the figure."""
_AUTO_COLUMNS = 20
"""How many columns fit where pandas is to find out by itself, as in a terminal."""


class CallsFrame(pd.DataFrame):
    """A frame of calls: an ordinary DataFrame with all its columns, which shows itself by those looked for first.

    Only where pandas would leave columns out. What is made of it, by choosing columns, grouping or describing, is a
    plain DataFrame unless its rows are calls still; so is what is read from a pickle, and `pandas.DataFrame(frame)`.
    """

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        # What pandas documents for subclasses: so a selection of calls shows itself the same way.
        return _calls_or_plain

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Who reads the pickle need not have famnb.
        return pd.DataFrame, (), self.__getstate__()

    def __repr__(self) -> str:
        shown = _show(self, repr)
        return super().__repr__() if shown is None else "\n\n".join(shown)

    def _repr_html_(self) -> str | None:
        shown = _show(self, _html_of)
        if shown is None:
            return _html_of(self)
        table, footer = shown
        # None where the user has turned HTML off.
        return None if table is None else f"{table}<p>{escape_html(footer)}</p>"


# pandas (2.2 to 3.1) gives it a plain frame, or the arguments of DataFrame, and takes any DataFrame.
def _calls_or_plain(*arguments: Any, **options: Any) -> pd.DataFrame:
    """A CallsFrame if its rows are calls, else a plain DataFrame."""
    frame = pd.DataFrame(*arguments, **options)
    return CallsFrame(frame) if _has_calls(frame) else frame


def _has_calls(frame: pd.DataFrame) -> bool:
    """Whether the rows are calls, with the columns by which they are shown; counts of calls by column are none."""
    columns = frame.columns
    return columns.is_unique and set(columns) >= _OF_CALLS and pd.api.types.is_string_dtype(frame["call_id"].dtype)


def _html_of(frame: pd.DataFrame) -> str | None:
    # As the class has it; pandas' stubs (2.2) leave the method out.
    html: str | None = pd.DataFrame._repr_html_(frame)  # type: ignore[attr-defined]
    return html


def _show(frame: pd.DataFrame, show_table: Callable[[pd.DataFrame], Any]) -> tuple[Any, str] | None:
    """The frame's table as text or as HTML, and the line below it; None where pandas is to show the frame itself."""
    columns = _shown_columns(frame)
    if columns is None:
        return None
    max_rows, min_rows = pd.get_option("display.max_rows"), pd.get_option("display.min_rows")
    rows = frame
    if max_rows and len(frame) > max_rows:
        max_rows = min(min_rows or max_rows, max_rows)
        # Twice what is shown, so that pandas puts its dots between the rows at the beginning and those at the end.
        rows = pd.concat([frame.head(max_rows), frame.tail(max_rows)])
    try:
        table = format_calls(rows, columns)
    except (TypeError, ValueError):
        # Users may have put anything into these columns.
        return None
    # Where the terminal is narrow, the table goes on below rather than losing its middle. And prompts may hold dollar
    # signs, which a notebook would typeset as formulas.
    options = {"max_columns": None, "max_rows": max_rows, "show_dimensions": False, "html.use_mathjax": False}
    with pd.option_context(*(part for name, value in options.items() for part in (f"display.{name}", value))):
        shown = show_table(table)
    dimensions = f"{format_count(len(frame), 'row')} × {len(frame.columns)} columns"
    return shown, f"{dimensions}, of which these are shown; {LEGEND}"


def format_calls(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return columns of calls as texts: times to the millisecond, `≈` before estimates, `–` where a value is missing.

    Of a figure that is known only within more than a factor of three the table says what it is at most.
    """
    return pd.DataFrame({name: _format_column(frame, name) for name in columns}, index=frame.index)


def _format_column(frame: pd.DataFrame, name: str) -> list[str]:
    values = frame[name]
    if name in _ENDS and set(_ENDS[name]) <= set(frame.columns):
        ends = (frame[end] for end in _ENDS[name])
        format_value: FormatValue = format_usd if name == "cost_usd" else format_count
        return [
            MISSING if pd.isna(value) else format_estimate(value, low, high, format_value, brief=True)
            for value, low, high in zip(values, *ends, strict=True)
        ]
    return [MISSING if pd.isna(value) else _format_cell(name, value) for value in values]


def _format_cell(name: str, value: Any) -> str:
    match value:
        case pd.Timestamp():
            return value.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        case float() if name.endswith("_s"):
            return f"{value:.3f}"
        case float():
            return format_number(value)
        case _:
            return str(value)


def _shown_columns(frame: pd.DataFrame) -> list[str] | None:
    """The columns to show; None where pandas shows the frame itself, since all fit or its rows are no calls."""
    limit = pd.get_option("display.max_columns")
    limit = _AUTO_COLUMNS if limit == 0 else limit
    if limit is None or len(frame.columns) <= limit or not _has_calls(frame):
        return None
    names = set(frame.columns)
    after_cost = SHOWN.index("cost_usd") + 1
    scores = sorted(str(name) for name in names if str(name).startswith("score_"))
    wanted = [name for name in (*SHOWN[:after_cost], *scores, *SHOWN[after_cost:]) if name in names]
    return [name for name in wanted if not len(frame) or frame[name].notna().any()]
