"""Where the parts of our own figures stand: measured, not guessed, and the same however often a figure is drawn.

Text inside the axes (`DirectLabel`, `InsideLegend`) stands only where it covers nothing, which is decided when the
figure is drawn.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, Self, get_args

import matplotlib.figure
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import Collection
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation, Text
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Bbox

from famnb.errors import InvalidRequest

MIN_TEXT_PT = 8.0
"""The smallest text of a figure."""
Width = Literal["column", "page", "slide"]
# A column and the full width of a two-column paper; a slide is looked at from afar, so its text is larger.
WIDTHS: dict[Width | None, tuple[float, float]] = {
    None: (8.0, 1.0),
    "column": (3.5, 1.0),
    "page": (7.0, 1.0),
    "slide": (10.0, 1.4),
}
"""Inches, and how much larger the text is. Without a name as wide as a notebook's output with room to spare."""
SMALLEST_IN = (2.5, 1.5)
"""The smallest width and height in which text of MIN_TEXT_PT leaves room for data."""
# At a hundred dots an inch, strokes are moved to whole pixels.
HINTING = 1.07
"""How much wider than in its outlines a text may be drawn."""
PAD_IN = 0.12
"""From the edge of the figure to what is next to it."""
GAP_IN = 0.07
"""Between what stands under each other."""
PANEL_GAP_IN = 0.16
"""Between panels, their ticks and titles included."""
NO_ROOM = "No room for: "
"""How a note begins that names what a figure of a given size does not show."""
MIN_AXES_SHARE = 0.35
"""The share of a given height that belongs to the axes, whatever else has to go."""


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
        return cls(width_in, height_in, 1.0)

    def text_pt(self, points: float) -> float:
        """The size of a text that has so many points where text is not scaled; on a narrow figure titles shrink."""
        shrink = 0.87 if self.width_in < 5 else 1.0
        return max(points * self.text_scale * shrink, MIN_TEXT_PT * self.text_scale)


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
    characters = len(text)
    while characters > 4:
        lines = textwrap.wrap(text, characters)
        widest = max((text_width_in(line, size_pt, weight) for line in lines), default=0.0)
        if widest <= width_in:
            return lines
        # By the measure of the widest line, at least one character less.
        characters = min(characters - 1, int(max(map(len, lines)) * width_in / widest) + 1)
    return textwrap.wrap(text, 4)


def fit_text(text: str, width_in: float, size_pt: float) -> str:
    """The text, cut in its middle until it is no wider than `width_in`."""
    for characters in range(len(text), 3, -1):
        head = characters // 2
        cut = text if characters == len(text) else f"{text[:head]}…{text[head + 1 - characters :]}"
        if text_width_in(cut, size_pt) <= width_in:
            return cut
    return text[:3]


class StackedLayout(ConstrainedLayoutEngine):
    """Headings, panels, legend and notes under each other: matplotlib lays out the panels in what the others leave.

    Everything is placed anew from its own measures whenever the figure is drawn, so that a second drawing, another
    resolution or a change of the user's gives the picture that its content asks for, and never a smaller one.
    """

    def __init__(self, rows: Sequence[Axes]) -> None:
        """`rows` are the first axes of each row."""
        super().__init__(w_pad=PANEL_GAP_IN / 2, h_pad=PANEL_GAP_IN / 2, wspace=0, hspace=0)
        self.rows = rows
        self.headings: list[Text] = []
        self.shared_x: Text | None = None
        self.legend: Legend | None = None
        self.notes: Text | None = None

    def execute(self, fig: matplotlib.figure.Figure) -> None:
        """Place everything for the size that the figure has."""
        top, bottom = self._place_around(fig)
        width, height = fig.get_size_inches()
        # The engine adds half of a gap on each side by itself.
        edge, top, bottom = PAD_IN - PANEL_GAP_IN / 2, top + GAP_IN, bottom - GAP_IN
        self.set(rect=(edge / width, bottom / height, 1 - 2 * edge / width, (top - bottom) / height))
        for axes in fig.axes:
            # Back to the first guess: else a figure would change with the number of its drawings.
            if (spec := axes.get_subplotspec()) is not None:
                axes.set_subplotspec(spec)
        super().execute(fig)

    def overhang_in(self, fig: matplotlib.figure.Figure) -> float:
        """How much of the height ticks, labels, titles and gaps between panels take."""
        self.execute(fig)
        top, bottom = self._place_around(fig)
        return top - bottom - float(sum(axes.get_position().height for axes in self.rows) * fig.get_figheight())

    def around_in(self, fig: matplotlib.figure.Figure) -> float:
        """How much of the height headings, legend and notes take."""
        top, bottom = self._place_around(fig)
        return float(fig.get_figheight()) - top + bottom

    def _place_around(self, fig: matplotlib.figure.Figure) -> tuple[float, float]:
        """Place what stands above and below the panels; returns where these may end, in inches from below."""
        width, height = fig.get_size_inches()
        top, bottom = height - PAD_IN, PAD_IN
        for heading in self.headings:
            heading.set_position((PAD_IN / width, top / height))
            top -= _height_in(heading, fig) + GAP_IN
        if self.notes is not None:
            self.notes.set_position((PAD_IN / width, bottom / height))
            bottom += _height_in(self.notes, fig) + GAP_IN
        if self.legend is not None:
            bottom += _height_in(self.legend, fig)
            self.legend.set_bbox_to_anchor((PAD_IN / width, bottom / height), transform=fig.transFigure)
            bottom += GAP_IN
        if self.shared_x is not None:
            # matplotlib's own label of all panels would stand at the edge of the figure.
            self.shared_x.set_position((0.5, bottom / height))
            bottom += _height_in(self.shared_x, fig) + GAP_IN
        return top, bottom


