"""Text inside the axes that stands only where it covers nothing, decided when the figure is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import Collection
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

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


def _grow(box: Bbox, dpi: float) -> Bbox:
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
        around = _grow(box, _dpi(self))
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
