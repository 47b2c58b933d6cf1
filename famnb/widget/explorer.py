"""The explorer: the rows of a frame as points; hover shows one, a click opens its call, brushing chooses rows.

Points ── bytes: places, groups ──► front/explore.js ── draws, finds the point under the pointer by itself
                                        │
point, open, brush: a few numbers ◄─────┘ ── facts of one point, a CallPages, the first rows chosen ──►
"""

from __future__ import annotations

import base64
import functools
import io
from typing import Any

import numpy as np
import pandas as pd
import traitlets
from PIL import Image

from famnb.errors import InvalidRequest, UnknownName
from famnb.formatting import ESTIMATE_MARK, MAX_FACTOR, format_count, format_estimate, shorten
from famnb.model_colours import page_style
from famnb.plot.labels import UNITS, column_name, format_metric
from famnb.plot.points import Axis, Points, Span, draw, read_axis
from famnb.record import Ledger
from famnb.widget.default_client import connected_ledger
from famnb.widget.form.tool import Computed
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.inspector import CallPages, handle_pages
from famnb.widget.live.base import join_front
from famnb.widget.live.described import DescribedWidget

LIST_LENGTH = 100
"""Rows in the list of what is chosen."""
PROMPT_CHARS = 120
"""Characters of a prompt that are shown of a point."""
HEAD_COLUMNS = ("model", "endpoint", "variant", "status", "error", "kind", "type")
"""What names a row, those that the frame has."""
FACT_COLUMNS = (
    *("started_at", "ttft_s", "ttfa_s", "e2e_s", "t_s"),
    *("input_tokens", "output_tokens", "reasoning_tokens", "chars", "cost_usd"),
)
"""What is shown of a point besides its place, those that the frame has."""
TEXT_COLUMNS = ("prompt", "text")
"""What was said; the first that a frame has is shown."""
MANY_WORDS, FIRST_CHARS = 5_000, 60
"""Of more different prompts than these the page gets fewer characters of each."""
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
"""What columns are called where there is little room."""
MARKS = ("", ESTIMATE_MARK.rstrip(), "at most ")
"""What stands before an amount that is not known exactly."""
PICTURE_COLOURS = 64
_PICTURE = SafeHtml('<p><img src="{}" alt="{}" style="max-width:100%"></p>')


