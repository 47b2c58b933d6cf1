"""`famnb.plot.load`: what each step of a load met: latency against throughput, goodput, and the calls in flight."""

from __future__ import annotations

import math
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from famnb.experiment.resume import ANSWERED
from famnb.formatting import format_count, format_duration, format_number, format_share
from famnb.plot.canvas import Canvas
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.effects import no_room_note, rows_that_fit
from famnb.plot.grouping import require_columns, select_calls
from famnb.plot.labels import simulation_note
from famnb.plot.layout import NOTE_PT, FigureSize, Width

TIMES = 200
"""Moments of a step at which the calls in flight are counted."""
MIN_P95 = 20
"""Calls that a 95th percentile takes at least."""
MAX_STEPS = 12
"""Steps that have a colour of their own; of more, evenly spaced ones are drawn."""
PANEL_IN = 1.2
"""The least height of a part, with its ticks and its label, where text is not scaled, in inches."""


def load(
    frame: pd.DataFrame,
    *,
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
) -> matplotlib.figure.Figure:
    """What each step of a load met, from the frame of `famnb.Load`.

    Above, x: calls answered a second, y: seconds from when a call was due to its end, the median and above it the 95th
    percentile. In the middle, x: calls offered a second, y: answered and, with an objective, those that kept it; on the
    dotted line all are. Below, x: seconds since the step began, y: calls in flight, which rise without end where the
    service does not keep up. Warm-ups are left out of all but the last. A `figsize` that is too low for all has the
    first of them; into the caller's `ax` goes the upper part. `.caption` has the figures of the steps, with the most
    calls in flight. KeyError for a frame that is not of a load.
    """
    size = FigureSize.choose(figsize, width, ax)
    require_columns(frame, "step", "offered", "due_s", "end_s", "latency_s", "met", "status")
    counted, left_out = select_calls(frame)
    steps = list(dict.fromkeys(frame.sort_values("offered", kind="stable")["step"]))
    chosen = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), MAX_STEPS)).round().astype(int))
    drawn = [steps[index] for index in chosen]
    note = f"{format_count(len(steps) - len(drawn), 'step')} between are not drawn."
    room = rows_that_fit(size, row_in=PANEL_IN * size.text_scale) if ax is None else None
    parts = min(3 if room is None else room, 3)
    chart = Chart(
        title="What each load met",
        x="calls answered a second",
        y="seconds to the end",
        notes=[
            *no_room_note(3 - parts, "part"),
            *([note] if len(drawn) < len(steps) else []),
            *left_out,
            *simulation_note(frame),
        ],
        ax=ax,
        size=size,
        by="step",
        groups=drawn,
    )
    points = [_measure(frame[frame["step"] == step], counted[counted["step"] == step]) for step in drawn]
    if not any(point["answered"] for point in points):
        reason = "no call was answered" if len(frame) else "there are no calls in this frame"
        return chart.finish_empty(f"Nothing to draw: {reason}.")
    canvas = chart.create_canvas()
    entries = [_draw_latency(canvas, index, step, points[index]) for index, step in enumerate(drawn)]
    # Marks are whole in low axes, too.
    canvas.axes.margins(x=0.05, y=0.2)
    canvas.axes.set_xlim(left=0)
    canvas.axes.set_ylim(bottom=0)
    chart.add_legend(entries, f"{format_count(len(counted), 'call')}; filled the median, open the 95th percentile")
    if parts > 1:
        _draw_goodput(chart, points)
    # When the calls of each step were due and when they ended, each ascending, in seconds since the step began.
    moments: dict[str, list[np.ndarray[Any, Any]]] = {
        step: [np.sort(frame.loc[frame["step"] == step, name].dropna().to_numpy(float)) for name in ("due_s", "end_s")]
        for step in drawn
    }
    if parts > 2:
        _draw_in_flight(chart, moments)
    chart.details += [
        f"{step}: at most {_count_in_flight(due, end, due).max(initial=0):,} calls in flight."
        for step, (due, end) in moments.items()
    ]
    return chart.finish()


