"""The dashboard: spend, calls, latency and errors over time, kept up to date, and the latest calls to open.

thread ── Overview ── ledger                    what the calls say
page ── filters ── Dashboard ── CallPages, the call that is open

The page shows the filters at once, and that the calls are being read; the thread reads them after the cell has ended.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from famnb.endpoints import ENDPOINTS
from famnb.errors import InvalidArgument
from famnb.record import Ledger, prices
from famnb.record.ledger import HasLedger, connected_ledger, ledger_of
from famnb.validation import check_index
from famnb.widget.dashboard.views import RANGES, DashboardFilters, DashboardView, FilterView, OverviewView
from famnb.widget.html import transcript
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.inspector import CallPages, CallTool
from famnb.widget.runtime.intent import intent

if TYPE_CHECKING:
    from famnb.widget.dashboard.overview import Overview

PERIOD_S = 0.5
"""The least time between two looks at the ledger; see also PAUSE_PER_LOOK."""
PAUSE_PER_LOOK = 20
"""How many times as long as a look the pause after it is, so that a large ledger takes 5 % of a core at most."""
# Each marks the notebook as changed.
SAVE_PERIOD_S = 5.0
"""The least time between two updates of the saved output."""
SAVED_LENGTH = 10
"""Calls in the saved output."""
LABELS = {"range": "Calls of", "model": "Model", "endpoint": "Endpoint", "by": "Grouped by"}
"""The filters, and what they are called."""
_READING = "Reading the calls …"
_UNREADABLE = "The calls cannot be read. Another look follows by itself."
_UNREAD = "Its calls were still being read when this was saved."


class Dashboard(CallTool):
    """Live spend, calls, latency and errors, by model and endpoint; below, the latest calls, each of which opens.

    It looks at the ledger, so it shows the calls of other kernels too; it stops looking when it is closed.
    """

    entry = "tools/dashboard.js"
    note = "A famnb.Dashboard: run this cell to use it."

    def __init__(self, client: Ledger | HasLedger | str | None = None) -> None:
        """Watch a client's ledger, a ledger or its path, or that of the latest `famnb.connect()`."""
        # Before anything can fail: ipywidgets (8.1) calls `close` when a widget is deleted, even if `__init__` failed.
        self._closed = threading.Event()
        self._ledger = connected_ledger() if client is None else ledger_of(client)
        self._polling = threading.Lock()
        """Held during a look at the ledger. Who holds it may wait for the tool's lock, not the reverse."""
        self._overview: Overview | None = None
        """None until the first look at the ledger has succeeded."""
        self._filters = DashboardFilters()
        self._shown: OverviewView | str = _READING
        """What the calls say, or why there is nothing to say."""
        self._is_unreadable = False
        """Whether the last look at the ledger has failed."""
        self._saved_s = -SAVE_PERIOD_S
        """When the saved output was brought up to date."""
        self._is_saved = True
        """Whether the saved output shows what the page shows."""
        super().__init__()
        threading.Thread(target=self._watch, name="famnb-dashboard", daemon=True).start()

    # What the user does

    def poll(self) -> None:
        """Look at the ledger now."""
        with self._polling:
            try:
                # Without the tool's lock, for which its page would wait.
                filters = self._filters
                overview = self._read(filters)
                with self.lock:
                    # The end of a range that moves with the clock moves although no call is new.
                    if filters.range == self._filters.range and (
                        self._overview is None or filters.is_moving or not overview.frame.equals(self._overview.frame)
                    ):
                        self._overview = overview
                        self._update()
                    # Until it has ended, the pages have the call that is open as it was when it was opened.
                    if self.pages is not None and self.pages.call.status == "running":
                        call = self._ledger.call(self.pages.call.call_id)
                        if call.status != "running":
                            self.pages = CallPages(call)
                            self.refresh()
                    if self._is_unreadable:
                        self._is_unreadable = False
                        self.show_error(None)
            # On the thread of `_watch` it would end the updates, and the next look at the ledger may succeed.
            except Exception as error:
                with self.lock:
                    self._is_unreadable = True
                    self.show_error(error)
                    if self._overview is None:
                        self._update()
        with self.lock:
            if not self._is_saved and time.monotonic() - self._saved_s >= SAVE_PERIOD_S:
                self._saved_s, self._is_saved = time.monotonic(), True
                self.update_saved()

    @intent
    def show_call(self, call_id: str) -> None:
        """Open a call below the list. Raises KeyError if the ledger does not have it."""
        with self.lock:
            self.pages = CallPages(self._ledger.call(call_id))
            self.refresh()

    def close(self) -> None:
        """Stop looking at the ledger, and remove the widget."""
        self._closed.set()
        super().close()

    # What the page asks for

    @intent
    def set_filter(self, name: Literal["range", "model", "endpoint", "by"], value: str) -> None:
        """Choose which calls are shown, or what they are grouped by; "" is any."""
        if value not in self._choices()[name]:
            raise InvalidArgument(f"{LABELS[name]}: no calls are known of {value!r}; choose again")
        change: dict[str, Any] = {name: value}
        self._filters = dataclasses.replace(self._filters, **change)
        if name == "range" and self._overview is not None:
            self._overview = self._read(self._filters)
        self._update()

    @intent
    def sort_rows(self, column: int) -> None:
        """Sort the list by a column, the largest first, and the other way round the second time."""
        if isinstance(self._shown, OverviewView):
            columns = self._shown.calls.columns
            order = self._filters.order.toggle(columns[check_index("column", column, len(columns))].name)
            self._filters = dataclasses.replace(self._filters, order=order)
            self._update()

    @intent
    def set_price(self, model: str, input: str, output: str) -> None:
        """Set a model's price, in USD for a million tokens; the next look at the ledger shows what calls cost by it."""
        prices.set(model, input=input, output=output)

    # What is shown

    def view(self) -> DashboardView:
        overview = self._shown if isinstance(self._shown, OverviewView) else None
        choices = self._choices()
        return DashboardView(
            filters=tuple(
                FilterView(key=name, label=label, value=getattr(self._filters, name), choices=choices[name])
                for name, label in LABELS.items()
            ),
            is_reading=self._shown == _READING,
            empty="" if overview else str(self._shown),
            overview=overview,
            call=self.pages.view if self.pages else None,
        )

    def _choices(self) -> dict[str, tuple[str, ...]]:
        models = sorted({*(self._overview.models if self._overview else ()), self._filters.model} - {""})
        return {
            "range": RANGES,
            "model": ("", *models),
            "endpoint": ("", *ENDPOINTS),
            "by": ("model", "endpoint"),
        }

    def _update(self) -> None:
        """Make anew what is shown of the calls."""
        if self._overview is None:
            shown: OverviewView | str = _UNREADABLE if self._is_unreadable else _READING
        else:
            shown = self._overview.view(self._filters)
        if shown != self._shown:
            self._shown, self._is_saved = shown, False
        self.refresh()

    def _read(self, filters: DashboardFilters) -> Overview:
        # On first use, on the thread: it loads pandas and scipy, which takes most of a second.
        from famnb.widget.dashboard.overview import Overview

        return Overview(self._ledger, filters)

    def _watch(self) -> None:
        # How long this takes says nothing of later looks: it loads pandas.
        self.poll()
        pause = PERIOD_S
        while not self._closed.wait(pause) and self.comm is not None:
            started_s = time.monotonic()
            self.poll()
            pause = max(PERIOD_S, PAUSE_PER_LOOK * (time.monotonic() - started_s))

    # What is saved

    def saved(self) -> Bundle:
        filters = self._filters
        chosen = [name for name in (filters.range, filters.model, filters.endpoint) if name]
        head = " · ".join(["Dashboard", *chosen, f"{datetime.now().astimezone():%Y-%m-%d %H:%M}"])
        title = transcript.render([Section("head", head)])
        if isinstance(self._shown, str):
            note = _UNREAD if self._shown == _READING else self._shown
            return transcript.join_bundles([title, transcript.render([Section("note", note)])])
        overview = self._shown
        figures = [[figure.key, figure.value, figure.note] for figure in overview.figures]
        # Without tokens and prompt.
        calls = [[*row.cells[:5], row.cells[6]] for row in overview.calls.rows[:SAVED_LENGTH]]
        return transcript.join_bundles(
            [
                title,
                transcript.table_bundle(["figure", "value", "of"], figures, left=3),
                transcript.table_bundle(overview.head, [[group.key, *group.cells] for group in overview.groups]),
                transcript.table_bundle(["started", "endpoint", "model", "status", "took", "cost"], calls, left=4),
                *([transcript.render([Section("note", overview.note)])] if overview.note else []),
            ]
        )

    def __repr__(self) -> str:
        return f"<Dashboard {self._ledger!r}>"
