"""A chart on one axes, or as small multiples: a panel for each value of a column.

chart = Chart(title=…, …) ── for canvas, part in chart.panels(rows): draw; chart.add_legend(…) ── chart.finish()
                         └── nothing to draw ── chart.finish_empty(why)
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from famnb.errors import InvalidRequest
from famnb.plot.canvas import FIGURE_WIDTH_IN, NOTE_CHARS, Canvas
from famnb.plot.figure import Figure
from famnb.plot.grouping import group_rows
from famnb.plot.labels import shorten
from famnb.plot.palette import PLAIN_TEXT, Palette, palette_of_style

PANEL_HEIGHT_IN = 1.9
"""The least height of a panel."""
# Four panels are a square rather than three and one.
COLUMNS = {1: 1, 2: 2, 4: 2}
"""Panels side by side, by the number of panels; 3 for any other number."""


@dataclasses.dataclass(frozen=True, slots=True)
class LegendEntry:
    """One line of the legend: how a group is drawn, its name, and facts about it."""

    handle: Artist
    name: str
    facts: Sequence[str] = ()


class Chart:
    """A figure being drawn, on the caller's axes, on our own, or on a panel for each value of a column."""

    def __init__(
        self,
        *,
        title: str,
        x: str = "",
        y: str = "",
        notes: Sequence[str] = (),
        facet: tuple[str, pd.Series[Any]] | None = None,
        ax: Axes | None = None,
        height_in: float = 3.6,
        slots: tuple[int, ...] = (),
    ) -> None:
        """`facet` is the name of a column and its value for each row; `slots` decide the colours of groups.

        Raises InvalidRequest for both `facet` and `ax`.
        """
        if facet is not None and ax is not None:
            raise InvalidRequest("facet: several panels do not fit into one axes; give either `facet` or `ax`")
        self.title, self.x, self.y, self.notes = title, x, y, notes
        self._facet, self._ax, self._height_in, self._slots = facet, ax, height_in, slots
        self._canvases: list[Canvas] = []
        self._names: list[str] = []
        """The values of the column that panels are for."""
        self._entries: list[LegendEntry] = []
        self._subtitle = ""

    def panels(self, rows: pd.DataFrame) -> Iterator[tuple[Canvas, pd.DataFrame]]:
        """Yield each canvas to draw on with the rows that belong there, perhaps none."""
        if self._facet is None:
            canvas = Canvas.create(self._ax, height_in=self._height_in)
            canvas.palette = dataclasses.replace(canvas.palette, slots=self._slots)
            self._canvases = [canvas]
            yield canvas, rows
            return
        codes, self._names = group_rows(self._facet[1])
        self._canvases = self._create_panels(len(self._names))
        for index, canvas in enumerate(self._canvases):
            part = rows[codes == index]
            limits = canvas.axes.get_xlim(), canvas.axes.get_ylim()
            yield canvas, part
            # The first panel has no earlier limits to keep: matplotlib's default of 0 to 1 must not count.
            if index:
                _widen_limits(canvas.axes, *limits)
            title = f"{shorten(self._names[index], 74 // self._columns)} (n={len(part):,})"
            canvas.axes.set_title(title, loc="left", fontsize=9, color=canvas.palette.strong, **PLAIN_TEXT)

    def add_legend(self, entries: Sequence[LegendEntry], subtitle: str = "") -> None:
        """Add the entries of the canvas just drawn; those of panels are merged by name and lose their facts."""
        self._subtitle = subtitle
        if self._facet is None:
            self._entries = list(entries)
            return
        names = {entry.name for entry in self._entries}
        self._entries += [LegendEntry(entry.handle, entry.name) for entry in entries if entry.name not in names]

    def finish(self) -> matplotlib.figure.Figure:
        """Add title, labels, legend and notes around what was drawn, and return the figure."""
        if self._facet is not None:
            return self._finish_panels(self._facet[0])
        [canvas] = self._canvases
        rows = [[shorten(entry.name), *entry.facts] for entry in self._entries]
        canvas.set_titles(title=self.title, subtitle=self._subtitle, x=self.x, y=self.y)
        canvas.add_legend([entry.handle for entry in self._entries], rows, self.notes)
        legend = "; ".join(", ".join(row) for row in rows)
        return canvas.finish(f"{self.title}: {'; '.join(part for part in (self._subtitle, legend) if part)}")

    def finish_empty(self, reason: str) -> matplotlib.figure.Figure:
        """Return a figure that says, in a sentence, why there is nothing to draw."""
        canvas = Canvas.create(self._ax, height_in=self._height_in)
        canvas.set_titles(title=self.title)
        canvas.show_message(reason)
        return canvas.finish(f"{self.title}: {reason}")

    @property
    def _columns(self) -> int:
        """The number of panels side by side."""
        return COLUMNS.get(len(self._names), 3)

    def _create_panels(self, count: int) -> list[Canvas]:
        """Create a figure with this many canvases, which share their scales."""
        rows, palette = math.ceil(count / self._columns), dataclasses.replace(palette_of_style(), slots=self._slots)
        height_in = max(PANEL_HEIGHT_IN, self._height_in * 0.55)
        figure = Figure(palette=palette, figsize=(FIGURE_WIDTH_IN, height_in * rows + 0.9))
        # Shared axes, since panels are there to be compared.
        grid = figure.subplots(rows, self._columns, squeeze=False, sharex=True, sharey=True).ravel()
        for axes in grid[count:]:
            axes.set_visible(False)
        width_in = FIGURE_WIDTH_IN * 0.85 / self._columns
        canvases = [
            Canvas(figure, axes, palette, is_own=True, width_in=width_in, is_panel=True) for axes in grid[:count]
        ]
        for canvas in canvases:
            canvas.style_axes()
        return canvases

    def _finish_panels(self, column: str) -> matplotlib.figure.Figure:
        """Add title, axis labels, one legend and the notes around all panels."""
        figure, palette = self._canvases[0].figure, self._canvases[0].palette
        assert isinstance(figure, Figure)
        # The lowest panel of each column has ticks, also where the row under it is not full.
        for canvas in self._canvases[max(len(self._canvases) - self._columns, 0) :]:
            canvas.axes.tick_params(labelbottom=True)
        title: dict[str, Any] = {"x": 0.02, "ha": "left", "fontsize": 11.5, "fontweight": "bold", **PLAIN_TEXT}
        figure.suptitle(f"{self.title}, for each {column}", color=palette.strong, **title)
        self._add_shared_labels(figure, palette)
        names = f"{', '.join(self._names)}; {', '.join(entry.name for entry in self._entries)}"
        figure.alt = f"{self.title}, for each {column}: {names}"
        return figure

    def _add_shared_labels(self, figure: Figure, palette: Palette) -> None:
        """Add axis labels, legend and notes of all panels, in room made under them."""
        entries = self._entries
        lines = [line for note in self.notes for line in textwrap.wrap(note, NOTE_CHARS)]
        label: dict[str, Any] = {"fontsize": 9, "color": palette.soft, **PLAIN_TEXT}
        figure.supylabel(self.y, **label)
        longest = max((len(shorten(entry.name)) for entry in entries), default=1)
        # 112 characters of 8.5 pt fit across the figure; 8 of them are the handle and the space of an entry.
        columns = int(np.clip(112 // (longest + 8), 1, 4))
        rows = math.ceil(len(entries) / columns)
        width, height = figure.get_size_inches()
        under = 0.42 + 0.19 * rows + 0.17 * len(lines)
        height += under - 0.4
        figure.set_size_inches(width, height)
        layout: Any = figure.get_layout_engine()
        layout.set(rect=(0, under / height, 1, 1 - under / height))
        figure.text(0.53, (under - 0.02) / height, self.x, ha="center", va="center", **label)
        if lines:
            figure.text(0.02, 0.1 / height, "\n".join(lines), va="bottom", linespacing=1.4, **label | {"fontsize": 8})
        legend = figure.legend(
            [entry.handle for entry in entries],
            [shorten(entry.name) for entry in entries],
            loc="upper left",
            bbox_to_anchor=(0.01, (under - 0.1) / height),
            ncols=columns,
            frameon=False,
            fontsize=8.5,
            labelcolor=palette.strong,
        )
        for text in legend.get_texts():
            text.set(**PLAIN_TEXT)
        # The layout engine would make the panels smaller for it a second time.
        legend.set_in_layout(False)


def _widen_limits(axes: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Keep the limits that earlier panels need: panels share them, and the last sets its own."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    axes.set_xlim(min(x[0], left), max(x[1], right))
    # An axis that runs downwards, such as that of `compare`, is the same in all panels.
    if low < high:
        axes.set_ylim(min(y[0], low), max(y[1], high))
