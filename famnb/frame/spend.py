"""The frame of spending: sums of calls, tokens and costs by period, model, endpoint and the like."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from typing import Any, Unpack

import numpy as np
import pandas as pd

from famnb.errors import InvalidRequest
from famnb.formatting import escape_html, format_count, format_estimate, format_sum, format_table, html_table
from famnb.frame.calls import calls
from famnb.frame.columns import BOUNDED_COUNTS, SPEND, format_columns
from famnb.record import Ledger
from famnb.record.filters import Filters
from famnb.record.ledger import HasLedger
from famnb.record.price import UNMADE_ERRORS
from famnb.validation import check_zone

PERIODS = {"hour": "h", "day": "D", "week": "W-SUN", "month": "M"}
"""Each with pandas' name for it; `W-SUN` ends on Sunday, so it begins on Monday."""
COLUMNS = ("model", "endpoint", "status", "service", "profile", "experiment", "variant", "tag")
PRICING_COLUMNS = ("status", "http_status", "error", "attempts")
"""What `is_unpriced` needs besides the cost."""
_SUMS = [column.name for column in SPEND if not column.name.endswith("calls")]


def spend(
    ledger: Ledger | str | os.PathLike[str] | HasLedger | None = None,
    *,
    by: str | Iterable[str] = "day",
    tz: str = "UTC",
    **filters: Unpack[Filters],
) -> pd.DataFrame:
    """What calls cost, one row for each value of `by`, those without calls left out.

    `by` is one or several of hour, day, week (from Monday), month, model, endpoint, status, service, profile,
    experiment, variant, tag. A period is named by the wall time at which it begins in the time zone `tz`, such as
    "Europe/Paris". The filters are those of `calls`: since, until, model, endpoint, profile, experiment, variant, tag,
    status.
    A sum is missing where none of its calls has the figure, and counts only those that have; with `unpriced_calls` it
    is the least that was spent. `simulated_calls` were not billed. ValueError for an unknown `by` or `tz`,
    LedgerError if the file cannot be read.
    The columns after those of `by`:
    """
    keys = list(dict.fromkeys(by)) if isinstance(by, Iterable) and not isinstance(by, str) else [by]
    names = (*PERIODS, *COLUMNS)
    if not keys or not set(keys) <= set(names):
        raise InvalidRequest(f"by: expected one or several of {', '.join(names)}; got {by!r}")
    check_zone("tz", tz)
    columns = [key for key in keys if key in COLUMNS]
    frame = calls(ledger, **filters, columns=[*columns, "started_at", "simulated", *PRICING_COLUMNS, *_SUMS])
    for key in keys:
        if key in PERIODS:
            # A pandas period has no time zone (2.x drops it with a warning); the wall time is what names it.
            local = frame["started_at"].dt.tz_convert(tz).dt.tz_localize(None)
            frame[key] = local.dt.to_period(PERIODS[key]).dt.start_time.astype("datetime64[us]")
    frame = frame.assign(
        calls=1, unpriced_calls=is_unpriced(frame).astype(int), simulated_calls=frame["simulated"].fillna(False)
    )
    grouped = frame.groupby(keys, observed=True, dropna=False)
    # Without `min_count` the sum of nothing would be 0, which reads as a known cost of nothing.
    sums = grouped[[column.name for column in SPEND]].sum(min_count=1)
    for count in BOUNDED_COUNTS:
        # Missing, too, where a count has no upper end.
        is_open = frame[f"{count}_low"].notna() & frame[f"{count}_high"].isna()
        has_open = is_open.groupby([frame[key] for key in keys], observed=True, dropna=False).any()
        sums[f"{count}_high"] = sums[f"{count}_high"].mask(has_open)
    return SpendFrame(sums.astype({column.name: column.dtype for column in SPEND}).reset_index())


_LEGEND = "Spent in USD; ≈ and “at most” where counts are estimates. `.columns` has all that there is."


class SpendFrame(pd.DataFrame):
    """A frame of spending, which shows itself with what was spent first, as wide as a page; else a plain DataFrame."""

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Who reads the pickle need not have famnb.
        return pd.DataFrame, (), self.__getstate__()

    def __repr__(self) -> str:
        return f"{format_table(*self._format_rows(), left=self._keys)}\n\n{_LEGEND}"

    def _repr_html_(self) -> str:
        return f"{html_table(*self._format_rows(), left=self._keys)}<p>{escape_html(_LEGEND)}</p>"

    @property
    def _keys(self) -> int:
        return len(self.columns) - len(SPEND)

    def _format_rows(self) -> tuple[list[str], list[list[str]]]:
        keys = list(map(str, self.columns[: self._keys]))
        rows = []
        for row in self.to_dict("records"):
            known = {name: math.nan if pd.isna(value) else value for name, value in row.items() if name not in keys}
            values = [row[key] for key in keys]
            names = [
                f"{value:%Y-%m-%d %H:%M}".removesuffix(" 00:00") if key in PERIODS else str(value)
                for key, value in zip(keys, values, strict=True)
            ]
            spent = format_sum(
                *(known[name] for name in ("cost_usd", "cost_low_usd", "cost_high_usd")),
                calls=row["calls"],
                unpriced=row["unpriced_calls"],
            )
            counts = [
                format_estimate(known[count], known[f"{count}_low"], high, format_count, brief=True)
                for count in BOUNDED_COUNTS
                # A count without an upper end has a low one alone.
                for high in [np.nan_to_num(known[f"{count}_high"], nan=math.inf)]
            ]
            rows.append([*names, spent, f"{row['calls']:,}", *counts])
        return [*keys, "spent", "calls", *(count.replace("_", " ") for count in BOUNDED_COUNTS)], rows


spend.__doc__ = f"{spend.__doc__}\n{format_columns(SPEND)}\n"


def is_unpriced(frame: pd.DataFrame) -> pd.Series[bool]:
    """Which calls cost something that nobody knows: they are over, may have been billed, and have no cost.

    A call that was refused, that no service accepted or that was never sent costs nothing; a planned or a running one
    has cost nothing yet. One to which no response came may have been billed. `frame` has `cost_usd` and those of
    PRICING_COLUMNS there are; without `http_status` only answered calls count.
    """
    if "status" not in frame:
        return frame["cost_usd"].isna()
    if "http_status" not in frame:
        return (frame["cost_usd"].isna() & frame["status"].isin(("completed", "incomplete"))).astype(bool)
    is_over = ~frame["status"].isin(("planned", "running"))
    is_answered = frame["http_status"].between(200, 299).fillna(False)
    if {"error", "attempts"} <= set(frame.columns):
        was_sent = frame["attempts"].ne(0).fillna(True) & ~frame["error"].isin(UNMADE_ERRORS)
        is_answered |= frame["http_status"].isna() & was_sent
    return (frame["cost_usd"].isna() & is_over & is_answered).astype(bool)
