"""The headline figures of calls, and the same by model or endpoint: each says what it leaves out."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from famnb import stats
from famnb.experiment.metrics import read_bounds
from famnb.experiment.resume import ANSWERED
from famnb.experiment.summary import format_costs, sum_costs
from famnb.formatting import format_count, format_duration, format_estimate, format_percent

TABLE_HEAD = ("calls", "failed", "spend", "first token", "whole reply")
"""What `table_row` returns, as the head of a table; times are medians."""
NOTHING = "–"


class Headline(NamedTuple):
    """One headline figure."""

    name: str
    value: str
    note: str
    """What the value is of, and what it leaves out."""


def headline(frame: pd.DataFrame) -> list[Headline]:
    """Spend, calls, latencies, errors and tokens of calls, of which there is at least one."""
    return [
        Headline("spend", *spend(frame)),
        _calls(frame),
        _latency(frame, "ttft_s", "time to first token"),
        _latency(frame, "e2e_s", "time to whole reply"),
        _errors(frame),
        _tokens(frame),
    ]


def table_row(frame: pd.DataFrame) -> list[str]:
    """The figures of one model or endpoint, in the order of TABLE_HEAD."""
    value, note = spend(frame)
    times = (stats.median(answer_times(frame, column)) for column in ("ttft_s", "e2e_s"))
    return [
        f"{len(frame):,}",
        f"{int((frame['status'] == 'failed').sum()):,}",
        f"{value} ({note})" if value == NOTHING or value.startswith(("≥", "not known")) else value,
        *(format_duration(median.value) if median.n else NOTHING for median in times),
    ]


def spend(frame: pd.DataFrame) -> tuple[str, str]:
    """What calls have cost, and what stands in brackets behind it: the ends of an estimate, or what is left out."""
    value, _, note = format_costs(sum_costs(frame)).partition(" (")
    return value, note.removesuffix(")")


def answer_times(frame: pd.DataFrame, column: str) -> pd.Series[float]:
    """Times of answers. A call that failed early has a short time, which says nothing about how long one takes."""
    return frame.loc[frame["status"].isin(ANSWERED), column].dropna()


def _calls(frame: pd.DataFrame) -> Headline:
    counts = frame["status"].value_counts()
    others = [f"{count:,} {status}" for status, count in counts.items() if count and status != "completed"]
    return Headline("calls", f"{len(frame):,}", ", ".join(others) or "all completed")


def _latency(frame: pd.DataFrame, column: str, name: str) -> Headline:
    seconds = answer_times(frame, column)
    median, p95 = stats.median(seconds), stats.percentile(seconds, 0.95)
    if not median.n:
        return Headline(name, NOTHING, "no call is answered yet")
    tail = "" if math.isnan(p95.value) else f", 95% within {format_duration(p95.value)}"
    left_out = len(frame) - median.n
    rest = f"; {left_out:,} without an answer left out" if left_out else ""
    return Headline(name, format_duration(median.value), f"median of {median.n:,}{tail}{rest}")


def _errors(frame: pd.DataFrame) -> Headline:
    failed = frame[frame["status"] == "failed"]
    ended = int((frame["status"] != "running").sum())
    if not len(failed):
        return Headline("errors", "0", f"of {format_count(ended, 'ended call')}")
    share = format_percent(len(failed) / ended, decimals=1)
    kinds = failed["error"].fillna("unknown").value_counts()
    most = ", ".join(f"{count:,} × {name}" for name, count in kinds.head(2).items())
    rest = f", {len(kinds) - 2} other kinds" if len(kinds) > 2 else ""
    return Headline("errors", f"{len(failed):,}", f"{share} of {ended:,} ended: {most}{rest}")


def _tokens(frame: pd.DataFrame) -> Headline:
    sums, unknown = {}, 0
    for side in ("output", "input"):
        counts = read_bounds(frame, f"{side}_tokens")
        value, low, high = (ends.sum(min_count=1) for ends in (counts.value, counts.low, counts.high))
        sums[side] = format_estimate(value, low, high, format_count).partition(" (")[0]
        unknown = max(unknown, int(counts.value.isna().sum()))
    rest = f"; {format_count(unknown, 'call')} without counts left out" if unknown else ""
    return Headline("tokens", f"{sums['output']} out", f"{sums['input']} in{rest}")
