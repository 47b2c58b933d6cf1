"""The axis that shows when calls started: time since the first, or dates."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

UNITS_OF_TIME = ((180.0, 1.0, "seconds"), (3 * 3600.0, 60.0, "minutes"), (48 * 3600.0, 3600.0, "hours"))
"""Limit and unit in seconds, and the unit's name: calls that span up to the limit are placed by the time since the
first one, in that unit; beyond the last limit, by date."""


def time_positions(started: pd.Series[pd.Timestamp]) -> tuple[np.ndarray[Any, Any], str, bool]:
    """Where calls lie on the axis, the label of the axis, and whether it shows dates."""
    started = to_naive_utc(started)
    first, last = started.min(), started.max()
    span = (last - first).total_seconds()
    for limit, unit, name in UNITS_OF_TIME:
        if span <= limit:
            since = (started - first).dt.total_seconds().to_numpy(dtype=float) / unit
            return since, f"{name} since the first call, {first:%Y-%m-%d %H:%M} UTC", False
    return cast(Any, date2num)(started.to_numpy()), "time (UTC)", True


def to_naive_utc(started: pd.Series[pd.Timestamp]) -> pd.Series[pd.Timestamp]:
    """The same moments in UTC, without a zone; times without a zone are UTC already."""
    return started.dt.tz_convert("UTC").dt.tz_localize(None) if started.dt.tz is not None else started


def set_date_ticks(axes: Axes) -> None:
    """Set ticks at round dates, written briefly."""
    new_locator, new_formatter = cast(Any, AutoDateLocator), cast(Any, ConciseDateFormatter)  # untyped in matplotlib
    locator = new_locator(minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(new_formatter(locator))
