"""Names, durations, amounts and footnotes as figures say them."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd

from famnb.formatting import dollars
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


def seconds(value: float) -> str:
    """A duration as one reads it."""
    if value < 0:
        return f"−{seconds(-value)}"
    match value:
        case _ if value >= 60:
            return f"{value / 60:.1f} min"
        case _ if value >= 1:
            return f"{value:.2f} s"
        case _ if value >= 0.1:
            return f"{value * 1e3:.0f} ms"
        case _:
            return f"{value * 1e3:.2g} ms"


def money(amount: float) -> str:
    """USD with three significant digits, which is all that a sum of floats in a picture has to say."""
    exact = Decimal(repr(float(amount)))
    return dollars(round(exact, max(2 - exact.adjusted(), 2)) if exact else exact)


def measured(metric: str, value: float) -> str:
    """A value of a column, in its unit."""
    match UNITS.get(metric, ""):
        case "s":
            return seconds(value)
        case "s/token":
            return f"{seconds(value)}/token"
        case "USD":
            return money(value) if value >= 0 else f"−{money(-value)}"
        case "tokens" | "characters" | "requests":
            return f"{value:,.0f}"
        case _:
            return figure(value)


def figure(value: float) -> str:
    """A number with three significant digits, and with all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


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


def count(n: int, noun: str = "call") -> str:
    """So many of something."""
    return f"{n:,} {noun if n == 1 else noun + 's'}"


def simulated(frame: pd.DataFrame) -> list[str]:
    """The footnote that says which of these calls were answered by a simulated engine."""
    made_up = int(frame["simulated"].fillna(False).sum()) if "simulated" in frame else 0
    if not made_up:
        return []
    which = "all calls were" if made_up == len(frame) else f"{made_up:,} of {len(frame):,} calls were"
    return [f"Simulated: {which} answered by a simulated engine; timings and texts are made up."]
