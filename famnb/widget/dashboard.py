"""The dashboard: what the calls so far came to, kept up to date while they run, and the latest of them to open."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import ipywidgets as widgets
import pandas as pd
import psutil

from famnb import stats
from famnb.endpoints import ENDPOINTS
from famnb.errors import FamnbError
from famnb.formatting import format_duration, format_percent, format_usd
from famnb.frame.calls import calls
from famnb.frame.filters import HasLedger, ledger_of
from famnb.record import Ledger
from famnb.widget.form.controls import make_control
from famnb.widget.html import sanitize
from famnb.widget.inspector import Inspector, failed
from famnb.widget.live.base import SHORTCUT_CLASS, ShortcutGuard

PERIOD_S = 0.5
"""Between two looks at the ledger, and never less than LAZY times what a look takes."""
LAZY = 20
LATEST = 100
"""Calls in the table."""
SCOPES = ("this session", "today", "all calls")
ANY = "any"
_NEEDED = (
    *("call_id", "started_at", "endpoint", "model", "status", "error", "prompt", "simulated"),
    *("ttft_s", "ttfa_s", "e2e_s", "input_tokens", "output_tokens", "cost_usd", "cost_low_usd", "cost_high_usd"),
)
_TILE = "display:inline-block;vertical-align:top;min-width:10em;margin:0 1.6em 0.6em 0"
_LARGE = "font-size:1.5em;line-height:1.3"
_SMALL = "font-size:0.86em;opacity:0.8"


class Dashboard(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Live spend, calls, latency and errors, by model and endpoint; below, the latest calls, each of which opens.

    It looks at the ledger, so it shows the calls of other kernels too; it stops looking when it is closed.
    """

    def __init__(self, client: Ledger | HasLedger | str | None = None) -> None:
        """Watch a client's ledger, a ledger or its path, or the default one."""
        # First of all, since `close` is called for what was refused, too.
        self._ended = threading.Event()
        self._ledger = ledger_of(client)
        self._session = datetime.fromtimestamp(psutil.Process().create_time(), UTC)
        self._guard = threading.RLock()
        choose = {"layout": widgets.Layout(width="auto")}
        self._scope = make_control(widgets.Dropdown, title="Calls of", help="Since when", options=SCOPES, **choose)
        self._model = make_control(widgets.Dropdown, title="Model", help="Of one model", options=(ANY,), **choose)
        self._endpoint = make_control(
            widgets.Dropdown, title="Endpoint", help="Of one endpoint", options=(ANY, *ENDPOINTS), **choose
        )
        self._figures, self._trouble, self._unopened = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self._calls = make_control(
            widgets.Select,
            title="Latest calls",
            help="Choose one to open it",
            options=(),
            rows=8,
            layout=widgets.Layout(width="auto", max_width="900px"),
        )
        self._renewing = False
        """Whether the table changes by itself, so that nothing was chosen."""
        self._opened = widgets.VBox()
        self._inspector: Inspector | None = None
        self._filters = (self._scope, self._model, self._endpoint)
        for control in self._filters:
            control.observe(lambda _: self.refresh(), "value")
        self._calls.observe(lambda change: self._open(change["new"]), "value")
        filters = widgets.HBox([*self._filters, ShortcutGuard()])
        super().__init__([filters, self._figures, self._calls, self._trouble, self._unopened, self._opened])
        self.add_class(SHORTCUT_CLASS)
        self.refresh()
        threading.Thread(target=self._watch, name="famnb-dashboard", daemon=True).start()

    def refresh(self) -> None:
        """Look at the ledger now."""
        with self._guard:
            try:
                frame = calls(self._ledger, since=self._since(), columns=_NEEDED)
                self._show(frame)
                self._follow()
                self._trouble.value = ""
            except Exception as error:
                # On the watching thread there is nobody else to tell; the next look may succeed.
                self._trouble.value = failed(error)

    def close(self) -> None:
        """Stop looking, and take the widget away."""
        self._ended.set()
        super().close()

    def _watch(self) -> None:
        pause = PERIOD_S
        while not self._ended.wait(pause) and self.comm is not None:
            began = time.monotonic()
            self.refresh()
            pause = max(PERIOD_S, LAZY * (time.monotonic() - began))

    def _since(self) -> datetime | None:
        match self._scope.value:
            case "this session":
                return self._session
            case "today":
                return datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
            case _:
                return None

    def _show(self, frame: pd.DataFrame) -> None:
        models = (ANY, *sorted(frame["model"].dropna().unique()))
        if tuple(self._model.options) != models:
            model = self._model.value
            self._model.options = models
            self._model.value = model if model in models else ANY
        chosen = frame
        for control, column in ((self._model, "model"), (self._endpoint, "endpoint")):
            if control.value != ANY:
                chosen = chosen[chosen[column] == control.value]
        self._figures.value = figures(chosen) if len(chosen) else self._nothing(len(frame))
        self._calls.layout.display = None if len(chosen) else "none"
        latest = chosen.tail(LATEST).iloc[::-1]
        running = latest["status"] == "running"
        ordered = pd.concat([latest[running], latest[~running]])
        options = tuple((line(row), row["call_id"]) for _, row in ordered.iterrows())
        if tuple(self._calls.options) != options:
            self._renew(options)

    def _nothing(self, others: int) -> str:
        """Why there is nothing to show, when `others` calls are left out by model or endpoint, as HTML."""
        if others:
            of = f"None of the {others:,} calls is" if others > 1 else "The one call is not"
            return f"<p>{of} of this model and endpoint. Choose “{ANY}” to see all.</p>"
        earlier = "" if self._scope.value == SCOPES[-1] else f" Earlier ones are under “{SCOPES[-1]}”."
        return f"<p>No calls yet. They appear here as soon as they start.{earlier}</p>"

    def _renew(self, options: tuple[tuple[str, str], ...]) -> None:
        """Give the table other rows; the call that is open stays chosen, and none is opened by that."""
        chosen = self._calls.value
        self._renewing = True
        try:
            self._calls.options = options
            self._calls.value = chosen if chosen in {call_id for _, call_id in options} else None
        finally:
            self._renewing = False

    def _open(self, call_id: str | None) -> None:
        """Lay a call open below the table."""
        if call_id is None or self._renewing:
            return
        with self._guard:
            try:
                call = self._ledger.call(call_id)
                self._unopened.value = ""
                if self._inspector is None:
                    self._inspector = Inspector(call)
                    self._opened.children = (self._inspector,)
                elif self._inspector.call.call_id != call_id:
                    self._inspector.show(call)
            except (FamnbError, KeyError) as error:
                self._unopened.value = failed(error)

    def _follow(self) -> None:
        """Lay the open call open again once it has ended: until then it shows how far it had come."""
        if self._inspector is not None and self._inspector.call.status == "running":
            call = self._ledger.call(self._inspector.call.call_id)
            if call.status != "running":
                self._inspector.show(call)

    def __repr__(self) -> str:
        return f"<Dashboard {self._ledger!r}>"


