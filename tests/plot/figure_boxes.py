"""What is wrong with a drawn figure, by the boxes of its renderer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

MIN_TEXT_PT = 6.0
MIN_AXES_SHARE = 0.55
TOUCH_PX = 1.0
"""Boxes may touch: letters do not fill theirs."""
BACKGROUND_ZORDER = 1.0
"""Below this are bands that text stands on."""


def faults(figure: Figure) -> list[str]:
    """Text on text or on marks, below 6 pt or off the figure, and axes that are too narrow, in words."""
    figure.draw_without_rendering()
    texts = [(text, box) for text in shown_texts(figure) if (box := text.get_window_extent()).width > 0]
    named = [(text.get_text().replace("\n", " ")[:40], box.padded(-TOUCH_PX)) for text, box in texts]
    page = Bbox.from_bounds(0, 0, *(figure.get_size_inches() * figure.dpi)).padded(0.5)
    found = [
        f"{text.get_text()!r} has {text.get_fontsize():.1f} pt"
        for text, _ in texts
        if text.get_fontsize() < MIN_TEXT_PT - 1e-6
    ]
    found += [f"{name!r} is off the figure" for name, box in named if not contains(page, box)]
    found += [f"{label!r} lies on {other!r}" for (label, a), (other, b) in combinations(named, 2) if a.overlaps(b)]
    for axes in figure.axes:
        for mark in marks(axes):
            found += [f"{name!r} lies on {type(mark).__name__}" for name, box in named if has_ink(axes, mark, box)]
    share = axes_share(figure)
    return found if share >= MIN_AXES_SHARE else [*found, f"the axes have {share:.0%} of the width"]


def contains(outer: Bbox, inner: Bbox) -> bool:
    """Whether a box lies wholly in another."""
    return outer.x0 <= inner.x0 and inner.x1 <= outer.x1 and outer.y0 <= inner.y0 and inner.y1 <= outer.y1


def axes_share(figure: Figure) -> float:
    """The share of the width that is axes, in the row that has the least."""
    rows: dict[float, float] = {}
    for axes in figure.axes:
        box = axes.get_position()
        rows[round(box.y0, 3)] = rows.get(round(box.y0, 3), 0.0) + box.width
    # The last row of panels may not be full.
    return max(rows.values()) if len(rows) > 1 and len(figure.axes) > len(rows) else min(rows.values())


def shown_texts(figure: Figure) -> list[Text]:
    """All text that is drawn: of ticks those within the axes."""
    ticks = [text for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in tick_texts(axis)]
    hidden = {id(text) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in axis.findobj(Text)}
    hidden -= {id(text) for axes in figure.axes for text in (axes.xaxis.label, axes.yaxis.label)}
    others = [text for text in figure.findobj(Text) if id(text) not in hidden and text.get_visible()]
    return [text for text in [*others, *ticks] if text.get_text().strip()]


def tick_texts(axis: Axis) -> Iterator[Text]:
    """The labels of the ticks that are in view."""
    low, high = sorted(axis.get_view_interval())
    for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
        if tick.label1.get_visible() and low <= tick.get_loc() <= high:
            yield tick.label1
    if axis.offsetText.get_visible():
        yield axis.offsetText


def marks(axes: Axes) -> Sequence[Any]:
    """The lines, bars and areas of an axes that are data."""
    drawn = [*axes.lines, *axes.patches, *axes.collections]
    return [mark for mark in drawn if mark.get_visible() and mark.get_zorder() >= BACKGROUND_ZORDER]


def has_ink(axes: Axes, mark: Any, box: Bbox) -> bool:
    """Whether a line, a marker, a bar or an area lies in a box."""
    if mark.get_clip_on():
        if not box.overlaps(axes.bbox):
            return False
        box = Bbox.intersection(box, axes.bbox)
    if isinstance(mark, Line2D):
        path = mark.get_transform().transform_path(mark.get_path())
        if not len(path.vertices):
            return False
        if mark.get_marker() not in ("", "None", "none", None, " "):
            radius = mark.get_markersize() / 2 / 72 * mark.figure.dpi
            wider = box.padded(radius)
            if wider.count_contains(path.vertices):
                return True
        return mark.get_linestyle() not in ("None", "", "none") and bool(path.intersects_bbox(box, filled=False))
    if isinstance(mark, Collection):
        offsets = np.asarray(mark.get_offset_transform().transform(mark.get_offsets()))
        paths = [path.transformed(mark.get_transform()) for path in mark.get_paths()]
        if len(offsets) > 1 and len(paths) == 1:
            extent = paths[0].get_extents()
            grown = Bbox.from_extents(box.x0 - extent.x1, box.y0 - extent.y1, box.x1 - extent.x0, box.y1 - extent.y0)
            return bool(grown.count_contains(offsets))
        return any(path.intersects_bbox(box, filled=len(mark.get_facecolor()) > 0) for path in paths)
    return bool(mark.get_transform().transform_path(mark.get_path()).intersects_bbox(box, filled=True))
