"""What a dashboard shows of a ledger's calls: figures, charts, a table and the list, each as numbers and words.

It needs pandas and scipy, which take most of a second to load: the dashboard imports it on a thread, when it is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

import pandas as pd

from famnb.formatting import format_count, format_duration, format_estimate
from famnb.frame.calls import calls
from famnb.record import Ledger
from famnb.widget.dashboard import figures
from famnb.widget.dashboard.call_feed import CallFeed
from famnb.widget.dashboard.charts import Groups, Timeline, describe_span, draw_charts
from famnb.widget.dashboard.time_ranges import ALL, RANGES
from famnb.widget.html import sanitize

Span: TypeAlias = tuple[datetime, datetime]
NO_CALLS = {"rows": [], "title": "Latest calls", "narrowed": False, "span": None}
LIST_LENGTH = 100
"""Calls in the list."""
_LIST_COLUMNS = (
    *("call_id", "started_at", "endpoint", "model", "status", "error", "prompt"),
    *("e2e_s", "cost_usd", "cost_low_usd", "cost_high_usd", "output_tokens"),
)


def _simulation_note(simulated: pd.Series[bool]) -> str:
    share = "These" if simulated.all() else "Some of these"
    return f"{share} calls were simulated: nothing was billed for them." if simulated.any() else ""


class Overview:
    """The calls of a ledger as of the last `refresh`, and what is shown of those that filters let through."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._feed = CallFeed(ledger)
        self.timeline: Timeline | None = None
        """The spans of time of the charts that were drawn last; None if there was nothing to draw."""

    def refresh(self) -> bool:
        """Look at the ledger; return whether anything is new. Raises LedgerError if it cannot be read."""
        return self._feed.refresh()

    @property
    def models(self) -> list[str]:
        """The models of all calls, by name."""
        return sorted(self._feed.frame["model"].dropna().unique())

    def describe(self, filters: Mapping[str, str], since: datetime | None, span: Span | None) -> dict[str, Any]:
        """Return the parts of the page that are made of calls.

        `filters` are those of the page; calls before `since` are left out; of a `span` the calls are listed.
        """
        chosen, others = self._choose(filters, since)
        self.timeline = self._find_timeline(chosen, filters, since) if len(chosen) else None
        return {
            "empty": "" if len(chosen) else self._explain_nothing(others),
            "figures": figures.headline(chosen) if len(chosen) else [],
            "note": _simulation_note(chosen["simulated"].fillna(False)),
            **_draw(chosen, self.timeline, filters["by"]),
            "calls": self._list_calls(filters, since, span) if len(chosen) else NO_CALLS,
        }

    def _choose(self, filters: Mapping[str, str], since: datetime | None) -> tuple[pd.DataFrame, int]:
        """Return the calls that the filters let through, and how many model and endpoint leave out."""
        frame = self._feed.frame
        if since is not None and len(frame):
            frame = frame[frame["started_at"] >= since]
        in_range = len(frame)
        for column in ("model", "endpoint"):
            if filters[column]:
                frame = frame[frame[column] == filters[column]]
        return frame, in_range - len(frame)

    def _explain_nothing(self, others: int) -> str:
        """Why there is nothing to show, when model and endpoint leave out `others` calls."""
        if others:
            subject = f"None of the {format_count(others)} calls is" if others > 1 else "The one call is not"
            return f"{subject} of this model and endpoint. Choose “all” to see them."
        earlier = f" Earlier ones are under “{ALL}”." if len(self._feed.frame) else ""
        return f"No calls yet. They appear here as soon as they start.{earlier}"

    def _find_timeline(self, chosen: pd.DataFrame, filters: Mapping[str, str], since: datetime | None) -> Timeline:
        if RANGES[filters["range"]] is not None and since is not None:
            return Timeline.over(since, datetime.now(UTC))
        started_at = chosen["started_at"]
        return Timeline.over(started_at.iloc[0].to_pydatetime(), started_at.max().to_pydatetime())

    def _list_calls(self, filters: Mapping[str, str], since: datetime | None, span: Span | None) -> dict[str, Any]:
        """The latest calls, those that run first."""
        start, end = span or (since, None)
        frame = calls(
            self._ledger,
            since=start,
            until=end,
            model=filters["model"] or None,
            endpoint=filters["endpoint"] or None,
            limit=LIST_LENGTH,
            columns=_LIST_COLUMNS,
        )
        latest = frame.iloc[::-1]
        is_running = latest["status"] == "running"
        rows = [_describe_row(row) for _, row in pd.concat([latest[is_running], latest[~is_running]]).iterrows()]
        what = f"Latest {LIST_LENGTH} calls" if len(rows) == LIST_LENGTH else "Calls" if span else "Latest calls"
        title = f"{what} of {describe_span(*span)}" if span else what
        return {"rows": rows, "title": title, "narrowed": span is not None, "span": self._find_span(span)}

    def _find_span(self, span: Span | None) -> int | None:
        """Which of the spans of the charts is listed."""
        if span is None or self.timeline is None:
            return None
        index = round((span[0] - self.timeline.start) / self.timeline.step)
        is_shown = 0 <= index < self.timeline.count and self.timeline.span(index) == span
        return index if is_shown else None


def _draw(chosen: pd.DataFrame, timeline: Timeline | None, by: str) -> dict[str, Any]:
    """The charts, and the table by model or endpoint, which is their legend too."""
    if timeline is None:
        return {"charts": None, "table": None}
    groups = Groups.of(chosen, by)
    rows = [figures.table_row(chosen[groups.codes == code]) for code in range(len(groups.labels))]
    table = {"by": by, "head": [by, *figures.TABLE_HEAD], "rows": rows}
    return {"charts": draw_charts(chosen, timeline, groups), "table": table}


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
