"""A summary in plain words: what is clear, what is not, and what n does not carry."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from famnb.experiment.comparison import min_pairs
from famnb.experiment.resume import ANSWERED, failures
from famnb.formatting import (
    FormatValue,
    format_count,
    format_duration,
    format_level,
    format_number,
    format_range,
    format_simulated,
    format_usd,
)

ALL_PAIRS_UP_TO = 4
"""Number of variants up to which every two are compared in words; of more, each is compared with the first.

Four variants make six sentences, which can be read; ten would make forty-five.
"""
_NAMES = {
    "ttft_s": "time to first token",
    "ttfa_s": "time to first answer text",
    "e2e_s": "time to the end of the answer",
    "output_tokens": "output tokens",
    "cost_usd": "cost",
}
_FORMATTERS: dict[str, FormatValue] = {
    "ttft_s": format_duration,
    "ttfa_s": format_duration,
    "e2e_s": format_duration,
    "output_tokens": format_number,
    "cost_usd": format_usd,
}
_ORDER = ("e2e_s", "ttft_s", "ttfa_s", "output_tokens", "cost_usd")
"""The order of metrics in a sentence; scores follow."""


def metric_formatter(metric: str) -> FormatValue:
    """The function that formats values of a metric."""
    return _FORMATTERS.get(metric, format_number)


def metric_name(metric: str) -> str:
    """The name of a metric in words."""
    return _NAMES.get(metric, f"score {metric.removeprefix('score_')}")


def reservations(rows: pd.DataFrame, *, warmups: int) -> Iterator[str]:
    """Yield what the figures leave out, and reservations about the rest, a sentence each."""
    simulated = int(rows["simulated"].fillna(False).sum()) if "simulated" in rows else 0
    if simulated:
        yield format_simulated(simulated, int(rows["simulated"].notna().sum()))
    if warmups:
        yield f"{format_count(warmups, 'warm-up call')} left out."
    is_failure = failures(rows)
    open_calls = int((~rows["status"].isin(ANSWERED) & ~is_failure).sum())
    if open_calls:
        yield f"{open_calls:,} of {len(rows):,} planned calls are not answered yet; the figures are of the others."
    for variant, own in rows.groupby("variant", observed=True):
        failed = own[is_failure[own.index]]
        if len(failed):
            counts = failed["error"].astype("string").fillna("no error named").value_counts()
            errors = ", ".join(f"{error} {count:,}" for error, count in counts.items())
            subject = f"{len(failed):,} of {len(own):,} calls of {variant} failed ({errors})"
            yield f"{subject} and are in none of its medians and means."
    for variant, own in rows.groupby("variant", observed=True):
        incomplete = int((own["status"] == "incomplete").sum())
        if incomplete:
            subject = f"{format_count(incomplete, 'answer')} of {variant}"
            yield f"{subject} did not come to an end, such as at a token cap; they count as they are."


def findings(pairs: pd.DataFrame, variants: Sequence[str], *, level: float) -> Iterator[str]:
    """Yield a sentence for each two variants: what is clear between them, what is not, and what n does not carry."""
    if pairs.empty:
        return
    chosen = pairs if len(variants) <= ALL_PAIRS_UP_TO else pairs[pairs["first"] == variants[0]]
    order = {metric: index for index, metric in enumerate(_ORDER)}
    for _, rows in chosen.groupby(["first", "second"], sort=False):
        records: list[dict[str, Any]] = [
            {str(key): value for key, value in row.items()} for row in rows.to_dict("records")
        ]
        records.sort(key=lambda row: order.get(row["metric"], len(order)))
        yield _compare_two(records, len(pairs), level)
    if len(chosen) < len(pairs):
        yield f"Each variant is compared with {variants[0]} here; all pairs are in the table of pairs."


def _compare_two(rows: Sequence[dict[str, Any]], comparisons: int, level: float) -> str:
    """A sentence on two variants, of `comparisons` that the table has in all."""
    first, second = rows[0]["first"], rows[0]["second"]
    n = max(row["n"] for row in rows)
    if n < min_pairs(level):
        return f"{second} and {first}: no difference can be claimed: {_too_few_pairs(rows, n, level)}."
    clear = [row for row in rows if row["clear"]]
    # Said once if it is the same for all metrics.
    same_n = all(row["n"] == n for row in rows)
    parts = []
    for index, row in enumerate(clear):
        claim, interval = _claim(row)
        if index == 0:
            count = f", n = {row['n']:,} pairs"
            parts.append(f"{claim} {_conjunction(row)} {first} ({format_level(level)} interval {interval}{count})")
        else:
            count = "" if same_n else f", n = {row['n']:,} pairs"
            parts.append(f"{claim} ({interval}{count})")
    unclear = "; ".join(_describe_unclear(row, comparisons, same_n=same_n) for row in rows if not row["clear"])
    if not clear:
        count = f"; n = {n:,} pairs" if same_n else ""
        return f"{second} and {first}: no clear difference in {unclear}{count}."
    return f"{second} {'; '.join(parts)}{'; no clear difference in ' if unclear else ''}{unclear}."


def _conjunction(row: dict[str, Any]) -> str:
    return "as" if row["metric"] == "cost_usd" and _ratio_is_clear(row) else "than"


def _claim(row: dict[str, Any]) -> tuple[str, str]:
    """A clear difference as a verb, and its interval."""
    metric, difference = row["metric"], row["difference"]
    format_value, is_less = metric_formatter(metric), difference < 0
    # "0.2 s sooner" has no minus sign, and neither has its interval.
    low, high = (-row["high"], -row["low"]) if is_less else (row["low"], row["high"])
    interval, size = format_range(low, high, format_value), format_value(abs(difference))
    match metric:
        case "ttft_s":
            return f"starts {size} {'sooner' if is_less else 'later'}", interval
        case "ttfa_s":
            return f"shows its first words {size} {'sooner' if is_less else 'later'}", interval
        case "e2e_s":
            return f"answers {size} {'sooner' if is_less else 'later'}", interval
        case "output_tokens":
            return f"writes {size} tokens {'fewer' if is_less else 'more'}", interval
        case "cost_usd" if _ratio_is_clear(row):
            ratios = format_range(row["ratio_low"], row["ratio_high"], format_number)
            return f"costs {format_number(row['ratio'])} times as much", ratios
        case "cost_usd":
            return f"costs {size} {'less' if is_less else 'more'} a call", interval
        case _:
            return f"scores {size} {'lower' if is_less else 'higher'} by {metric.removeprefix('score_')}", interval


def _ratio_is_clear(row: dict[str, Any]) -> bool:
    """Whether the interval of the ratio, too, leaves out that both are equal."""
    return bool(row["ratio_low"] > 1 or row["ratio_high"] < 1)


def _describe_unclear(row: dict[str, Any], comparisons: int, *, same_n: bool) -> str:
    """A metric in which no difference is clear, with its interval and how many pairs would show one."""
    metric, format_value = row["metric"], metric_formatter(row["metric"])
    name = metric_name(metric)
    count = "" if same_n else f", n = {row['n']:,} pairs"
    if row["n"] < 2 or pd.isna(row["low"]):
        return f"{name} (n = {row['n']:,})"
    if row["low"] == row["high"] == 0:
        return f"{name} (the same in every pair{count})"
    if math.isclose(row["low"], row["high"], rel_tol=1e-9):
        facts = f"{format_value(row['low'])} in every pair{count}"
    else:
        facts = f"{format_range(row['low'], row['high'], format_value)}{count}"
    if row["low"] > 0 or row["high"] < 0:
        facts += f", not enough for one of {comparisons} comparisons"
    if pd.notna(row["needed"]) and row["needed"] > row["n"]:
        facts += f", about {_round_count(row['needed'])} pairs would show {format_value(row['notable'])}"
    return f"{name} ({facts})"


def _too_few_pairs(rows: Sequence[dict[str, Any]], n: int, level: float) -> str:
    """How many pairs there are, and how many it would take."""
    have = f"n = {format_count(n, 'pair')}"
    row = next((row for row in rows if pd.notna(row["needed"])), None)
    if row is None:
        return f"{have}; {min_pairs(level)} are the fewest that could show one"
    size = metric_formatter(row["metric"])(row["notable"])
    needed = f"about {_round_count(row['needed'])} would be needed"
    return f"{have}; {needed} to see {size} in the {metric_name(row['metric'])}"


def _round_count(n: int) -> str:
    """A count with two significant digits, since an estimate of a sample size has no more."""
    return f"{int(float(f'{n:.1e}')):,}"
