"""How a latency is distributed: one rising line a group, with its median and 95th percentile where n carries them."""

from __future__ import annotations

from typing import Any, Literal

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from famnb import stats
from famnb.plot.canvas import Canvas
from famnb.plot.ecdf import curve, percents
from famnb.plot.facets import Drawn, Key, Picture, no_rows, show
from famnb.plot.grouping import grouped, moments, need, numbers
from famnb.plot.labels import NAMES, axis, called, capital, measured, simulated, with_interval

MARKS = ((0.5, "o", "○ median"), (0.95, "D", "◇ p95"))
"""The percentiles marked: each needs 1 / (1 - p) values."""


def latency(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    metric: str = "ttft_s",
    over: Literal["hour"] | None = None,
    facet: str | None = None,
    ax: Axes | None = None,
) -> matplotlib.figure.Figure:
    """The share of calls that were at most so slow (ECDF), one line for each value of the column `by`.

    x: the column `metric`, in its unit; y: share of the calls that have it. A percentile is marked, with its 95%
    interval, only where n values carry it, n >= 1 / (1 - p); n stands in the legend, and calls without a value in a
    footnote. With `over="hour"` x is the hour of the day at which a call started, in the column's own time zone, and y
    each hour's median and 95th percentile. `facet` draws a panel for each value of a column; `ax` draws into that axes.
    KeyError for a column that is not there, ValueError for a metric that is no number.
    """
    need(frame, by, metric, facet, "started_at" if over else None)
    if over not in (None, "hour"):
        raise ValueError(f"over: expected 'hour' or None, got {over!r}")
    values = numbers(frame, metric, f"latencies are {', '.join(NAMES)}")
    codes, names = grouped(frame[by])
    rows = pd.DataFrame({"group": codes, "value": values})
    known = values[~np.isnan(values)]
    name = called(metric)
    label, scale = axis(metric, float(known.max()) if len(known) else 0)
    title = f"{capital(name)} by {by}"
    notes = [*_missing(values, name), *simulated(frame)]
    why = "" if len(known) else no_rows(frame, f"a {name}")
    parts = facet and (facet, frame[facet].reset_index(drop=True))

    def shares(sheet: Canvas, part: pd.DataFrame) -> Drawn:
        keys = []
        for place, group in enumerate(names):
            found = np.sort(part["value"].to_numpy()[(part["group"] == place).to_numpy()])
            found = found[: len(found) - int(np.isnan(found).sum())]
            marks = [(mark, stats.percentile(found, mark[0])) for mark in MARKS if stats.carries(len(found), mark[0])]
            keys.append(_key(sheet, place, group, found, metric, marks, scale))
        percents(sheet, known * scale)
        return Drawn(keys)

    if over is None:
        return show(Picture(title, label, "share of calls", shares, why, notes), rows, facet=parts or None, ax=ax)
    started = moments(frame)
    rows["hour"] = started.dt.hour.to_numpy()
    zone = f"hour of the day ({started.dt.tz or 'no time zone'}) in which the call started"

    def hours(sheet: Canvas, part: pd.DataFrame) -> Drawn:
        keys = [
            _hourly(sheet, place, len(names), group, part[part["group"] == place].dropna(), metric, scale)
            for place, group in enumerate(names)
        ]
        sheet.axes.set_xticks(range(0, 25, 3))
        sheet.axes.set_xlim(-0.3, 24)
        sheet.axes.set_ylim(bottom=0)
        return Drawn(keys, "○ median and its interval · ◇ p95, where 20 calls or more carry it")

    return show(Picture(f"{title} and hour", zone, label, hours, why, notes), rows, facet=parts or None, ax=ax)


def _key(
    sheet: Canvas,
    place: int,
    group: str,
    values: np.ndarray[Any, Any],
    metric: str,
    marks: list[tuple[tuple[float, str, str], stats.Interval]],
    scale: float,
) -> Key:
    """Draw a group's line and its percentiles; its line of the legend."""
    handle = curve(sheet, place, values * scale)
    colour = handle.get_color()
    for (p, marker, _), found in marks:
        at, low, high = found.value * scale, found.low * scale, found.high * scale
        if found.known:
            sheet.axes.plot([low, high], [p, p], color=colour, linewidth=5, alpha=0.3, solid_capstyle="butt", zorder=4)
        sheet.axes.plot([at], [p], marker=marker, zorder=5, clip_on=False, **_hollow(sheet, colour))
    facts = [f"{mark[2]} {with_interval(metric, found)}" for mark, found in marks]
    alone = [measured(metric, float(values[0]))] if len(values) == 1 else facts
    return Key(handle, _named(sheet, group, len(values)), alone)


def _hourly(sheet: Canvas, place: int, groups: int, group: str, rows: pd.DataFrame, metric: str, scale: float) -> Key:
    """Draw a group's median and 95th percentile of each hour, moved a little so that groups do not hide each other."""
    line = sheet.ink.line(place)
    (handle,) = sheet.axes.plot([], [], marker="o", markersize=4, linewidth=1.4, **line)
    middles: list[tuple[float, float]] = []
    for hour, part in rows.groupby("hour"):
        values = np.sort(part["value"].to_numpy())
        x = float(str(hour)) + 0.5 + (0.5 * (place - (groups - 1) / 2) / groups)
        if not stats.carries(len(values), 0.5):
            sheet.axes.plot([x], values * scale, marker="x", markersize=4, color=line["color"])
            continue
        found = stats.percentile(values, 0.5)
        middles.append((x, found.value * scale))
        if found.known:
            sheet.axes.plot([x, x], [found.low * scale, found.high * scale], color=line["color"], linewidth=1.6)
        if stats.carries(len(values), 0.95):
            high = stats.percentile(values, 0.95).value * scale
            sheet.axes.plot([x], [high], marker="D", **_hollow(sheet, line["color"], 5))
    if middles:
        sheet.axes.plot(*zip(*middles, strict=True), marker="o", markersize=4, linewidth=0.9, **line)
    facts = [f"median {measured(metric, float(rows['value'].median()))} in all"] if len(rows) > 1 else []
    return Key(handle, _named(sheet, group, len(rows)), facts)


def _named(sheet: Canvas, group: str, n: int) -> str:
    return group if sheet.panel else f"{group} (n={n:,})"


def _hollow(sheet: Canvas, colour: Any, size: float = 7.5) -> dict[str, Any]:
    ground = sheet.ink.ground
    return {"markersize": size, "markerfacecolor": ground, "markeredgecolor": colour, "markeredgewidth": 1.8}


def _missing(values: np.ndarray[Any, Any], name: str) -> list[str]:
    gone = int(np.isnan(values).sum())
    return [f"{gone:,} of {len(values):,} calls have no {name} and are not in the shares."] if gone else []
