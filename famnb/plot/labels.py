"""Names, durations, amounts and footnotes as figures say them."""

from __future__ import annotations

import pandas as pd

from famnb.formatting import format_count, format_duration, format_number, format_usd
from famnb.frame.columns import CALLS
from famnb.stats import Interval

NAMES = {
    "ttfb_s": "time to response headers",
    "ttft_s": "time to first token",
    "ttfa_s": "time to first answer text",
    "think_s": "time spent thinking",
    "e2e_s": "time to the end of the reply",
    "icl_p50_s": "median inter-chunk latency",
    "icl_p95_s": "95th percentile of inter-chunk latency",
    "icl_max_s": "longest inter-chunk latency",
    "itl_s": "inter-token latency",
    "tpot_s": "time per output token",
    "output_tps": "output tokens per second",
    "cost_usd": "cost",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "score_votes": "share of votes won",
}
UNITS = {column.name: column.unit for column in CALLS} | {"itl_s": "s"}


def called(column: str) -> str:
    """What a column is called."""
    return NAMES.get(column) or (f"score {column[6:]}" if column.startswith("score_") else column)


def short(words: str, limit: int = 44) -> str:
    """Words for a legend: the middle of a long one left out, since names differ at their ends."""
    if len(words) <= limit:
        return words
    head = limit // 2
    return f"{words[:head]}…{words[head + 1 - limit :]}"


def measured(metric: str, value: float) -> str:
    """A value of a column, in its unit."""
    match UNITS.get(metric, ""):
        case "s":
            return format_duration(value, ms_below=1)
        case "s/token":
            return f"{format_duration(value, ms_below=1)}/token"
        case "USD":
            return format_usd(value)
        case "tokens" | "characters" | "requests":
            return format_count(value)
        case _:
            return format_number(value)


def axis(metric: str, largest: float) -> tuple[str, float]:
    """What the axis of a column says, and the factor from the column's unit to the axis'."""
    name, unit = called(metric), UNITS.get(metric, "")
    if unit in ("s", "s/token") and largest < 1:
        return f"{name} (m{unit})", 1e3
    return (f"{name} ({unit})" if unit not in ("", "tokens", "tokens/s") else name), 1.0


def with_interval(metric: str, found: Interval) -> str:
    """A value and, where n carries one, its interval."""
    value = measured(metric, found.value)
    if not found.known:
        return value
    low, high = measured(metric, found.low), measured(metric, found.high)
    unit = value.rpartition(" ")[2]
    if unit and all(words.endswith(f" {unit}") for words in (value, low, high)):
        low, high = low.removesuffix(f" {unit}"), high.removesuffix(f" {unit}")
    return f"{value} ({low.removeprefix('$')} to {high.removeprefix('$')})"


def capital(words: str) -> str:
    """The same with a capital letter at the front."""
    return words[:1].upper() + words[1:]


def simulated(frame: pd.DataFrame) -> list[str]:
    """The footnote that says which of these calls were answered by a simulated engine."""
    made_up = int(frame["simulated"].fillna(False).sum()) if "simulated" in frame else 0
    if not made_up:
        return []
    which = "all calls were" if made_up == len(frame) else f"{made_up:,} of {len(frame):,} calls were"
    return [f"Simulated: {which} answered by a simulated engine; timings and texts are made up."]
