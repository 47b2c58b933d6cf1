"""One axes to draw on, our own or the caller's, and what may stand around it.

`time_positions` and `set_date_ticks` are for an axis that shows when calls started: time since the first, or dates.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, Self, cast

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator

from famnb.plot.figure import Figure
from famnb.plot.layout import DirectLabel, FigureSize, InsideLegend, fit_text, text_width_in, wrap_text
from famnb.plot.palette import PLAIN_TEXT, Palette, palette_of_style, palette_on

TICK_PT = 8.5
LABEL_PT = 9.0
# Names beside the axes take their room from the data.
ROW_NAME_SHARE = 0.26
"""The most of a figure's width that names of rows beside the axes take."""
MIN_NAME_IN = 0.6
"""The least room in which a name is worth showing."""
MAX_TITLE_LINES = 2
"""The most lines of a title above the caller's axes."""


@dataclasses.dataclass(slots=True)
class Canvas:
    """One axes to draw on, our own or the caller's."""

    figure: matplotlib.figure.Figure
    axes: Axes
    palette: Palette
    is_own: bool
    """Whether the figure is ours; in the caller's, nothing but the axes' own labels is outside of the axes."""
    size: FigureSize
    width_in: float
    """About how wide the axes are, in inches: what is said exactly only when the figure is drawn."""
    is_panel: bool = False
    """Whether it is one of several, with one title and legend around all of them."""
    facts: Sequence[str] = ()
    """Lines below the title of a panel."""

    @classmethod
    def on(cls, axes: Axes) -> Self:
        """A canvas on the caller's axes."""
        # The look of the caller's axes is the caller's: only the colours of text follow their ground.
        figure = cast(matplotlib.figure.Figure, axes.get_figure(root=True))
        width_in, height_in = (side / figure.dpi for side in axes.bbox.size)
        size = FigureSize(width_in, height_in, 1.0)
        return cls(figure, axes, palette_on(axes.get_facecolor()), is_own=False, size=size, width_in=width_in)

    @classmethod
    def create(cls, size: FigureSize) -> Self:
        """A canvas on a figure of our own."""
        palette = palette_of_style()
        figure = Figure(palette=palette, figsize=(size.width_in, size.height_in or size.width_in / 2))
        canvas = cls(figure, figure.add_subplot(), palette, is_own=True, size=size, width_in=size.width_in * 0.8)
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
        axes.tick_params(colors=palette.soft, labelsize=self.text_pt(TICK_PT), length=3, width=0.8)
        axes.grid(visible=True, color=palette.faint, linewidth=0.6, alpha=0.7)
        axes.set_axisbelow(True)

    def text_pt(self, points: float) -> float:
        """The size of a text that has so many points in a figure of the usual size; never below 8."""
        return self.size.text_pt(points)

    def text_width(self, text: str, points: float = TICK_PT) -> float:
        """Return about which share of the axes' width a text takes."""
        return text_width_in(text, self.text_pt(points)) / max(self.width_in, 0.1)

    def set_labels(self, *, x: str = "", y: str = "") -> None:
        """Set the labels of both axes; in the caller's style on the caller's axes."""
        own: dict[str, Any] = {"fontsize": self.text_pt(LABEL_PT), "color": self.palette.soft}
        style = {**(own if self.is_own else self._text_colour(self.axes.xaxis.label)), **PLAIN_TEXT}
        points = self.text_pt(LABEL_PT) if self.is_own else _points_of(self.axes.xaxis.label.get_fontproperties())
        height_in = (self.size.height_in or self.size.width_in * 0.5) * (0.6 if self.is_own else 1.0)
        self.axes.set_xlabel("\n".join(wrap_text(x, self.width_in, points)), **style)
        self.axes.set_ylabel("\n".join(wrap_text(y, max(height_in, 1.0), points)), **style)

    def set_title(self, title: str) -> None:
        """Set the title of the caller's axes, in the caller's style, if there is room for it."""
        points = _points_of(self.axes.title.get_fontproperties())
        lines = wrap_text(title, self.width_in, points)
        if len(lines) <= MAX_TITLE_LINES:
            style = {**self._text_colour(self.axes.title), **PLAIN_TEXT}
            self.axes.set_title("\n".join(lines), loc="left", **style)

    def _text_colour(self, text: Text) -> dict[str, Any]:
        """The colour of a text of the caller's, if its own is not seen on this ground."""
        is_seen = palette_on(text.get_color()).strong != self.palette.strong
        return {} if is_seen else {"color": self.palette.strong}

    def set_row_names(self, names: Sequence[str]) -> None:
        """Name rows, the first at y = 0, beside the axes; a name too long for a line is broken into two."""
        points, room_in = self.text_pt(TICK_PT), ROW_NAME_SHARE * self.size.width_in
        shown = ["\n".join(wrap_text(name, room_in, points)[:3]) for name in names]
        if not self.is_own and self.figure.get_layout_engine() is None:
            # Where no layout makes room, the names have what is free.
            points, box = _points_of(self.axes.xaxis.label.get_fontproperties()), self.axes.bbox
            beside = [axes.get_tightbbox() for axes in self.figure.axes if axes is not self.axes]
            is_left = [other for other in beside if other and other.y0 < box.y1 and box.y0 < other.y1]
            end = max((other.x1 for other in is_left if other.x0 < box.x0), default=0.0)
            room_in = float(box.x0 - end) / self.figure.dpi - 0.1
            shown = [fit_text(name, room_in, points) if room_in > MIN_NAME_IN else "" for name in names]
        self.axes.set_yticks(range(len(names)), shown)
        for label in self.axes.get_yticklabels():
            label.set(linespacing=0.95, **PLAIN_TEXT)
        self.axes.grid(visible=False, axis="y")

    def thin_ticks(self) -> None:
        """Have so few ticks that the label of none lies on another's, where matplotlib counts on narrower ones."""
        axis = self.axes.xaxis
        locator = axis.get_major_locator()
        for count in range(8, 1, -1):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            boxes = [tick.label1.get_window_extent().padded(1) for tick in ticks if tick.label1.get_visible()]
            if not any(one.overlaps(other) for one, other in itertools.pairwise(boxes)):
                return
            match locator:
                case LogLocator():
                    locator.set_params(subs=(1, 3) if count == 8 else (1,), numticks=count)
                case MaxNLocator():
                    locator.set_params(nbins=count)
                case FixedLocator():
                    axis.set_ticks(axis.get_ticklocs()[::2], [label.get_text() for label in axis.get_ticklabels()][::2])
                    locator = axis.get_major_locator()

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
        options: dict[str, Any] = {
            "fontsize": self.text_pt(TICK_PT),
            "color": self.palette.soft,
            "annotation_clip": False,
        }
        coordinates: Any = of or "axes fraction"
        return self.axes.annotate(
            text, at, xycoords=coordinates, xytext=offset_pt, textcoords="offset points", **options | PLAIN_TEXT | style
        )

    def add_corner_text(self, text: str) -> None:
        """Write a text into the corner of the axes where it covers nothing, if there is one."""
        if not text:
            return
        corners = [(x, y) for y in (1, 0) for x in (1, 0)]
        places = [
            {"at": (x, y), "offset_pt": (4 - 8 * x, 4 - 8 * y), "ha": ("left", "right")[x], "va": ("bottom", "top")[y]}
            for x, y in corners
        ]
        style: dict[str, Any] = {"color": self.palette.soft, "fontsize": self.text_pt(8)}
        DirectLabel(self.axes, [text], (0, 0), places, xycoords="axes fraction", **style)

    def add_inside_legend(self, handles: Sequence[Artist], names: Sequence[str]) -> None:
        """Add a legend to the caller's axes, which shows itself where it covers nothing."""
        legend = InsideLegend(self.axes, handles, names, framealpha=0.85)
        for text in legend.get_texts():
            text.set(**PLAIN_TEXT)
        # Else a layout engine would make room beside the axes for what is inside.
        legend.set_in_layout(False)
        self.axes.legend_ = legend

    def show_message(self, sentence: str) -> None:
        """Show a sentence in place of data: why there is none, and what to do."""
        self.axes.set_xticks([])
        self.axes.set_yticks([])
        self.axes.grid(visible=False)
        for spine in self.axes.spines.values():
            spine.set_visible(False)
        points = self.text_pt(10)
        text = "\n".join(wrap_text(sentence, self.width_in * 0.95, points))
        self.annotate(text, at=(0.5, 0.5), offset_pt=(0, 0), ha="center", va="center", fontsize=points, linespacing=1.5)


