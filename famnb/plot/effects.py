"""Marks of differences with their intervals, and the axes that they stand on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from famnb.formatting import format_count, format_number
from famnb.plot.canvas import Canvas
from famnb.plot.chart import NO_ROOM
from famnb.plot.layout import MIN_ROW_IN, FigureSize

# Up to this an axis of ratios has ticks at equal steps; those of powers of ten would be one or none.
MAX_LINEAR_TICKS = 3.0
"""The ratio of the ends of an axis from which on its ticks are 1, 2 and 5 times powers of ten."""
AROUND_IN = 1.35
"""About what title, labels, ticks and notes take of a figure's height where text is not scaled, in inches."""
NARROW_IN = 5.0
"""The width below which numbers stand in the caption: in a legend they would be higher than the axes."""


def rows_that_fit(size: FigureSize, *, row_in: float = 0.0) -> int | None:
    """How many rows a given height has room for, a line of the smallest text each unless higher; None if it is free."""
    if size.height_in is None:
        return None
    return max(int((size.height_in - AROUND_IN * size.text_scale) / max(row_in, MIN_ROW_IN)), 1)


def no_room_note(count: int, noun: str) -> list[str]:
    """The footnote of what a figure of a given height has no room for."""
    return [f"{NO_ROOM}{format_count(count, noun)}; see `.caption`."] if count > 0 else []


def draw_effect(
    canvas: Canvas, y: float, value: float, low: float, high: float, index: int, *, is_clear: bool = True
) -> None:
    """Draw a value and its interval in the colour and with the mark of a group, hollow if it is not clear."""
    axes, colour = canvas.axes, canvas.palette.line_style(index)["color"]
    if math.isfinite(low) and math.isfinite(high):
        axes.plot(
            [low, high], [y, y], color=colour, linewidth=2.6 * canvas.size.text_scale, solid_capstyle="butt", zorder=4
        )
    axes.plot([value], [y], zorder=5, **mark_style(canvas, index, is_clear=is_clear))


def mark_style(canvas: Canvas, index: int, *, is_clear: bool = True) -> dict[str, Any]:
    """The style of the mark of a group: filled, or hollow if its difference is not clear."""
    colour, marker = canvas.palette.line_style(index)["color"], canvas.palette.marker(index)
    # A cross of this size has little that is filled, or hollow.
    size, edge = 9.5 if marker in "PX" else 7.0, min(canvas.size.text_scale, 1)
    return {
        "marker": marker,
        "markersize": size * canvas.size.text_scale,
        "linestyle": "none",
        "markerfacecolor": colour if is_clear else canvas.palette.ground,
        "markeredgecolor": canvas.palette.ground if is_clear else colour,
        "markeredgewidth": (0.8 if is_clear else 1.6) * edge,
    }


def draw_reference(canvas: Canvas, none: float) -> None:
    """Draw the line at which two groups are equal."""
    canvas.axes.axvline(none, color=canvas.palette.soft, linewidth=1, linestyle=(0, (4, 2)), zorder=0.5)


def set_difference_axis(canvas: Canvas, *, is_ratio: bool) -> None:
    """Give the axis of differences few ticks, and one of ratios a scale on which half and double are as far off."""
    axes = canvas.axes
    axes.margins(x=0.06)
    most = max(int(canvas.width_in / 0.6), 3)
    if not is_ratio:
        axes.xaxis.set_major_locator(MaxNLocator(most))
        return
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    if high / low < MAX_LINEAR_TICKS:
        ticks = np.asarray(MaxNLocator(most).tick_values(low, high))
        axes.xaxis.set_major_locator(FixedLocator(list(ticks[(ticks >= low) & (ticks <= high)])))
    else:
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if np.log10(high / low) * 3 <= most else (1,)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{format_number(value)}×"))
    axes.set_xlim(low, high)
