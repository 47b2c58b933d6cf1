"""The dashboard: spend, number, latency and errors of the calls so far, kept up to date, and the latest to open."""

from __future__ import annotations

import math
import threading
import time
from datetime import UTC, datetime
from typing import Any

import ipywidgets as widgets
import pandas as pd
import psutil

from famnb import stats
from famnb.endpoints import ENDPOINTS
from famnb.errors import FamnbError
from famnb.experiment.metrics import read_bounds
from famnb.experiment.summary import format_costs, sum_costs
from famnb.formatting import format_count, format_duration, format_estimate, format_percent
from famnb.frame.calls import calls
from famnb.frame.filters import HasLedger, ledger_of
from famnb.record import Ledger
from famnb.validation import explain_arguments
from famnb.widget.form.controls import make_control
from famnb.widget.html import sanitize
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.inspector import Inspector, error_html
from famnb.widget.live.base import SHORTCUT_CLASS, ShortcutGuard

PERIOD_S = 0.5
"""The least time between two looks at the ledger; see also PAUSE_PER_LOOK."""
PAUSE_PER_LOOK = 20
"""How many times as long as a look the pause after it is, so that a large ledger takes 5 % of a core at most."""
LIST_LENGTH = 100
"""Calls in the list."""
SCOPES = ("this session", "today", "all calls")
ANY = "any"
_COLUMNS = (
    *("call_id", "started_at", "endpoint", "model", "status", "error", "prompt", "simulated", "http_status"),
    *("ttft_s", "ttfa_s", "e2e_s", "cost_usd", "cost_low_usd", "cost_high_usd"),
    *(f"{side}_tokens{end}" for side in ("input", "output") for end in ("", "_low", "_high")),
)
_SMALL_STYLE = "font-size:0.86em;opacity:0.8"
_TILE = SafeHtml(
    '<div style="display:inline-block;vertical-align:top;min-width:10em;margin:0 1.6em 0.6em 0">'
    f'<div style="{_SMALL_STYLE}">{{title}}</div><div style="font-size:1.5em;line-height:1.3">{{value}}</div>'
    f'<div style="{_SMALL_STYLE}">{{note}}</div></div>'
)
# Named as a status without being announced: it changes twice a second.
_TILES = SafeHtml('<div role="status" aria-live="off">{}</div>{}')
_SIMULATED = SafeHtml(f'<p style="{_SMALL_STYLE}">Some of these calls were simulated: nothing was billed for them.</p>')
_PARAGRAPH = SafeHtml("<p>{}</p>")


