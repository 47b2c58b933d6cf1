"""`famnb.plot.latency`: the distribution of a latency, one rising line a group, or its median hour by hour."""

from __future__ import annotations

import math
from typing import Literal

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from famnb import stats
from famnb.errors import InvalidRequest
from famnb.formatting import FormatValue, capitalize, format_interval
from famnb.plot.canvas import Canvas
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.ecdf import ascending_values, draw_ecdf, hollow_marker, mark_percentiles, set_ecdf_axes
from famnb.plot.explore import show_points
from famnb.plot.grouping import NO_VALUE, group_rows, numeric_column, require_columns, select_calls, time_column
from famnb.plot.labels import axis_label, clock_notes, column_name, format_in, no_rows_reason, simulation_note
from famnb.plot.layout import FigureSize, Width

FIRST_TOKEN = ("ttft_s", "ttfa_s")
"""Latencies that mean another thing for a whole reply."""


def latency(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    metric: str = "ttft_s",
    over: Literal["hour"] | None = None,
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
    interactive: bool = False,
) -> matplotlib.figure.Figure:
    """The share of calls that were at most so slow (ECDF), one line for each value of the column `by`.

    Streamed and whole replies are never in one line: a whole reply's first token comes with its last. Where a frame has
    both, each value has a line for either, solid for streams and dashed for whole replies, unless `by` is the column
    `streamed`. Warm-ups are left out. x: the column `metric`, in its unit; y: share of the calls that have it. A
    percentile is marked, with its 95% interval, only where n values carry it, n >= 1 / (1 - p); n stands in the legend.
    Footnotes count calls without a value, and those whose time is in doubt because a busy cell kept Python from
    reading. With `over="hour"` x is the hour of the day at which a call started, in the column's own time zone, and y
    each hour's median and 95th percentile; an hour without calls is a gap. `ax` draws into that axes.
    `interactive` returns a widget instead, each call a point at its start and its latency, as `explore` does.
    KeyError for a column that is not there, ValueError for a metric that is not a number.
    """
    if interactive:
        return show_points(frame, x="started_at", y=metric, by=by, figsize=figsize, width=width, ax=ax)
    size = FigureSize.choose(figsize, width, ax)
    require_columns(frame, by, metric, "started_at" if over else None)
    if over not in (None, "hour"):
        raise InvalidRequest(f"over: expected 'hour' or None, got {over!r}")
    frame, left_out = select_calls(frame)
    values = numeric_column(frame, metric, "latencies are columns of numbers such as ttft_s and e2e_s")
    streamed = frame["streamed"][~np.isnan(values)] if "streamed" in frame else pd.Series(dtype="boolean")
    has_both = bool(streamed.isin([True]).any() and streamed.isin([False]).any())
    groups_of_rows = frame[by]
    if has_both and by != "streamed":
        names = groups_of_rows.astype(object).where(groups_of_rows.notna(), NO_VALUE).map(str)
        kinds = frame["streamed"].astype(object).map({True: ", streamed", False: ", whole"})
        groups_of_rows = names + kinds.fillna("")
    codes, groups = group_rows(groups_of_rows)
    rows = pd.DataFrame({"group": codes, "value": values})
    known = values[~np.isnan(values)]
    name = column_name(metric)
    label, scale = axis_label(metric, float(known.max()) if len(known) else 0)
    format_value = format_in(metric, scale)
    title, x, y = f"{capitalize(name)} by {by}", label, "share of calls"
    if over == "hour":
        started = time_column(frame)
        rows["hour"] = started.dt.hour.to_numpy()
        zone = started.dt.tz or "no time zone"
        title, x, y = f"{title} and hour", f"hour of the day ({zone}) in which the call started", label
    notes = []
    if missing := int(np.isnan(values).sum()):
        notes.append(f"{missing:,} of {len(values):,} calls have no {name} and are not in the shares.")
    if has_both and metric in FIRST_TOKEN:
        notes.append(
            f"A whole reply has its {name} when its body has come, so it is not comparable with that of a stream."
        )
    notes += [*left_out, *clock_notes(frame, metric), *simulation_note(frame)]
    chart = Chart(title=title, x=x, y=y, notes=notes, ax=ax, size=size, by=by, groups=groups)
    if not len(known):
        return chart.finish_empty(no_rows_reason(frame, f"a known {name}"))
    canvas = chart.create_canvas()
    if over == "hour":
        entries = [
            _draw_hours(canvas, index, len(groups), group, rows[rows["group"] == index].dropna(), scale, format_value)
            for index, group in enumerate(groups)
        ]
        hours = rows["hour"][rows.notna().all(axis=1)]
        first, end = (int(hours.min()), int(hours.max()) + 1) if len(hours) else (0, 24)
        canvas.axes.set_xticks(range(first, end + 1, math.ceil((end - first) / 8)))
        canvas.axes.set_xlim(first - 0.02 * (end - first), end)
        canvas.axes.set_ylim(bottom=0)
        chart.add_legend(entries, "○ median and its interval · ◇ p95, where 20 calls or more carry it")
    else:
        entries = []
        for index, group in enumerate(groups):
            of_group = ascending_values(rows, index)
            handle = draw_ecdf(canvas, index, of_group * scale)
            facts = mark_percentiles(
                canvas, index, of_group, scale, lambda percentile: format_interval(percentile, format_value)
            )
            if len(of_group) == 1:
                facts = [format_value(float(of_group[0]))]
            entries.append(LegendEntry(handle, group, facts, f"{len(of_group):,}"))
        set_ecdf_axes(canvas, known * scale)
        chart.add_legend(entries)
    return chart.finish()


def _draw_hours(
    canvas: Canvas, index: int, groups: int, group: str, rows: pd.DataFrame, scale: float, format_value: FormatValue
) -> LegendEntry:
    """Draw a group's median and 95th percentile of each hour."""
    style, thin = canvas.palette.line_style(index), min(canvas.size.text_scale, 1)
    (handle,) = canvas.axes.plot([], [], marker="o", markersize=4 * thin, linewidth=1.4, **style)
    # All marks of a kind in one line: matplotlib takes longer to make a line than we do to find where it is. An hour
    # without a value is a gap in it.
    medians, p95s, intervals = (list[tuple[float, float]]() for _ in range(3))
    for hour in range(24):
        values = np.sort(rows["value"].to_numpy()[rows["hour"].to_numpy() == hour])
        # Moved a little, so that groups do not hide each other.
        x = hour + 0.5 + (0.5 * (index - (groups - 1) / 2) / groups)
        if not stats.carries(len(values), 0.5):
            canvas.axes.plot([x] * len(values), values * scale, marker="x", markersize=4 * thin, color=style["color"])
            medians.append((x, math.nan))
            continue
        median = stats.percentile(values, 0.5)
        medians.append((x, median.value * scale))
        if median.known:
            intervals += [(x, median.low * scale), (x, median.high * scale), (x, math.nan)]
        if stats.carries(len(values), 0.95):
            p95s.append((x, stats.percentile(values, 0.95).value * scale))
    canvas.axes.plot(*np.reshape(intervals, (-1, 2)).T, color=style["color"], linewidth=1.6 * thin)
    marks = hollow_marker(canvas, style["color"], 5)
    canvas.axes.plot(*np.reshape(p95s, (-1, 2)).T, marker="D", linestyle="none", **marks)
    canvas.axes.plot(*np.transpose(medians), marker="o", markersize=4 * thin, linewidth=0.9 * thin, **style)
    facts = [f"median {format_value(float(rows['value'].median()))} in all"] if len(rows) > 1 else []
    return LegendEntry(handle, group, facts, f"{len(rows):,}")