def _points_of(font: FontProperties) -> float:
    return float(font.get_size_in_points())


UNITS_OF_TIME = ((180.0, 1.0, "seconds"), (3 * 3600.0, 60.0, "minutes"), (48 * 3600.0, 3600.0, "hours"))
"""Limit and unit in seconds, and the unit's name: calls that span up to the limit are placed by the time since the
first one, in that unit; beyond the last limit, by date."""


def time_positions(started: pd.Series[pd.Timestamp]) -> tuple[np.ndarray[Any, Any], str, bool]:
    """Where calls lie on the axis, the label of the axis, and whether it shows dates."""
    started = to_naive_utc(started)
    first, last = started.min(), started.max()
    span = (last - first).total_seconds()
    for limit, unit, name in UNITS_OF_TIME:
        if span <= limit:
            since = (started - first).dt.total_seconds().to_numpy(dtype=float) / unit
            return since, f"{name} since the first call, {first:%Y-%m-%d %H:%M} UTC", False
    return cast(Any, date2num)(started.to_numpy()), "time (UTC)", True


def to_naive_utc(started: pd.Series[pd.Timestamp]) -> pd.Series[pd.Timestamp]:
    """The same moments in UTC, without a zone; times without a zone are UTC already."""
    return started.dt.tz_convert("UTC").dt.tz_localize(None) if started.dt.tz is not None else started


def set_date_ticks(axes: Axes) -> None:
    """Set ticks at round dates, written briefly."""
    new_locator, new_formatter = cast(Any, AutoDateLocator), cast(Any, ConciseDateFormatter)  # untyped in matplotlib
    locator = new_locator(minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(new_formatter(locator))
