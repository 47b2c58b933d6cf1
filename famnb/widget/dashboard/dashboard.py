"""The dashboard: spend, calls, latency and errors over time, kept up to date, and the latest calls to open.

thread ── Overview ── CallFeed ── ledger        what the calls say, by part
page ── filters, a chosen span ── Dashboard ── CallPages, the call that is open

The page shows the filters at once, and that the calls are being read; the thread reads them after the cell has ended.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psutil

from famnb.endpoints import ENDPOINTS
from famnb.record import Ledger
from famnb.record.ledger import HasLedger, ledger_of
from famnb.widget.dashboard.time_ranges import RANGES, SESSION, find_start
from famnb.widget.default_client import connected_ledger
from famnb.widget.html import transcript
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.inspector import CallPages, handle_pages
from famnb.widget.live.base import join_front
from famnb.widget.live.described import DescribedWidget

if TYPE_CHECKING:
    from famnb.widget.dashboard.overview import Overview

PERIOD_S = 0.5
"""The least time between two looks at the ledger; see also PAUSE_PER_LOOK."""
PAUSE_PER_LOOK = 20
"""How many times as long as a look the pause after it is, so that a large ledger takes 5 % of a core at most."""
# Each marks the notebook as changed.
KEEP_PERIOD_S = 5.0
"""The least time between two updates of the saved output."""
SAVED_LENGTH = 10
"""Calls in the saved output."""
GROUPINGS = ("model", "endpoint")
_READING = "Reading the calls …"
_UNREADABLE = "The calls cannot be read. Another look follows by itself."
_UNREAD = "Its calls were still being read when this was saved."


class Dashboard(DescribedWidget):
    """Live spend, calls, latency and errors, by model and endpoint; below, the latest calls, each of which opens.

    It looks at the ledger, so it shows the calls of other kernels too; it stops looking when it is closed.
    """

    _esm = join_front("dashboard.js")

    def __init__(self, client: Ledger | HasLedger | str | None = None) -> None:
        """Watch a client's ledger, a ledger or its path, or that of the latest `famnb.connect()`."""
        # Before anything can fail: ipywidgets (8.1) calls `close` when a widget is deleted, even if `__init__` failed.
        self._closed = threading.Event()
        self._ledger = connected_ledger() if client is None else ledger_of(client)
        self._looking = threading.Lock()
        """Held during a look at the ledger. Who holds it may wait for the widget's own lock, not the reverse."""
        self._overview: Overview | None = None
        """None until the first look."""
        self._session_start = datetime.fromtimestamp(psutil.Process().create_time(), UTC)
        self._filters = {"range": SESSION, "model": "", "endpoint": "", "by": GROUPINGS[0]}
        self._span: tuple[datetime, datetime] | None = None
        """The span of time whose calls are listed; None lists the latest of all."""
        self._pages: CallPages | None = None
        """The call that is open."""
        self._parts: dict[str, Any] = {}
        """What was sent last."""
        self._is_read = False
        """Whether a look at the ledger has succeeded."""
        self._is_unreadable = False
        """Whether the last look at the ledger has failed."""
        self._kept_s = -KEEP_PERIOD_S
        """When the saved output was brought up to date."""
        self._is_kept = True
        """Whether the saved output shows what the page shows."""
        super().__init__()
        self._update()
        threading.Thread(target=self._watch, name="famnb-dashboard", daemon=True).start()

    # What the user does

    def refresh(self) -> None:
        """Look at the ledger now."""
        with self._looking:
            try:
                # Without the widget's lock, for which its page would wait.
                is_new = self._look()
                with self._lock:
                    # The end of a range that moves with the clock moves although no call is new.
                    if is_new or not self._is_read or RANGES[self._filters["range"]] is not None:
                        self._is_read = True
                        self._update()
                    self._follow_call()
                    if self._is_unreadable:
                        self._is_unreadable = False
                        self.report(None)
            # On the thread of `_watch` it would end the updates, and the next look at the ledger may succeed.
            except Exception as error:
                self._is_unreadable = True
                if not self._is_read:
                    self._update()
                self.report(error)
        with self._lock:
            self._keep_up()

    def show_call(self, call_id: str) -> None:
        """Open a call below the list. Raises KeyError if the ledger does not have it."""
        with self._lock:
            self._pages = CallPages(self._ledger.call(call_id))
            self.send_changes(**self._pages.describe())

    def close(self) -> None:
        """Stop looking at the ledger, and remove the widget."""
        self._closed.set()
        super().close()

    def handle(self, message: dict[str, Any]) -> None:
        match message:
            case {"kind": "filter", "name": str(name), "value": str(value)} if value in self._choices().get(name, ()):
                self._filters[name] = value
                self._span = None
                self._update()
            case {"kind": "span", "index": int(index)} if self._overview and self._overview.timeline:
                self._show_span(self._overview.timeline.span(index))
            case {"kind": "span"}:
                self._show_span(None)
            case {"kind": "open", "id": str(call_id)}:
                self.show_call(call_id)
            case {"kind": "shut"}:
                self._pages = None
                self.send_changes(call=None)
            case _ if self._pages is not None:
                handle_pages(self, self._pages, message)
            case _:
                pass

    def _show_span(self, span: tuple[datetime, datetime] | None) -> None:
        """List the calls of a span of time; the only one of its calls is opened."""
        self._span = span
        self._update()
        if span is not None and len(rows := self._parts["calls"]["rows"]) == 1:
            self.show_call(rows[0]["id"])

    # What is drawn

    def describe(self) -> dict[str, Any]:
        pages = {"call": None} if self._pages is None else self._pages.describe()
        return {**self._parts, **pages}

    def _update(self) -> None:
        """Send the parts that have changed since they were sent last."""
        choices = {name: list(values) for name, values in self._choices().items()}
        parts = {
            "filters": {"chosen": dict(self._filters), "choices": choices},
            "reading": not self._is_read and not self._is_unreadable,
            **self._describe_calls(),
        }
        changed = {name: part for name, part in parts.items() if part != self._parts.get(name)}
        self._parts = parts
        if changed:
            self._is_kept = False
            self.send_changes(**changed)

    def _describe_calls(self) -> dict[str, Any]:
        if self._overview is None or not self._is_read:
            return {"empty": _UNREADABLE if self._is_unreadable else _READING}
        since = find_start(self._filters["range"], self._session_start)
        return self._overview.describe(self._filters, since, self._span)

    def _choices(self) -> dict[str, tuple[str, ...]]:
        """What each filter may be; "" is any."""
        models = self._overview.models if self._overview else []
        return {"range": tuple(RANGES), "model": ("", *models), "endpoint": ("", *ENDPOINTS), "by": GROUPINGS}

    def _look(self) -> bool:
        """Look at the ledger; return whether anything is new."""
        if self._overview is None:
            from famnb.widget.dashboard.overview import Overview

            self._overview = Overview(self._ledger)
        return self._overview.refresh()

    def _follow_call(self) -> None:
        """Show the open call again once it has ended: until then the pages have it as it was when it was opened."""
        if self._pages is not None and self._pages.call.status == "running":
            call = self._ledger.call(self._pages.call.call_id)
            if call.status != "running":
                self._pages = CallPages(call)
                self.send_changes(**self._pages.describe())

    def _watch(self) -> None:
        # How long this takes says nothing of later looks: it loads pandas.
        self.refresh()
        pause = PERIOD_S
        while not self._closed.wait(pause) and self.comm is not None:
            started_s = time.monotonic()
            self.refresh()
            pause = max(PERIOD_S, PAUSE_PER_LOOK * (time.monotonic() - started_s))

    # What is saved

    def _keep_up(self) -> None:
        """Bring the saved output up to date, if that is due."""
        if not self._is_kept and time.monotonic() - self._kept_s >= KEEP_PERIOD_S:
            self._kept_s, self._is_kept = time.monotonic(), True
            self.keep_snapshot()

    def snapshot(self) -> Bundle:
        parts, at = self._parts, datetime.now().astimezone()
        chosen = [self._filters[name] for name in ("model", "endpoint") if self._filters[name]]
        head = " · ".join(["Dashboard", self._filters["range"], *chosen, f"{at:%Y-%m-%d %H:%M}"])
        if parts["empty"]:
            note = _UNREAD if parts["reading"] else parts["empty"]
            return transcript.render([Section("head", head), Section("note", note)])
        table = parts["table"]
        labels = [group["label"] for group in parts["charts"]["groups"]]
        rows = parts["calls"]["rows"][:SAVED_LENGTH]
        calls_rows = [
            [row["time"], row["endpoint"], row["model"], row["status"], row["took"], row["cost"]] for row in rows
        ]
        return transcript.join_bundles(
            [
                transcript.render([Section("head", head)]),
                transcript.table_bundle(["figure", "value", "of"], parts["figures"], left=3),
                transcript.table_bundle(
                    table["head"], [[label, *row] for label, row in zip(labels, table["rows"], strict=True)]
                ),
                transcript.table_bundle(["started", "endpoint", "model", "status", "took", "cost"], calls_rows, left=4),
                *([transcript.render([Section("note", parts["note"])])] if parts["note"] else []),
            ]
        )

    def __repr__(self) -> str:
        return f"<Dashboard {self._ledger!r}>"
