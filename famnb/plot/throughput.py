"""How much all calls together brought over time: output tokens a second, or finished calls a second."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from famnb.formatting import format_count, format_number
from famnb.plot.canvas import Canvas
from famnb.plot.facets import Drawn, Key, Picture, no_rows, show
from famnb.plot.grouping import grouped, moments, need, numbers
from famnb.plot.labels import simulated
from famnb.plot.time_axis import SPANS, utc

BINS = (16, 120)
"""The fewest and the most spans of time that a figure is divided into: one for two calls, within these."""
BESIDE = 3
"""Up to so many groups each have a line; more lie on top of each other, since their sum has a meaning too."""


def throughput(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    of: Literal["tokens", "calls"] = "tokens",
    facet: str | None = None,
    ax: Axes | None = None,
) -> matplotlib.figure.Figure:
    """What all calls of a group together brought each second, over time; one line for each value of the column `by`.

    More than three groups lie on top of each other.

    y: output tokens a second, each call's tokens spread evenly from its first token to its end (a whole reply's from
    its start); with `of="calls"`, calls that ended a second. The area under a line is the tokens or calls in all. Calls
    without a count or an end are named in a footnote. `facet` draws a panel for each value of a column.
    """
    need(frame, by, "started_at", "e2e_s", "ttft_s", "output_tokens", facet)
    if of not in ("tokens", "calls"):
        raise ValueError(f"of: expected 'tokens' or 'calls', got {of!r}")
    started = utc(moments(frame)).astype("datetime64[us]")
    start = np.where(started.isna(), np.nan, started.astype("int64").to_numpy(dtype=float) / 1e6)
    whole, first = numbers(frame, "e2e_s", "expected seconds"), numbers(frame, "ttft_s", "expected seconds")
    first = np.where(np.isnan(first) | (first >= whole), 0.0, first)
    amount = numbers(frame, "output_tokens", "expected counts") if of == "tokens" else np.ones(len(frame))
    known = ~np.isnan(start) & ~np.isnan(whole) & ~np.isnan(amount)
    codes, names = grouped(frame[by])
    origin = float(start[known].min()) if known.any() else 0.0
    begin = start + (whole if of == "calls" else first) - origin
    table = {"group": codes, "begin": begin, "end": start + whole - origin, "amount": amount}
    rows = pd.DataFrame(table)[known].reset_index(drop=True)
    unit = "output tokens a second" if of == "tokens" else "calls ended a second"
    last = float(rows["end"].max()) if len(rows) else 1.0
    edges = np.linspace(0, last or 1e-3, int(np.clip(len(rows) // 2, *BINS)) + 1)
    size, name = next(((size, name) for limit, size, name in SPANS if last <= limit), (86_400.0, "days"))
    missing = len(frame) - len(rows)
    what = "an output count or an end" if of == "tokens" else "an end"
    draw = partial(_draw, names, edges, size, of)
    picture = Picture(
        f"Throughput by {by}",
        f"{name} since the first call, {pd.Timestamp(origin, unit='s'):%Y-%m-%d %H:%M} UTC",
        unit,
        draw,
        "" if len(rows) else no_rows(frame, what),
        [*([f"Not counted: {format_count(missing, 'call')} without {what}."] if missing else []), *simulated(frame)],
    )
    parts = (facet, frame.loc[known, facet].reset_index(drop=True)) if facet else None
    return show(picture, rows, facet=parts, ax=ax)


def _draw(
    names: list[str], edges: np.ndarray[Any, Any], size: float, of: str, sheet: Canvas, rows: pd.DataFrame
) -> Drawn:
    keys, stacked = [], len(names) > BESIDE
    below = np.zeros(len(edges) - 1)
    for place, name in enumerate(names):
        part = rows[rows["group"] == place]
        line, face = sheet.ink.line(place), sheet.ink.face(place)
        rates = np.diff(brought(part, edges)) / np.diff(edges)
        if stacked:
            sheet.axes.stairs(below + rates, edges / size, baseline=below, fill=True, **face)
            below = below + rates
        elif len(part):
            sheet.axes.stairs(rates, edges / size, linewidth=1.6, **line)
            sheet.axes.stairs(rates, edges / size, fill=True, alpha=0.1, color=line["color"])
        total = float(part["amount"].sum())
        mean, peak = format_number(total / edges[-1]), format_number(rates.max())
        facts = [f"mean {mean} a second", f"peak {peak}", f"{total:,.0f} {of}"]
        handle: Artist = Patch(**face) if stacked else Line2D([], [], linewidth=2, **line)
        keys.append(Key(handle, name) if sheet.panel else Key(handle, f"{name} (n={len(part):,})", facts))
    sheet.axes.set_xlim(0, edges[-1] / size)
    sheet.axes.set_ylim(bottom=0)
    how = "; groups on top of each other" if stacked else ""
    return Drawn(keys, f"{format_count(len(rows), 'call')}; each step is {_span(float(edges[1]))}{how}")


def _span(seconds: float) -> str:
    """A length of time in two digits, in the unit that needs no power of ten."""
    units = (86_400.0, "d"), (3600.0, "h"), (60.0, "min")
    size, name = next(((size, name) for size, name in units if seconds >= size), (1.0, "s"))
    return f"{seconds / size:.2g} {name}"


def brought(rows: pd.DataFrame, edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How much had come by each edge, if each row brings its amount evenly from `begin` to `end`."""
    begin, end, amount = (rows[name].to_numpy() for name in ("begin", "end", "amount"))
    at_once = end - begin <= 1e-9
    steady = ~at_once
    rate = amount[steady] / (end - begin)[steady]
    ramp = _ramps(begin[steady], rate, edges) - _ramps(end[steady], rate, edges)
    order = np.argsort(end[at_once])
    sums = np.concatenate([[0.0], amount[at_once][order].cumsum()])
    # What comes at the first edge itself belongs to the first span, so that nothing is lost.
    jumps = sums[np.searchsorted(end[at_once][order], edges, side="right")]
    jumps[0] = 0.0
    return np.asarray(ramp + jumps)


def _ramps(
    since: np.ndarray[Any, Any], rate: np.ndarray[Any, Any], edges: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """The sum at each edge t of rate x (t - since), over those that have begun."""
    order = np.argsort(since)
    begun = np.searchsorted(since[order], edges, side="right")
    rates = np.concatenate([[0.0], rate[order].cumsum()])
    offsets = np.concatenate([[0.0], (rate * since)[order].cumsum()])
    return np.asarray(edges * rates[begun] - offsets[begun])
