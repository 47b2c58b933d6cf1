"""`famnb.plot.pareto`: cost, latency and score of each group, and which groups no other beats."""

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
from famnb.plot.facets import Chart, LegendEntry
from famnb.plot.grouping import group_rows, numeric_column, require_columns
from famnb.plot.labels import (
    axis_label,
    capitalize,
    column_name,
    format_metric_interval,
    no_rows_reason,
    simulation_note,
)
from famnb.plot.palette import COLOURS

MARKERS = "oDs^"
"""The first seven groups have the first marker, the next seven the second: after seven, colours repeat."""
SHARE_COLUMNS = ("score_votes",)
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
    require_columns(frame, by, cost, latency, score)
    columns = [cost, latency, *([score] if score else [])]
    values = {name: numeric_column(frame, name, "expected numbers") for name in columns}
    codes, groups = group_rows(frame[by])
    points: dict[int, list[stats.Interval]] = {}
    for index in range(len(groups)):
        known = [np.sort(values[name][(codes == index) & ~np.isnan(values[name])]) for name in columns]
        # Left out of the front as well: NaN compares as False with everything, so no other group would beat it.
        if all(map(len, known)):
            points[index] = [
                stats.median(numbers) if name == latency else _mean(name, numbers, is_score=name == score)
                for name, numbers in zip(columns, known, strict=True)
            ]
    # More is better of a score alone.
    losses = [[point[0].value, point[1].value, *(-value.value for value in point[2:])] for point in points.values()]
    unbeaten = {index for index, is_unbeaten in zip(points, find_front(np.array(losses)), strict=True) if is_unbeaten}
    up = columns.index(score or latency)
    label, scale = axis_label(columns[up], max((point[up].value for point in points.values()), default=0.0))
    names = [column_name(column) for column in columns]
    missing = [group for index, group in enumerate(groups) if index not in points]
    note = f"Not placed, for want of {' or '.join(names)}: {', '.join(missing)}."
    chart = Chart(
        title=f"{capitalize(names[up])} against {names[0]} by {by}",
        x=f"mean {names[0]} a call (USD)" if cost == "cost_usd" else f"mean {names[0]}",
        y=f"mean {label}" if score else f"median {label}",
        notes=[*([note] if missing else []), *simulation_note(frame)],
        ax=ax,
    )
    if not points:
        return chart.finish_empty(no_rows_reason(frame, " and ".join(names)))
    for canvas, _ in chart.panels(frame):
        entries = []
        for index, point in points.items():
            handle = _draw_point(canvas, index, point[0], point[up], scale, is_filled=index in unbeaten)
            facts = [format_metric_interval(column, value) for column, value in zip(columns, point, strict=True)]
            n = min(value.n for value in point)
            entries.append(LegendEntry(handle, f"{groups[index]} (n={n:,})", facts))
        if not score:
            _draw_front(canvas, [points[index] for index in unbeaten], scale)
        if cost == "cost_usd":
            canvas.axes.xaxis.set_major_formatter(FuncFormatter(_format_usd_tick))
        canvas.axes.margins(0.08, 0.15)
        # After the margins, which would move them. A score may be negative.
        canvas.axes.set_xlim(left=0)
        if not score:
            canvas.axes.set_ylim(bottom=0)
        chart.add_legend(entries, f"filled: on the front, no other is better in {' and '.join(names)}")
    return chart.finish()


def find_front(losses: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which rows no other row beats: none is at most as large in every column and smaller in one."""
    if not len(losses):
        return np.zeros(0, dtype=bool)
    no_worse = (losses[:, None] <= losses[None]).all(axis=2)
    better = (losses[:, None] < losses[None]).any(axis=2)
    return np.asarray(~(no_worse & better).any(axis=0))


def _mean(column: str, values: np.ndarray[Any, Any], *, is_score: bool) -> stats.Interval:
    """The mean of a column, with its interval; of yes and no with Wilson's, which 20 of 20 have as well."""
    if is_score and np.isin(values, (0, 1)).all():
        return stats.proportion(int(values.sum()), len(values))
    mean = stats.mean(values)
    if column not in SHARE_COLUMNS or not mean.known:
        return mean
    return dataclasses.replace(mean, low=max(mean.low, 0.0), high=min(mean.high, 1.0))


def _draw_point(
    canvas: Canvas, index: int, x: stats.Interval, y: stats.Interval, scale: float, *, is_filled: bool
) -> Line2D:
    """Draw a cross of intervals with a marker in the middle; returns one like it for the legend."""
    colour = canvas.palette.line_style(index)["color"]
    thin: dict[str, Any] = {"color": colour, "linewidth": 1.2, "alpha": 0.7}
    if x.known:
        # No cost is below 0, though Student's interval of a mean may reach there.
        canvas.axes.plot([max(x.low, 0), x.high], [y.value * scale] * 2, **thin)
    if y.known:
        canvas.axes.plot([x.value] * 2, [y.low * scale, y.high * scale], **thin)
    style: dict[str, Any] = {
        "marker": MARKERS[index // len(COLOURS) % len(MARKERS)],
        "markersize": 8,
        "linestyle": "none",
        "markeredgecolor": colour,
        "markerfacecolor": colour if is_filled else canvas.palette.ground,
        "markeredgewidth": 1.8,
    }
    canvas.axes.plot([x.value], [y.value * scale], zorder=5, **style)
    return Line2D([], [], **style)


def _draw_front(canvas: Canvas, points: list[list[stats.Interval]], scale: float) -> None:
    """Join the points of the front by dashed steps."""
    if len(points) < 2:
        return
    x, y = np.array(sorted((point[0].value, point[1].value) for point in points)).T
    style: dict[str, Any] = {"color": canvas.palette.soft, "linewidth": 1, "linestyle": (0, (4, 3))}
    canvas.axes.step(x, y * scale, where="post", zorder=1, **style)


def _format_usd_tick(value: float, _: int) -> str:
    return format_usd(value) if value > 0 else "$0"