class Dashboard(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Live spend, calls, latency and errors, by model and endpoint; below, the latest calls, each of which opens.

    It looks at the ledger, so it shows the calls of other kernels too; it stops looking when it is closed.
    """

    @explain_arguments
    def __init__(self, client: Ledger | HasLedger | str | None = None) -> None:
        """Watch a client's ledger, a ledger or its path, or the default one."""
        # Before anything can fail: ipywidgets (8.1) calls `close` when a widget is deleted, even if `__init__` failed.
        self._closed = threading.Event()
        self._ledger = ledger_of(client)
        self._session_start = datetime.fromtimestamp(psutil.Process().create_time(), UTC)
        # Callbacks come on the main thread or on an ipykernel subshell's, `refresh` on the thread of `_watch` too.
        self._guard = threading.RLock()
        choose = {"layout": widgets.Layout(width="auto")}
        self._scope = make_control(widgets.Dropdown, title="Calls of", help="Since when", options=SCOPES, **choose)
        self._model = make_control(widgets.Dropdown, title="Model", help="Of one model", options=(ANY,), **choose)
        self._endpoint = make_control(
            widgets.Dropdown, title="Endpoint", help="Of one endpoint", options=(ANY, *ENDPOINTS), **choose
        )
        self._figures, self._trouble, self._open_trouble = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self._calls = make_control(
            widgets.Select,
            title="Latest calls",
            help="Choose one to open it",
            options=(),
            rows=8,
            layout=widgets.Layout(width="auto", max_width="900px"),
        )
        self._is_updating = False
        """Whether the list is being replaced, so that a change of its value is not a choice of the user's."""
        self._opened = widgets.VBox()
        self._inspector: Inspector | None = None
        self._filters = (self._scope, self._model, self._endpoint)
        for control in self._filters:
            control.observe(lambda _: self.refresh(), "value")
        self._calls.observe(lambda change: self._open(change["new"]), "value")
        filters = widgets.HBox([*self._filters, ShortcutGuard()])
        super().__init__([filters, self._figures, self._calls, self._trouble, self._open_trouble, self._opened])
        self.add_class(SHORTCUT_CLASS)
        self.refresh()
        threading.Thread(target=self._watch, name="famnb-dashboard", daemon=True).start()

    def refresh(self) -> None:
        """Look at the ledger now."""
        with self._guard:
            try:
                frame = calls(self._ledger, since=self._since(), columns=_COLUMNS)
                self._show(frame)
                self._follow_call()
                self._trouble.value = ""
            except Exception as error:
                # On the thread of `_watch` it would end the updates, and the next look at the ledger may succeed.
                self._trouble.value = error_html(error)

    def close(self) -> None:
        """Stop looking at the ledger, and remove the widget."""
        self._closed.set()
        super().close()

    def _watch(self) -> None:
        pause = PERIOD_S
        while not self._closed.wait(pause) and self.comm is not None:
            started_s = time.monotonic()
            self.refresh()
            pause = max(PERIOD_S, PAUSE_PER_LOOK * (time.monotonic() - started_s))

    def _since(self) -> datetime | None:
        match self._scope.value:
            case "this session":
                return self._session_start
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
        self._figures.value = figures_html(chosen) if len(chosen) else self._explain_nothing(len(frame))
        self._calls.layout.display = None if len(chosen) else "none"
        latest = chosen.tail(LIST_LENGTH).iloc[::-1]
        is_running = latest["status"] == "running"
        rows = pd.concat([latest[is_running], latest[~is_running]])
        options = tuple((call_line(row), row["call_id"]) for _, row in rows.iterrows())
        # Only if it changed: a list that is replaced loses its scroll position on the page.
        if tuple(self._calls.options) != options:
            self._replace_options(options)

    def _explain_nothing(self, other_calls: int) -> SafeHtml:
        """Why there is nothing to show, when model and endpoint leave out `other_calls` calls."""
        if other_calls:
            subject = f"None of the {format_count(other_calls)} calls is" if other_calls > 1 else "The one call is not"
            return _PARAGRAPH.format(f"{subject} of this model and endpoint. Choose “{ANY}” to see all.")
        hint = "" if self._scope.value == SCOPES[-1] else f" Earlier ones are under “{SCOPES[-1]}”."
        return _PARAGRAPH.format(f"No calls yet. They appear here as soon as they start.{hint}")

    def _replace_options(self, options: tuple[tuple[str, str], ...]) -> None:
        """Replace the list of calls; the call that is open stays chosen, and none is opened by that."""
        chosen = self._calls.value
        self._is_updating = True
        try:
            self._calls.options = options
            self._calls.value = chosen if chosen in {call_id for _, call_id in options} else None
        finally:
            self._is_updating = False

    def _open(self, call_id: str | None) -> None:
        """Show a call in the inspector below the list."""
        if call_id is None or self._is_updating:
            return
        with self._guard:
            try:
                call = self._ledger.call(call_id)
                self._open_trouble.value = ""
                if self._inspector is None:
                    self._inspector = Inspector(call)
                    self._opened.children = (self._inspector,)
                elif self._inspector.call.call_id != call_id:
                    self._inspector.show(call)
            except (FamnbError, KeyError) as error:
                self._open_trouble.value = error_html(error)

    def _follow_call(self) -> None:
        """Show the open call again once it has ended: until then the inspector has it as it was when it was opened."""
        if self._inspector is not None and self._inspector.call.status == "running":
            call = self._ledger.call(self._inspector.call.call_id)
            if call.status != "running":
                self._inspector.show(call)

    def __repr__(self) -> str:
        return f"<Dashboard {self._ledger!r}>"


def figures_html(frame: pd.DataFrame) -> SafeHtml:
    """Spend, number, latencies and tokens of calls, of which there is at least one, as HTML."""
    tiles = [
        _spend_tile(frame),
        _count_tile(frame),
        _latency_tile(frame, "ttft_s", "time to first token"),
        _latency_tile(frame, "e2e_s", "time to whole reply"),
        _tokens_tile(frame),
    ]
    note = _SIMULATED if frame["simulated"].fillna(False).any() else SafeHtml()
    return _TILES.format(SafeHtml().join(tiles), note)


def call_line(row: Any) -> str:
    """A call as one line of the list."""
    started_at = row["started_at"].to_pydatetime().astimezone()
    duration = "" if pd.isna(row["e2e_s"]) else format_duration(row["e2e_s"], brief=True)
    cost = "" if pd.isna(row["cost_usd"]) else _format_cost(row)
    prompt = "" if pd.isna(row["prompt"]) else " ".join(sanitize.visible(row["prompt"]).split())
    error = "" if pd.isna(row["error"]) else f"{row['error']}: "
    facts = f"{row['endpoint']:<9} {row['model']:<12} {row['status']:<11} {duration:>7} {cost:>9}"
    return f"{started_at:%H:%M:%S}  {facts}  {error}{prompt:.60}"


def _format_cost(row: Any) -> str:
    """A call's cost without the ends of an estimate, which its line has no room for."""
    cost = format_estimate(row["cost_usd"], row["cost_low_usd"], row["cost_high_usd"])
    return cost.partition(" (")[0]


def _tile(title: str, value: str, note: str) -> SafeHtml:
    return _TILE.format(title=title, value=value, note=note)


def _spend_tile(frame: pd.DataFrame) -> SafeHtml:
    # What stands in brackets, the ends of an estimate or what the sum leaves out, is the small print.
    spent, _, note = format_costs(sum_costs(frame)).partition(" (")
    return _tile("spend", spent, note.removesuffix(")"))


def _count_tile(frame: pd.DataFrame) -> SafeHtml:
    counts = frame["status"].value_counts()
    notes = [f"{count:,} {status}" for status, count in counts.items() if count and status != "completed"]
    ended = int(len(frame) - counts.get("running", 0))
    failed = stats.proportion(int(counts.get("failed", 0)), ended)
    if ended and failed.value:
        notes.append(f"{format_percent(failed.value, decimals=1)} failed")
    return _tile("calls", f"{len(frame):,}", ", ".join(notes) or "all completed")


def _latency_tile(frame: pd.DataFrame, column: str, title: str) -> SafeHtml:
    # A call that failed early has a short time, which says nothing about how long an answer takes.
    seconds = frame.loc[frame["status"].isin(["completed", "incomplete"]), column].dropna()
    median, p95 = stats.median(seconds), stats.percentile(seconds, 0.95)
    if not median.n:
        return _tile(title, "–", "no completed call yet")
    tail = "" if math.isnan(p95.value) else f", 95% within {format_duration(p95.value)}"
    return _tile(title, format_duration(median.value), f"median of {median.n:,}{tail}")


def _tokens_tile(frame: pd.DataFrame) -> SafeHtml:
    sums = {}
    for side in ("output", "input"):
        counts = read_bounds(frame, f"{side}_tokens")
        value, low, high = (ends.sum(min_count=1) for ends in (counts.value, counts.low, counts.high))
        sums[side] = format_estimate(value, low, high, format_count).partition(" (")[0]
    return _tile("tokens", f"{sums['output']} out", f"{sums['input']} in")
