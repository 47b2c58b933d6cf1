"""Variants on the same prompts: each pair as dots, each variant with its interval, each difference with its own."""

from __future__ import annotations

from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from famnb import stats
from famnb.formatting import format_count
from famnb.plot.canvas import Canvas
from famnb.plot.facets import Drawn, Key, Picture, no_rows, show
from famnb.plot.grouping import grouped, need, numbers
from famnb.plot.labels import NAMES, axis, called, capital, short, simulated, with_interval

PAIRS = 60
"""Up to so many pairs are joined by lines; of more, lines would hide everything."""
DOTS = 400
"""At most so many dots a group, evenly taken in order of size."""


def compare(
    frame: pd.DataFrame,
    *,
    metric: str = "e2e_s",
    by: str = "model",
    pair: str = "prompt",
    ax: Axes | None = None,
) -> matplotlib.figure.Figure:
    """A row of dots for each value of the column `by`: one dot a value of `pair`, repeats averaged, joined across rows.

    x: the column `metric`, in its unit. The large mark is the mean over pairs with its 95% interval; the legend gives
    the mean paired difference from the first group, over the pairs that both have, with its interval: where that
    excludes 0, the two differ. KeyError for a column that is not there, ValueError for a metric that is no number.
    """
    need(frame, by, metric, pair)
    codes, names = grouped(frame[by])
    values = numbers(frame, metric, f"measures are {', '.join(NAMES)}")
    known = ~np.isnan(values) & frame[pair].notna().to_numpy()
    keys = pd.factorize(frame[pair])[0]
    long = pd.DataFrame({"group": codes[known], "pair": keys[known], "value": values[known]})
    table = long.groupby(["pair", "group"])["value"].mean().unstack().reindex(columns=range(len(names)))
    label, scale = axis(metric, float(np.nanmax(table.to_numpy())) if len(table) else 0.0)

    def draw(sheet: Canvas, _: pd.DataFrame) -> Drawn:
        _joined(sheet, table * scale)
        legend = [_row(sheet, place, name, table, metric, scale) for place, name in enumerate(names)]
        ticks = [short(name, 28) for name in names]
        sheet.axes.set_yticks(range(len(names)), ticks)
        for words in sheet.axes.get_yticklabels():
            words.set_parse_math(False)
        sheet.axes.set_ylim(len(names) - 0.5, -0.5)
        sheet.axes.grid(visible=False, axis="y")
        return Drawn(legend, f"{format_count(len(table), pair)}; mean with its 95% interval")

    lost = int((~known).sum())
    name = called(metric)
    notes = [f"{lost:,} of {len(frame):,} calls have no {name} or no {pair} and are not compared."] if lost else []
    why = "" if len(table) else no_rows(frame, f"a {name} and a {pair}")
    height = 1.7 + 0.42 * len(names)
    title = f"{capital(name)} by {by}, paired by {pair}"
    picture = Picture(title, label, "", draw, why, [*notes, *simulated(frame)], height)
    return show(picture, frame, facet=None, ax=ax)


def _joined(sheet: Canvas, table: pd.DataFrame) -> None:
    """Faint lines from row to row, one a pair."""
    if len(table) > PAIRS:
        return
    for _, row in table.iterrows():
        seen = row.dropna()
        sheet.axes.plot(seen.to_numpy(), list(seen.index), color=sheet.ink.soft, linewidth=0.6, alpha=0.35, zorder=1)


def _row(sheet: Canvas, place: int, name: str, table: pd.DataFrame, metric: str, scale: float) -> Key:
    """Draw one group's dots and mean; its line of the legend."""
    colour = sheet.ink.line(place)["color"]
    values = np.sort(table[place].dropna().to_numpy())
    look: dict[str, Any] = {"marker": "D", "markersize": 7, "color": colour, "markeredgecolor": sheet.ink.ground}
    handle = Line2D([], [], linestyle="none", **look)
    if not len(values):
        return Key(handle, f"{name} (n=0)")
    some = values[np.unique(np.linspace(0, len(values) - 1, DOTS).round().astype(int))] * scale
    sheet.axes.plot(some, [place] * len(some), marker="o", markersize=4, linestyle="none", color=colour, alpha=0.4)
    found = stats.mean(values)
    if found.known:
        ends = [found.low * scale, found.high * scale]
        sheet.axes.plot(ends, [place] * 2, color=colour, linewidth=3, solid_capstyle="butt", zorder=4)
    sheet.axes.plot([found.value * scale], [place], linestyle="none", zorder=5, **look)
    facts = [f"mean {with_interval(metric, found)}"]
    if place:
        facts.append(_difference(table, place, metric))
    return Key(handle, f"{name} (n={len(values):,})", facts)


def _difference(table: pd.DataFrame, place: int, metric: str) -> str:
    """How a group differs from the first, over the pairs that both have."""
    found = stats.paired(table[0], table[place])
    if not found.n:
        return "no pair in common with the first"
    sign = "+" if found.value > 0 else ""
    gap = stats.Interval(found.value, found.low, found.high, found.n, found.level)
    return f"{sign}{with_interval(metric, gap)} over {format_count(found.n, 'pair')}"
