"""When calls happened, as a figure's axis shows it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

SPANS = ((180.0, 1.0, "seconds"), (3 * 3600.0, 60.0, "minutes"), (48 * 3600.0, 3600.0, "hours"))
"""Up to so many seconds, time is counted from the first call in this unit; beyond, dates are shown."""


def places(started: pd.Series[pd.Timestamp]) -> tuple[np.ndarray[Any, Any], str, bool]:
    """Where calls lie on the axis, what the axis says, and whether it shows dates."""
    started = utc(started)
    first, last = started.min(), started.max()
    span = (last - first).total_seconds()
    for limit, unit, name in SPANS:
        if span <= limit:
            since = (started - first).dt.total_seconds().to_numpy(dtype=float) / unit
            return since, f"{name} since the first call, {first:%Y-%m-%d %H:%M} UTC", False
    return cast(Any, date2num)(started.to_numpy()), "time (UTC)", True


def utc(started: pd.Series[pd.Timestamp]) -> pd.Series[pd.Timestamp]:
    """The same moments in UTC, without a zone."""
    return started.dt.tz_convert("UTC").dt.tz_localize(None) if started.dt.tz is not None else started


def dates(axes: Axes) -> None:
    """Ticks at round dates, said briefly."""
    new_locator, new_formatter = cast(Any, AutoDateLocator), cast(Any, ConciseDateFormatter)  # untyped in matplotlib
    locator = new_locator(minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(new_formatter(locator))