def _height_in(artist: Text | Legend, fig: matplotlib.figure.Figure) -> float:
    return round(float(artist.get_window_extent().height) / fig.dpi, 3)


# Where text and marks touch they are read as one.
CLEARANCE_PT = 1.5
"""How far a label stays away from marks and from other text, in points."""
LEGEND_PLACES: tuple[Any, ...] = (
    "upper right",
    "upper left",
    "lower right",
    "lower left",
    "center right",
    "center left",
)
BACKGROUND_ZORDER = 1.0
"""What is drawn below this is background, such as the bands of a timeline: text may lie on it."""


def covers_data(axes: Axes, box: Bbox) -> bool:
    """Whether a box, in pixels, lies on a line, a marker, a bar or an area of the axes."""
    return any(
        _touches(artist, box)
        for artist in (*axes.lines, *axes.patches, *axes.collections)
        if artist.get_visible() and artist.get_zorder() >= BACKGROUND_ZORDER
    )


def _touches(artist: Artist, box: Bbox) -> bool:
    """Whether an artist has ink in a box: of lines what is drawn, of bars and areas all within."""
    match artist:
        case Line2D():
            path = artist.get_transform().transform_path(artist.get_path())
            points = np.asarray(path.vertices)
            if not len(points):
                return False
            if artist.get_marker() not in (None, "None", "", " ", "none"):
                radius = artist.get_markersize() / 72 * _dpi(artist) / 2
                inside = (np.abs(points - box.get_points().mean(axis=0)) <= np.array(box.size) / 2 + radius).all(axis=1)
                if inside.any():
                    return True
            has_line = artist.get_linestyle() not in ("None", "", " ", "none")
            return has_line and path.intersects_bbox(box, filled=False)
        case Patch():
            return artist.get_transform().transform_path(artist.get_path()).intersects_bbox(box, filled=True)
        case Collection():
            offsets = np.asarray(artist.get_offset_transform().transform(artist.get_offsets()))
            paths = [path.transformed(artist.get_transform()) for path in artist.get_paths()]
            filled = len(artist.get_facecolor()) > 0
            if len(paths) != 1 or len(offsets) <= 1:
                return any(path.intersects_bbox(box, filled=filled) for path in paths)
            extent = paths[0].get_extents()
            around = Bbox.from_extents(box.x0 - extent.x1, box.y0 - extent.y1, box.x1 - extent.x0, box.y1 - extent.y0)
            return bool(around.count_contains(offsets))
    return False


def _dpi(artist: Artist) -> float:
    figure = artist.get_figure(root=True)
    return 100.0 if figure is None else float(figure.dpi)


def _add_clearance(box: Bbox, dpi: float) -> Bbox:
    return box.padded(CLEARANCE_PT / 72 * dpi)


