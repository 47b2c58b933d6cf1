"""Which choices nobody beats: cost, latency and score of each group, and the Pareto front among them."""

from __future__ import annotations

import dataclasses
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from famnb import stats
from famnb.formatting import format_usd
from famnb.plot.canvas import Canvas
from famnb.plot.facets import Drawn, Key, Picture, no_rows, show
from famnb.plot.grouping import grouped, need, numbers
from famnb.plot.labels import axis, called, capital, simulated, with_interval

MARKERS = "oD"
SHARES = ("score_votes",)
"""Columns of shares: a mean of them is between 0 and 1, so its interval is too."""


def pareto(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    cost: str = "cost_usd",
    latency: str = "e2e_s",
    score: str | None = None,
    ax: Axes | None = None,
) -> matplotlib.figure.Figure:
    """One point for each value of the column `by`, with 95% intervals; filled where no other is better in all ways.

    x: mean of the column `cost` (less is better). y: median of `latency` (less is better), or with `score` the mean of
    that column (more is better), the median latency then being in the legend; the front is taken over all of them.
    Groups lacking any of them are named in a footnote. KeyError for a column that is not there.
    """
    need(frame, by, cost, latency, score)
    codes, names = grouped(frame[by])
    columns = [cost, latency, *([score] if score else [])]
    values = {name: numbers(frame, name, "expected numbers") for name in columns}
    points: dict[int, list[stats.Interval]] = {}
    for place in range(len(names)):
        found = [np.sort(values[name][(codes == place) & ~np.isnan(values[name])]) for name in columns]
        if all(map(len, found)):
            points[place] = [
                stats.median(v) if name == latency else _mean(name, v, scored=name == score)
                for name, v in zip(columns, found, strict=True)
            ]
    best = front(np.array([[p[0].value, p[1].value, *(-p.value for p in p[2:])] for p in points.values()]))
    on_front = {place for place, good in zip(points, best, strict=True) if good}
    up = score or latency
    largest = [max((p[i].value for p in points.values()), default=0.0) for i in (0, columns.index(up))]
    (_, _), (y_label, y_scale) = axis(cost, largest[0]), axis(up, largest[1])

    def draw(sheet: Canvas, _: pd.DataFrame) -> Drawn:
        keys = []
        for place, found in points.items():
            handle = _point(sheet, place, found[0], found[columns.index(up)], y_scale, good=place in on_front)
            facts = [f"{with_interval(name, one)}" for name, one in zip(columns, found, strict=True)]
            keys.append(Key(handle, f"{names[place]} (n={min(one.n for one in found):,})", facts))
        chosen = sorted((points[place][0].value, points[place][1].value) for place in on_front)
        if not score and len(chosen) > 1:
            x, y = np.array(chosen).T
            sheet.axes.step(
                x, y * y_scale, where="post", color=sheet.ink.soft, linewidth=1, linestyle=(0, (4, 3)), zorder=1
            )
        if cost == "cost_usd":
            sheet.axes.xaxis.set_major_formatter(
                FuncFormatter(lambda value, _: format_usd(value) if value > 0 else "$0")
            )
        sheet.axes.margins(0.08, 0.15)
        sheet.axes.set_xlim(left=0)
        if not score:
            sheet.axes.set_ylim(bottom=0)
        return Drawn(keys, f"filled: on the front, no other is better in {' and '.join(map(called, columns))}")

    lost = [name for place, name in enumerate(names) if place not in points]
    notes = [f"Not placed, for want of {' or '.join(map(called, columns))}: {', '.join(lost)}."] if lost else []
    title = f"{capital(called(up))} against {called(cost)} by {by}"
    why = "" if points else no_rows(frame, f"{' and '.join(map(called, columns))}")
    y = f"mean {y_label}" if score else f"median {y_label}"
    picture = Picture(
        title,
        f"mean {called(cost)} a call (USD)" if cost == "cost_usd" else f"mean {called(cost)}",
        y,
        draw,
        why,
        [*notes, *simulated(frame)],
    )
    return show(picture, frame, facet=None, ax=ax)


def front(losses: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which rows no other row beats: none is at most as large in every column and smaller in one."""
    if not len(losses):
        return np.zeros(0, dtype=bool)
    no_worse = (losses[:, None] <= losses[None]).all(axis=2)
    better = (losses[:, None] < losses[None]).any(axis=2)
    return np.asarray(~(no_worse & better).any(axis=0))


def _mean(column: str, values: np.ndarray[Any, Any], *, scored: bool) -> stats.Interval:
    """The mean of a column, with its interval; of yes and no with Wilson's, which 20 of 20 have as well."""
    if scored and np.isin(values, (0, 1)).all():
        return stats.proportion(int(values.sum()), len(values))
    found = stats.mean(values)
    if column not in SHARES or not found.known:
        return found
    return dataclasses.replace(found, low=max(found.low, 0.0), high=min(found.high, 1.0))


def _point(sheet: Canvas, place: int, x: stats.Interval, y: stats.Interval, scale: float, *, good: bool) -> Line2D:
    """A cross of intervals with a marker in the middle; returns one like it for the legend."""
    colour = sheet.ink.line(place)["color"]
    thin: dict[str, Any] = {"color": colour, "linewidth": 1.2, "alpha": 0.7}
    if x.known:
        sheet.axes.plot([max(x.low, 0), x.high], [y.value * scale] * 2, **thin)
    if y.known:
        sheet.axes.plot([x.value] * 2, [y.low * scale, y.high * scale], **thin)
    look: dict[str, Any] = {
        "marker": "oDs^"[place // 7 % 4],
        "markersize": 8,
        "linestyle": "none",
        "markeredgecolor": colour,
        "markerfacecolor": colour if good else sheet.ink.ground,
        "markeredgewidth": 1.8,
    }
    sheet.axes.plot([x.value], [y.value * scale], zorder=5, **look)
    return Line2D([], [], **look)
