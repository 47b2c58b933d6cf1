"""Points of a frame, each a row: where it lies, which group it is of, and which rows a part of the plane holds.

frame ── read_points(x, y, by) ──► Points ──┬── draw_axes: a picture that widget/explorer.py has pointed at
                                            └── draw: the same as a figure, for where no kernel is
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import matplotlib.figure
import numpy as np
import numpy.typing as npt
import pandas as pd

from famnb.errors import InvalidArgument, InvalidRequest
from famnb.formatting import capitalize, format_count
from famnb.plot.canvas import Canvas, set_date_ticks
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.figure import Figure
from famnb.plot.grouping import group_looks, group_rows, numeric_column, require_columns, select_calls, time_column
from famnb.plot.labels import axis_label, column_name, no_rows_reason, simulation_note
from famnb.plot.layout import FigureSize, lay_out

Floats: TypeAlias = npt.NDArray[np.float64]
Span: TypeAlias = tuple[float, float]
"""The two ends of a part of an axis, both included, in the axis' unit."""
MIN_BULK = 8
"""Of fewer values none is far from the others."""
AXES_HEIGHT_IN = 3.8
_DAY_S = 86_400


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """One axis, and where each point lies on it."""

    column: str
    """The column of the frame that the values are of."""
    name: str
    """What it shows, in words."""
    label: str
    """The same with the unit."""
    values: Floats
    """In the axis' unit; of times, seconds since 1970."""
    kind: Literal["number", "time"] = "number"
    is_log: bool = False
    """Whether its scale is logarithmic."""

    def shares(self, values: npt.ArrayLike, ends: Span) -> Floats:
        """Return where values lie between two ends, from 0 to 1; not finite if a logarithmic axis has no such place."""
        scale: Any = np.log if self.is_log else np.asarray
        with np.errstate(divide="ignore", invalid="ignore"):
            start, end = scale(ends)
            return np.asarray((scale(values) - start) / (end - start), np.float64)

    def value_at(self, share: float, ends: Span) -> float:
        """Return the value at a place between two ends, the reverse of `shares`."""
        start, end = ends
        return start * (end / start) ** share if self.is_log else start + share * (end - start)

    def limits(self, values: Floats) -> Span:
        """Return the ends between which these values lie, with a little room, and from zero on if that is near."""
        values = values[values > 0] if self.is_log else values
        low, high = float(values.min()), float(values.max())
        if self.is_log:
            return low / 1.2, high * 1.2
        room = (high - low) * 0.03 or abs(high) * 0.1 or 0.5
        return 0.0 if self.kind == "number" and 0 <= low < high / 2 else low - room, high + room

    def bulk_limits(self) -> Span:
        """Return the limits of all values but far outliers, which would press the others together.

        These are beyond thrice the span of all but a hundredth on each side.
        """
        values = np.sort(self.values)
        beyond = max(len(values) // 100, 1)
        if self.kind == "number" and not self.is_log and len(values) >= MIN_BULK:
            low, high = values[beyond], values[-1 - beyond]
            reach = 3 * (high - low)
            values = values[(values >= low - reach) & (values <= high + reach)] if reach else values
        return self.limits(values)


@dataclasses.dataclass(frozen=True, slots=True)
class Points:
    """The rows of a frame that have a place on both axes."""

    frame: pd.DataFrame
    """A row a point."""
    x: Axis
    y: Axis
    by: str
    """What the groups are of; empty if there is one only."""
    groups: list[str]
    codes: npt.NDArray[np.int64]
    """The group of each point, as an index into `groups`."""
    notes: list[str]
    """What is left out, and whether calls were simulated."""
    title: str
    """What is drawn, as a heading."""
    empty: str = ""
    """Why there is no point; empty if there is one."""

    @property
    def looks(self) -> dict[str, Any]:
        """What decides how its groups look; see `group_looks`."""
        return group_looks(self.by, self.groups)

    def within(self, x: Span | None, y: Span | None, hidden: Sequence[int] = ()) -> npt.NDArray[np.bool_]:
        """Return for each point whether it lies in these parts of the axes and in no hidden group."""
        chosen = ~np.isin(self.codes, list(hidden))
        for axis, span in ((self.x, x), (self.y, y)):
            if span is not None:
                chosen &= (axis.values >= min(span)) & (axis.values <= max(span))
        return chosen


def read_points(frame: pd.DataFrame, *, x: str, y: str, by: str | None, log: str = "") -> Points:
    """Return the points of a frame for two columns of numbers or times. Raises InvalidRequest for other columns.

    `log` names the axes that are logarithmic, "x", "y" or "xy"; rows that are not above 0 there have no place.

    Warm-ups, and rows that lack either value, are left out with a note.
    """
    if not isinstance(frame, pd.DataFrame):
        raise InvalidArgument(f"frame: expected a DataFrame such as famnb.calls() returns, got {frame!r:.80}")
    require_columns(frame, x, y, by)
    calls, left_out = select_calls(frame)
    if log not in ("", "x", "y", "xy"):
        raise InvalidRequest(f"log: expected 'x', 'y', 'xy' or '', got {log!r}")
    across, up = (read_axis(calls, column, is_log=name in log) for name, column in (("x", x), ("y", y)))
    codes, groups = group_rows(calls[by]) if by else (np.zeros(len(calls), np.int64), ["calls"])
    placed = np.isfinite(across.values) & np.isfinite(up.values)
    missing, names = int((~placed).sum()), dict.fromkeys((across.name, up.name))
    without = f"have no {' or '.join(names)} and are not drawn."
    note = [f"{missing:,} of {format_count(len(calls), 'row')} {without}"] if missing else []
    return Points(
        calls[placed],
        dataclasses.replace(across, values=across.values[placed]),
        dataclasses.replace(up, values=up.values[placed]),
        by or "",
        groups,
        codes[placed],
        [*note, *left_out, *simulation_note(calls[placed])],
        f"{capitalize(up.name)} against {across.name}{f' by {by}' if by else ''}",
        "" if placed.any() else no_rows_reason(calls, " and ".join(names)),
    )


def read_axis(frame: pd.DataFrame, column: str, *, is_log: bool = False) -> Axis:
    """Return the axis of a column of numbers or times. Raises InvalidRequest for any other column."""
    values = frame[column]
    is_time = pd.api.types.is_datetime64_any_dtype(values.dtype)
    first: Any = next(iter(values.dropna().head(1)), None)
    # Text such as a CSV file has; but "2026" is a year in ISO 8601, and a number in any other column of text.
    if isinstance(first, str) and not first.isdigit():
        is_time = not pd.isna(pd.to_datetime(first, format="ISO8601", errors="coerce"))
    if is_time:
        moments = pd.to_datetime(time_column(frame, column), utc=True)
        seconds: Floats = np.asarray((moments - pd.Timestamp(0, tz="UTC")).dt.total_seconds(), dtype=np.float64)
        name = "start" if column == "started_at" else column_name(column)
        if is_log:
            raise InvalidRequest(f"log: {name} is not a number, so its axis cannot be logarithmic")
        return Axis(column, name, f"{name} (UTC)", seconds, "time")
    numbers = numeric_column(frame, column, "x and y are columns of numbers or of times; by may be any column")
    known = numbers[~np.isnan(numbers)]
    label, scale = axis_label(column, float(known.max()) if len(known) else 0.0)
    if is_log:
        numbers = np.where(numbers > 0, numbers, np.nan)
    return Axis(column, column_name(column), label, numbers * scale, is_log=is_log)


def draw(points: Points) -> matplotlib.figure.Figure:
    """Return the points as a figure."""
    chart = Chart(
        title=points.title,
        x=points.x.label,
        y=points.y.label,
        notes=points.notes,
        by=points.by,
        groups=points.groups,
        height_in=4.0,
    )
    if points.empty:
        return chart.finish_empty(points.empty)
    canvas = chart.create_canvas()
    chart.add_legend(_paint(canvas, points))
    return chart.finish()


def draw_axes(
    points: Points, ends: tuple[Span, Span], *, hidden: Sequence[int], width_in: float
) -> tuple[Figure, tuple[float, float, float, float]]:
    """Return the axes alone, for a page that says the rest itself, and where in the picture they are.

    `ends` are those of x from the left and of y from the top; left, top, width and height are shares of the picture.
    """
    size = FigureSize(width_in, AXES_HEIGHT_IN, 1.0)
    figure = Figure()
    canvas = Canvas.create(figure, size)
    canvas.palette = dataclasses.replace(canvas.palette, **points.looks)
    canvas.set_labels(x=points.x.label, y=points.y.label)
    _paint(canvas, points, hidden)
    (left, right), (top, bottom) = (
        (start / _unit(axis), end / _unit(axis)) for axis, (start, end) in zip((points.x, points.y), ends, strict=True)
    )
    canvas.axes.set(xlim=(left, right), ylim=(bottom, top))
    lay_out(figure, size.pad_in, size.pad_in, AXES_HEIGHT_IN - size.pad_in)
    canvas.thin_ticks()
    x0, y0, width, height = canvas.axes.get_position().bounds
    return figure, (x0, 1 - y0 - height, width, height)


def _paint(canvas: Canvas, points: Points, hidden: Sequence[int] = ()) -> list[LegendEntry]:
    """Draw the points on a canvas, those of some groups hidden; returns the legend of all groups."""
    x, y = (axis.values / _unit(axis) for axis in (points.x, points.y))
    sizes = np.bincount(points.codes, minlength=len(points.groups))
    entries = []
    for code, group in enumerate(points.groups):
        # Groups of one colour differ in shape.
        style = {"marker": "oDs"[min(canvas.palette.cycle(code), 2)], **canvas.palette.dot_style(code)}
        mask = (points.codes == code) & (code not in hidden)
        size = 5 if len(x) < 1000 else 3 if len(x) < 10_000 else 1.5
        canvas.axes.plot(x[mask], y[mask], markersize=size, rasterized=True, **style)
        (handle,) = canvas.axes.plot([], [], markersize=6, **style | {"alpha": 1})
        entries.append(LegendEntry(handle, group, n=f"{sizes[code]:,}"))
    canvas.axes.set_xscale("log" if points.x.is_log else "linear")
    canvas.axes.set_yscale("log" if points.y.is_log else "linear")
    if points.x.kind == "time":
        set_date_ticks(canvas.axes)
    if points.y.kind == "time":
        canvas.axes.yaxis_date()
    return entries


def _unit(axis: Axis) -> float:
    # matplotlib's times are days.
    return _DAY_S if axis.kind == "time" else 1.0
