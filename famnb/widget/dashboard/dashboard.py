"""The dashboard: spend, calls, latency and errors over time, kept up to date, and the latest calls to open.

ledger ── CallFeed ── filters ──┬── figures  headline, table by model or endpoint
                                ├── charts   over time
                                └── the latest calls ── CallPages, the one that is open
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import psutil

from famnb.endpoints import ENDPOINTS
from famnb.formatting import format_count, format_duration, format_estimate
from famnb.frame.calls import calls
from famnb.frame.filters import HasLedger, ledger_of
from famnb.record import Ledger
from famnb.validation import explain_arguments
from famnb.widget.dashboard import figures
from famnb.widget.dashboard.call_feed import CallFeed
from famnb.widget.dashboard.charts import Groups, Timeline, describe_span, draw_charts
from famnb.widget.default_client import connected_ledger
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.inspector import CallPages, handle_pages
from famnb.widget.live.base import join_front
from famnb.widget.live.described import DescribedWidget

PERIOD_S = 0.5
"""The least time between two looks at the ledger; see also PAUSE_PER_LOOK."""
PAUSE_PER_LOOK = 20
"""How many times as long as a look the pause after it is, so that a large ledger takes 5 % of a core at most."""
# Each marks the notebook as changed.
KEEP_PERIOD_S = 5.0
"""The least time between two updates of the saved output."""
LIST_LENGTH = 100
"""Calls in the list."""
SAVED_LENGTH = 10
"""Calls in the saved output."""
SESSION, TODAY, ALL = "this session", "today", "all calls"
RANGES: dict[str, timedelta | None] = {
    SESSION: None,
    "last 15 minutes": timedelta(minutes=15),
    "last hour": timedelta(hours=1),
    "last 24 hours": timedelta(days=1),
    "last 7 days": timedelta(days=7),
    TODAY: None,
    ALL: None,
}
"""Since when calls are shown; with a length where it moves with the clock."""
GROUPINGS = ("model", "endpoint")
_LIST_COLUMNS = (
    *("call_id", "started_at", "endpoint", "model", "status", "error", "prompt"),
    *("e2e_s", "cost_usd", "cost_low_usd", "cost_high_usd", "output_tokens"),
)
_SIMULATED = "Some of these calls were simulated: nothing was billed for them."


class Dashboard(DescribedWidget):
    """Live spend, calls, latency and errors, by model and endpoint; below, the latest calls, each of which opens.

    It looks at the ledger, so it shows the calls of other kernels too; it stops looking when it is closed.
    """

    _esm = join_front("dashboard.js")

    @explain_arguments
    def __init__(self, client: Ledger | HasLedger | str | None = None) -> None:
        """Watch a client's ledger, a ledger or its path, or that of the latest `famnb.connect()`."""
        # Before anything can fail: ipywidgets (8.1) calls `close` when a widget is deleted, even if `__init__` failed.
        self._closed = threading.Event()
        self._ledger = connected_ledger() if client is None else ledger_of(client)
        self._feed = CallFeed(self._ledger)
        self._session_start = datetime.fromtimestamp(psutil.Process().create_time(), UTC)
        self._filters = {"range": SESSION, "model": "", "endpoint": "", "by": GROUPINGS[0]}
        self._span: tuple[datetime, datetime] | None = None
        """The span of time whose calls are listed; None lists the latest of all."""
        self._timeline: Timeline | None = None
        self._pages: CallPages | None = None
        """The call that is open."""
        self._parts: dict[str, Any] = {}
        """What was sent last."""
        self._is_unreadable = False
        """Whether the last look at the ledger has failed."""
        self._kept_s = -KEEP_PERIOD_S
        """When the saved output was brought up to date."""
        self._is_kept = True
        """Whether the saved output shows what the page shows."""
        super().__init__()
        self.refresh()
        threading.Thread(target=self._watch, name="famnb-dashboard", daemon=True).start()

    # What the user does

    def refresh(self) -> None:
        """Look at the ledger now."""
        with self._lock:
            try:
                is_new = self._feed.refresh()
                # The end of a range that moves with the clock moves although no call is new.
                if is_new or not self._parts or self._range_length is not None:
                    self._update()
                self._follow_call()
                if self._is_unreadable:
                    self._is_unreadable = False
                    self.report(None)
            # On the thread of `_watch` it would end the updates, and the next look at the ledger may succeed.
            except Exception as error:
                self._is_unreadable = True
                self.report(error)
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
            case {"kind": "span", "index": int(index)} if self._timeline is not None:
                self._show_span(self._timeline.span(index))
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
        rows = self._parts["calls"]["rows"]
        if span is not None and len(rows) == 1:
            self.show_call(rows[0]["id"])

    # What is drawn

    def describe(self) -> dict[str, Any]:
        pages = {"call": None} if self._pages is None else self._pages.describe()
        return {**self._parts, **pages}

    def _update(self) -> None:
        """Send the parts that have changed since they were sent last."""
        chosen, others = self._choose()
        parts = {
            "filters": {
                "chosen": dict(self._filters),
                "choices": {key: list(some) for key, some in self._choices().items()},
            },
            "empty": "" if len(chosen) else self._explain_nothing(others),
            "figures": figures.headline(chosen) if len(chosen) else [],
            "note": _SIMULATED if chosen["simulated"].fillna(False).any() else "",
            **self._draw(chosen),
            "calls": self._list_calls()
            if len(chosen)
            else {"rows": [], "title": "Latest calls", "narrowed": False, "span": None},
        }
        changed = {name: part for name, part in parts.items() if part != self._parts.get(name)}
        self._parts = parts
        if changed:
            self._is_kept = False
            self.send_changes(**changed)

    def _choices(self) -> dict[str, tuple[str, ...]]:
        """What each filter may be; "" is any."""
        models = sorted(self._feed.frame["model"].dropna().unique())
        return {"range": tuple(RANGES), "model": ("", *models), "endpoint": ("", *ENDPOINTS), "by": GROUPINGS}

    @property
    def _range_length(self) -> timedelta | None:
        return RANGES[self._filters["range"]]

    def _since(self) -> datetime | None:
        if self._range_length is not None:
            return datetime.now(UTC) - self._range_length
        midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        return {SESSION: self._session_start, TODAY: midnight}.get(self._filters["range"])

    def _choose(self) -> tuple[pd.DataFrame, int]:
        """Return the calls that the filters let through, and how many model and endpoint leave out."""
        frame, since = self._feed.frame, self._since()
        if since is not None and len(frame):
            frame = frame[frame["started_at"] >= since]
        in_range = len(frame)
        for column in ("model", "endpoint"):
            if self._filters[column]:
                frame = frame[frame[column] == self._filters[column]]
        return frame, in_range - len(frame)

    def _explain_nothing(self, others: int) -> str:
        """Why there is nothing to show, when model and endpoint leave out `others` calls."""
        if others:
            subject = f"None of the {format_count(others)} calls is" if others > 1 else "The one call is not"
            return f"{subject} of this model and endpoint. Choose “all” to see them."
        earlier = f" Earlier ones are under “{ALL}”." if len(self._feed.frame) else ""
        return f"No calls yet. They appear here as soon as they start.{earlier}"

    def _draw(self, chosen: pd.DataFrame) -> dict[str, Any]:
        """The charts, and the table by model or endpoint, which is their legend too."""
        if not len(chosen):
            self._timeline = None
            return {"charts": None, "table": None}
        since, by = self._since(), self._filters["by"]
        first, last = chosen["started_at"].iloc[0].to_pydatetime(), chosen["started_at"].max().to_pydatetime()
        if self._range_length is not None and since is not None:
            first, last = since, datetime.now(UTC)
        self._timeline, groups = Timeline.over(first, last), Groups.of(chosen, by)
        rows = [figures.table_row(chosen[groups.codes == code]) for code in range(len(groups.labels))]
        table = {"by": by, "head": [by, *figures.TABLE_HEAD], "rows": rows}
        return {"charts": draw_charts(chosen, self._timeline, groups), "table": table}

    def _list_calls(self) -> dict[str, Any]:
        """The latest calls, those that run first."""
        start, end = self._span or (self._since(), None)
        frame = calls(
            self._ledger,
            since=start,
            until=end,
            model=self._filters["model"] or None,
            endpoint=self._filters["endpoint"] or None,
            limit=LIST_LENGTH,
            columns=_LIST_COLUMNS,
        )
        latest = frame.iloc[::-1]
        is_running = latest["status"] == "running"
        rows = [_describe_row(row) for _, row in pd.concat([latest[is_running], latest[~is_running]]).iterrows()]
        is_cut = len(rows) == LIST_LENGTH
        what = f"Latest {LIST_LENGTH} calls" if is_cut else "Calls" if self._span else "Latest calls"
        title = f"{what} of {describe_span(*self._span)}" if self._span else what
        return {"rows": rows, "title": title, "narrowed": self._span is not None, "span": self._span_index()}

    def _span_index(self) -> int | None:
        """Which of the spans of the charts is listed."""
        if self._span is None or self._timeline is None:
            return None
        index = round((self._span[0] - self._timeline.start) / self._timeline.step)
        is_shown = 0 <= index < self._timeline.count and self._timeline.span(index) == self._span
        return index if is_shown else None

    def _follow_call(self) -> None:
        """Show the open call again once it has ended: until then the pages have it as it was when it was opened."""
        if self._pages is not None and self._pages.call.status == "running":
            call = self._ledger.call(self._pages.call.call_id)
            if call.status != "running":
                self._pages = CallPages(call)
                self.send_changes(**self._pages.describe())

    def _watch(self) -> None:
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
            return transcript.render([Section("head", head), Section("note", parts["empty"])])
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


def _describe_row(row: Any) -> dict[str, str]:
    """A call as one line of the list."""
    started_at = row["started_at"].to_pydatetime().astimezone()
    is_today = started_at.date() == datetime.now().astimezone().date()
    error = "" if pd.isna(row["error"]) else f"{row['error']}: "
    prompt = "" if pd.isna(row["prompt"]) else " ".join(sanitize.visible(row["prompt"]).split())
    return {
        "id": row["call_id"],
        "time": f"{started_at:%H:%M:%S}" if is_today else f"{started_at:%Y-%m-%d %H:%M}",
        "endpoint": row["endpoint"],
        "model": sanitize.visible(row["model"]),
        "status": row["status"],
        "took": "" if pd.isna(row["e2e_s"]) else format_duration(row["e2e_s"], brief=True),
        "tokens": "" if pd.isna(row["output_tokens"]) else f"{int(row['output_tokens']):,}",
        "cost": "" if pd.isna(row["cost_usd"]) else _describe_cost(row),
        "prompt": f"{error}{prompt:.120}",
    }


def _describe_cost(row: Any) -> str:
    return format_estimate(row["cost_usd"], row["cost_low_usd"], row["cost_high_usd"], brief=True)