class Explorer(DescribedWidget):
    """Points of a frame, as `famnb.plot.explore` makes it: hover, click, brush; `selection` is what is brushed."""

    _esm = join_front("explore.js")

    selection = Computed["pd.DataFrame"](lambda explorer: explorer._points.frame[explorer._chosen])
    """The rows inside the brushed area that are in no hidden group, as a frame; all until something is brushed."""

    def __init__(self, points: Points, ledger: Ledger | None = None) -> None:
        """Show points; calls are opened from `ledger`, unless given that of the latest `famnb.connect()`."""
        self._points = points
        self._ledger = ledger
        self._drawn = points.sample()
        self._spans: dict[str, Span | None] = {"x": None, "y": None}
        """The brushed area; None from one end of the axis to the other."""
        self._hidden: set[int] = set()
        self._chosen = points.within(None, None)
        self._pages: CallPages | None = None
        """The call that is open."""
        self._opened: int | None = None
        """The row that is open."""
        super().__init__()

    # What the user does

    def show_row(self, row: int) -> None:
        """Open the call of a row of the frame, by its position. Raises UnknownName if no ledger has it."""
        with self._lock:
            self._pages = CallPages(self._find_call(row))
            self._opened = row
            self.send_changes(opened=row, **self._pages.describe())

    def handle(self, message: dict[str, Any]) -> None:
        match message:
            case {"kind": "facts"}:
                facts, arrays = self._facts
                self.send({"kind": "facts", "facts": facts, "binary": list(arrays)}, list(arrays.values()))
            case {"kind": "brush", "x": x, "y": y}:
                self._spans = {"x": _read_span(x), "y": _read_span(y)}
                self._update()
            case {"kind": "hide", "groups": [*groups]}:
                self._hidden = {group for group in groups if isinstance(group, int)}
                self._update()
            case {"kind": "open", "number": int(number)} if 0 <= number < len(self._drawn):
                self.show_row(int(self._drawn[number]))
            case {"kind": "open", "row": int(row)} if 0 <= row < len(self._points.frame):
                self.show_row(row)
            case {"kind": "shut"}:
                self._pages = self._opened = None
                self.send_changes(call=None, opened=None)
            case _ if self._pages is not None:
                handle_pages(self, self._pages, message)
            case _:
                pass

    def _update(self) -> None:
        self._chosen = self._points.within(self._spans["x"], self._spans["y"], sorted(self._hidden))
        self.send_changes(chosen=self._describe_chosen())
        change = {"name": "selection", "old": None, "new": self.selection, "owner": self, "type": "change"}
        self.notify_change(traitlets.Bunch(change))

    def _find_call(self, row: int) -> Any:
        frame = self._points.frame
        call_id = frame["call_id"].iloc[row] if "call_id" in frame else None
        if not isinstance(call_id, str):
            raise InvalidRequest("this row names no call to open: its frame has no `call_id` for it")
        ledger = connected_ledger() if self._ledger is None else self._ledger
        try:
            return ledger.call(call_id)
        except KeyError as error:
            raise UnknownName(f"{error}; if it is in another ledger, give that one as `ledger=`") from None

    # What is drawn

    def describe(self) -> dict[str, Any]:
        points = self._points
        if points.empty:
            return {"plot": self._describe_plot()}
        pages = {"call": None} if self._pages is None else self._pages.describe()
        x, y = (_page_values(axis)[self._drawn].astype("<f4") for axis in (points.x, points.y))
        codes = points.codes[self._drawn].astype("u1")
        return {
            "plot": self._describe_plot(),
            "xs": x.tobytes(),
            "ys": y.tobytes(),
            "codes": codes.tobytes(),
            "chosen": self._describe_chosen(),
            "opened": self._opened,
            **pages,
        }

    def _describe_plot(self) -> dict[str, Any]:
        points, total = self._points, len(self._points.frame)
        drawn = len(self._drawn)
        few = f"{drawn:,} of {total:,} are drawn, by lot; what is chosen is of all." if drawn < total else ""
        sizes = np.bincount(points.codes, minlength=len(points.groups))
        own = [{"colour": colour, "cycle": 0} for colour in points.colours]
        groups = [
            {"label": sanitize.visible(group), "count": f"{count:,}", **style}
            for group, count, style in zip(
                points.groups, sizes.tolist(), own or map(page_style, points.slots), strict=True
            )
        ]
        return {
            "title": sanitize.visible(points.title),
            "x": _describe_axis(points.x),
            "y": _describe_axis(points.y),
            "by": points.by,
            "groups": groups,
            "notes": [note for note in (few, *points.notes) if note],
            "empty": points.empty,
            "columns": [[_short_name(column), *_column_kind(column)] for column in self._list_columns()],
        }

    def _describe_chosen(self) -> dict[str, Any]:
        """The brushed area, how many rows are in it, and the latest of them."""
        rows = np.flatnonzero(self._chosen)[::-1][:LIST_LENGTH]
        total, count = len(self._chosen), int(self._chosen.sum())
        title = f"{count:,} of {format_count(total, 'row')} chosen" if count < total else format_count(total, "row")
        frame, columns = self._points.frame, self._list_columns()
        return {
            "spans": [None if span is None else list(span) for span in self._spans.values()],
            "hidden": sorted(self._hidden),
            "title": f"{title}; the last {LIST_LENGTH}" if count > LIST_LENGTH else title,
            "rows": [
                {"id": row, "cells": [self._format_cell(frame, row, column) for column in columns]}
                for row in rows.tolist()
            ],
        }

    def _list_columns(self) -> list[str]:
        """The columns of the list: when, what, the two that are drawn, cost, and what was said."""
        axes = [axis.column for axis in (self._points.x, self._points.y) if axis.column]
        wanted = ["started_at", self._points.by, "model", "endpoint", "kind", "status", *axes, "cost_usd"]
        wanted += self._text_columns()
        return [column for column in dict.fromkeys(wanted) if column in self._points.frame]

    @functools.cached_property
    def _facts(self) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
        """What is said of each point, a description a column, and the columns' values as bytes by name."""
        frame, points = self._points.frame, self._points
        roles = dict.fromkeys([*HEAD_COLUMNS, points.by], "title") | dict.fromkeys(self._text_columns(), "text")
        axes = [axis.column for axis in (points.x, points.y) if axis.column]
        roles |= dict.fromkeys([column for column in (*axes, *FACT_COLUMNS) if column not in roles], "fact")
        facts, arrays = list[dict[str, Any]](), dict[str, bytes]()
        drawn = frame.iloc[self._drawn] if len(self._drawn) < len(frame) else frame
        for number, (column, role) in enumerate(roles.items()):
            if column in frame:
                fact, values = _encode_column(drawn, column)
                facts.append({"role": role, "name": _short_name(column), "number": number, **fact})
                arrays |= {f"{name}{number}": value for name, value in values.items()}
        return facts, arrays

    def _text_columns(self) -> list[str]:
        return [column for column in TEXT_COLUMNS if column in self._points.frame][:1]

    @staticmethod
    def _format_cell(frame: pd.DataFrame, row: int, column: str) -> str:
        """A value as it is shown; empty where it is missing."""
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
        return _write_word(value)

    # What is saved

    def snapshot(self) -> Bundle:
        points = self._points
        title = transcript.render([Section("head", points.title)])
        if points.empty:
            return transcript.join_bundles([title, transcript.render([Section("note", points.empty)])])
        figure: Any = draw(points)
        data, _ = figure._repr_mimebundle_()
        url = f"data:image/png;base64,{base64.b64encode(_shrink(data['image/png'])).decode()}"
        picture = _PICTURE.format(url, figure.alt)
        # The picture has the title, the groups and the notes in it.
        return {"text/html": picture, "text/plain": figure.alt, "text/markdown": figure.alt}

    def _note(self) -> str:
        return "Points to explore, by famnb.plot: run this cell to use them."

    def __repr__(self) -> str:
        return f"<Explorer {self._points.title}: {format_count(len(self._points.frame), 'row')}>"


