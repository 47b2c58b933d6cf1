"""`famnb.plot.success`: the share of calls that were answered, and what the others failed of."""

from __future__ import annotations

from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from famnb import stats
from famnb.experiment.resume import ANSWERED, failures
from famnb.formatting import format_count, format_interval, format_share
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.effects import NARROW_IN, draw_effect, mark_style, no_room_note, rows_that_fit
from famnb.plot.explore import show_points
from famnb.plot.grouping import group_rows, require_columns, select_calls
from famnb.plot.labels import simulation_note
from famnb.plot.layout import FigureSize, Width

LEVEL = 0.95
"""Of the intervals."""
MAX_REASONS = 6
"""Reasons of failures that have rows of their own; the rarer ones share one."""
AXES_ROWS = 5
"""About how many rows the ticks and the label of further axes take."""
ROW_HEIGHT_IN = 0.28
"""The height of a row, in inches."""
NO_REASON = "no error named"


def success(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
    interactive: bool = False,
) -> matplotlib.figure.Figure:
    """The share of calls of each value of the column `by` that were answered, and what the others failed of.

    Above, x: the share with its 95% interval (Wilson) for more calls with these prompts; an answer that was cut at a
    token cap is one. Below, x: failed calls, a row an error with its HTTP status, one colour a group. Calls that run,
    were cancelled, or were cut off by the end of this process are in neither, and a note says how many they are.
    Warm-ups are left out. Into the caller's `ax` goes the upper part; `.caption` has the failures. `interactive`
    returns a widget instead, each call a point at its start and its time to the end, in the colour of its status, as
    `explore` does. KeyError for a column that is not there.
    """
    size = FigureSize.choose(figsize, width, ax)
    if interactive:
        return show_points(frame, x="started_at", y="e2e_s", by="status", figsize=figsize, width=width, ax=ax)
    require_columns(frame, by, "status")
    frame, left_out = select_calls(frame)
    is_answered = frame["status"].isin(ANSWERED).to_numpy(dtype=bool)
    frame = frame.assign(**{name: None for name in ("error", "http_status") if name not in frame})
    failed = failures(frame).to_numpy(dtype=bool)
    is_tried = is_answered | failed
    room = rows_that_fit(size) if ax is None else None
    codes, groups = group_rows(frame[by], room)
    shares = [
        stats.proportion(int((is_answered & in_group).sum()), int((is_tried & in_group).sum()), level=LEVEL)
        for in_group in (codes == index for index in range(len(groups)))
    ]
    reasons = _count_reasons(frame[failed], codes[failed], len(groups))
    shown = reasons if room is None else _fold_reasons(reasons, room - len(groups) - AXES_ROWS)
    untried = int((~is_tried).sum())
    note = f"{untried:,} of {format_count(len(frame), 'call')} came to no end, or were cancelled, and are not counted."
    chart = Chart(
        title=f"Success rate by {by}",
        x="share of calls that were answered",
        notes=[
            *no_room_note(len(reasons) if shown.empty else 0, "reason"),
            *([note] if untried else []),
            *left_out,
            *simulation_note(frame),
        ],
        ax=ax,
        size=size,
        by=by,
        groups=groups,
        height_in=0.15 + ROW_HEIGHT_IN * size.text_scale * len(groups),
    )
    if not is_tried.any():
        reason = "none of these calls came to an end" if len(frame) else "there are no calls in this frame"
        return chart.finish_empty(f"Nothing to draw: {reason}.")
    canvas = chart.create_canvas()
    entries = []
    for index, (group, share) in enumerate(zip(groups, shares, strict=True)):
        if share.n:
            draw_effect(canvas, index, share.value, share.low, share.high, index)
        missed = share.n - round(share.value * share.n) if share.n else 0
        facts = [format_interval(share, format_share), f"{missed:,} failed"] if share.n else ["no call ended"]
        handle = Line2D([], [], **mark_style(canvas, index))
        entries.append(LegendEntry(handle, group, facts, f"{share.n:,}"))
    canvas.set_row_names([f"{name} (n={share.n:,})" for name, share in zip(chart.names, shares, strict=True)])
    lows = [share.low for share in shares if share.n] or [0.0]
    # What is all at one end would have no room for its mark.
    canvas.axes.set_xlim(min(lows) - 0.03 * (1 - min(lows)) - 0.002, 1 + 0.03 * (1 - min(lows)) + 0.002)
    canvas.axes.xaxis.set_major_locator(MaxNLocator(max(int(canvas.width_in / 0.8), 3)))
    # Beyond both ends is room for marks only.
    canvas.axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: format_share(round(value, 9)) if -1e-9 <= value <= 1 + 1e-9 else "")
    )
    _draw_reasons(chart, shown)
    total = f"{format_count(int(is_answered.sum()), 'call')} of {int(is_tried.sum()):,} answered"
    subtitle = f"{total}; 95% intervals for more calls with these prompts"
    chart.add_row_facts(entries, subtitle, min_width_in=NARROW_IN)
    chart.details += [
        f"{group}: {', '.join(f'{reason} {int(count):,}' for reason, count in counts[counts > 0].items())}."
        for group, counts in zip(groups, (reasons[index] for index in range(len(groups))), strict=True)
        if counts.any()
    ]
    return chart.finish()


def _count_reasons(failed: pd.DataFrame, codes: np.ndarray[Any, Any], groups: int) -> pd.DataFrame:
    """How many calls of each group failed of what: a row a reason, the most frequent first, a column a group."""
    if failed.empty:
        return pd.DataFrame(columns=range(groups), dtype=int)
    reasons = [
        f"{NO_REASON if pd.isna(error) else error}{'' if pd.isna(status) else f' {int(status)}'}"
        for error, status in zip(failed["error"], failed["http_status"], strict=True)
    ]
    table = pd.crosstab(np.array(reasons), codes).reindex(columns=range(groups), fill_value=0)
    table = table.loc[table.sum(axis=1).sort_values(ascending=False, kind="stable").index]
    return _fold_reasons(table, MAX_REASONS + 1)


def _fold_reasons(table: pd.DataFrame, rows: int) -> pd.DataFrame:
    """The reasons in at most so many rows, the rarest as one; none where there is room for that one alone."""
    if len(table) <= rows:
        return table
    rest = table.iloc[max(rows, 1) - 1 :]
    rest_row = pd.DataFrame([rest.sum()], index=[f"{len(rest)} other reasons"])
    return pd.concat([table.iloc[: rows - 1], rest_row]) if rows > 1 else table.iloc[:0]


def _draw_reasons(chart: Chart, reasons: pd.DataFrame) -> None:
    """Draw a bar a reason, in parts by group, on axes of their own."""
    if reasons.empty:
        return
    canvas = chart.add_axes(x="failed calls", height_in=0.15 + ROW_HEIGHT_IN * chart.size.text_scale * len(reasons))
    if canvas is None:
        return
    start = np.zeros(len(reasons))
    for index in map(int, reasons.columns):
        counts = reasons[index].to_numpy()
        if counts.any():
            canvas.axes.barh(range(len(reasons)), counts, 0.62, left=start, **canvas.palette.area_style(index))
        start += counts
    canvas.set_row_names([str(name) for name in reasons.index])
    canvas.axes.xaxis.set_major_locator(MaxNLocator(max(int(canvas.width_in / 0.8), 3), integer=True))
    canvas.axes.grid(visible=True, axis="x")
