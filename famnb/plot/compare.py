"""`famnb.plot.compare`: variants on the same prompts, pair by pair, with the interval of each difference."""

from __future__ import annotations

from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from famnb import stats
from famnb.formatting import format_count
from famnb.plot.canvas import Canvas
from famnb.plot.facets import Chart, LegendEntry
from famnb.plot.grouping import group_rows, numeric_column, require_columns
from famnb.plot.labels import (
    COLUMN_NAMES,
    axis_label,
    capitalize,
    column_name,
    format_metric_interval,
    no_rows_reason,
    shorten,
    simulation_note,
)

# More lines would hide the dots and the means.
MAX_JOINED_PAIRS = 60
"""Up to this many pairs are joined by lines."""
# Dots this many overlap anyway, and each is drawn and stored.
MAX_DOTS = 400
"""The most dots of a group, taken evenly in order of size."""


def compare(
    frame: pd.DataFrame,
    *,
    metric: str = "e2e_s",
    by: str = "model",
    pair: str = "prompt",
    ax: Axes | None = None,
) -> matplotlib.figure.Figure:
    """A row of dots for each value of the column `by`: one dot a value of `pair`, repeats averaged, joined across rows.

    x: the column `metric`, in its unit. The large mark is the mean over pairs with its 95% interval; the legend gives
    the mean paired difference from the first group, over the pairs that both have, with its interval: where that
    excludes 0, the two differ. KeyError for a column that is not there, ValueError for a metric that is no number.
    """
    require_columns(frame, by, metric, pair)
    codes, groups = group_rows(frame[by])
    values = numeric_column(frame, metric, f"measures are {', '.join(COLUMN_NAMES)}")
    known = ~np.isnan(values) & frame[pair].notna().to_numpy()
    pairs = pd.factorize(frame[pair])[0]
    long = pd.DataFrame({"group": codes[known], "pair": pairs[known], "value": values[known]})
    means = long.groupby(["pair", "group"])["value"].mean().unstack().reindex(columns=range(len(groups)))
    label, scale = axis_label(metric, float(np.nanmax(means.to_numpy())) if len(means) else 0.0)
    name, missing = column_name(metric), int((~known).sum())
    note = f"{missing:,} of {len(frame):,} calls have no {name} or no {pair} and are not compared."
    chart = Chart(
        title=f"{capitalize(name)} by {by}, paired by {pair}",
        x=label,
        notes=[*([note] if missing else []), *simulation_note(frame)],
        ax=ax,
        height_in=1.7 + 0.42 * len(groups),
    )
    if means.empty:
        return chart.finish_empty(no_rows_reason(frame, f"a {name} and a {pair}"))
    for canvas, _ in chart.panels(frame):
        _join_pairs(canvas, means * scale)
        entries = [_draw_group(canvas, index, group, means, metric, scale) for index, group in enumerate(groups)]
        _set_group_axis(canvas, groups)
        chart.add_legend(entries, f"{format_count(len(means), pair)}; mean with its 95% interval")
    return chart.finish()


def _join_pairs(canvas: Canvas, table: pd.DataFrame) -> None:
    """Draw faint lines from row to row, one a pair."""
    if len(table) > MAX_JOINED_PAIRS:
        return
    for _, row in table.iterrows():
        known = row.dropna()
        style: dict[str, Any] = {"color": canvas.palette.soft, "linewidth": 0.6, "alpha": 0.35}
        canvas.axes.plot(known.to_numpy(), list(known.index), zorder=1, **style)


def _draw_group(canvas: Canvas, index: int, group: str, table: pd.DataFrame, metric: str, scale: float) -> LegendEntry:
    """Draw one group's dots and mean; returns its line of the legend."""
    colour = canvas.palette.line_style(index)["color"]
    values = np.sort(table[index].dropna().to_numpy())
    style: dict[str, Any] = {"marker": "D", "markersize": 7, "color": colour, "markeredgecolor": canvas.palette.ground}
    handle = Line2D([], [], linestyle="none", **style)
    if not len(values):
        return LegendEntry(handle, f"{group} (n=0)")
    # Evenly by rank: the thinned dots keep the shape of the distribution, the ends included.
    ranks = np.unique(np.linspace(0, len(values) - 1, MAX_DOTS).round().astype(int))
    dots = values[ranks] * scale
    canvas.axes.plot(dots, [index] * len(dots), marker="o", markersize=4, linestyle="none", color=colour, alpha=0.4)
    mean = stats.mean(values)
    if mean.known:
        ends = [mean.low * scale, mean.high * scale]
        canvas.axes.plot(ends, [index] * 2, color=colour, linewidth=3, solid_capstyle="butt", zorder=4)
    canvas.axes.plot([mean.value * scale], [index], linestyle="none", zorder=5, **style)
    facts = [f"mean {format_metric_interval(metric, mean)}"]
    if index:
        facts.append(_difference_from_first(table, index, metric))
    return LegendEntry(handle, f"{group} (n={len(values):,})", facts)


def _difference_from_first(table: pd.DataFrame, index: int, metric: str) -> str:
    """How a group differs from the first, over the pairs that both have."""
    difference = stats.paired(table[0], table[index])
    if not difference.n:
        return "no pair in common with the first"
    sign = "+" if difference.value > 0 else ""
    interval = stats.Interval(difference.value, difference.low, difference.high, difference.n, difference.level)
    return f"{sign}{format_metric_interval(metric, interval)} over {format_count(difference.n, 'pair')}"


def _set_group_axis(canvas: Canvas, groups: list[str]) -> None:
    """Name the rows, the first on top."""
    axes = canvas.axes
    axes.set_yticks(range(len(groups)), [shorten(group, 28) for group in groups])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