def figures(frame: pd.DataFrame) -> str:
    """What these calls, one at least, came to, as HTML: spend, calls, latencies and tokens."""
    tiles = [_spend(frame), _count(frame)]
    tiles += [_latency(frame, name, words) for name, words in (("ttft_s", "first token"), ("e2e_s", "whole reply"))]
    tiles.append(_tokens(frame))
    note = ""
    if frame["simulated"].fillna(False).any():
        note = f'<p style="{_SMALL}">Some of these calls were simulated: nothing was billed for them.</p>'
    return f'<div role="status" aria-live="off">{"".join(tiles)}</div>{note}'


def line(row: Any) -> str:
    """A call as one line of the table."""
    when = row["started_at"].tz_convert(None) + _local(row["started_at"])
    taken = "" if pd.isna(row["e2e_s"]) else format_duration(row["e2e_s"], brief=True)
    cost = "" if pd.isna(row["cost_usd"]) else format_usd(row["cost_usd"])
    said = "" if pd.isna(row["prompt"]) else " ".join(sanitize.visible(row["prompt"]).split())
    error = "" if pd.isna(row["error"]) else f"{row['error']}: "
    facts = f"{row['endpoint']:<9} {row['model']:<12} {row['status']:<11} {taken:>7} {cost:>9}"
    return f"{when:%H:%M:%S}  {facts}  {error}{said:.60}"


def _local(moment: pd.Timestamp) -> timedelta:
    return moment.to_pydatetime().astimezone().utcoffset() or timedelta()


def _tile(title: str, large: str, small: str) -> str:
    return (
        f'<div style="{_TILE}"><div style="{_SMALL}">{title}</div><div style="{_LARGE}">{sanitize.escape(large)}</div>'
        f'<div style="{_SMALL}">{sanitize.escape(small)}</div></div>'
    )


def _spend(frame: pd.DataFrame) -> str:
    unpriced = int(frame["cost_usd"].isna().sum())
    if unpriced == len(frame):
        return _tile("spend", "not known", "no call has a known price")
    low, best, high = (float(frame[f"cost_{end}usd"].sum()) for end in ("low_", "", "high_"))
    between = "exact" if low == high else f"{format_usd(low)} to {format_usd(high)}"
    return _tile("spend", format_usd(best), between + (f"; {unpriced:,} calls without a price" if unpriced else ""))


def _count(frame: pd.DataFrame) -> str:
    counts = frame["status"].value_counts()
    parts = [f"{count:,} {status}" for status, count in counts.items() if count and status != "completed"]
    over = int(len(frame) - counts.get("running", 0))
    share = stats.proportion(int(counts.get("failed", 0)), over)
    rate = f"{format_percent(share.value, decimals=1)} failed" if over else ""
    return _tile("calls", f"{len(frame):,}", ", ".join([*parts, *([rate] if share.value else [])]) or "all completed")


def _latency(frame: pd.DataFrame, name: str, words: str) -> str:
    found = frame.loc[frame["status"].isin(["completed", "incomplete"]), name].dropna()
    middle, high = stats.median(found), stats.percentile(found, 0.95)
    if not middle.n:
        return _tile(f"time to {words}", "–", "no completed call yet")
    tail = f", 95% within {format_duration(high.value)}" if high.value == high.value else ""
    return _tile(f"time to {words}", format_duration(middle.value), f"median of {middle.n:,}{tail}")


def _tokens(frame: pd.DataFrame) -> str:
    total = frame["output_tokens"].sum(min_count=1)
    asked = frame["input_tokens"].sum(min_count=1)
    known = "not known" if pd.isna(total) else f"{int(total):,} out"
    return _tile("tokens", known, "" if pd.isna(asked) else f"{int(asked):,} in")
