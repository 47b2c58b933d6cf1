"""`famnb.plot.pareto`: cost, latency and score of each group, and which groups another beats."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import matplotlib.figure
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from famnb import stats
from famnb.experiment.front import place_variants
from famnb.experiment.metrics import Better, find_metric, measure_column
from famnb.formatting import capitalize, format_interval, format_usd
from famnb.plot.canvas import Canvas
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.effects import NARROW_IN
from famnb.plot.explore import show_points
from famnb.plot.grouping import group_rows, numeric_column, prompt_column, require_columns, select_calls
from famnb.plot.labels import axis_label, column_name, format_in, no_rows_reason, simulation_note
from famnb.plot.layout import FigureSize, Width

_GROUP = "group of the figure"


def pareto(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    cost: str = "cost_usd",
    latency: str = "e2e_s",
    score: str | None = None,
    pair: str | None = None,
    margin: float | Mapping[str, float] | None = None,
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
    interactive: bool = False,
) -> matplotlib.figure.Figure:
    """One point for each value of the column `by`, with 95% intervals for new prompts, and whether another beats it.

    x: mean of the column `cost` (less is better); of `cost_usd` the cost of an answer, what failed calls cost included.
    y: median of `latency` (less is better), or with `score` the mean of that column (more is better), the median
    latency then being in the legend. Filled: clear, each other is clearly worse in one of them. Half filled: possible,
    the calls do not decide. Hollow: beaten, another is clearly better in all that differs. Calls are compared as in the
    summary of an experiment, over the prompts that both have, told by the column `pair`, else by their prompts. With a
    `margin`, in the unit of the score (without one, of the latency) or by column, what is not worse by more than that
    does not keep another from being beaten. Warm-ups are left out, and groups that lack any of the columns named in a
    footnote. `interactive` returns a widget instead, of the calls that the groups are means of, as `explore` does.
    KeyError for a column that is not there.
    """
    if interactive:
        return show_points(frame, x=cost, y=score or latency, by=by, figsize=figsize, width=width, ax=ax)
    size = FigureSize.choose(figsize, width, ax)
    require_columns(frame, by, cost, latency, score, pair)
    columns = [cost, latency, *([score] if score else [])]
    calls, left_out = select_calls(frame)
    for name in columns:
        numeric_column(calls, name, "expected numbers")
    codes, groups = group_rows(calls[by])
    # Groups by number: several small ones may be one group.
    numbered = calls.assign(**{_GROUP: codes})
    better: dict[str, Better] = {name: "more" if name == score else "less" for name in columns}
    measured = {
        dataclasses.replace(find_metric(name, frame.attrs.get("score_spans")), better=better[name]): measure_column(
            numbered, name, by=_GROUP
        )
        for name in columns
    }
    column = pair or prompt_column(calls)
    places = place_variants(
        pd.Series(codes, calls.index).astype(str),
        calls[column] if column else pd.Series(pd.NA, calls.index),
        measured,
        margins=margin if isinstance(margin, Mapping) else {} if margin is None else {score or latency: margin},
    )
    points = {index: places[str(index)] for index in range(len(groups)) if str(index) in places}
    up = columns.index(score or latency)
    axes = [
        axis_label(name, max((point.figures[index].value for point in points.values()), default=0.0))
        for index, name in enumerate(columns)
    ]
    label, scale = axes[up]
    names = [column_name(column) for column in columns]
    metrics = list(measured)
    # How far apart the ends of each group's cost are, where token counts are estimated.
    ends = pd.DataFrame({"low": measured[metrics[0]].low, "high": measured[metrics[0]].high}).groupby(codes).sum()
    cost_factors = {int(group): high / low for group, low, high in ends.itertuples() if low > 0}
    missing = [group for index, group in enumerate(groups) if index not in points]
    notes = [f"Not placed, for want of {' or '.join(names)}: {', '.join(missing)}."] if missing else []
    fewest = stats.min_values()
    if len(points) > 1 and min(point.fewest_shared for point in points.values()) < fewest:
        notes.append(f"Groups that have fewer than {fewest} prompts in common are not told apart.")
    chart = Chart(
        title=f"{capitalize(names[up])} against {names[0]} by {by}",
        x=f"{names[0]} an answer (USD)" if cost == "cost_usd" else f"mean {names[0]}",
        y=f"{metrics[up].figure} {label}",
        notes=[*notes, *left_out, *simulation_note(calls)],
        ax=ax,
        size=size,
        by=by,
        groups=groups,
    )
    if not points:
        return chart.finish_empty(no_rows_reason(frame, " and ".join(names)))
    canvas = chart.create_canvas()
    entries = []
    for index, point in points.items():
        handle = _draw_point(canvas, index, point.figures[0], point.figures[up], scale, point.standing)
        factors = [cost_factors.get(index, 1.0), *[1.0] * (len(columns) - 1)]
        facts = [
            format_interval(value, format_in(column, unit), factor=factor)
            for column, value, (_, unit), factor in zip(columns, point.figures, axes, factors, strict=True)
        ]
        rival = point.beaten_by
        facts.append(point.standing if rival is None else f"beaten by {chart.names[int(rival)]}")
        entries.append(LegendEntry(handle, groups[index], facts, f"{point.n:,}"))
        if size.width_in < NARROW_IN:
            chart.details.append(f"{groups[index]} (n={entries[-1].n}), {', '.join(facts)}.")
            entries[-1] = dataclasses.replace(entries[-1], facts=facts[-1:])
    if cost == "cost_usd":
        canvas.axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_usd(value) if value > 0 else "$0"))
    canvas.axes.xaxis.set_major_locator(MaxNLocator(max(int(canvas.width_in / 0.85), 2)))
    canvas.axes.margins(0.08, 0.15)
    # After the margins, which would move them. A score may be negative.
    canvas.axes.set_xlim(left=0)
    if not score:
        canvas.axes.set_ylim(bottom=0)
    chart.add_legend(
        entries, "filled: clearly on the front; half filled: possibly; hollow: beaten; intervals for new prompts"
    )
    return chart.finish()


def _draw_point(
    canvas: Canvas, index: int, x: stats.Interval, y: stats.Interval, scale: float, standing: str
) -> Line2D:
    """Draw a cross of intervals with a marker in the middle; returns one like it for the legend."""
    colour = canvas.palette.line_style(index)["color"]
    thin: dict[str, Any] = {"color": colour, "linewidth": 1.2, "alpha": 0.7}
    centre = x.value
    if x.known:
        # No cost is below 0, though Student's interval of a mean may reach there.
        canvas.axes.plot([max(x.low, 0), x.high], [y.value * scale] * 2, **thin)
    elif math.isinf(x.high):
        # Of some calls nobody knows the cost: at least so much, which the legend marks `≥`.
        centre = max(x.low, 0)
        arrow = {"arrowstyle": "<-", **thin}
        canvas.axes.annotate("", (centre, y.value * scale), (28, 0), textcoords="offset points", arrowprops=arrow)
    if y.known:
        canvas.axes.plot([centre] * 2, [y.low * scale, y.high * scale], **thin)
    style: dict[str, Any] = {
        # Corners round, else half a triangle has a spike.
        "marker": MarkerStyle(
            canvas.palette.marker(index), fillstyle="left" if standing == "possible" else "full", joinstyle="round"
        ),
        "markersize": 8 * canvas.size.text_scale,
        "linestyle": "none",
        "markeredgecolor": colour,
        "markerfacecolor": canvas.palette.ground if standing == "beaten" else colour,
        "markerfacecoloralt": canvas.palette.ground,
        "markeredgewidth": 1.8,
    }
    canvas.axes.plot([centre], [y.value * scale], zorder=5, **style)
    return Line2D([], [], **style)
