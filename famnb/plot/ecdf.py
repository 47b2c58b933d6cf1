"""The empirical distribution as a rising line: exact for few values, within a fifth of a pixel for a million."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, PercentFormatter

from famnb.plot.canvas import Canvas

FEW = 12
"""Up to so many values each is shown as a dot."""
WIDE = 30.0
"""From this ratio of largest to smallest value on, the axis is logarithmic."""
TICK_IN = 0.5
"""Room for a tick of a logarithmic axis."""
POINTS, ENDS = 2_000, 50
"""More values than this are drawn as so many steps evenly spaced in rank, the smallest and largest ones all."""


def steps(values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Ascending values and the share of values up to each; of many, those at even ranks.

    No share is off by more than 1 / POINTS anywhere, and the ends, where single values matter, are exact.
    """
    n = len(values)
    ranks = np.arange(1, n + 1)
    if n > POINTS:
        even = np.ceil(np.linspace(1, n, POINTS + 1)).astype(int)
        ranks = np.unique(np.concatenate([ranks[:ENDS], even, ranks[-ENDS:]]))
    return values[ranks - 1], ranks / n


def curve(sheet: Canvas, place: int, values: np.ndarray[Any, Any]) -> Line2D:
    """Draw the share of ascending values up to each x; returns the line for a legend."""
    line = sheet.ink.line(place)
    handle = Line2D([], [], linewidth=2, **line)
    if not len(values):
        return handle
    x, shares = steps(values)
    sheet.axes.step(np.concatenate([x[:1], x]), np.concatenate([[0.0], shares]), where="post", linewidth=1.8, **line)
    if len(values) <= FEW:
        sheet.axes.plot(values, shares, marker="o", markersize=4, linestyle="none", color=line["color"])
    return handle


def percents(sheet: Canvas, values: np.ndarray[Any, Any]) -> None:
    """Shares upwards; across a scale that fits all values, logarithmic where they differ much."""
    axes = sheet.axes
    axes.set_ylim(0, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    low, high = values.min(), values.max()
    if low > 0 and high / low >= WIDE:
        axes.set_xscale("log")
        decades = math.log10(high / low)
        room = sheet.across_in if sheet.own else axes.get_window_extent().width / sheet.figure.dpi
        if decades * 3 * TICK_IN < room:  # powers of ten alone may be no more than one
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter("")
        axes.set_xlim(low / 1.3, high * 1.3)
    else:
        axes.set_xlim(min(low * 1.05, 0), high * 1.05 if high > 0 else float(low == 0))
