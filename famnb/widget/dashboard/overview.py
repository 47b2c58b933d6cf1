"""What a dashboard shows of a ledger's calls: figures, charts, a table and the list, each as numbers and words.

Each figure says what it leaves out. The module needs pandas and scipy, which take most of a second to load: the
dashboard imports it on a thread, when it is drawn.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pandas as pd
from msgspec.structs import replace

from famnb import stats
from famnb.endpoints import ENDPOINTS
from famnb.experiment.metrics import read_bounds
from famnb.experiment.resume import ANSWERED
from famnb.experiment.summary import format_costs, sum_costs
from famnb.formatting import format_count, format_duration, format_estimate, format_percent
from famnb.frame.calls import calls
from famnb.frame.spend import is_unpriced
from famnb.record import Ledger
from famnb.widget.dashboard.charts import Groups, Timeline, draw_charts
from famnb.widget.dashboard.views import ALL, CallGroupView, DashboardFilters, OverviewView
from famnb.widget.html import sanitize
from famnb.widget.tables import ColumnView, FigureView, RowsView, RowView

COLUMNS = {
    "started_at": ColumnView(name="started", kind="word"),
    "endpoint": ColumnView(name="endpoint", kind="word", is_minor=True),
    "model": ColumnView(name="model", kind="word"),
    "status": ColumnView(name="status", kind="status"),
    "e2e_s": ColumnView(name="took", kind="number"),
    "output_tokens": ColumnView(name="tokens out", kind="number", is_minor=True),
    "cost_usd": ColumnView(name="cost", kind="number"),
    "prompt": ColumnView(name="prompt", kind="text"),
}
"""The columns of the list of calls, by the column of the frame that they show and are sorted by."""
LIST_LENGTH = 100
"""Calls in the list."""
READ_COLUMNS = (
    *("call_id", "started_at", "endpoint", "model", "status", "error", "simulated", "http_status", "attempts"),
    *("ttft_s", "ttfa_s", "e2e_s", "cost_usd", "cost_low_usd", "cost_high_usd"),
    *(f"{side}_tokens{end}" for side in ("input", "output") for end in ("", "_low", "_high")),
)
"""What figures are made of; prompts are not among them, being most of the bytes."""
_LIST_COLUMNS = ("call_id", *COLUMNS, "error", "cost_low_usd", "cost_high_usd")


class Overview:
    """The calls of a ledger in a range of time, and what is shown of those that filters let through."""

    def __init__(self, ledger: Ledger, filters: DashboardFilters) -> None:
        """Read the calls in the range of the filters. Raises LedgerError if the ledger cannot be read."""
        self._ledger = ledger
        frame = calls(ledger, since=filters.since, until=filters.until, columns=READ_COLUMNS)
        # What has no model is a group too, which a column of categories could not name.
        self.frame = frame.astype(dict.fromkeys(frame.select_dtypes("category").columns, object))
        self.models: tuple[str, ...] = tuple(sorted(self.frame["model"].dropna().unique()))
        """The models of these calls, by name."""

    def view(self, filters: DashboardFilters) -> OverviewView | str:
        """Return what the calls say that the filters let through, or why there is none."""
        since, chosen = filters.since, self.frame
        for column, value in (("model", filters.model), ("endpoint", filters.endpoint)):
            if value:
                chosen = chosen[chosen[column] == value]
        if not len(chosen):
            if others := len(self.frame):
                subject = f"None of the {format_count(others)} calls is" if others > 1 else "The one call is not"
                return f"{subject} of this model and endpoint. Choose “all” to see them."
            earlier = f" Earlier ones are under “{ALL}”." if len(self._ledger) else ""
            none = (
                "No calls yet. They appear here as soon as they start." if filters.until is None else "No calls then."
            )
            return f"{none}{earlier}"
        started_at = chosen["started_at"]
        if filters.is_moving and since is not None:
            timeline = Timeline.over(since, datetime.now(UTC))
        else:
            timeline = Timeline.over(started_at.iloc[0].to_pydatetime(), started_at.max().to_pydatetime())
        groups = Groups.of(chosen, filters.by)
        names = ENDPOINTS if filters.by == "endpoint" else self.models
        simulated = chosen["simulated"].fillna(False)
        unpriced = chosen.loc[is_unpriced(chosen) & chosen["output_tokens"].notna(), "model"]
        share = "These" if simulated.all() else "Some of these"
        return OverviewView(
            figures=headlines(chosen),
            note=f"{share} calls were simulated: nothing was billed for them." if simulated.any() else "",
            unpriced=tuple(sorted(map(str, unpriced.dropna().unique()))),
            spans=timeline.words(),
            ticks=timeline.ticks(),
            charts=draw_charts(chosen, timeline, groups),
            head=(filters.by, *TABLE_HEAD),
            groups=tuple(
                CallGroupView(
                    key=sanitize.visible(label),
                    is_filter=label in names,
                    cells=table_row(chosen[groups.codes == code]),
                    **style,
                )
                for code, (label, style) in enumerate(zip(groups.labels, groups.styles, strict=True))
            ),
            calls=self._list_calls(filters, since),
        )

    def _list_calls(self, filters: DashboardFilters, since: datetime | None) -> RowsView:
        """Return the latest calls, those that run first, or the first of all as they are sorted."""
        order = filters.order
        frame = calls(
            self._ledger,
            since=since,
            until=filters.until,
            model=filters.model or None,
            endpoint=filters.endpoint or None,
            limit=None if order.column else LIST_LENGTH,
            columns=_LIST_COLUMNS,
        )
        latest = frame.iloc[::-1]
        is_running = latest["status"] == "running"
        shown, title = pd.concat([latest[is_running], latest[~is_running]]), "Latest calls"
        if order.column:
            column = next(name for name, column in COLUMNS.items() if column.name == order.column)
            shown, title = latest.iloc[order.positions(latest[column])], "All calls"
        rows = tuple(_view_row(row) for _, row in shown.iloc[:LIST_LENGTH].iterrows())
        columns = (replace(column, order=order.direction(column.name)) for column in COLUMNS.values())
        if len(rows) == LIST_LENGTH:
            title = f"{'First' if order.column else 'Latest'} {LIST_LENGTH} calls"
        return RowsView(title=title, columns=tuple(columns), rows=rows)


def _view_row(row: Any) -> RowView:
    """Return a call as one line of the list, a cell for each of COLUMNS."""
    started_at = row["started_at"].to_pydatetime().astimezone()
    is_today = started_at.date() == datetime.now().astimezone().date()
    time = f"{started_at:%H:%M:%S}" if is_today else f"{started_at:%Y-%m-%d %H:%M}"
    model = sanitize.visible(row["model"])
    prompt = "" if pd.isna(row["prompt"]) else " ".join(sanitize.visible(row["prompt"]).split())
    text = ("" if pd.isna(row["error"]) else f"{row['error']}: ") + prompt[:120]
    costs = (row["cost_usd"], row["cost_low_usd"], row["cost_high_usd"])
    cells = (
        time,
        row["endpoint"],
        model,
        row["status"],
        "" if pd.isna(row["e2e_s"]) else format_duration(row["e2e_s"], brief=True),
        "" if pd.isna(row["output_tokens"]) else f"{int(row['output_tokens']):,}",
        "" if pd.isna(row["cost_usd"]) else format_estimate(*costs, brief=True),
        text,
    )
    label = f"{time} {model} {row['status']}: {text}"
    return RowView(key=row["call_id"], cells=cells, label=label, is_failed=row["status"] == "failed")


TABLE_HEAD = ("calls", "failed", "spend", "first token", "whole reply")
"""What `table_row` returns, as the head of a table; times are medians."""
UNKNOWN = "–"


def headlines(frame: pd.DataFrame) -> tuple[FigureView, ...]:
    """Return spend, calls, latencies, errors and tokens of calls, of which there is at least one."""
    spend, spend_note = format_spend(frame)
    counts = frame["status"].value_counts()
    others = [f"{count:,} {status}" for status, count in counts.items() if count and status != "completed"]
    failed = frame[frame["status"] == "failed"]
    ended = int((frame["status"] != "running").sum())
    errors = f"of {format_count(ended, 'ended call')}"
    if len(failed):
        kinds = failed["error"].fillna("unknown").value_counts()
        most = ", ".join(f"{count:,} × {name}" for name, count in kinds.head(2).items())
        rest = f", {len(kinds) - 2} other kinds" if len(kinds) > 2 else ""
        errors = f"{format_percent(len(failed) / ended, decimals=1)} of {ended:,} ended: {most}{rest}"
    sums, unknown = {}, 0
    for side in ("output", "input"):
        tokens = read_bounds(frame, f"{side}_tokens")
        value, low, high = (ends.sum(min_count=1) for ends in (tokens.value, tokens.low, tokens.high))
        sums[side] = format_estimate(value, low, high, format_count).partition(" (")[0]
        unknown = max(unknown, int(tokens.value.isna().sum()))
    rest = f"; {format_count(unknown, 'call')} without counts left out" if unknown else ""
    return (
        FigureView(key="spend", value=spend, note=spend_note),
        FigureView(key="calls", value=f"{len(frame):,}", note=", ".join(others) or "all completed"),
        _latency_figure(frame, "ttft_s", "time to first token"),
        _latency_figure(frame, "e2e_s", "time to whole reply"),
        FigureView(key="errors", value=f"{len(failed):,}", note=errors),
        FigureView(key="tokens", value=f"{sums['output']} out", note=f"{sums['input']} in{rest}"),
    )


def table_row(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the figures of one model or endpoint, in the order of TABLE_HEAD."""
    value, note = format_spend(frame)
    times = (stats.median(answer_times(frame, column)) for column in ("ttft_s", "e2e_s"))
    return (
        f"{len(frame):,}",
        f"{int((frame['status'] == 'failed').sum()):,}",
        f"{value} ({note})" if note and value.startswith((UNKNOWN, "≥", "not known")) else value,
        *(format_duration(median.value) if median.n else UNKNOWN for median in times),
    )


