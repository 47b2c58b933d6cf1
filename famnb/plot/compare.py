"""`famnb.plot.compare`: groups on the same prompts, and beside them their paired differences from a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from famnb.errors import InvalidRequest
from famnb.experiment.comparison import bounded_mean, compare_variants, judge, to_records
from famnb.experiment.metrics import RATIO, find_metric, measure_column, read_bounds
from famnb.experiment.narrative import format_difference
from famnb.formatting import FormatValue, capitalize, format_count, format_interval
from famnb.plot.canvas import Canvas
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.effects import (
    NARROW_IN,
    draw_effect,
    draw_reference,
    mark_style,
    no_room_note,
    rows_that_fit,
    set_difference_axis,
)
from famnb.plot.explore import show_points
from famnb.plot.grouping import PROMPT_COLUMNS, group_rows, numeric_column, prompt_column, require_columns, select_calls
from famnb.plot.labels import UNITS, axis_label, column_name, format_in, no_rows_reason, simulation_note
from famnb.plot.layout import LABEL_PT, FigureSize, Width, fit_text
from famnb.stats import Interval, min_values
from famnb.stats.differences import average_repeats

LEVEL = 0.95
"""Of the intervals."""
# Dots this many overlap anyway, and each is drawn and stored.
MAX_DOTS = 400
"""The most dots of a group, taken evenly in order of size."""
# The dots of more pairs reach so far that the interval of their mean would be too short to be read.
MAX_PAIR_DOTS = 60
"""Up to this many pairs, each one's difference is a dot."""
GROUP_HEIGHT_IN = 0.4
"""The height of a row, in inches."""
_GOLDEN = (5**0.5 - 1) / 2


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
    interactive: bool = False,
) -> matplotlib.figure.Figure:
    """Each value of the column `by` on the same prompts, and its paired difference from the group `baseline`.

    Left, x: the column `metric`, in its unit; a dot a prompt, repeats averaged, and the mean over prompts with its 95%
    interval; of costs that is by answer, with what failed calls cost, which a dot of other calls has not. Right, in the
    same unit: what `Experiment.summary` compares, the mean paired difference from the group `baseline` (the first
    unless named), of costs the ratio to it, over the prompts that both have, with its interval. Filled is clear, after
    Holm's adjustment for all differences that are drawn; hollow is not clear. Of up to 60 pairs each has a dot. What
    rests on estimated token counts has a thin line to the ends that hold it for certain, intervals that reach as far,
    and the mark `≈`. Scores of an experiment's failed calls count as in its summary.

    `pair` is the column that says which calls ask the same; unless named, `prompt_id` for the calls of one experiment,
    else `prompt_hash`, which is the same for the same prompt anywhere, else `prompt`. Into the caller's `ax` goes the
    left part; `.caption` has the differences. `interactive` returns a widget instead, each call a point at
    its start and its value, as `explore` does. KeyError for a column that is not there, ValueError for a metric that is
    not a number or a baseline that is not a group.
    """
    if interactive:
        return show_points(frame, x="started_at", y=metric, by=by, figsize=figsize, width=width, ax=ax)
    size = FigureSize.choose(figsize, width, ax)
    pair = (prompt_column(frame) or "prompt") if pair is None else pair
    require_columns(frame, by, metric, pair)
    frame, left_out = select_calls(frame)
    codes, groups = group_rows(frame[by])
    if groups and baseline is not None and baseline not in groups:
        raise InvalidRequest(
            f"baseline: there is no group {baseline!r} in the column {by!r}; it has {', '.join(groups)}"
        )
    first = groups.index(baseline) if groups and baseline is not None else 0
    numeric_column(frame, metric, "measures are columns of numbers such as e2e_s and cost_usd")
    measured = measure_column(frame, metric, by=by)
    # Numbers rather than names: a prompt is looked up several times for every group.
    rows = pd.DataFrame(
        {
            "variant": pd.Categorical.from_codes(codes, pd.RangeIndex(len(groups))),
            "prompt_id": pd.factorize(frame[pair])[0],
        },
        index=frame.index,
    )
    known = measured.value.notna() & (rows["prompt_id"] >= 0)
    measured = measured.where(known)
    drawn = measured
    if find_metric(metric).statistic == RATIO:
        # In the mean, all answers share what failed calls cost; a dot is what the calls of one prompt cost themselves.
        drawn = read_bounds(frame, metric)
        drawn = drawn.where(known & (drawn.value > 0))
    calls, drawn_calls = (
        [values.to_frame(rows["variant"] == index, rows["prompt_id"]) for index in range(len(groups))]
        for values in (measured, drawn)
    )
    means, dots = ([average_repeats(table) for table in tables] for tables in (calls, drawn_calls))
    overall = {
        index: bounded_mean(rows_of_group, find_metric(metric), level=LEVEL)
        for index, rows_of_group in enumerate(calls)
        if len(means[index])
    }
    others = [index for index in range(len(groups)) if index != first]
    differences: dict[int, dict[str, Any]] = {}
    if others:
        pairs: list[tuple[Any, Any]] = [(first, index) for index in others]
        compared = compare_variants(
            rows, {find_metric(metric): measured}, pairs, baseline=str(first), primary=metric, level=LEVEL
        )
        # Judged as an experiment's are.
        differences = {int(row["second"]): row for row in to_records(judge(compared, LEVEL))}
    largest = max((float(table["value"].max()) for table in means if len(table)), default=0.0)
    label, scale = axis_label(metric, largest)
    name, missing = column_name(metric), int((~known).sum())
    paired_by = "prompt" if pair in PROMPT_COLUMNS else pair
    calls_missing = f"{missing:,} of {format_count(len(frame), 'call')}"
    missing_note = f"{calls_missing} have no {name} or no {paired_by} and are not compared."
    room = rows_that_fit(size) if ax is None else None
    # All, or in a given height the baseline and as many others as there is room for.
    shown = sorted([first, *others[: None if room is None else room - 1]]) if groups else []
    alone = [groups[index] for index, row in differences.items() if not row["n"]]
    is_paired = not differences or len(alone) < len(differences)
    who = f"{', '.join(alone)}:" if is_paired else "The groups are"
    wanted = f"a {paired_by} in common with the baseline"
    chart = Chart(
        title=f"{capitalize(name)} by {by}, {f'paired by {paired_by}' if is_paired else 'not paired'}",
        x=label,
        notes=[
            *no_room_note(len(groups) - len(shown), "group"),
            *([missing_note] if missing else []),
            *([f"{who} not paired, for want of {wanted}; no difference is claimed."] if alone else []),
            *left_out,
            *simulation_note(frame),
        ],
        ax=ax,
        size=size,
        by=by,
        groups=groups,
        height_in=0.15 + GROUP_HEIGHT_IN * size.text_scale * len(shown),
    )
    if not any(map(len, means)):
        return chart.finish_empty(no_rows_reason(frame, f"a known {name} and {paired_by}"))
    format_value = format_in(metric, scale)
    canvas = chart.create_canvas()
    entries = []
    for index, group in enumerate(groups):
        facts = _difference_facts(differences.get(index), format_value)
        if index in overall:
            least, most = means[index]["low"].mean(), means[index]["high"].mean()
            factor = most / least if least > 0 else 1.0
            facts = [f"mean {format_interval(overall[index], format_value, factor=factor)}", *facts]
        handle = Line2D([], [], **mark_style(canvas, index))
        entries.append(LegendEntry(handle, group, facts, f"{len(means[index]):,}"))
    for row, index in enumerate(shown):
        if index in overall:
            _draw_group(canvas, row, index, overall[index], dots[index], scale)
    names = [f"{chart.names[index]} (n={len(means[index]):,})" for index in shown]
    canvas.set_row_names(names, GROUP_HEIGHT_IN * size.text_scale if room is None and ax is None else 0.0)
    rows_drawn = {row: index for row, index in enumerate(shown) if differences.get(index, {"n": 0})["n"]}
    _draw_differences(chart, rows_drawn, differences, dots, metric, scale, first, count=len(shown))
    prompts = pd.concat([table["value"] for table in means]).index.nunique()
    subtitle = f"{format_count(prompts, paired_by)}; mean with its 95% interval"
    if differences and is_paired:
        subtitle += f", right the difference from {chart.names[first]}: filled is clear"
    chart.add_row_facts(entries, subtitle, min_width_in=NARROW_IN)
    return chart.finish()


