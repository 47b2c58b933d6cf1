"""How large a figure and its text are, text that is measured and broken into lines, and axes laid out in what is left.

Sizes are inches and points. Text is measured without a figure, so that what fits is known before anything is drawn.
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, Self, get_args

import matplotlib.figure
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.textpath import text_to_path

from famnb.errors import InvalidRequest
from famnb.plot.labels import shorten

MIN_TEXT_PT = 6.0
"""The smallest text of a figure, which journals print."""
TICK_PT = 8.5
LABEL_PT = 9.0
NOTE_PT = 8.0
TITLE_PT = 11.5
Width = Literal["column", "page", "slide"]
# A column and the full width of a two-column paper; a slide is looked at from afar, so its text is larger.
WIDTHS: dict[Width | None, tuple[float, float]] = {
    None: (8.0, 1.0),
    "column": (3.5, 0.85),
    "page": (7.0, 1.0),
    "slide": (10.0, 1.4),
}
"""Inches, and how much larger the text is. Without a name as wide as a notebook's output with room to spare."""
FULL_TEXT_IN = (6.4, 4.0)
"""The width and height from which on text has its whole size; on smaller figures it shrinks with them."""
TEXT_SCALES = (MIN_TEXT_PT / NOTE_PT, 1.4)
"""The least and the most by which text is scaled."""
SMALLEST_IN = (3.0, 2.0)
"""The smallest width and height in which text of MIN_TEXT_PT leaves room for data."""
# At a hundred dots an inch, strokes are moved to whole pixels.
HINTING = 1.07
"""How much wider than in its outlines a text may be drawn."""
LINE_SPACING = 1.2
"""The height of a line of text, in sizes of the text."""
MIN_ROW_IN = MIN_TEXT_PT * LINE_SPACING / 72
"""The least height of a row whose name stands beside the axes."""
PANEL_GAP_IN = 0.16
"""Between panels, their ticks and titles included."""


@dataclasses.dataclass(frozen=True, slots=True)
class FigureSize:
    """How large a figure is to be: a width, a height or None for what it needs, and a scale of its text."""

    width_in: float
    height_in: float | None
    text_scale: float

    @classmethod
    def choose(cls, figsize: tuple[float, float] | None, width: Width | None, ax: Axes | None = None) -> Self:
        """Read the arguments that every figure has; raises InvalidRequest for what does not go together."""
        if figsize is not None and width is not None:
            raise InvalidRequest(f"width: figsize={figsize} already says how wide; give either `figsize` or `width`")
        if ax is not None and (figsize is not None or width is not None):
            raise InvalidRequest("ax: the axes have the size of your own figure; leave `figsize` and `width` out")
        if width not in WIDTHS:
            raise InvalidRequest(f"width: expected one of {', '.join(get_args(Width))}, or None; got {width!r}")
        if figsize is None:
            width_in, scale = WIDTHS[width]
            return cls(width_in, None, scale)
        try:
            width_in, height_in = (float(side) for side in figsize)
        except (TypeError, ValueError):
            raise InvalidRequest(f"figsize: expected a width and a height in inches, got {figsize!r}") from None
        if not (SMALLEST_IN[0] <= width_in <= 100 and SMALLEST_IN[1] <= height_in <= 100):
            least = " × ".join(map(str, SMALLEST_IN))
            raise InvalidRequest(f"figsize: {width_in:g} × {height_in:g} inches; expected {least} to 100 × 100")
        return cls.scale_text(width_in, height_in)

    @classmethod
    def scale_text(
        cls, width_in: float, height_in: float, full_in: tuple[float, float] = FULL_TEXT_IN, most: float = math.inf
    ) -> Self:
        """The size of a figure, or of axes, of a given width and height, with text to match, scaled up to `most`."""
        scale = min(width_in / full_in[0], height_in / full_in[1], most)
        return cls(width_in, height_in, min(max(scale, TEXT_SCALES[0]), TEXT_SCALES[1]))

    @property
    def pad_in(self) -> float:
        """From the edge of the figure to what is next to it."""
        return 0.12 * min(self.text_scale, 1)

    @property
    def inner_in(self) -> float:
        """The width between the edges."""
        return self.width_in - 2 * self.pad_in

    @property
    def gap_in(self) -> float:
        """Between what stands under each other."""
        return 0.07 * min(self.text_scale, 1)

    def text_pt(self, points: float) -> float:
        """The size of a text that has so many points where text is not scaled."""
        return max(points * self.text_scale, MIN_TEXT_PT)