def format_spend(frame: pd.DataFrame) -> tuple[str, str]:
    """What calls have cost, and what stands in brackets behind it: the ends of an estimate, or what is left out."""
    value, _, note = format_costs(sum_costs(frame)).partition(" (")
    return value, note.removesuffix(")")


def answer_times(frame: pd.DataFrame, column: str) -> pd.Series[float]:
    """Times of answers. A call that failed early has a short time, which says nothing about how long one takes."""
    return frame.loc[frame["status"].isin(ANSWERED), column].dropna()


def _latency_figure(frame: pd.DataFrame, column: str, name: str) -> FigureView:
    seconds = answer_times(frame, column)
    median, p95 = stats.median(seconds), stats.percentile(seconds, 0.95)
    if not median.n:
        return FigureView(key=name, value=UNKNOWN, note="no call is answered yet")
    tail = "" if math.isnan(p95.value) else f", 95% within {format_duration(p95.value)}"
    left_out = len(frame) - median.n
    rest = f"; {left_out:,} without an answer left out" if left_out else ""
    slowest = int(seconds.to_numpy().argmax())
    return FigureView(
        key=name,
        value=format_duration(median.value),
        note=f"median of {median.n:,}{tail}{rest}",
        link=f"slowest: {format_duration(seconds.max())}",
        call_id=str(frame.loc[seconds.index, "call_id"].iloc[slowest]),
    )