def _measure(calls: pd.DataFrame, counted: pd.DataFrame) -> dict[str, float]:
    """The figures of one step, whose rates are over the time in which its `counted` calls began."""
    due, end = counted["due_s"].to_numpy(dtype=float), calls["end_s"].to_numpy(dtype=float, na_value=math.nan)
    first, last = (float(due.min()), float(due.max())) if len(due) else (math.nan, math.nan)
    span_s = max(last - first, 1e-9)
    answers = calls[calls["status"].isin(ANSWERED).to_numpy(dtype=bool) & (end >= first) & (end <= last)]
    latency = counted.loc[counted["status"].isin(ANSWERED), "latency_s"].dropna().to_numpy(dtype=float)
    has_slo = bool(counted["met"].notna().any())
    return {
        "n": len(counted),
        "offered": float(calls["offered"].iloc[0]),
        "answered": len(answers) / span_s,
        "kept": float(answers["met"].fillna(False).sum()) / span_s if has_slo else math.nan,
        "share": float(counted["met"].fillna(False).mean()) if has_slo else math.nan,
        "p50": float(np.quantile(latency, 0.5)) if len(latency) else math.nan,
        "p95": float(np.quantile(latency, 0.95)) if len(latency) >= MIN_P95 else math.nan,
    }


def _draw_latency(canvas: Canvas, index: int, step: str, point: dict[str, float]) -> LegendEntry:
    style = canvas.palette.line_style(index)
    marker: dict[str, Any] = {"color": style["color"], "marker": canvas.palette.marker(index), "linestyle": "none"}
    # Whole where no call was answered, too.
    marker |= {"markersize": 7 * canvas.size.text_scale, "clip_on": False}
    x = point["answered"]
    if not math.isnan(point["p95"]):
        canvas.axes.plot([x, x], [point["p50"], point["p95"]], color=style["color"], linewidth=1)
        canvas.axes.plot([x], [point["p95"]], **marker, markerfacecolor=canvas.palette.ground)
    canvas.axes.plot([x], [point["p50"]], **marker)
    facts = [f"{format_number(x)}/s answered"]
    facts += [] if math.isnan(point["share"]) else [f"{format_share(point['share'])} kept it"]
    facts += [
        f"{name} {format_duration(point[name], brief=True)}" for name in ("p50", "p95") if not math.isnan(point[name])
    ]
    return LegendEntry(Line2D([], [], **marker), str(step), facts, f"{point['n']:,}")


def _draw_goodput(chart: Chart, points: list[dict[str, float]]) -> None:
    """Draw what was answered, and what kept the objective, against what was offered."""
    table = pd.DataFrame(points).dropna(subset=["offered"]).sort_values("offered")
    canvas = None if table.empty else chart.add_axes(x="calls offered a second", y="calls a second")
    if canvas is None:
        return
    axes, most = canvas.axes, float(table["offered"].max())
    axes.plot([0, most], [0, most], linestyle=":", color=canvas.palette.soft, linewidth=1, label="offered")
    # Not in the colours of steps. Marks are whole where no call was answered, too.
    marks: dict[str, Any] = {"markersize": 5 * canvas.size.text_scale, "linewidth": 1.4, "clip_on": False}
    axes.plot(table["offered"], table["answered"], marker="o", color=canvas.palette.strong, label="answered", **marks)
    if table["kept"].notna().any():
        kept: dict[str, Any] = {"color": canvas.palette.soft, "linestyle": "--", **marks}
        axes.plot(table["offered"], table["kept"], marker="s", label="kept the objective", **kept)
    axes.set_xlim(0, most * 1.05)
    # What was answered lies on the diagonal or below it; above is room for the legend.
    axes.set_ylim(0, most * 1.3)
    style: dict[str, Any] = {"fontsize": canvas.size.text_pt(NOTE_PT), "labelcolor": canvas.palette.strong}
    axes.legend(loc="upper left", ncols=3, frameon=False, columnspacing=1, borderaxespad=0, **style)


def _count_in_flight(
    due: np.ndarray[Any, Any], end: np.ndarray[Any, Any], times: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    return np.searchsorted(due, times, side="right") - np.searchsorted(end, times, side="right")


def _draw_in_flight(chart: Chart, moments: dict[str, list[np.ndarray[Any, Any]]]) -> None:
    """Draw how many calls were in flight at each moment of a step."""
    canvas = chart.add_axes(x="seconds since the step began", y="calls in flight")
    if canvas is None:
        return
    for index, (due, end) in enumerate(moments.values()):
        times = np.linspace(0, max(due.max(initial=0.0), end.max(initial=0.0)), TIMES)
        in_flight = _count_in_flight(due, end, times)
        canvas.axes.plot(times, in_flight, linewidth=1.4, **canvas.palette.line_style(index))
    canvas.axes.set_xlim(left=0)
    canvas.axes.set_ylim(bottom=0)
