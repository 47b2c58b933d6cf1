"""How a latency is distributed: one rising line a group, with its median and 95th percentile where n carries them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, PercentFormatter

from famnb.frame import CALLS
from famnb.plot.figure import Sheet
from famnb.plot.words import seconds, short, simulated

NAMES = {
    "ttfb_s": "time to response headers",
    "ttft_s": "time to first token",
    "ttfa_s": "time to first answer text",
    "think_s": "time spent thinking",
    "e2e_s": "time to the end of the reply",
    "icl_p50_s": "median inter-chunk latency",
    "icl_p95_s": "95th percentile of inter-chunk latency",
    "icl_max_s": "longest inter-chunk latency",
    "itl_s": "inter-token latency",
    "tpot_s": "time per output token",
    "output_tps": "output tokens per second",
}
UNITS = {column.name: column.unit for column in CALLS} | {"itl_s": "s"}
MARKS = ((0.5, "o", "○ median"), (0.95, "D", "◇ p95"))
"""The percentiles marked: each needs 1 / (1 - p) values."""
FEW = 12
"""Up to so many values each is shown as a dot."""
WIDE = 30.0
"""From this ratio of largest to smallest value on, the axis is logarithmic."""


def latency(
    frame: pd.DataFrame, *, by: str = "model", metric: str = "ttft_s", ax: Axes | None = None
) -> matplotlib.figure.Figure:
    """The share of calls that were at most so slow (ECDF), one line for each value of the column `by`.

    x: the column `metric`, in its unit; y: share of the calls that have it. A percentile is marked and named only
    where n values carry it, n >= 1 / (1 - p); n stands in the legend, and calls without a value in a footnote.
    """
    for column in (by, metric):
        if column not in frame.columns:
            raise KeyError(f"the frame has no column {column!r}; it has {', '.join(map(str, frame.columns))}")
    try:
        values = pd.Series(frame[metric].to_numpy(dtype=float, na_value=np.nan), index=frame.index)
    except (TypeError, ValueError):
        raise ValueError(f"metric: the column {metric!r} holds no numbers; latencies are {', '.join(NAMES)}") from None
    name = NAMES.get(metric, metric)
    title = f"{name[:1].upper()}{name[1:]} by {by}"
    sheet = Sheet.of(ax)
    if not values.notna().any():
        sheet.words(title=title)
        why = f"none of these {len(frame):,} calls has a {name}" if len(frame) else "there are no calls in this frame"
        sheet.empty(f"Nothing to draw: {why}.")
        return sheet.done(f"{title}: {why}")
    scale, unit = _unit(metric, values)
    groups = _groups(frame[by], values)
    handles: list[Artist] = []
    rows: list[list[str]] = []
    for place, (group, sorted_values) in enumerate(groups.items()):
        handles.append(_curve(sheet, place, sorted_values * scale))
        rows.append(_facts(group, sorted_values, seconds if unit.endswith("s") else "{:.3g}".format))
    _axis(sheet, values.dropna() * scale)
    sheet.words(title=title, x=f"{name} ({unit})" if unit else name, y="share of calls")
    sheet.foot(handles, rows, [*_missing(values, name), *simulated(frame)])
    return sheet.done(f"{title}: {'; '.join(', '.join(row) for row in rows)}")


def _unit(metric: str, values: pd.Series[float]) -> tuple[float, str]:
    unit = UNITS.get(metric, "")
    if unit.startswith("s") and values.max() < 1:
        return 1e3, f"m{unit}"
    return 1.0, unit


def _groups(by: pd.Series[str], values: pd.Series[float]) -> dict[str, np.ndarray[Any, Any]]:
    """Each group's values in ascending order; groups without any stay, to be named."""
    names = by.astype("string").fillna("(none)")
    return {str(name): np.sort(values[names == name].dropna().to_numpy()) for name in sorted(names.unique())}


def _curve(sheet: Sheet, place: int, values: np.ndarray[Any, Any]) -> Artist:
    line = sheet.ink.line(place)
    handle = Line2D([], [], linewidth=2, **line)
    n = len(values)
    if not n:
        return handle
    shares = np.arange(1, n + 1) / n
    axes = sheet.axes
    axes.step(
        np.concatenate([values[:1], values]), np.concatenate([[0.0], shares]), where="post", linewidth=1.8, **line
    )
    if n <= FEW:
        axes.plot(values, shares, marker="o", markersize=4, linestyle="none", color=line["color"])
    for p, marker, _ in MARKS:
        if _carries(n, p):
            at = float(np.quantile(values, p))
            axes.plot(
                [at],
                [p],
                marker=marker,
                markersize=7.5,
                markerfacecolor=sheet.ink.ground,
                markeredgecolor=line["color"],
                markeredgewidth=1.8,
                zorder=5,
                clip_on=False,
            )
    return handle


def _carries(n: int, p: float) -> bool:
    return n >= 1 / (1 - p) - 1e-9


def _facts(group: str, values: np.ndarray[Any, Any], shown: Callable[[float], str]) -> list[str]:
    """A group's line of the legend: its name with n, and what n carries."""
    n = len(values)
    facts = [f"{name} {shown(float(np.quantile(values, p)))}" for p, _, name in MARKS if _carries(n, p)]
    return [f"{short(group)} (n={n:,})", *([shown(float(values[0]))] if n == 1 else facts)]


def _axis(sheet: Sheet, values: pd.Series[float]) -> None:
    axes = sheet.axes
    axes.set_ylim(0, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    low, high = values.min(), values.max()
    if low > 0 and high / low >= WIDE:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter("")
        axes.set_xlim(low / 1.3, high * 1.3)
    else:
        axes.set_xlim(0, high * 1.05 if high > 0 else 1)


def _missing(values: pd.Series[float], name: str) -> list[str]:
    count = int(values.isna().sum())
    return [f"{count:,} of {len(values):,} calls have no {name} and are not in the shares."] if count else []
