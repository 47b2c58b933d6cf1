"""One axes to draw on, our own or the caller's, and what may stand around it.

`time_positions` and `set_date_ticks` are for an axis that shows when calls started: time since the first, or dates.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any, Self, cast

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator

from famnb.plot.figure import Figure
from famnb.plot.layout import (
    LABEL_PT,
    LINE_SPACING,
    MIN_TEXT_PT,
    NOTE_PT,
    TICK_PT,
    FigureSize,
    fit_names,
    text_width_in,
    wrap_text,
)
from famnb.plot.palette import PLAIN_TEXT, Palette, palette_on, palette_over

# Names beside the axes take their room from the data.
ROW_NAME_SHARE = 0.3
"""The most of a figure's, or of the caller's axes', width that names of rows beside the axes take."""
MAX_TITLE_LINES = 2
"""The most lines of a title above the caller's axes."""
FULL_TEXT_AXES_IN = (4.0, 2.5)
"""The width and height of the caller's axes from which on text in them has its whole size."""
MIN_LABEL_IN = 0.9
"""The least length of a line of a label beside the axes, however low these are."""
MAX_LEGEND_ROWS = 6
"""The most names under each other in a legend in the caller's axes."""
MAX_LEGEND_SHARE = 0.55
"""The most of the height of the caller's axes that a legend takes."""