def _draw_group(canvas: Canvas, row: int, index: int, mean: Interval, dots: pd.DataFrame, scale: float) -> None:
    """Draw one group's dots and mean in a row."""
    axes, colour = canvas.axes, canvas.palette.line_style(index)["color"]
    # Evenly by rank: the thinned dots keep the shape of the distribution, the ends included.
    ascending = dots.sort_values("value")
    ranks = np.unique(np.linspace(0, len(ascending) - 1, MAX_DOTS).round().astype(int))
    drawn = ascending.iloc[ranks] * scale
    heights = _draw_dots(canvas, row, index, drawn["value"].to_numpy())
    is_estimate = (drawn["low"] < drawn["high"]).to_numpy()
    estimates = drawn[is_estimate]
    axes.hlines(heights[is_estimate], estimates["low"], estimates["high"], color=colour, lw=0.8, alpha=0.6)
    draw_effect(canvas, row - 0.16, mean.value * scale, mean.low * scale, mean.high * scale, index)


def _difference_facts(row: Mapping[str, Any] | None, format_value: FormatValue) -> list[str]:
    """How a group differs from the baseline, over the pairs that both have, and whether that is clear."""
    if row is None:
        return ["baseline"]
    if not row["n"]:
        return ["no pair in common with the baseline"]
    fewest = min_values(LEVEL)
    sureness = "clear" if row["clear"] else "not clear" if row["n"] >= fewest else f"{fewest} pairs would be needed"
    return [f"{format_difference(row, format_value)} over {format_count(row['n'], 'pair')}", sureness]


