"""One axes to draw on, and where words go around it; what is drawn is left to each plot."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import Any, Self, cast

import matplotlib.figure
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patheffects import AbstractPathEffect, withStroke
from matplotlib.transforms import ScaledTranslation

from famnb.plot.figure import Figure
from famnb.plot.labels import short
from famnb.plot.palette import PLAIN, Palette, ink_of_style, ink_on

WIDTH_IN = 8.0
"""As wide as a notebook's output with room to spare: 800 pixels."""
LINE = 98
"""Characters that fit into a line of the legend, the names beside the axes included."""
UNDER_PT = 40.0
"""From the axes down to the legend: room for the ticks and the label."""
EMPTY_IN = 1.7
"""Height of a figure that only says why it shows nothing."""


@dataclasses.dataclass(slots=True)
class Canvas:
    """One axes to draw on, our own or the caller's, and the words around it, fewer where room is scarce."""

    figure: matplotlib.figure.Figure
    axes: Axes
    ink: Palette
    own: bool
    """Whether the figure is ours; in the caller's, the legend stays inside and notes are part of the label."""
    across_in: float = WIDTH_IN * 0.88
    """About how wide our own axes are."""
    panel: bool = False
    """Whether it is one of several, its words around all of them."""

    @classmethod
    def of(cls, axes: Axes | None, *, height_in: float = 3.6) -> Self:
        """The caller's axes, or new ones."""
        if axes is not None:
            figure = cast(matplotlib.figure.Figure, axes.figure)
            return cls(figure, axes, ink_on(axes.get_facecolor()), own=False)
        ink = ink_of_style()
        own = Figure(ink=ink, figsize=(WIDTH_IN, height_in))
        sheet = cls(own, own.add_subplot(), ink, own=True)
        sheet.dress()
        return sheet

    def dress(self) -> None:
        """Quiet axes: two spines, a faint grid behind, soft ticks; set here, since global settings are the user's."""
        axes, ink = self.axes, self.ink
        axes.set_facecolor(ink.ground)
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(ink.faint)
            spine.set_linewidth(1)
            spine.set_capstyle("round")
        axes.tick_params(colors=ink.soft, labelsize=8.5, length=3, width=0.8)
        axes.grid(visible=True, color=ink.faint, linewidth=0.6, alpha=0.7)
        axes.set_axisbelow(True)

    def words(self, *, title: str, subtitle: str = "", x: str = "", y: str = "", above_pt: float = 0) -> None:
        """Title, facts under it, and axis labels; `above_pt` keeps room above the axes."""
        ink = self.ink
        label: dict[str, Any] = {"fontsize": 9, "color": ink.soft, "fontfamily": "sans-serif", **PLAIN}
        self.axes.set_xlabel(x, **label)
        self.axes.set_ylabel(y, **label)
        subtitle = subtitle if self.own else ""
        if not self.own:
            title = "\n".join(textwrap.wrap(title, max(int(0.6 / self.width("a")), 12)))
        pad = 8 + above_pt + (15 if subtitle else 0)
        self.axes.set_title(title, loc="left", fontsize=11.5, fontweight="bold", color=ink.strong, pad=pad, **PLAIN)
        if subtitle:
            self.note(subtitle, at=(0, 1), offset_pt=(0, 7 + above_pt), fontsize=9, va="bottom")

    def note(
        self,
        words: str,
        *,
        at: tuple[float, float],
        offset_pt: tuple[float, float],
        of: Artist | None = None,
        **style: Any,
    ) -> Artist:
        """Soft words at a place (0 to 1) of the axes, or `of` something else, moved by some points."""
        options = {"fontsize": 8.5, "color": self.ink.soft, "annotation_clip": False, **PLAIN, **style}
        place: Any = of or "axes fraction"
        return self.axes.annotate(words, at, xycoords=place, xytext=offset_pt, textcoords="offset points", **options)

    def foot(self, handles: Sequence[Artist], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> None:
        """The legend and footnotes: a table under our own axes, inside and by the label in the caller's."""
        if not self.own:
            labels = [words if self.width(words) < 0.7 else row[0] for row in rows for words in ["  ".join(row)]]
            if handles:
                _plain(self.axes.legend(handles, labels, fontsize=8, loc="best", framealpha=0.85))
            line_chars = max(int(1 / self.width("a")), 20)
            lines = [line for note in notes for line in textwrap.wrap(note, line_chars)]
            self.axes.set_xlabel("\n".join([self.axes.get_xlabel(), *lines]))
            return
        legend = None
        if handles:
            beside = max((len(tick.get_text()) for tick in self.axes.get_yticklabels()), default=0)
            legend = self._table(handles, *_fitted(rows, LINE - beside), UNDER_PT)
        lines = [line for note in notes for line in textwrap.wrap(note, 118)]
        if lines:
            # Under the legend as it comes to be drawn: how high its rows are depends on the font and the resolution.
            offset_pt = (0.0, -UNDER_PT if legend is None else -7.0)
            self.note(
                "\n".join(lines), at=(0, 0), offset_pt=offset_pt, of=legend, va="top", fontsize=8, linespacing=1.4
            )
        width, height = self.figure.get_size_inches()
        self.figure.set_size_inches(width, height + 0.2 * len(rows) + 0.16 * len(lines))

    def _table(self, handles: Sequence[Artist], rows: Sequence[Sequence[str]], size: float, under_pt: float) -> Legend:
        """A legend whose facts stand in columns; a legend fills column by column, so that is how it is given them."""
        columns = max(map(len, rows))
        blank = Line2D([], [], linestyle="none")
        cells = [row[column] if column < len(row) else "" for column in range(columns) for row in rows]
        place = self.axes.transAxes + ScaledTranslation(0, -under_pt / 72, self.figure.dpi_scale_trans)
        legend = self.axes.legend(
            [*handles, *[blank] * (len(cells) - len(handles))],
            cells,
            ncols=columns,
            loc="upper left",
            bbox_to_anchor=(0, 0),
            bbox_transform=place,
            frameon=False,
            fontsize=size,
            labelcolor=self.ink.strong,
            handlelength=1.7,
            columnspacing=0.2,
            borderaxespad=0,
            borderpad=0,
            labelspacing=0.45 + (9 / size - 1) * 1.3,
        )
        _plain(legend)
        return legend

    def empty(self, sentence: str) -> None:
        """In place of data: why there is none, and what to do."""
        self.axes.set_xticks([])
        self.axes.set_yticks([])
        self.axes.grid(visible=False)
        for spine in self.axes.spines.values():
            spine.set_visible(False)
        if self.own:
            self.figure.set_size_inches(WIDTH_IN, EMPTY_IN)
        words = "\n".join(textwrap.wrap(sentence, 76 if self.own else max(int(0.8 / self.width("a")), 20)))
        self.note(words, at=(0.5, 0.5), offset_pt=(0, 0), ha="center", va="center", fontsize=10, linespacing=1.5)

    def width(self, words: str) -> float:
        """About which part of the axes' width some small words take."""
        across_in = self.across_in if self.own else self.axes.get_window_extent().width / self.figure.dpi
        return len(words) * 4.7 / 72 / max(across_in, 0.1)

    def halo(self) -> list[AbstractPathEffect]:
        """For words that may lie on lines: an edge in the colour of the ground."""
        return [withStroke(linewidth=2.5, foreground=self.ink.ground, alpha=0.85)]

    def done(self, alt: str) -> matplotlib.figure.Figure:
        """The finished figure, with what it shows in words."""
        if isinstance(self.figure, Figure):
            self.figure.alt = alt
        return self.figure


def _fitted(rows: Sequence[Sequence[str]], line: int) -> tuple[list[list[str]], float]:
    """The rows of a legend and their size in points: long names cut, then the words smaller, so that all is seen."""
    columns = range(max(map(len, rows)))
    widths = [max((len(row[place]) for row in rows if place < len(row)), default=0) for place in columns]
    facts = sum(width + 4 for width in widths[1:])
    room = max(line - facts, 36)
    size = 9 * min(line / (min(widths[0], room) + facts), 1)
    return [[short(row[0], room), *row[1:]] for row in rows], max(size, 6.5)


def _plain(legend: Legend) -> None:
    for words in legend.get_texts():
        words.set(**PLAIN)