@dataclasses.dataclass(slots=True)
class Canvas:
    """One axes to draw on, our own or the caller's."""

    figure: matplotlib.figure.Figure
    axes: Axes
    palette: Palette
    is_own: bool
    """Whether the figure is ours; in the caller's, nothing but the axes' own labels is outside of the axes."""
    size: FigureSize
    """That of our figure, or of the caller's axes."""
    width_in: float
    """About how wide the axes are, in inches: what is said exactly only when the figure is drawn."""
    rows: int = 0
    """How many rows have names beside the axes."""
    labels: tuple[str, str] = ("", "")
    """Those of the two axes, before they are broken into lines."""

    @classmethod
    def on(cls, axes: Axes) -> Self:
        """A canvas on the caller's axes, whose look is the caller's, but for what could not be seen on its ground."""
        figure = cast(matplotlib.figure.Figure, axes.get_figure(root=True))
        # Else names of rows would be cut off at the figure's edge, or reach into other axes.
        if figure.get_layout_engine() is None:
            figure.set_layout_engine("constrained")
        width_in, height_in = (side / figure.dpi for side in axes.bbox.size)
        tick = axes.xaxis.get_major_ticks(1)[0].label1
        # Names and legend are no larger than the caller's own text, whose ticks have 10 points unless styled.
        most = float(tick.get_fontsize()) / 10
        size = FigureSize.scale_text(width_in, height_in, FULL_TEXT_AXES_IN, most)
        part: Any = axes.get_figure(root=False)
        grounds = part.get_facecolor(), figure.get_facecolor()
        canvas = cls(figure, axes, palette_over(axes.get_facecolor(), *grounds), False, size, width_in)
        around = palette_over(*grounds)
        for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
            text.set_color(_seen_colour(text.get_color(), around))
        if _seen_colour(tick.get_color(), around) != tick.get_color():
            axes.tick_params(which="both", colors=around.strong)
        for spine in axes.spines.values():
            spine.set_edgecolor(_seen_colour(spine.get_edgecolor(), around))
        return canvas

    @classmethod
    def create(cls, figure: Figure, size: FigureSize) -> Self:
        """A canvas on the one axes of a figure of our own, which gets this size."""
        figure.set_size_inches(size.width_in, size.height_in or size.width_in / 2)
        palette = palette_on(figure.get_facecolor())
        canvas = cls(figure, figure.subplots(), palette, is_own=True, size=size, width_in=size.width_in * 0.8)
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
        axes.tick_params(colors=palette.soft, labelsize=self.size.text_pt(TICK_PT), length=3, width=0.8)
        axes.grid(visible=True, color=palette.faint, linewidth=0.6, alpha=0.7)
        axes.set_axisbelow(True)

    def text_width(self, text: str, points: float = TICK_PT) -> float:
        """Return about which share of the axes' width a text takes."""
        return text_width_in(text, self.size.text_pt(points)) / max(self.width_in, 0.1)

    def set_labels(self, *, x: str = "", y: str = "") -> None:
        """Set the labels of both axes; in the caller's style on the caller's axes."""
        axes, self.labels = self.axes, (x, y)
        height_in = (self.size.height_in or self.size.width_in * 0.5) * (0.6 if self.is_own else 1.0)
        if self.is_own:
            for label in (axes.xaxis.label, axes.yaxis.label):
                label.set(fontsize=self.size.text_pt(LABEL_PT), color=self.palette.soft)
        points = float(axes.xaxis.label.get_fontsize())
        axes.set_xlabel("\n".join(wrap_text(x, self.width_in, points)), **PLAIN_TEXT)
        axes.set_ylabel("\n".join(wrap_text(y, max(height_in, 1.0), points)), **PLAIN_TEXT)

    def wrap_labels(self) -> bool:
        """Break the labels of our own axes into lines for the size that they have now; whether that changed any."""
        box, (width_in, height_in) = self.axes.get_position(), self.figure.get_size_inches()
        is_changed = False
        rooms_in = box.width * width_in, max(box.height * height_in, MIN_LABEL_IN)
        for axis, text, room_in in zip((self.axes.xaxis, self.axes.yaxis), self.labels, rooms_in, strict=True):
            label = axis.label
            before = label.get_text()
            label.set_text("\n".join(wrap_text(text, room_in, self.size.text_pt(LABEL_PT))))
            is_changed |= label.get_text() != before
        return is_changed

    def set_title(self, title: str) -> None:
        """Set the title of the caller's axes, in the caller's style, but for its size where it would be too long."""
        largest = float(self.axes.title.get_fontsize())
        for points in np.geomspace(max(largest, MIN_TEXT_PT), MIN_TEXT_PT, 6):
            lines = wrap_text(title, self.width_in, points)
            if len(lines) <= MAX_TITLE_LINES:
                break
        style: dict[str, Any] = {"color": self.axes.title.get_color(), "fontsize": points, **PLAIN_TEXT}
        self.axes.set_title("\n".join(lines), loc="left", **style)

    def set_row_names(self, names: Sequence[str], row_in: float = 0.0) -> None:
        """Name rows, the first at y = 0, beside the axes, in as many lines as a row of this height has room for.

        In figures of a given height, and on the caller's axes, the text shrinks until the rows have room for it.
        """
        points, room_in = self.size.text_pt(TICK_PT), ROW_NAME_SHARE * self.size.width_in
        lines = min(max(int(row_in * 72 / (points * LINE_SPACING)), 1), 3)
        if lines == 1:
            widest_in = max((text_width_in(name, points) for name in names), default=room_in)
            # Up to a fifth smaller rather than cut.
            smaller = points * min(room_in / widest_in, 1)
            points = smaller if smaller >= max(MIN_TEXT_PT, 0.8 * points) else points
        wrapped = [wrap_text(name, room_in, points) for name in names]
        if max(map(len, wrapped), default=1) <= lines:
            shown = ["\n".join(rows) for rows in wrapped]
        else:
            shown = fit_names(names, room_in, points)
        self.rows = len(names)
        self.axes.set_yticks(range(len(names)), shown)
        for label in self.axes.get_yticklabels():
            label.set(linespacing=0.95, fontsize=points, **PLAIN_TEXT)
        self.axes.set_ylim(len(names) - 0.5, -0.5)
        self.axes.grid(visible=False, axis="y")
        if self.is_own:
            widest_in = max((text_width_in(line, points) for text in shown for line in text.split("\n")), default=0)
            self.width_in = min(self.width_in, self.size.width_in - widest_in - 0.45)

    def fit_row_names(self) -> None:
        """Shrink the names of rows until none lies on the next: to be called when the height of the axes is known."""
        if not self.rows:
            return
        labels = self.axes.get_yticklabels()
        low, high = sorted(self.axes.get_ylim())
        row_pt = self.axes.get_position().height * self.figure.get_figheight() * 72 / (high - low)
        lines = max((label.get_text().count("\n") + 1 for label in labels), default=1)
        for label in labels:
            label.set_fontsize(max(min(label.get_fontsize(), row_pt / (lines * LINE_SPACING)), MIN_TEXT_PT))

    def thin_ticks(self) -> None:
        """Have so few ticks that the label of none lies on another's, where matplotlib counts on narrower ones."""
        axis = self.axes.xaxis
        locator = axis.get_major_locator()
        for count in range(8, 1, -1):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            boxes = [tick.label1.get_window_extent().padded(1) for tick in ticks if tick.label1.get_visible()]
            if not any(box.overlaps(next_box) for box, next_box in itertools.pairwise(boxes)):
                return
            match locator:
                case LogLocator():
                    locator.set_params(subs=(1, 3) if count == 8 else (1,), numticks=count)
                case MaxNLocator():
                    locator.set_params(nbins=count)
                case FixedLocator():
                    axis.set_ticks(axis.get_ticklocs()[::2], [label.get_text() for label in axis.get_ticklabels()][::2])
                    locator = axis.get_major_locator()

    def annotate(self, text: str, *, at: tuple[float, float], offset_pt: tuple[float, float], **style: Any) -> Text:
        """Add soft text at a position (0 to 1) in the axes, moved by `offset_pt` points."""
        options: dict[str, Any] = {
            "fontsize": self.size.text_pt(TICK_PT),
            "color": self.palette.soft,
            "annotation_clip": False,
            "xycoords": "axes fraction",
            "textcoords": "offset points",
        }
        return self.axes.annotate(text, at, xytext=offset_pt, **options | PLAIN_TEXT | style)

    def add_inside_legend(self, handles: Sequence[Artist], names: Sequence[str]) -> None:
        """Add a legend to the caller's axes, in room that is made for it above the data."""
        points = self.size.text_pt(NOTE_PT)
        room_in = self.width_in - 2 * points / 72
        handle_in = 3.3 * points / 72
        widest_in = handle_in + max(text_width_in(name, points) for name in names)
        columns = min(max(int(room_in / widest_in), math.ceil(len(names) / MAX_LEGEND_ROWS)), len(names))
        names = fit_names(names, room_in / columns - handle_in, points)
        legend = self.axes.legend(
            handles,
            names,
            loc="upper left",
            ncols=columns,
            fontsize=points,
            handlelength=1.9,
            handletextpad=0.5,
            columnspacing=0.9,
            labelspacing=0.3,
            borderaxespad=0.3,
            framealpha=1.0,
            facecolor=self.palette.ground,
            edgecolor="none",
        )
        for text in legend.get_texts():
            text.set(color=self.palette.strong, **PLAIN_TEXT)
        # Else a layout engine would make room beside the axes for what is inside.
        legend.set_in_layout(False)
        self.figure.draw_without_rendering()
        share = (legend.get_window_extent().height + 0.5 * points / 72 * self.figure.dpi) / self.axes.bbox.height
        low, high = self.axes.get_ylim()
        self.axes.set_ylim(low, low + (high - low) / (1 - min(share, MAX_LEGEND_SHARE)))
        ticks = [tick for tick in self.axes.get_yticks() if min(low, high) <= tick <= max(low, high)]
        if len(ticks) > 1:
            # None beside the legend: no score is 1.4.
            self.axes.set_yticks(ticks)

    def show_message(self, sentence: str) -> None:
        """Show a sentence in place of data: why there is none, and what to do."""
        self.axes.set_axis_off()
        points = self.size.text_pt(10)
        text = "\n".join(wrap_text(sentence, self.width_in * 0.95, points))
        self.annotate(text, at=(0.5, 0.5), offset_pt=(0, 0), ha="center", va="center", fontsize=points, linespacing=1.5)


def _seen_colour(colour: Any, palette: Palette) -> Any:
    """A colour of the caller's, or the palette's own if it is not seen on the palette's ground."""
    is_seen = palette.ground != "none" and palette_on(colour).strong != palette.strong
    return colour if is_seen else palette.strong


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
