"""`famnb.plot.differences`: all metrics of an experiment against its baseline, as a forest plot."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.figure
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from famnb.errors import InvalidRequest
from famnb.experiment.comparison import to_records
from famnb.experiment.metrics import RATIO, SHARE, find_metric
from famnb.experiment.narrative import format_difference, format_sureness
from famnb.experiment.summary import Summary
from famnb.formatting import format_level
from famnb.plot.canvas import Canvas
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.effects import draw_effect, draw_reference, mark_style, no_room_note, rows_that_fit, set_difference_axis
from famnb.plot.layout import FigureSize, Width

ROW_HEIGHT_IN, VARIANT_HEIGHT_IN = 0.3, 0.17
"""The height of a metric of one variant, and of each variant beyond, in inches."""
SECOND_AXES_IN = 1.1
"""What the ticks and the label of further axes take of a height."""
LEGEND_LINE_IN = 0.16
"""The height of a line of the legend."""
# On a scale of ratios an end at or below 0 has no place.
LEAST_RATIO = 0.05
"""Ends below this share of the baseline's value are drawn here."""
# A space at which no line breaks: an arrow alone on a line would be of nothing.
_ARROWS = {"less": "\N{NO-BREAK SPACE}↓", "more": "\N{NO-BREAK SPACE}↑", "neither": ""}


def differences(
    summary: Summary,
    *,
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
) -> matplotlib.figure.Figure:
    """Every metric that `Experiment.summary` compares, against its baseline: a row a metric, a mark a variant.

    x of times, tokens and costs: the variant's value as a multiple of the baseline's, on a scale of ratios; the paired
    difference over the baseline's mean or, of costs, the mean ratio. Shares, and scores from 0 to 1, have axes of
    their own, for the difference itself. Intervals have the level of the summary. Filled is clear in the sense of
    `Summary.pairs`, after Holm's adjustment; hollow is not. ↓ stands where less is better, ↑ where more is. `.caption`
    has every difference in its unit; into the caller's `ax` go those of the primary metric's axes that fit.
    """
    size = FigureSize.choose(figsize, width, ax)
    if not isinstance(summary, Summary):
        raise InvalidRequest(
            f"summary: expected what Experiment.summary() returns, got {type(summary).__name__}; "
            "of a frame, famnb.plot.compare(frame, metric=…) shows one metric"
        )
    variants = [str(name) for name in summary.table.index]
    rows = [row for row in to_records(summary.pairs[summary.pairs["baseline"]]) if row["n"]]
    others = [name for name in variants if name != summary.baseline]
    described, room = rows, size
    if ax is not None:
        rows = [row for row in rows if _is_share(row) == _is_share(rows[0])]
        room = FigureSize.scale_text(ax.bbox.width / ax.figure.dpi, ax.bbox.height / ax.figure.dpi)
    metrics = _choose_metrics(rows, room)
    rows = [row for row in rows if row["metric"] in metrics]
    parts = [part for part in ([row for row in rows if _is_share(row) == which] for which in (False, True)) if part]
    # The metric that decides comes first.
    parts.sort(key=lambda part: rows[0] not in part)
    title = f"Differences from {summary.baseline}" if len(others) != 1 else f"{others[0]} against {summary.baseline}"
    pairs = sorted({row["n"] for row in (rows if ax is None else parts[0] if parts else [])})
    title += f" (n={'–'.join(f'{n:,}' for n in dict.fromkeys((pairs[0], pairs[-1])))} prompts)" if pairs else ""
    chart = Chart(
        title=title,
        x=_label(rows[0], summary) if rows else "",
        height_in=_height_in(parts[0]) if parts else None,
        notes=[
            *no_room_note(len({row["metric"] for row in described}) - len(metrics), "metric"),
            *(note for note in summary.notes if note.startswith("Simulated")),
        ],
        ax=ax,
        size=size,
        by="variant",
        groups=variants,
    )
    if not rows:
        why = "no two variants answered the same prompt" if others else "there is one variant, and nothing to compare"
        return chart.finish_empty(f"Nothing to draw: {why}.")
    first = chart.create_canvas()
    _draw_rows(first, parts[0], variants)
    for part in parts[1:]:
        canvas = chart.add_axes(x=_label(part[0], summary), height_in=_height_in(part))
        if canvas is not None:
            _draw_rows(canvas, part, variants)
    entries = [
        LegendEntry(Line2D([], [], **mark_style(first, variants.index(name))), name)
        for name in others
        if len(others) > 1 and any(row["second"] == name for row in rows)
    ]
    chart.add_legend(
        entries, f"{format_level(summary.level)} intervals for new prompts; filled is clear; ↓ less is better, ↑ more"
    )
    chart.details += [
        f"{row['second']}, {find_metric(row['metric']).title}: {format_difference(row)}, {format_sureness(row)}."
        for row in described
    ]
    chart.details += [note for note in summary.notes if note not in chart.notes]
    return chart.finish()