class DirectLabel(Annotation):
    """A label that takes the first of some wordings and sides that covers no mark and no label, or is not drawn."""

    def __init__(
        self, axes: Axes, texts: Sequence[str], at: tuple[float, float], places: Sequence[dict[str, Any]], **style: Any
    ) -> None:
        """Try `texts`, the longest first, at `places`: `offset_pt`, `ha`, `va`, and `at` if not the point itself."""
        super().__init__(texts[0], at, xytext=(0, 0), textcoords="offset points", parse_math=False, **style)
        self.options = [(text, place) for text in texts for place in places]
        self.within: tuple[float, float] | None = None
        """Between which x, in data coordinates, the label has to stay."""
        self._placed_for: Any = None
        self._fits = False
        # Inside the axes there is nothing to make room for.
        self.set_in_layout(False)
        axes.add_artist(self)

    def fits(self, renderer: RendererBase | None = None) -> bool:
        """Take the first option for which there is room; whether there is one."""
        axes: Any = self.axes
        state = (*axes.bbox.extents, *axes.viewLim.extents, _dpi(self))
        if state != self._placed_for:
            # Before it is looked for: labels ask each other.
            self._placed_for, self._fits = state, False
            self._fits = any(self._try(axes, option, renderer) for option in self.options)
        return self._fits

    def _try(self, axes: Axes, option: tuple[str, dict[str, Any]], renderer: RendererBase | None) -> bool:
        text, place = option
        self.set(text=text, ha=place["ha"], va=place["va"])
        self.xyann = place["offset_pt"]
        self.xy = place.get("at", self.xy)
        box = super().get_window_extent(renderer)
        around = _add_clearance(box, _dpi(self))
        left, right = axes.bbox.x0, axes.bbox.x1
        if self.within is not None:
            (left, _), (right, _) = axes.transData.transform([(x, 0) for x in self.within])
        if not (left <= around.x0 and around.x1 <= right and axes.bbox.y0 <= box.y0 and box.y1 <= axes.bbox.y1):
            return False
        earlier = [text for text in axes.texts if isinstance(text, DirectLabel)]
        others = earlier[: earlier.index(self)]
        boxes = [other.get_window_extent(renderer) for other in others if other.fits(renderer)]
        return not covers_data(axes, around) and not any(around.overlaps(other) for other in boxes)

    def draw(self, renderer: RendererBase) -> None:
        """Draw the label where it fits, if it does."""
        if self.get_visible() and self.fits(renderer):
            super().draw(renderer)

    # matplotlib's signature; `dpi` only scales text on another canvas, and a label is measured on its own alone.
    def get_window_extent(self, renderer: RendererBase | None = None, dpi: float | None = None) -> Bbox:  # noqa: ARG002
        """The box of the label in pixels; an empty one if it is not drawn."""
        return super().get_window_extent(renderer) if self.fits(renderer) else Bbox.null()


class InsideLegend(Legend):
    """A legend in the corner that covers no data, or none."""

    _corner_for: Any = None
    _has_corner = False

    def fits(self) -> bool:
        """Take the first corner in which there is room; whether there is one."""
        axes: Any = self.axes
        state = (*axes.bbox.extents, *axes.viewLim.extents, _dpi(self))
        if state != self._corner_for:
            self._corner_for, self._has_corner = state, False
            self._has_corner = any(self._try(axes, place) for place in LEGEND_PLACES)
            for text in self.get_texts():
                text.set_visible(self._has_corner)
        return self._has_corner

    def _try(self, axes: Axes, place: Any) -> bool:
        self.set_loc(place)
        box = super().get_window_extent()
        inside = axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1 and axes.bbox.y0 <= box.y0 and box.y1 <= axes.bbox.y1
        labels = [text.get_window_extent() for text in axes.texts if isinstance(text, DirectLabel) and text.fits()]
        return inside and not covers_data(axes, box) and not any(box.overlaps(label) for label in labels)

    def draw(self, renderer: RendererBase) -> None:
        """Draw the legend where it fits, if it does."""
        if self.get_visible() and self.fits():
            super().draw(renderer)

    def get_window_extent(self, renderer: RendererBase | None = None) -> Bbox:
        """The box of the legend in pixels; an empty one if it is not drawn."""
        return super().get_window_extent(renderer) if self.fits() else Bbox.null()
