"""`famnb.plot.throughput`: output tokens a second of all calls together over time."""

from __future__ import annotations

from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from famnb.formatting import ESTIMATE_MARK, format_count, format_duration, format_number
from famnb.plot.canvas import UNITS_OF_TIME, Canvas, to_naive_utc
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.explore import show_points
from famnb.plot.grouping import group_rows, numeric_column, require_columns, select_calls, time_column
from famnb.plot.labels import no_rows_reason, simulation_note
from famnb.plot.layout import FigureSize, Width

# One step for two calls balances detail and noise; fewer than 16 would show no course, more than 120 only noise.
BINS = (16, 120)
"""The fewest and the most steps that the time is divided into."""
MIN_STEP_PT = 3.75
"""The least width of a step: narrower ones are no lines, and bars without a colour."""
# More lines cross each other too often to be followed; stacked, their sum can be read as well.
MAX_LINES = 3
"""Up to this many groups each have a line; more are stacked."""


def throughput(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
    interactive: bool = False,
) -> matplotlib.figure.Figure:
    """What all calls of a group together brought each second, over time; one line for each value of the column `by`.

    More than three groups lie on top of each other.

    y: output tokens a second, each call's tokens spread evenly from its first token to its end (a whole reply's from
    its start). The area under a line is the tokens in all. Calls without a count or an end are named in a footnote.
    `interactive` returns a widget instead, each call a point at its start and its output tokens, as `explore` does.
    """
    size = FigureSize.choose(figsize, width, ax)
    require_columns(frame, by, "started_at", "e2e_s", "ttft_s", "output_tokens")
    if interactive:
        return show_points(frame, x="started_at", y="output_tokens", by=by, figsize=figsize, width=width, ax=ax)
    frame, left_out = select_calls(frame, of_use=True)
    table, origin = _amounts_over_time(frame)
    codes, groups = group_rows(frame[by])
    known = table.notna().all(axis=1)
    rows = table.assign(group=codes)[known].reset_index(drop=True)
    last = float(rows["end"].max()) if len(rows) else 1.0
    unit_s, unit = next(((unit_s, name) for limit, unit_s, name in UNITS_OF_TIME if last <= limit), (86_400.0, "days"))
    missing = len(frame) - len(rows)
    needed = "an output count or an end"
    note = f"Not counted: {format_count(missing, 'call')} without {needed}."
    chart = Chart(
        title=f"Throughput by {by}",
        x=f"{unit} since the first call, {pd.Timestamp(origin, unit='s'):%Y-%m-%d %H:%M} UTC",
        y="output tokens a second",
        notes=[*([note] if missing else []), *left_out, *simulation_note(frame)],
        ax=ax,
        size=size,
        by=by,
        groups=groups,
    )
    if rows.empty:
        return chart.finish_empty(no_rows_reason(frame, needed))
    canvas = chart.create_canvas()
    bins = int(np.clip(min(len(rows) // 2, canvas.width_in * 72 / MIN_STEP_PT), *BINS))
    # Calls that began and ended at one moment span a millisecond: over no time there is no rate.
    edges = np.linspace(0, last or 1e-3, bins + 1)
    entries = _draw_rates(canvas, groups, rows, edges, unit_s)
    stacking = "; groups on top of each other" if len(groups) > MAX_LINES else ""
    step = format_duration(float(edges[1]))
    chart.add_legend(entries, f"{format_count(len(rows), 'call')}; each step is {step}{stacking}")
    return chart.finish()


def _amounts_over_time(frame: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """What each call brought, `amount`, evenly from `begin` to `end` in seconds since the first call, and that moment.

    NaN where not known; `estimated` marks amounts that the service did not report. The moment is in seconds since 1970.
    """
    started = to_naive_utc(time_column(frame)).astype("datetime64[us]")
    start = np.where(started.isna(), np.nan, started.astype("int64").to_numpy(dtype=float) / 1e6)
    duration = numeric_column(frame, "e2e_s", "expected seconds")
    first = numeric_column(frame, "ttft_s", "expected seconds")
    # A whole reply's first token comes with its last: its tokens are spread from its start.
    first = np.where(np.isnan(first) | (first >= duration), 0.0, first)
    amount = numeric_column(frame, "output_tokens", "expected counts")
    known = ~np.isnan(start) & ~np.isnan(duration) & ~np.isnan(amount)
    origin = float(start[known].min()) if known.any() else 0.0
    begin = start + first - origin
    source = frame.get("output_tokens_source")
    estimated = False if source is None else (source == "estimated").to_numpy(dtype=bool)
    columns = {"begin": begin, "end": start + duration - origin, "amount": amount, "estimated": estimated}
    return pd.DataFrame(columns), origin


def _draw_rates(
    canvas: Canvas, groups: list[str], rows: pd.DataFrame, edges: np.ndarray[Any, Any], unit_s: float
) -> list[LegendEntry]:
    """Draw a line of steps a group, or areas on top of each other."""
    axes, entries, is_stacked = canvas.axes, [], len(groups) > MAX_LINES
    below = np.zeros(len(edges) - 1)
    for index, group in enumerate(groups):
        part = rows[rows["group"] == index]
        line = {"linewidth": 1.6 * min(canvas.size.text_scale, 1), **canvas.palette.line_style(index)}
        area = canvas.palette.area_style(index)
        rates = np.diff(amount_by(edges, part)) / np.diff(edges)
        if is_stacked:
            axes.stairs(below + rates, edges / unit_s, baseline=below, fill=True, **area)
            below = below + rates
        elif len(part):
            axes.stairs(rates, edges / unit_s, **line)
            axes.stairs(rates, edges / unit_s, fill=True, alpha=0.1, color=line["color"])
        total = float(part["amount"].sum())
        mean, peak = format_number(total / edges[-1]), format_number(rates.max())
        mark = ESTIMATE_MARK if part["estimated"].any() else ""
        facts = [f"mean {mark}{mean}/s", f"peak {mark}{peak}", f"{mark}{format_count(total)} tokens"]
        handle: Artist = Patch(**area) if is_stacked else Line2D([], [], **line)
        entries.append(LegendEntry(handle, group, facts, f"{len(part):,}"))
    axes.set_xlim(0, edges[-1] / unit_s)
    axes.set_ylim(bottom=0)
    return entries


def amount_by(edges: np.ndarray[Any, Any], rows: pd.DataFrame) -> np.ndarray[Any, Any]:
    """How much had come by each edge, if each row brings its `amount` evenly from `begin` to `end`."""
    begin, end, amount = (rows[name].to_numpy() for name in ("begin", "end", "amount"))
    # What comes at one moment takes a microsecond: a rate over no time would be infinite.
    begin = np.minimum(begin, end - 1e-6)
    sums = np.array([amount @ np.clip((edge - begin) / (end - begin), 0, 1) for edge in edges])
    # What comes at the first edge itself belongs to the first step, so that nothing is lost.
    sums[0] = 0.0
    return sums