def _choose_metrics(rows: Sequence[Mapping[str, Any]], size: FigureSize) -> list[str]:
    """The metrics that are drawn: all, or in a given height the first, of which the primary one is the first."""
    metrics, variants = (list(dict.fromkeys(row[name] for row in rows)) for name in ("metric", "second"))
    if size.height_in is None:
        return metrics
    # The names of the variants take their part. Second axes take more than they give, where few rows fit.
    around_in = (0.25 + LEGEND_LINE_IN * math.ceil(len(variants) / 3)) * size.text_scale
    is_share = {row["metric"]: _is_share(row) for row in rows}
    if len({*is_share.values()}) > 1:
        if size.height_in - around_in < 3 * SECOND_AXES_IN * size.text_scale:
            metrics = [name for name in metrics if is_share[name] == is_share[metrics[0]]]
        else:
            around_in += SECOND_AXES_IN * size.text_scale
    rest = dataclasses.replace(size, height_in=size.height_in - around_in)
    return metrics[: rows_that_fit(rest, row_in=_least_row_in(len(variants), size))]


def _least_row_in(variants: int, size: FigureSize) -> float:
    """The least height of a metric: of two lines of its name, or of marks that stand close."""
    return max(ROW_HEIGHT_IN, 0.065 * variants) * size.text_scale


def _is_share(row: Mapping[str, Any]) -> bool:
    """Whether a difference is one of shares, or of scores that are like shares."""
    levels = row["first_value"], row["second_value"]
    return row["statistic"] == SHARE or (
        find_metric(row["metric"]).is_score and all(0 <= value <= 1 for value in levels)
    )


def _label(row: Mapping[str, Any], summary: Summary) -> str:
    if _is_share(row):
        return f"difference from {summary.baseline} (share or score, of 1)"
    return f"times the value of {summary.baseline}"


def _height_in(rows: Sequence[Mapping[str, Any]]) -> float:
    metrics, variants = ({row[name] for row in rows} for name in ("metric", "second"))
    return 0.15 + len(metrics) * (ROW_HEIGHT_IN + VARIANT_HEIGHT_IN * (len(variants) - 1))


def _draw_rows(canvas: Canvas, rows: Sequence[Mapping[str, Any]], variants: Sequence[str]) -> None:
    """Draw a row a metric, with the variants under each other in it."""
    is_ratio = not _is_share(rows[0])
    draw_reference(canvas, float(is_ratio))
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    seconds = list(dict.fromkeys(row["second"] for row in rows))
    step = 0.8 / len(seconds)
    for row in rows:
        y = metrics.index(row["metric"]) + (seconds.index(row["second"]) - (len(seconds) - 1) / 2) * step
        value, low, high = _relative(row) if is_ratio else (row["difference"], row["low"], row["high"])
        if math.isfinite(value):
            draw_effect(canvas, y, value, low, high, variants.index(row["second"]), is_clear=bool(row["clear"]))
    for line in range(1, len(metrics)):
        canvas.axes.axhline(line - 0.5, color=canvas.palette.faint, linewidth=0.6, zorder=0.4)
    names = [find_metric(name) for name in metrics]
    primary = {row["metric"] for row in rows if row["primary"]}
    free_in = _height_in(rows) / len(metrics)
    canvas.set_row_names(
        [f"{metric.title}{_ARROWS[metric.better]}{' (primary)' if metric.name in primary else ''}" for metric in names],
        free_in if canvas.size.height_in is None else _least_row_in(len(seconds), canvas.size),
    )
    set_difference_axis(canvas, is_ratio=is_ratio)


def _relative(row: Mapping[str, Any]) -> tuple[float, float, float]:
    """A difference with its ends as multiples of the baseline's value; NaN where that is 0 or less."""
    if row["statistic"] == RATIO:
        return row["ratio"], row["ratio_low"], row["ratio_high"]
    base = row["first_value"]
    if base > 0:
        value, low, high = (1 + row[name] / base for name in ("difference", "low", "high"))
        if value > 0:
            return value, low if math.isnan(low) else max(low, min(LEAST_RATIO, value)), high
    return math.nan, math.nan, math.nan
