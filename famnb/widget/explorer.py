"""The explorer: the rows of a frame as points; hover shows one, a click opens its call, brushing chooses rows.

Points ── a picture of the axes, places as bytes ──► front/tools/explorer.js ── finds the point under the pointer itself
                                                               │
describe, open, brush, zoom, hide: a few numbers ◄─────────────┘ ── facts of a point, a CallPages, the rows chosen ──►
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from famnb.errors import InvalidRequest
from famnb.formatting import format_count, format_estimate, shorten
from famnb.model_colours import page_style
from famnb.plot.figure import DPI
from famnb.plot.labels import column_name, format_metric
from famnb.plot.points import Axis, Points, Span, draw, draw_axes
from famnb.record import Ledger
from famnb.validation import check_index
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.inspector import CallPages, CallTool, CallView, find_call
from famnb.widget.runtime.intent import intent
from famnb.widget.runtime.tool import Computed
from famnb.widget.runtime.view import View
from famnb.widget.tables import ColumnView, Order, RowsView, RowView

WHOLE, UNSHOWN = 65_534, 65_535
"""The far end of the axes, and a place that is not shown, where places are sent as 16 bits."""
MIN_WIDTH_PX = 300
"""On a page that is narrower the picture is scaled down."""
LIST_LENGTH = 100
"""Rows in the list of what is chosen."""
PROMPT_CHARS = 120
"""Characters of a prompt that are shown of a point."""
HEAD_COLUMNS = ("model", "endpoint", "variant", "status", "error", "kind", "type")
"""What names a row, those that the frame has."""
TEXT_COLUMNS = ("prompt", "text")
"""What was said; the first that a frame has is shown."""
SHORT_NAMES = {
    "started_at": "started",
    "ttft_s": "first token",
    "ttfa_s": "first answer",
    "e2e_s": "whole reply",
    "t_s": "arrived",
    "input_tokens": "tokens in",
    "output_tokens": "tokens out",
    "reasoning_tokens": "reasoning tokens",
    "chars": "characters",
    "cost_usd": "cost",
}
"""What is shown of a point besides its place, those that the frame has, and what that is called."""


class PointGroupView(View, frozen=True):
    """A group of points."""

    key: str
    """Its name."""
    count: str
    colour: str
    cycle: int
    """How often all colours were used before it; tells groups of one colour apart."""


class AxesView(View, frozen=True):
    """The axes with the points, and where in the picture the axes are, as shares of its width and height."""

    url: str
    left: float
    top: float
    width: float
    height: float


class ScaleView(View, frozen=True):
    """An axis, x or y, that can be logarithmic."""

    key: str
    is_log: bool


Zoom: TypeAlias = Literal["Zoom in", "Zoom out", "Show outliers", "Hide outliers"]
"""What the axes can show instead: what is brushed, all, or all but far outliers."""


class PlotView(View, frozen=True):
    """The points."""

    label: str
    by: str
    groups: tuple[PointGroupView, ...]
    notes: tuple[str, ...]
    picture: AxesView | None
    """None until the page says how wide it is."""
    xs: bytes
    """Where the points lie from the left of the axes: 0 to WHOLE, 16 bits each; UNSHOWN for one that is not shown."""
    ys: bytes
    """The same from the top."""
    zooms: tuple[Zoom, ...]
    scales: tuple[ScaleView, ...]


class PointView(View, frozen=True):
    """What is said of a point."""

    point: int
    """Its row."""
    title: str
    text: str
    facts: tuple[tuple[str, str], ...]
    """Names and values."""


class ExplorerView(View, frozen=True):
    """The explorer."""

    title: str
    empty: str
    """Why there are no points."""
    plot: PlotView | None
    pointed: PointView | None
    """The point that was pointed at last."""
    spans: tuple[Span, Span] | None
    """The brushed parts of x and y, as shares of the axes from the left and the top; None if everything is chosen."""
    hidden: tuple[int, ...]
    """Groups that are not shown."""
    chosen: RowsView
    opened: str | None
    """The row that is open."""
    call: CallView | None


class Explorer(CallTool):
    """Points of a frame, as `famnb.plot.explore` makes it: hover, click, brush; `selection` is what is brushed."""

    entry = "tools/explorer.js"
    note = "Points to explore, by famnb.plot: run this cell to use them."

    selection = Computed["pd.DataFrame"](lambda explorer: explorer.points.frame[explorer._chosen])
    """The rows inside the brushed area that are in no hidden group, as a frame; all until something is brushed."""

    def __init__(self, points: Points, ledger: Ledger | None = None) -> None:
        """Show points; calls are opened from `ledger`, unless given that of the latest `famnb.connect()`."""
        self.points = points
        self._ledger = ledger
        self._pointed: PointView | None = None
        self._spans: tuple[Span, Span] | None = None
        """The brushed parts of x and y, in the units of the axes."""
        self._hidden: tuple[int, ...] = ()
        self._order = Order()
        """How the list is sorted; the latest first unless a column is chosen."""
        self._opened: int | None = None
        self._width_px = 0
        """How wide the page is; 0 until it says so."""
        self._is_dark = False
        self._plot: PlotView | None = None
        self._ends: tuple[Span, Span]
        """The ends of x from the left and of y from the top between which points are shown."""
        self._show_bulk()
        self._choose()
        super().__init__()

    # What the user does

    @intent
    def show_row(self, row: int) -> None:
        """Open the call of a row of the frame, by its position. Raises UnknownName if no ledger has it."""
        frame = self.points.frame
        call_id = frame["call_id"].iloc[row] if "call_id" in frame else None
        if not isinstance(call_id, str):
            raise InvalidRequest("this row names no call to open: its frame has no `call_id` for it")
        call = find_call(call_id, self._ledger)
        with self.lock:
            self.pages, self._opened = CallPages(call), row
            self.refresh()

    @intent
    def describe_point(self, point: int) -> None:
        """Say what the frame has of a point."""
        frame = self.points.frame
        titles, texts = dict.fromkeys([*HEAD_COLUMNS, self.points.by]), self._text_columns

        def read(columns: Iterable[str]) -> list[tuple[str, str]]:
            cells = [(_short_name(column), self._format_cell(point, column)) for column in columns if column in frame]
            return [(name, cell) for name, cell in cells if cell]

        columns = dict.fromkeys([self.points.x.column, self.points.y.column, *SHORT_NAMES])
        self._pointed = PointView(
            point=point,
            title=" · ".join(value for _, value in read(titles)),
            text=" ".join(value for _, value in read(texts)),
            facts=tuple(read(column for column in columns if column not in titles and column not in texts)),
        )

    @intent
    def draw(self, width: int, dark: bool) -> None:
        """Draw the points for a page of that width, in pixels."""
        self._width_px, self._is_dark = max(width, MIN_WIDTH_PX), dark
        self._draw()

    @intent
    def zoom(self, to: Zoom) -> None:
        """Show another part of the axes."""
        if to == "Zoom in" and self._spans:
            axes = zip((self.points.x, self.points.y), self._spans, strict=True)
            if not all(np.isfinite(axis.shares(span, span)).all() for axis, span in axes):
                raise InvalidRequest("zoom: the chosen part has no width or height on these axes; choose another one")
            self._ends = self._spans
        else:
            self._ends = self._bulk if to == "Hide outliers" else self._whole
        self._draw()

    @intent
    def toggle_log(self, axis: Literal["x", "y"]) -> None:
        """Have an axis logarithmic, or no longer."""
        scaled: Axis = getattr(self.points, axis)
        changes: dict[str, Any] = {axis: dataclasses.replace(scaled, is_log=not scaled.is_log)}
        self.points = dataclasses.replace(self.points, **changes)
        self._show_bulk()

    @intent
    def brush(self, spans: tuple[Span, Span] | None) -> None:
        """Choose the rows in these parts of x and y, or all: shares of the axes, from the left and from the top."""
        self._spans = None
        if spans is not None:
            x, y = (
                (axis.value_at(start, ends), axis.value_at(end, ends))
                for axis, (start, end), ends in zip((self.points.x, self.points.y), spans, self._ends, strict=True)
            )
            self._spans = x, y
        self._choose()
        self.notify("selection")

    @intent
    def hide_groups(self, groups: tuple[int, ...]) -> None:
        """Show the other groups; the rows of these are not chosen."""
        self._hidden = groups
        self._choose()
        self._draw()
        self.notify("selection")

    @intent
    def sort_rows(self, column: int) -> None:
        """Sort the list by a column, the largest first, and the other way round the second time."""
        columns = self._list_columns()
        self._order = self._order.toggle(columns[check_index("column", column, len(columns))])
        self._choose()

    def _choose(self) -> None:
        """Make anew which rows are chosen, and the list of the last of them, or of the first as they are sorted."""
        x, y = self._spans or (None, None)
        self._chosen = self.points.within(x, y, self._hidden)
        rows = np.flatnonzero(self._chosen)[::-1]
        if self._order.column:
            rows = rows[self._order.positions(self.points.frame[self._order.column].iloc[rows])]
        rows = rows[:LIST_LENGTH]
        total, count = len(self._chosen), int(self._chosen.sum())
        title = f"{count:,} of {format_count(total, 'row')} chosen" if count < total else format_count(total, "row")
        columns = self._list_columns()
        cells = [tuple(self._format_cell(row, column) for column in columns) for row in rows.tolist()]
        if count > LIST_LENGTH:
            title = f"{title}; the {'first' if self._order.column else 'last'} {LIST_LENGTH}"
        self._list = RowsView(
            title=title,
            columns=tuple(self._view_column(column) for column in columns),
            rows=tuple(
                RowView(key=str(row), cells=cells, label=", ".join(filter(None, cells)))
                for row, cells in zip(rows.tolist(), cells, strict=True)
            ),
        )

    # What is shown

    def view(self) -> ExplorerView:
        spans = None
        if self._spans is not None:
            axes = zip((self.points.x, self.points.y), self._spans, self._ends, strict=True)
            x, y = (np.nan_to_num(axis.shares(span, ends), posinf=1, neginf=0).tolist() for axis, span, ends in axes)
            spans = tuple(x), tuple(y)
        return ExplorerView(
            title=sanitize.visible(self.points.title),
            empty=self.points.empty,
            plot=self._plot,
            pointed=self._pointed,
            spans=spans,
            hidden=self._hidden,
            chosen=self._list,
            opened=str(self._opened) if self.pages else None,
            call=self.pages.view if self.pages else None,
        )

    def _show_bulk(self) -> None:
        """Show all points but far outliers."""
        x, y = self.points.x, self.points.y
        if self.points.empty:
            return
        self._whole = x.limits(x.values), y.limits(y.values)[::-1]
        self._bulk = x.bulk_limits(), y.bulk_limits()[::-1]
        self._ends = self._bulk
        self._draw()

    def _draw(self) -> None:
        """Make anew what is shown of the points."""
        points = self.points
        sizes = np.bincount(points.codes, minlength=len(points.groups)).tolist()
        looks = points.looks
        styles = [
            page_style(slot) if colour is None else {"colour": colour, "cycle": 0}
            for slot, colour in zip(looks["slots"], looks["colours"], strict=True)
        ]
        axes = (("x", points.x), ("y", points.y))
        x, y = (axis.shares(axis.values, ends) for (_, axis), ends in zip(axes, self._ends, strict=True))
        is_shown = (x >= 0) & (x <= 1) & (y >= 0) & (y <= 1) & ~np.isin(points.codes, self._hidden)
        xs, ys = (np.where(is_shown, np.rint(shares * WHOLE), UNSHOWN).astype("<u2").tobytes() for shares in (x, y))
        picture = None
        if self._width_px:
            width_in = self._width_px / DPI
            figure, (left, top, width, height) = draw_axes(points, self._ends, hidden=self._hidden, width_in=width_in)
            url = figure.to_uri(dark=self._is_dark)
            picture = AxesView(url=url, left=left, top=top, width=width, height=height)
        more: tuple[Zoom, ...] = ("Show outliers",) if self._ends == self._bulk else ("Zoom out",)
        less: tuple[Zoom, ...] = ("Hide outliers",) if self._bulk != self._whole else ()
        self._plot = PlotView(
            label=sanitize.visible(f"{points.y.label} against {points.x.label}"),
            by=points.by,
            groups=tuple(
                PointGroupView(key=sanitize.visible(group), count=f"{size:,}", **style)
                for group, size, style in zip(points.groups, sizes, styles, strict=True)
            ),
            notes=tuple(points.notes),
            picture=picture,
            xs=xs,
            ys=ys,
            zooms=more if self._ends != self._whole else less,
            scales=tuple(
                ScaleView(key=key, is_log=axis.is_log)
                for key, axis in axes
                if axis.kind == "number" and (axis.values > 0).any()
            ),
        )

    @property
    def _text_columns(self) -> list[str]:
        return [column for column in TEXT_COLUMNS if column in self.points.frame][:1]

    def _view_column(self, column: str) -> ColumnView:
        kind: Any = "word" if column in (*HEAD_COLUMNS, "started_at") else "number"
        kind = "text" if column in TEXT_COLUMNS else "status" if column == "status" else kind
        is_minor, order = column in ("endpoint", "status"), self._order.direction(column)
        return ColumnView(name=_short_name(column), kind=kind, is_minor=is_minor, order=order)

    def _list_columns(self) -> list[str]:
        """Return the columns of the list: when, what, the two that are drawn, cost, and what was said."""
        names = ["started_at", self.points.by, "model", "endpoint", "kind", "status"]
        columns = dict.fromkeys([*names, self.points.x.column, self.points.y.column, "cost_usd", *self._text_columns])
        return [column for column in columns if column in self.points.frame]

    def _format_cell(self, row: int, column: str) -> str:
        """Return a value as it is shown; empty where it is missing."""
        frame = self.points.frame
        value: Any = frame[column].iloc[row]
        if pd.api.types.is_scalar(value) and pd.isna(value):
            return ""
        if column == "cost_usd" and {"cost_low_usd", "cost_high_usd"} <= set(frame.columns):
            low, high = (frame[end].iloc[row] for end in ("cost_low_usd", "cost_high_usd"))
            return format_estimate(value, low, high, brief=True) if pd.notna(low) and pd.notna(high) else ""
        if isinstance(value, pd.Timestamp):
            return f"{value:%Y-%m-%d %H:%M:%S}"
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            return format_metric(column, float(value))
        if isinstance(value, bool | np.bool_):
            return "yes" if value else "no"
        # Cut before it is cleaned, since a prompt may be long, with room for spaces that will be one.
        return shorten(" ".join(sanitize.visible(str(value)[: 2 * PROMPT_CHARS]).split()), PROMPT_CHARS)

    # What is saved

    def saved(self) -> Bundle:
        if self.points.empty:
            return transcript.render([Section("head", self.points.title), Section("note", self.points.empty)])
        figure: Any = draw(self.points)
        # The picture has the title, the groups and the notes in it.
        return {"text/html": SafeHtml(figure.to_html()), "text/plain": figure.alt, "text/markdown": figure.alt}

    def __repr__(self) -> str:
        return f"<Explorer {self.points.title}: {format_count(len(self.points.frame), 'row')}>"


def _short_name(column: str) -> str:
    return SHORT_NAMES.get(column) or column_name(column)
