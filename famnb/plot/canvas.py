"""One axes to draw on, our own or the caller's, with title, legend and footnotes around it."""

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
from famnb.plot.labels import shorten
from famnb.plot.palette import PLAIN_TEXT, Palette, palette_of_style, palette_on

# As wide as a notebook's output with room to spare, so that the page does not scale it.
FIGURE_WIDTH_IN = 8.0
"""Width of our own figures; at `figure.DPI`, 800 pixels of the page."""
# Counted in characters, as in `Canvas.text_width`: measuring text would need a renderer and a settled layout.
LEGEND_CHARS = 98
"""Characters that fit into a line of the legend, the names beside the axes included."""
NOTE_CHARS = 118
"""Characters that fit into a line of a footnote, whose font is smaller."""
LEGEND_OFFSET_PT = 40.0
"""From the axes down to the legend: room for the ticks and the label."""
EMPTY_HEIGHT_IN = 1.7
"""Height of a figure that only says why it shows nothing."""


@dataclasses.dataclass(slots=True)
class Canvas:
    """One axes to draw on, our own or the caller's, and the text around it, less of it where room is scarce."""

    figure: matplotlib.figure.Figure
    axes: Axes
    palette: Palette
    is_own: bool
    """Whether the figure is ours; in the caller's, the legend is inside the axes and notes are part of the label."""
    width_in: float = FIGURE_WIDTH_IN * 0.88
    """About how wide our own axes are, in inches."""
    is_panel: bool = False
    """Whether it is one of several, with one title and legend around all of them."""

    @classmethod
    def create(cls, axes: Axes | None, *, height_in: float = 3.6) -> Self:
        """A canvas on the caller's axes, or on new ones."""
        if axes is not None:
            # The look of the caller's axes is the caller's: only the colours of text follow their ground.
            figure = cast(matplotlib.figure.Figure, axes.figure)
            return cls(figure, axes, palette_on(axes.get_facecolor()), is_own=False)
        palette = palette_of_style()
        own = Figure(palette=palette, figsize=(FIGURE_WIDTH_IN, height_in))
        canvas = cls(own, own.add_subplot(), palette, is_own=True)
        canvas.style_axes()
        return canvas

    def style_axes(self) -> None:
        """Style the axes quietly: two spines, a faint grid behind, soft ticks."""
        # Not by rcParams: global settings are the user's.
        axes, palette = self.axes, self.palette
        axes.set_facecolor(palette.ground)
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(palette.faint)
            spine.set_linewidth(1)
            spine.set_capstyle("round")
        axes.tick_params(colors=palette.soft, labelsize=8.5, length=3, width=0.8)
        axes.grid(visible=True, color=palette.faint, linewidth=0.6, alpha=0.7)
        axes.set_axisbelow(True)

    def set_titles(self, *, title: str, subtitle: str = "", x: str = "", y: str = "", above_pt: float = 0) -> None:
        """Set the title, the line of facts under it, and axis labels; `above_pt` keeps room above the axes."""
        palette = self.palette
        label: dict[str, Any] = {"fontsize": 9, "color": palette.soft, "fontfamily": "sans-serif", **PLAIN_TEXT}
        self.axes.set_xlabel(x, **label)
        self.axes.set_ylabel(y, **label)
        subtitle = subtitle if self.is_own else ""
        if not self.is_own:
            # The caller's axes may be narrow and have others beside them, and matplotlib does not wrap titles.
            title = "\n".join(textwrap.wrap(title, max(int(0.6 / self.text_width("a")), 12)))
        pad = 8 + above_pt + (15 if subtitle else 0)
        font: dict[str, Any] = {"fontsize": 11.5, "fontweight": "bold", "color": palette.strong, **PLAIN_TEXT}
        self.axes.set_title(title, loc="left", pad=pad, **font)
        if subtitle:
            self.annotate(subtitle, at=(0, 1), offset_pt=(0, 7 + above_pt), fontsize=9, va="bottom")

    def annotate(
        self,
        text: str,
        *,
        at: tuple[float, float],
        offset_pt: tuple[float, float],
        of: Artist | None = None,
        **style: Any,
    ) -> Artist:
        """Add soft text at a position (0 to 1) in the axes, or in the artist `of`, moved by `offset_pt` points."""
        options = {"fontsize": 8.5, "color": self.palette.soft, "annotation_clip": False, **PLAIN_TEXT, **style}
        coordinates: Any = of or "axes fraction"
        return self.axes.annotate(
            text, at, xycoords=coordinates, xytext=offset_pt, textcoords="offset points", **options
        )

    def add_legend(self, handles: Sequence[Artist], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> None:
        """Add a legend, one row of texts a handle, and footnotes.

        They are a table under our own axes; in the caller's, the legend is inside and notes follow the x label.
        """
        if not self.is_own:
            labels = [text if self.text_width(text) < 0.7 else row[0] for row in rows for text in ["  ".join(row)]]
            if handles:
                _disable_math(self.axes.legend(handles, labels, fontsize=8, loc="best", framealpha=0.85))
            line_chars = max(int(1 / self.text_width("a")), 20)
            lines = [line for note in notes for line in textwrap.wrap(note, line_chars)]
            self.axes.set_xlabel("\n".join([self.axes.get_xlabel(), *lines]))
            return
        legend = None
        if handles:
            beside = max((len(tick.get_text()) for tick in self.axes.get_yticklabels()), default=0)
            legend = self._add_legend_table(handles, *_fit_rows(rows, LEGEND_CHARS - beside))
        lines = [line for note in notes for line in textwrap.wrap(note, NOTE_CHARS)]
        if lines:
            # Under the legend as it comes to be drawn: how high its rows are depends on the font and the resolution.
            offset_pt = (0.0, -LEGEND_OFFSET_PT if legend is None else -7.0)
            self.annotate(
                "\n".join(lines), at=(0, 0), offset_pt=offset_pt, of=legend, va="top", fontsize=8, linespacing=1.4
            )
        width, height = self.figure.get_size_inches()
        self.figure.set_size_inches(width, height + 0.2 * len(rows) + 0.16 * len(lines))

    def _add_legend_table(self, handles: Sequence[Artist], rows: Sequence[Sequence[str]], font_size: float) -> Legend:
        """Add a legend whose facts stand in columns, under the axes."""
        columns = max(map(len, rows))
        blank = Line2D([], [], linestyle="none")
        # A legend fills column by column, so that is the order of its cells.
        cells = [row[column] if column < len(row) else "" for column in range(columns) for row in rows]
        under = self.axes.transAxes + ScaledTranslation(0, -LEGEND_OFFSET_PT / 72, self.figure.dpi_scale_trans)
        legend = self.axes.legend(
            [*handles, *[blank] * (len(cells) - len(handles))],
            cells,
            ncols=columns,
            loc="upper left",
            bbox_to_anchor=(0, 0),
            bbox_transform=under,
            frameon=False,
            fontsize=font_size,
            labelcolor=self.palette.strong,
            handlelength=1.7,
            columnspacing=0.2,
            borderaxespad=0,
            borderpad=0,
            labelspacing=0.45 + (9 / font_size - 1) * 1.3,
        )
        _disable_math(legend)
        return legend

    def show_message(self, sentence: str) -> None:
        """Show a sentence in place of data: why there is none, and what to do."""
        self.axes.set_xticks([])
        self.axes.set_yticks([])
        self.axes.grid(visible=False)
        for spine in self.axes.spines.values():
            spine.set_visible(False)
        if self.is_own:
            # A sentence does not need the height of a figure.
            self.figure.set_size_inches(FIGURE_WIDTH_IN, EMPTY_HEIGHT_IN)
        text = "\n".join(textwrap.wrap(sentence, 76 if self.is_own else max(int(0.8 / self.text_width("a")), 20)))
        self.annotate(text, at=(0.5, 0.5), offset_pt=(0, 0), ha="center", va="center", fontsize=10, linespacing=1.5)

    def text_width(self, text: str) -> float:
        """Return about which share of the axes' width a small text takes."""
        # 4.7 pt is about the mean width of a character of 8.5 pt. Measuring would need a renderer and a settled layout.
        width_in = self.width_in if self.is_own else self.axes.get_window_extent().width / self.figure.dpi
        return len(text) * 4.7 / 72 / max(width_in, 0.1)

    def halo(self) -> list[AbstractPathEffect]:
        """An edge in the colour of the ground, for text that may lie on lines."""
        return [withStroke(linewidth=2.5, foreground=self.palette.ground, alpha=0.85)]

    def finish(self, alt: str) -> matplotlib.figure.Figure:
        """Return the finished figure, with what it shows in words."""
        if isinstance(self.figure, Figure):
            self.figure.alt = alt
        return self.figure


def _fit_rows(rows: Sequence[Sequence[str]], line_chars: int) -> tuple[list[list[str]], float]:
    """The rows of a legend and their font size in points: long names cut, then a smaller font, so that all fits."""
    columns = range(max(map(len, rows)))
    widths = [max((len(row[column]) for row in rows if column < len(row)), default=0) for column in columns]
    facts_chars = sum(width + 4 for width in widths[1:])
    # Names give way first, but keep 36 characters: those of models differ at their ends. Then the font shrinks, down to
    # 6.5 pt, the least that can be read.
    name_chars = max(line_chars - facts_chars, 36)
    font_size = 9 * min(line_chars / (min(widths[0], name_chars) + facts_chars), 1)
    return [[shorten(row[0], name_chars), *row[1:]] for row in rows], max(font_size, 6.5)


def _disable_math(legend: Legend) -> None:
    for text in legend.get_texts():
        text.set(**PLAIN_TEXT)
