"""`famnb.plot.cost`: what calls cost over time, with its uncertainty, and what could not be counted."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from famnb.errors import InvalidRequest
from famnb.formatting import format_count, format_sum, format_usd
from famnb.frame.spend import PERIODS, is_unpriced
from famnb.plot.canvas import Canvas, set_date_ticks, time_positions, to_naive_utc
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.explore import show_points
from famnb.plot.grouping import group_rows, require_columns, select_calls, time_column
from famnb.plot.labels import shorten, simulation_note
from famnb.plot.layout import FigureSize, Width, text_width_in

COST_COLUMNS = ("cost_usd", "cost_low_usd", "cost_high_usd")
COUNT_COLUMNS = ("input_tokens", "output_tokens")
MIN_DAYS = 3
"""From this many days on, there is a bar for each."""
MAX_BARS = 62
"""More days than this are shown by week, more weeks by month."""
# About one a pixel of the image, which has two for one of the page.
MAX_MOMENTS = 1_500
"""More calls than this are drawn as sums at this many moments."""
Per = Literal["hour", "day", "week", "month", "total"]


def cost(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    per: Per | None = None,
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
    interactive: bool = False,
) -> matplotlib.figure.Figure:
    """What the calls cost, in the colours of the values of the column `by`.

    Calls of three days or more are a stacked bar a day (UTC), of more than 62 days a week or a month. Others are added
    up over time, one line a group, x: when a call started. `per` says which: "hour", "day", "week", "month" for bars,
    "total" to add up. Lines on bars and at ends, and bands, are intervals where usage was estimated. Calls without a
    known price or without usage add nothing to a sum, which then says `≥` and of how many it is; a note says how to set
    a price. Refused calls cost nothing. Warm-ups of an experiment's frame are left out. `ax` draws into that axes.
    `interactive` returns a widget instead, each call a point at its start and its cost, as `explore` does. KeyError for
    a column that is not there.
    """
    size = FigureSize.choose(figsize, width, ax)
    require_columns(frame, by, "started_at", "model", *COST_COLUMNS, *COUNT_COLUMNS)
    if per is not None and per not in get_args(Per):
        raise InvalidRequest(f"per: expected one of {', '.join(get_args(Per))}, or None; got {per!r}")
    if interactive:
        return show_points(frame, x="started_at", y="cost_usd", by=by, figsize=figsize, width=width, ax=ax)
    frame, left_out = select_calls(frame, of_use=True)
    # The counts that a price needs.
    has_usage = frame[list(COUNT_COLUMNS)].notna().all(axis=1)
    times, is_unknown = to_naive_utc(time_column(frame)), is_unpriced(frame)
    frame = frame.assign(started_at=times, is_unknown=is_unknown, has_usage=has_usage)
    is_counted = frame["cost_usd"].notna() | frame["is_unknown"]
    # Stable, so that calls of one moment keep their order, and the figure of a frame is always the same.
    counted = frame[is_counted & frame["started_at"].notna()].sort_values("started_at", kind="stable")
    missing = _missing_notes(frame)
    # Of each bar; None where costs are added up.
    period = None if per == "total" else per
    days = counted["started_at"].dt.floor("D")
    if per is None and days.nunique() >= MIN_DAYS:
        span = (days.iloc[-1] - days.iloc[0]).days + 1
        period = "day" if span <= MAX_BARS else "week" if span <= 7 * MAX_BARS else "month"
    title = f"Cost by {by} and {period}" if period else f"Cost by {by}"
    if counted["cost_usd"].isna().all():
        reason = " ".join(missing) or "There are no calls in this frame that cost anything."
        return Chart(title=title, ax=ax, size=size).finish_empty(f"Nothing to add up. {reason}")
    codes, groups = group_rows(counted[by])
    # What is not known adds nothing to a sum; the sum says so.
    rows = pd.DataFrame({name: counted[name].to_numpy(dtype=float, na_value=0.0) for name in COST_COLUMNS})
    rows = rows.assign(group=codes, is_unknown=counted["is_unknown"].to_numpy(dtype=bool))
    rows["has_usage"] = counted["has_usage"].to_numpy(dtype=bool)
    rows["x"], label, has_dates = time_positions(counted["started_at"])
    if period:
        # All from first to last, those without a call included; a row has the place of its own among them.
        own_periods = counted["started_at"].dt.to_period(PERIODS[period])
        periods = pd.period_range(own_periods.iloc[0], own_periods.iloc[-1])
        rows["period"] = periods.get_indexer(own_periods)
    chart = Chart(
        title=title,
        x=f"{period} (UTC)" if period else label,
        y=f"USD each {period}" if period else "USD so far",
        notes=[*missing, *left_out, *simulation_note(frame)],
        ax=ax,
        size=size,
        by=by,
        groups=groups,
    )
    canvas = chart.create_canvas()
    if period:
        entries = _draw_bars(canvas, groups, periods, rows)
    else:
        entries = _draw_lines(canvas, groups, rows)
        if has_dates:
            set_date_ticks(canvas.axes)
        elif rows["x"].iloc[0] == rows["x"].iloc[-1]:
            canvas.axes.set_xticks(rows["x"].iloc[:1])
    canvas.axes.set_ylim(bottom=0)
    canvas.axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_usd(value)))
    known = int((~rows["is_unknown"]).sum())
    amount, count = _format_sum(rows), format_count(known, "call")
    if known < len(rows):
        # The footnotes say why the others have no cost.
        amount, count = amount.partition(" (")[0], f"{count} of {len(rows):,}"
    chart.add_legend(entries, f"{amount} for {count}")
    return chart.finish()


def _draw_lines(canvas: Canvas, groups: list[str], rows: pd.DataFrame) -> list[LegendEntry]:
    """Draw a rising line a group, up to the last call of all, with its interval."""
    entries = []
    for index, group in enumerate(groups):
        part = rows[rows["group"] == index]
        known = part[~part["is_unknown"]]
        style = {"linewidth": 1.8 * min(canvas.size.text_scale, 1), **canvas.palette.line_style(index)}
        if len(known):
            x = known["x"].to_numpy()
            drawn = np.arange(len(x))
            if len(x) > MAX_MOMENTS:
                # The last before each of many moments, where its sum is exact.
                last = np.searchsorted(x, np.linspace(x[0], x[-1], MAX_MOMENTS), side="right") - 1
                drawn = np.unique(np.concatenate([[0], last]))
            sums = (known[name].to_numpy().cumsum()[drawn] for name in COST_COLUMNS)
            best, low, high = (np.append(values, values[-1]) for values in sums)
            times = np.append(x[drawn], rows["x"].max())
            if (high > low).any():
                area: dict[str, Any] = {"color": style["color"], "alpha": 0.12, "linewidth": 0}
                canvas.axes.fill_between(times, low, high, step="post", **area)
            # Steps rather than slopes: a sum holds until the next call.
            x, y = np.append(times[:1], times), np.append([0.0], best)
            canvas.axes.step(x, y, where="post", **style)
            # One call alone has no line.
            canvas.axes.vlines(times[-1], low[-1], high[-1], color=style["color"], linewidth=2)
            canvas.axes.plot(times[-1:], best[-1:], marker="o", markersize=4.5, color=style["color"], clip_on=False)
        entries.append(_legend_entry(Line2D([], [], **style), group, part))
    return entries


def _draw_bars(canvas: Canvas, groups: list[str], periods: pd.PeriodIndex, rows: pd.DataFrame) -> list[LegendEntry]:
    """Draw a stacked bar a period, with the interval of its sum."""
    axes, entries = canvas.axes, []
    below = np.zeros(len(periods))
    for index, group in enumerate(groups):
        part = rows[rows["group"] == index]
        sums = np.bincount(part["period"], weights=part["cost_usd"], minlength=len(periods))
        style = canvas.palette.area_style(index)
        if len(part):
            axes.bar(range(len(periods)), sums, 0.8, bottom=below, **style)
        entries.append(_legend_entry(Patch(**style), group, part))
        below = below + sums
    low, high = (np.bincount(rows["period"], weights=rows[name], minlength=len(periods)) for name in COST_COLUMNS[1:])
    unsure = np.flatnonzero(high > low)
    spans = np.zeros(len(unsure)), (high - low)[unsure]
    ends: dict[str, Any] = {"ecolor": canvas.palette.strong, "elinewidth": 1.4, "capsize": 3}
    axes.errorbar(unsure, low[unsure], spans, fmt="none", **ends)
    # As many labels as fit beside each other.
    # A week is named by its first day, of which the second is known.
    names = [str(period).partition("/")[0] for period in periods]
    tick_pt = axes.xaxis.get_major_ticks(1)[0].label1.get_fontsize()
    label_width = text_width_in(names[0], tick_pt) / canvas.width_in * 1.35 if names else 0.1
    every = max(1, math.ceil(len(periods) * label_width))
    axes.set_xticks(range(0, len(periods), every), names[::every])
    axes.set_xlim(-0.7, len(periods) - 0.3)
    axes.grid(visible=False, axis="x")
    return entries


def _legend_entry(handle: Artist, group: str, rows: pd.DataFrame) -> LegendEntry:
    return LegendEntry(handle, group, [_format_sum(rows)], f"{int((~rows['is_unknown']).sum()):,}")


def _format_sum(rows: pd.DataFrame) -> str:
    """The sum of some calls, with its interval where it has one; `≥` where the cost of some is not known."""
    unknown = rows[rows["is_unknown"]]
    unpriced = int(unknown["has_usage"].sum())
    # Not 0 where none is known.
    sums = (float(rows[name].sum()) if len(unknown) < len(rows) else math.nan for name in COST_COLUMNS)
    return format_sum(*sums, calls=len(rows), unpriced=unpriced, uncounted=len(unknown) - unpriced)


def _missing_notes(frame: pd.DataFrame) -> list[str]:
    """What is not in the sums, and why."""
    unknown = frame[frame["is_unknown"]]
    unpriced, uncounted = unknown[unknown["has_usage"]], unknown[~unknown["has_usage"]]
    notes = []
    if len(unpriced):
        models = sorted(str(model) for model in unpriced["model"].dropna().unique())
        names = ", ".join(map(shorten, models[:3])) + (" …" if len(models) > 3 else "")
        notes.append(
            f"Not in the sum: {format_count(len(unpriced), 'call')} of {names}, for want of a price. "
            f'Set one, in USD per million tokens: famnb.prices.set("{models[0] if models else "…"}", input=…, output=…)'
        )
    if len(uncounted):
        notes.append(f"Not in the sum: {format_count(len(uncounted), 'call')} whose token counts are not known.")
    return notes