@lru_cache(maxsize=4096)
def text_width_in(text: str, size_pt: float, weight: str = "normal") -> float:
    """The width of one line of text in inches, in matplotlib's font; measured without a figure."""
    if not text:
        return 0.0
    font = FontProperties(size=size_pt, weight=weight)
    width_pt, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width_pt) * HINTING / 72


def wrap_text(text: str, width_in: float, size_pt: float, weight: str = "normal") -> list[str]:
    """Break a text into lines that are no wider than `width_in`; words that are wider than that are broken, too."""
    # At hyphens only if need be: names of models have many.
    is_wide = any(text_width_in(word, size_pt, weight) > width_in for word in text.split(" "))
    characters = len(text)
    while characters > 4:
        lines = textwrap.wrap(text, characters, break_on_hyphens=is_wide, break_long_words=is_wide)
        widest = max((text_width_in(line, size_pt, weight) for line in lines), default=0.0)
        if widest <= width_in:
            return lines
        # By the measure of the widest line, at least one character less.
        characters = min(characters - 1, int(max(map(len, lines)) * width_in / widest) + 1)
    return textwrap.wrap(text, 4)


def fit_text(text: str, width_in: float, size_pt: float) -> str:
    """The text, cut in its middle until it is no wider than `width_in`."""
    cuts = (shorten(text, characters) for characters in range(len(text), 3, -1))
    return next((cut for cut in cuts if text_width_in(cut, size_pt) <= width_in), text[:3])


def fit_names(names: Sequence[str], width_in: float, size_pt: float) -> list[str]:
    """Names, cut alike where one is too wide: what all groups begin with says nothing, and only then their middles."""
    # Groups have their n after them; what else a legend has begins with other words, as what stands for the rest does.
    groups = [name for name in names if name.endswith(")") and " others (n=" not in name] or names
    letters = enumerate(zip(*groups, strict=False))
    shared = next((count for count, of_all in letters if len(set(of_all)) > 1), 0)
    for cut in (0, *range(2, shared + 1)):
        shown = {name: f"…{name[cut:]}" if cut else name for name in groups}
        if all(text_width_in(name, size_pt) <= width_in for name in shown.values()):
            break
    fitted = [fit_text(shown.get(name, name), width_in, size_pt) for name in names]
    # What is left of two of them may be alike.
    return [
        name if fitted.count(name) == 1 else fit_text(f"#{place} {name}", width_in, size_pt)
        for place, name in enumerate(fitted, 1)
    ]


def lay_out(figure: matplotlib.figure.Figure, pad_in: float, bottom_in: float, top_in: float) -> None:
    """Have matplotlib lay out the axes, labels included, between two heights above the figure's lower edge."""
    for axes in figure.axes:
        # Back to the first guess: matplotlib goes on from where the axes are.
        if (spec := axes.get_subplotspec()) is not None:
            axes.set_subplotspec(spec)
    width, height = figure.get_size_inches()
    # The engine adds half of a gap on each side by itself.
    half = PANEL_GAP_IN / 2
    left, bottom, top = pad_in - half, bottom_in - half, top_in + half
    rect: Any = (left / width, bottom / height, 1 - 2 * left / width, (top - bottom) / height)
    ConstrainedLayoutEngine(w_pad=half, h_pad=half, wspace=0, hspace=0, rect=rect).execute(figure)
