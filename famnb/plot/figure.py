"""The paper the plots are drawn on: figure, colours, axes, and where words go; what is drawn is left to each plot."""

from __future__ import annotations

import dataclasses
import io
import textwrap
from collections.abc import Sequence
from typing import Any, Self, cast

import matplotlib.figure
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import to_hex, to_rgb
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch
from matplotlib.patheffects import AbstractPathEffect, withStroke
from matplotlib.transforms import ScaledTranslation

WIDTH_IN, DPI = 8.0, 100
"""As wide as a notebook's output with room to spare: 800 pixels."""
EMPTY_IN = 1.7
"""Height of a figure that only says why it shows nothing."""
SHARPNESS = 2
"""Pixels of the image per pixel of the page, for screens of high density."""
CORNER_IN = 0.09

# Okabe and Ito's palette without its yellow, which is too pale for a line on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = COLOURS[:6]


PLAIN: dict[str, Any] = {"parse_math": False}
"""For words that hold names or money: two dollar signs are no formula."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ink:
    """The colours of words and lines on a light or a dark ground."""

    strong: str
    soft: str
    faint: str
    ground: str

    def line(self, place: int) -> dict[str, Any]:
        """Colour and dash of the line at a place of the legend; no two of the first 28 are alike."""
        colour = COLOURS[place % len(COLOURS)]
        dash = DASHES[place // len(COLOURS) % len(DASHES)]
        return {"color": self.strong if colour == "#000000" else colour, "linestyle": dash}

    def words(self, colour: str) -> str:
        """A colour dark enough (on dark ground: light enough) to be read as words."""
        mixed = zip(to_rgb(colour), to_rgb(self.strong), strict=True)
        red, green, blue = (0.58 * part + 0.42 * ink for part, ink in mixed)
        return to_hex((red, green, blue))


LIGHT = Ink(strong="#1f2328", soft="#59636e", faint="#d9dee3", ground="#ffffff")
DARK = Ink(strong="#f0f3f6", soft="#a5afba", faint="#4a525b", ground="#000000")


class Figure(matplotlib.figure.Figure):
    """A figure that shows itself as the value of a notebook cell, without pyplot and without a magic command."""

    alt = ""
    """What the figure shows, in words, for those who cannot see it."""

    def __init__(self, **options: Any) -> None:
        layout = ConstrainedLayoutEngine(w_pad=0.16, h_pad=0.16)
        super().__init__(dpi=DPI, layout=layout, facecolor=LIGHT.ground, edgecolor="none", **options)
        self._card = FancyBboxPatch(
            (0, 0),
            1,
            1,
            boxstyle=f"round,pad=0,rounding_size={CORNER_IN}",
            transform=self.dpi_scale_trans,
            edgecolor=LIGHT.faint,
            linewidth=0.8,
            zorder=-10,
            visible=False,
        )
        self._card.set_in_layout(False)
        self.add_artist(self._card)

    def draw(self, renderer: RendererBase) -> None:
        """Draw, the card under everything fitted to the size the figure has now."""
        width, height = self.get_size_inches()
        edge = 0.01
        self._card.set_bounds(edge, edge, width - 2 * edge, height - 2 * edge)
        super().draw(renderer)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        width, height = self.get_size_inches() * self.dpi
        size = {"width": round(width), "height": round(height), "alt": self.alt}
        return {"image/png": self._png(), "text/plain": repr(self)}, {"image/png": size}

    def _png(self) -> bytes:
        """The figure as a sharp image: a card with round corners, nothing around it, on light and dark pages alike."""
        buffer = io.BytesIO()
        self._card.set(visible=True, facecolor=self.get_facecolor())
        try:
            self.savefig(buffer, format="png", dpi=self.dpi * SHARPNESS, facecolor="none")
        finally:
            self._card.set_visible(False)
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"<Figure: {self.alt}>" if self.alt else super().__repr__()


@dataclasses.dataclass(slots=True)
class Sheet:
    """One axes to draw on, our own or the caller's, and the words around it, fewer where room is scarce."""

    figure: matplotlib.figure.Figure
    axes: Axes
    ink: Ink
    own: bool
    """Whether the figure is ours; in the caller's, the legend stays inside and notes are part of the label."""

    @classmethod
    def of(cls, axes: Axes | None, *, height_in: float = 3.6) -> Self:
        """The caller's axes, or new ones."""
        if axes is not None:
            figure = cast(matplotlib.figure.Figure, axes.figure)
            return cls(figure, axes, _ink(axes.get_facecolor()), own=False)
        own = Figure(figsize=(WIDTH_IN, height_in))
        sheet = cls(own, own.add_subplot(), LIGHT, own=True)
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
        pad = 8 + above_pt + (15 if subtitle else 0)
        self.axes.set_title(title, loc="left", fontsize=11.5, fontweight="bold", color=ink.strong, pad=pad, **PLAIN)
        if subtitle:
            self.note(subtitle, at=(0, 1), offset_pt=(0, 7 + above_pt), fontsize=9, va="bottom")

    def note(self, words: str, *, at: tuple[float, float], offset_pt: tuple[float, float], **style: Any) -> Artist:
        """Soft words at a place of the axes (0 to 1), moved by some points."""
        options = {"fontsize": 8.5, "color": self.ink.soft, "annotation_clip": False, **PLAIN, **style}
        return self.axes.annotate(
            words, at, xycoords="axes fraction", xytext=offset_pt, textcoords="offset points", **options
        )

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
        under_pt = 40.0
        if handles:
            self._table(handles, rows, under_pt)
            under_pt += 13.5 * len(rows) + 4
        lines = [line for note in notes for line in textwrap.wrap(note, 118)]
        if lines:
            self.note("\n".join(lines), at=(0, 0), offset_pt=(0, -under_pt), va="top", fontsize=8, linespacing=1.4)
        width, height = self.figure.get_size_inches()
        self.figure.set_size_inches(width, height + 0.19 * len(rows) + 0.16 * len(lines))

    def _table(self, handles: Sequence[Artist], rows: Sequence[Sequence[str]], under_pt: float) -> None:
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
            fontsize=9,
            labelcolor=self.ink.strong,
            handlelength=1.7,
            columnspacing=0.2,
            borderaxespad=0,
            borderpad=0,
            labelspacing=0.45,
        )
        _plain(legend)

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
        across_in = WIDTH_IN * 0.88 if self.own else self.axes.get_window_extent().width / self.figure.dpi
        return len(words) * 4.7 / 72 / max(across_in, 0.1)

    def halo(self) -> list[AbstractPathEffect]:
        """For words that may lie on lines: an edge in the colour of the ground."""
        return [withStroke(linewidth=2.5, foreground=self.ink.ground, alpha=0.85)]

    def done(self, alt: str) -> matplotlib.figure.Figure:
        """The finished figure, with what it shows in words."""
        if isinstance(self.figure, Figure):
            self.figure.alt = alt
        return self.figure


def _plain(legend: Legend) -> None:
    for words in legend.get_texts():
        words.set(**PLAIN)


def _ink(ground: Any) -> Ink:
    """Light words on dark ground, dark words on light ground."""
    red, green, blue = to_rgb(ground)
    return LIGHT if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else DARK