def _shrink(png: bytes) -> bytes:
    """Return a picture in fewer colours: thousands of half transparent points have too many to be saved."""
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.quantize(PICTURE_COLOURS).save(buffer, "png")
    return buffer.getvalue()


def _page_values(axis: Axis) -> np.ndarray[Any, Any]:
    return axis.values - _offset(axis)


def _offset(axis: Axis) -> float:
    """What the page adds to the values it gets: seconds since 1970 would be minutes off as 32-bit floats."""
    return float(axis.values.min()) if axis.kind == "time" and len(axis.values) else 0.0


def _describe_axis(axis: Axis) -> dict[str, Any]:
    names = [sanitize.visible(name) for name in axis.names]
    return {
        "label": sanitize.visible(axis.label),
        "kind": axis.kind,
        "offset": _offset(axis),
        "names": names,
        "computed": not axis.column,
    }


def _encode_column(frame: pd.DataFrame, column: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return how front/facts.js reads a column, and its values as bytes by the name of what they are."""
    values = frame[column]
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return {"kind": "time"}, {"values": read_axis(frame, column).values.astype("<f8").tobytes()}
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        fact = {"kind": "number", "unit": UNITS.get(column, "")}
        if column != "cost_usd" or not {"cost_low_usd", "cost_high_usd"} <= set(frame.columns):
            return fact, {"values": numbers.astype("<f4").tobytes()}
        numbers, marks = _mark_estimates(frame, numbers)
        arrays = {"values": numbers.astype("<f4").tobytes(), "marks": marks.astype("u1").tobytes()}
        return fact | {"marks": list(MARKS)}, arrays
    codes, uniques = pd.factorize(values)
    chars = PROMPT_CHARS if len(uniques) <= MANY_WORDS else FIRST_CHARS
    # The last one is where the code of a missing value, -1, points. None has a line break in it.
    words = "\n".join([*(_write_word(word, chars) for word in uniques), ""])
    codes = np.where(codes < 0, len(uniques), codes).astype(np.min_scalar_type(len(uniques)))
    arrays = {"values": codes.tobytes(), "words": words.encode(errors="replace")}
    return {"kind": "words", "width": codes.itemsize}, arrays


def _mark_estimates(
    frame: pd.DataFrame, costs: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return costs as `format_estimate` says them if it is brief, and which of MARKS stands before each."""
    low, high = (frame[end].to_numpy(dtype=float, na_value=np.nan) for end in ("cost_low_usd", "cost_high_usd"))
    is_exact = np.isclose(low, high, rtol=1e-9, atol=0)
    is_wide = ~is_exact & (high > MAX_FACTOR * low)
    return np.where(is_wide, high, costs), np.where(is_exact, 0, np.where(is_wide, 2, 1))


def _write_word(value: object, chars: int = PROMPT_CHARS) -> str:
    """Return a value that is neither number nor time in a line of some characters."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    # Cut before it is cleaned, since a prompt may be long, with room for spaces that will be one.
    return shorten(" ".join(sanitize.visible(str(value)[: 2 * chars]).split()), chars)


def _short_name(column: str) -> str:
    return SHORT_NAMES.get(column) or column_name(column)


def _column_kind(column: str) -> tuple[str, ...]:
    """How a column of the list is set (front/rows.js): figures right, words left, what was said where room is left."""
    if column in TEXT_COLUMNS:
        return ("data",)
    if column in ("endpoint", "status"):
        return ("word", "less")
    return ("word",) if column in (*HEAD_COLUMNS, "started_at") else ("fact",)


def _read_span(ends: object) -> Span | None:
    match ends:
        case [int() | float() as first, int() | float() as last]:
            return (float(min(first, last)), float(max(first, last)))
        case _:
            return None
