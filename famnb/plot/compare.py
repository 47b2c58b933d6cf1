"""`famnb.plot.compare`: variants on the same prompts, pair by pair, with the interval of each difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from famnb.errors import InvalidRequest
from famnb.experiment.comparison import bounded_mean, compare_two
from famnb.experiment.metrics import find_metric, read_bounds
from famnb.experiment.narrative import format_difference
from famnb.formatting import format_count
from famnb.plot.canvas import Canvas
from famnb.plot.facets import Chart, LegendEntry
from famnb.plot.grouping import group_rows, numeric_column, require_columns, select_calls
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
from famnb.plot.layout import FigureSize, Width
from famnb.validation import explain_arguments

LEVEL = 0.95
"""Of the intervals."""
# More lines would hide the dots and the means.
MAX_JOINED_PAIRS = 60
"""Up to this many pairs are joined by lines."""
# Dots this many overlap anyway, and each is drawn and stored.
MAX_DOTS = 400
"""The most dots of a group, taken evenly in order of size."""


@explain_arguments
def compare(
    frame: pd.DataFrame,
    *,
    metric: str = "e2e_s",
    by: str = "model",
    pair: str | None = None,
    baseline: str | None = None,
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
) -> matplotlib.figure.Figure:
    """A row of dots for each value of the column `by`: one dot a value of `pair`, repeats averaged, joined across rows.

    x: the column `metric`, in its unit. The large mark is the mean over pairs with its 95% interval; the legend gives
    what `Experiment.summary` compares, the mean paired difference from the group `baseline` (the first unless named),
    of costs the ratio to it, over the pairs that both have, with its interval: where that excludes 0, of a ratio 1,
    the two differ. What rests on estimated token counts has a thin line to the ends that hold it for
    certain, intervals that reach as far, and the mark `≈`. `pair` is a column; unless named, `prompt_id` for the calls
    of one experiment, else `prompt_hash`, which is the same for the same prompt anywhere, else `prompt`.
    KeyError for a column that is not there, ValueError for a metric that is no number or a baseline that is no group.
    """
    size = FigureSize.choose(figsize, width, ax)
    pair = _find_pair(frame) if pair is None else pair
    require_columns(frame, by, metric, pair)
    frame, left_out = select_calls(frame)
    codes, groups = group_rows(frame[by])
    first = next(iter(groups), "") if baseline is None else baseline
    if groups and first not in groups:
        raise InvalidRequest(
            f"baseline: there is no group {baseline!r} in the column {by!r}; it has {', '.join(groups)}"
        )
    values = numeric_column(frame, metric, f"measures are {', '.join(COLUMN_NAMES)}")
    known = ~np.isnan(values) & frame[pair].notna().to_numpy()
    measured = read_bounds(frame, metric)
    in_group = [pd.Series(known & (codes == index), index=frame.index) for index in range(len(groups))]
    calls = [measured.to_frame(mask, frame[pair]) for mask in in_group]
    means = pd.DataFrame({index: own["value"].groupby(level=0).mean() for index, own in enumerate(calls)})
    label, scale = axis_label(metric, float(np.nanmax(means.to_numpy())) if len(means) else 0.0)
    name, missing = column_name(metric), int((~known).sum())
    note = f"{missing:,} of {len(frame):,} calls have no {name} or no {pair} and are not compared."
    chart = Chart(
        title=f"{capitalize(name)} by {by}, paired by {pair}",
        x=label,
        notes=[*([note] if missing else []), *left_out, *simulation_note(frame)],
        ax=ax,
        size=size,
        by=by,
        groups=groups,
        height_in=1.7 + 0.42 * len(groups),
    )
    if means.empty:
        return chart.finish_empty(no_rows_reason(frame, f"a {name} and a {pair}"))
    for canvas, _ in chart.panels(frame):
        _join_pairs(canvas, means * scale)
        entries = [
            _draw_group(canvas, index, group, calls, groups.index(first), metric, scale)
            for index, group in enumerate(groups)
        ]
        _set_group_axis(canvas, groups)
        chart.add_legend(entries, f"{format_count(len(means), 'prompt')}; mean with its 95% interval")
    return chart.finish()


def _find_pair(frame: pd.DataFrame) -> str:
    """The column that says which calls ask the same."""
    is_one_experiment = "experiment" not in frame or frame["experiment"].nunique(dropna=False) == 1
    if "prompt_id" in frame and frame["prompt_id"].notna().any() and is_one_experiment:
        return "prompt_id"
    return "prompt_hash" if "prompt_hash" in frame and frame["prompt_hash"].notna().any() else "prompt"


def _join_pairs(canvas: Canvas, table: pd.DataFrame) -> None:
    """Draw faint lines from row to row, one a pair."""
    if len(table) > MAX_JOINED_PAIRS:
        return
    for _, row in table.iterrows():
        known = row.dropna()
        style: dict[str, Any] = {"color": canvas.palette.soft, "linewidth": 0.6, "alpha": 0.35}
        canvas.axes.plot(known.to_numpy(), list(known.index), zorder=1, **style)


def _draw_group(
    canvas: Canvas, index: int, group: str, calls: Sequence[pd.DataFrame], first: int, metric: str, scale: float
) -> LegendEntry:
    """Draw one group's dots and mean; returns its line of the legend."""
    colour = canvas.palette.line_style(index)["color"]
    means = calls[index].groupby(level=0).mean().sort_values("value")
    style: dict[str, Any] = {"marker": "D", "markersize": 7, "color": colour, "markeredgecolor": canvas.palette.ground}
    handle = Line2D([], [], linestyle="none", **style)
    if means.empty:
        return LegendEntry(handle, f"{group} (n=0)")
    # Evenly by rank: the thinned dots keep the shape of the distribution, the ends included.
    ranks = np.unique(np.linspace(0, len(means) - 1, MAX_DOTS).round().astype(int))
    drawn = means.iloc[ranks] * scale
    estimates = drawn[drawn["low"] < drawn["high"]]
    canvas.axes.hlines([index] * len(estimates), estimates["low"], estimates["high"], color=colour, lw=0.8, alpha=0.5)
    dots = drawn["value"].to_numpy()
    canvas.axes.plot(dots, [index] * len(dots), marker="o", markersize=4, linestyle="none", color=colour, alpha=0.4)
    mean = bounded_mean(calls[index], find_metric(metric), level=LEVEL)
    if mean.known:
        ends = [mean.low * scale, mean.high * scale]
        canvas.axes.plot(ends, [index] * 2, color=colour, linewidth=3, solid_capstyle="butt", zorder=4)
    canvas.axes.plot([mean.value * scale], [index], linestyle="none", zorder=5, **style)
    least, most = means["low"].mean(), means["high"].mean()
    facts = [f"mean {format_metric_interval(metric, mean, factor=most / least if least > 0 else 1.0)}"]
    if index != first:
        facts.append(_compare_with(calls[first], calls[index], metric))
    return LegendEntry(handle, f"{group} (n={len(means):,})", facts)


def _compare_with(first: pd.DataFrame, second: pd.DataFrame, metric: str) -> str:
    """How a group differs from the baseline, over the pairs that both have."""
    found = compare_two(find_metric(metric), first, second, level=LEVEL)
    if not found["n"]:
        return "no pair in common with the baseline"
    return f"{format_difference(found | {'metric': metric})} over {format_count(found['n'], 'pair')}"


def _set_group_axis(canvas: Canvas, groups: list[str]) -> None:
    """Name the rows, the first on top."""
    axes = canvas.axes
    axes.set_yticks(range(len(groups)), [shorten(group, 28) for group in groups])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
