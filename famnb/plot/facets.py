"""A picture on one axes, or as small multiples of one column; what it shows is left to the plot that describes it."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from famnb.formatting import format_count
from famnb.plot.canvas import WIDTH_IN, Canvas
from famnb.plot.figure import Figure
from famnb.plot.grouping import grouped
from famnb.plot.labels import short
from famnb.plot.palette import PLAIN, ink_of_style

PANEL_IN = 1.9
"""How high a small multiple is."""


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """One line of the legend: how a group is drawn, its name, and facts about it."""

    handle: Artist
    name: str
    facts: Sequence[str] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn on a sheet."""

    keys: Sequence[Key]
    facts: str = ""
    """The line under the title."""


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """A kind of picture of some rows."""

    title: str
    x: str
    y: str
    draw: Callable[[Canvas, pd.DataFrame], Drawn]
    """Draws some of the rows, and can do so for none of them."""
    why_empty: str = ""
    """Why there is nothing to draw, a sentence; empty where there is something."""
    notes: Sequence[str] = ()
    height_in: float = 3.6


def show(
    picture: Picture, rows: pd.DataFrame, *, facet: tuple[str, pd.Series[Any]] | None, ax: Axes | None
) -> matplotlib.figure.Figure:
    """Draw on the caller's axes, on our own, or on one for each value of a column; ValueError for both."""
    if facet is not None and ax is not None:
        raise ValueError("facet: several panels do not fit into one axes; give either `facet` or `ax`")
    if facet is not None and not picture.why_empty:
        return _multiples(picture, rows, *facet)
    sheet = Canvas.of(ax, height_in=picture.height_in)
    if picture.why_empty:
        sheet.words(title=picture.title)
        sheet.empty(picture.why_empty)
        return sheet.done(f"{picture.title}: {picture.why_empty}")
    drawn = picture.draw(sheet, rows)
    sheet.words(title=picture.title, subtitle=drawn.facts, x=picture.x, y=picture.y)
    told = [[short(key.name), *key.facts] for key in drawn.keys]
    sheet.foot([key.handle for key in drawn.keys], told, picture.notes)
    said = "; ".join(", ".join(row) for row in told)
    return sheet.done(f"{picture.title}: {'; '.join(part for part in (drawn.facts, said) if part)}")


def _multiples(picture: Picture, rows: pd.DataFrame, column: str, values: pd.Series[Any]) -> matplotlib.figure.Figure:
    codes, names = grouped(values)
    across = {1: 1, 2: 2, 4: 2}.get(len(names), 3)
    down = math.ceil(len(names) / across)
    ink = ink_of_style()
    height = max(PANEL_IN, picture.height_in * 0.55)
    figure = Figure(ink=ink, figsize=(WIDTH_IN, height * down + 0.9))
    grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
    keys: dict[str, Key] = {}
    for place, (name, axes) in enumerate(zip(names, grid, strict=False)):
        sheet = Canvas(figure, axes, ink, own=True, across_in=WIDTH_IN * 0.85 / across, panel=True)
        sheet.dress()
        part = rows[codes == place]
        limits = axes.get_xlim(), axes.get_ylim()
        drawn = picture.draw(sheet, part)
        if place:
            _widen(axes, *limits)
        keys |= {key.name: Key(key.handle, key.name) for key in drawn.keys}
        axes.set_title(
            f"{short(name, 74 // across)} (n={len(part):,})", loc="left", fontsize=9, color=ink.strong, **PLAIN
        )
    for axes in grid[len(names) :]:
        axes.set_visible(False)
    for axes in grid[max(len(names) - across, 0) : len(names)]:
        axes.tick_params(labelbottom=True)
    _around(figure, picture, list(keys.values()), column, ink.strong, ink.soft)
    figure.alt = f"{picture.title}, for each {column}: {', '.join(names)}; {', '.join(keys)}"
    return figure


def _widen(axes: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Panels share their limits; the last must not shrink what the others need."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    axes.set_xlim(min(x[0], left), max(x[1], right))
    if low < high:
        axes.set_ylim(min(y[0], low), max(y[1], high))


def _around(figure: Figure, picture: Picture, keys: Sequence[Key], column: str, strong: str, soft: str) -> None:
    """Title, axis labels, one legend and the notes, around all panels."""
    title: dict[str, Any] = {"x": 0.02, "ha": "left", "fontsize": 11.5, "fontweight": "bold", **PLAIN}
    figure.suptitle(f"{picture.title}, for each {column}", color=strong, **title)
    lines = [line for note in picture.notes for line in textwrap.wrap(note, 118)]
    label: dict[str, Any] = {"fontsize": 9, "color": soft, **PLAIN}
    figure.supylabel(picture.y, **label)
    longest = max((len(short(key.name)) for key in keys), default=1)
    columns = int(np.clip(112 // (longest + 8), 1, 4))
    rows = math.ceil(len(keys) / columns)
    width, height = figure.get_size_inches()
    under = 0.42 + 0.19 * rows + 0.17 * len(lines)
    height += under - 0.4
    figure.set_size_inches(width, height)
    layout: Any = figure.get_layout_engine()
    layout.set(rect=(0, under / height, 1, 1 - under / height))
    figure.text(0.53, (under - 0.02) / height, picture.x, ha="center", va="center", **label)
    if lines:
        figure.text(0.02, 0.1 / height, "\n".join(lines), va="bottom", linespacing=1.4, **label | {"fontsize": 8})
    legend = figure.legend(
        [key.handle for key in keys],
        [short(key.name) for key in keys],
        loc="upper left",
        bbox_to_anchor=(0.01, (under - 0.1) / height),
        ncols=columns,
        frameon=False,
        fontsize=8.5,
        labelcolor=strong,
    )
    for words in legend.get_texts():
        words.set(**PLAIN)
    legend.set_in_layout(False)


def no_rows(frame: pd.DataFrame, what: str) -> str:
    """Why nothing can be drawn of these rows, a sentence."""
    why = (
        f"none of these {format_count(len(frame), 'call')} has {what}"
        if len(frame)
        else "there are no calls in this frame"
    )
    return f"Nothing to draw: {why}."
