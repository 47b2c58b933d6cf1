"""The composer's history: the ledger's latest calls, filtered by text; one opens in the form, its reply below."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from famnb.errors import FamnbError
from famnb.formatting import format_duration
from famnb.record import Ledger, RecordedCall
from famnb.widget.form.controls import make_cell, make_control
from famnb.widget.html import sanitize

LATEST = 100
"""Calls in the list."""
_PLACES = ("prompt", "model", "endpoint", "standing", "error")
_FILTER = " OR ".join(
    [
        *(f"{place} LIKE ? ESCAPE '\\'" for place in _PLACES),
        "request_key IN (SELECT key FROM requests WHERE body LIKE ? ESCAPE '\\')",
    ]
)
"""Where a text is looked for."""


class Past:
    """The list of past calls; `load` is told the call that shall be in the form."""

    title = "History"
    hint = "Open a past call again"

    def __init__(self, ledger: Ledger | None, *, load: Callable[[RecordedCall], object]) -> None:
        self._ledger, self._load = ledger, load
        self._filter = make_control(
            widgets.Text,
            title="Filter calls",
            help="Show the calls that have this in prompt, settings, model, status or error",
            placeholder="all calls",
        )
        self._calls = make_control(widgets.Select, title="Latest calls", help="The latest first", options=(), rows=7)
        self._open = widgets.Button(description="Open in the form", tooltip="Fill the form with this call's request")
        self._look = widgets.Button(description="Look inside", tooltip="Show its reply and what went over the wire")
        self._renewed = widgets.Button(description="Refresh", tooltip="Look at the ledger again")
        self._said, self._below = widgets.HTML(), widgets.VBox()
        self._inspector: Any = None
        buttons = widgets.HBox([self._open, self._look, self._renewed])
        listed = make_cell(self._calls, kind="calls")
        self.box = widgets.VBox([make_cell(self._filter, kind="filter"), listed, buttons, self._said, self._below])
        self.box.add_class("famnb-composer-past")
        self._filter.observe(lambda _: self._guarded(self._renew), "value")
        self._open.on_click(lambda _: self._guarded(self._opened))
        self._look.on_click(lambda _: self._guarded(self._inspect))
        self._renewed.on_click(lambda _: self._guarded(self._renew))

    def changed(self) -> None:
        """Nothing to do: the past does not depend on the form."""

    def opened(self) -> None:
        """Look at the ledger."""
        self._guarded(self._renew)

    def _renew(self) -> None:
        if self._ledger is None:
            self._said.value = '<p class="famnb-remark">This client keeps no ledger, so there is no history.</p>'
            return
        found = _found(self._ledger, self._filter.value.strip())
        chosen = self._calls.value
        options = tuple((_line(row), row["id"]) for row in reversed(found))
        self._calls.options = options
        ids = [call_id for _, call_id in options]
        self._calls.value = chosen if chosen in ids else next(iter(ids), None)
        self._said.value = "" if options else '<p class="famnb-help" role="status">There are no such calls.</p>'

    def _opened(self) -> None:
        """Have the chosen call in the form, and its reply below."""
        call = self._chosen()
        if call is not None:
            self._load(call)
            self._inspect()
            self._said.value = f'<p class="famnb-help" role="status">Call {call.call_id} is in the form.</p>'

    def _inspect(self) -> None:
        call = self._chosen()
        if call is None:
            return
        if self._inspector is None:
            # Loaded when first wanted: it brings matplotlib and pandas, which a form alone does without.
            self._inspector = importlib.import_module("famnb.widget.inspector").Inspector(call)
            self._below.children = (self._inspector,)
        else:
            self._inspector.show(call)

    def _chosen(self) -> RecordedCall | None:
        if self._ledger is None or self._calls.value is None:
            self._said.value = '<p class="famnb-fault" role="alert">Choose a call first.</p>'
            return None
        return self._ledger.call(self._calls.value)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except (FamnbError, KeyError, OSError) as error:
            self._said.value = f'<p class="famnb-fault" role="alert">{sanitize.escape(str(error))}</p>'


def _found(ledger: Ledger, text: str) -> list[Any]:
    """The latest calls that hold a text."""
    if not text:
        return list(ledger.select(limit=LATEST))
    inside = json.dumps(text, ensure_ascii=False)[1:-1]
    return list(ledger.select(_FILTER, [*[_like(text)] * len(_PLACES), _like(inside)], limit=LATEST))


def _like(text: str) -> str:
    """A pattern for what holds a text."""
    for mark in "\\%_":
        text = text.replace(mark, f"\\{mark}")
    return f"%{text}%"


def _line(row: Any) -> str:
    """A call as one line of the list; what tells calls apart comes first, since a narrow page cuts off the rest."""
    when = RecordedCall(row=row, body={}, load=tuple).started_at.astimezone()
    taken = "" if row["e2e_s"] is None else format_duration(row["e2e_s"], brief=True)
    said = " ".join(sanitize.visible(row["prompt"] or "").split())
    facts = f"{row['endpoint']:<9} {row['model']:<12} {row['standing']:<11} {taken:>7}"
    return f"{when:%d %b %H:%M}  {said:<44.44}  {facts}"