def _draw_differences(
    chart: Chart,
    rows: Mapping[int, int],
    differences: Mapping[int, Mapping[str, Any]],
    dots: Sequence[pd.DataFrame],
    metric: str,
    scale: float,
    first: int,
    *,
    count: int,
) -> None:
    """Draw differences from the baseline on axes of `count` rows; `rows` has the group of each row that has one."""
    if not rows:
        return
    is_ratio = all(differences[index]["statistic"] == RATIO for index in rows.values())
    factor = 1.0 if is_ratio else scale
    # A name that is broken at a hyphen reads as two.
    name = fit_text(chart.names[first], 0.27 * chart.size.width_in, chart.size.text_pt(LABEL_PT))
    unit = UNITS.get(metric, "")
    unit = f" (m{unit})" if scale > 1 else f" ({unit})" if unit else ""
    x = f"{column_name(metric)}, times that of {name}" if is_ratio else f"difference from {name}{unit}"
    canvas = chart.add_axes(x=x, is_beside=True)
    if canvas is None:
        return
    draw_reference(canvas, 1.0 if is_ratio else 0.0)
    for row, index in rows.items():
        difference = differences[index]
        both = pd.concat([dots[first]["value"], dots[index]["value"]], axis=1, join="inner").to_numpy()
        pairs = np.sort(both[:, 1] / both[:, 0] if is_ratio else both[:, 1] - both[:, 0]) * factor
        if len(pairs) <= MAX_PAIR_DOTS:
            _draw_dots(canvas, row, index, pairs)
        names = ("ratio", "ratio_low", "ratio_high") if is_ratio else ("difference", "low", "high")
        value, low, high = (difference[name] * factor for name in names)
        draw_effect(canvas, row - 0.16, value, low, high, index, is_clear=bool(difference["clear"]))
    canvas.axes.set_yticks([])
    canvas.axes.set_ylim(count - 0.5, -0.5)
    set_difference_axis(canvas, is_ratio=is_ratio)


def _draw_dots(canvas: Canvas, row: int, index: int, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Draw ascending values as dots under the mean of a row, and return how high each stands."""
    # At heights that no two neighbours share, so that equal ones are seen to be several.
    heights = row + 0.06 + 0.3 * (np.arange(len(values)) * _GOLDEN % 1)
    size = 3.5 * canvas.size.text_scale
    canvas.axes.plot(values, heights, marker="o", markersize=size, **canvas.palette.dot_style(index))
    return heights
