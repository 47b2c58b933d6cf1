"""What a summary says in plain words: what is clear, what is not, and what n does not carry."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd

from famnb.experiment.comparison import fewest
from famnb.experiment.resume import ANSWERED, failures
from famnb.formatting import format_count, format_duration, format_level, format_number, format_range, format_usd

FEW = 4
"""Up to so many variants, every two of them are compared in words; of more, each with the first."""
_NAMES = {
    "ttft_s": "time to first token",
    "ttfa_s": "time to first answer text",
    "e2e_s": "time to the end of the answer",
    "output_tokens": "output tokens",
    "cost_usd": "cost",
}
_SAID: dict[str, Callable[[float], str]] = {
    "ttft_s": format_duration,
    "ttfa_s": format_duration,
    "e2e_s": format_duration,
    "output_tokens": format_number,
    "cost_usd": format_usd,
}
_ORDER = ("e2e_s", "ttft_s", "ttfa_s", "output_tokens", "cost_usd")


def said(metric: str) -> Callable[[float], str]:
    """How a value of a metric is written."""
    return _SAID.get(metric, format_number)


def name(metric: str) -> str:
    """What a metric is called."""
    return _NAMES.get(metric, f"score {metric.removeprefix('score_')}")


def reservations(rows: pd.DataFrame, *, warmups: int) -> Iterator[str]:
    """What the figures are not made of, or are made of with a reservation."""
    made_up = int(rows["simulated"].fillna(False).sum()) if "simulated" in rows else 0
    if made_up:
        answered = int(rows["simulated"].notna().sum())
        which = "all calls were" if made_up == answered else f"{made_up:,} of {answered:,} calls were"
        yield f"Simulated: {which} answered by a simulated engine; timings and texts are made up."
    if warmups:
        yield f"{format_count(warmups, 'warm-up call')} left out."
    fruitless = failures(rows)
    left = int((~rows["status"].isin(ANSWERED) & ~fruitless).sum())
    if left:
        yield f"{left:,} of {len(rows):,} planned calls are not answered yet; the figures are of the others."
    for variant, own in rows.groupby("variant", observed=True):
        failed = own[fruitless[own.index]]
        if len(failed):
            errors = failed["error"].astype("string").fillna("no error named").value_counts()
            named = ", ".join(f"{error} {count:,}" for error, count in errors.items())
            shown = f"{len(failed):,} of {len(own):,} calls of {variant} failed ({named})"
            yield f"{shown} and are in none of its medians and means."
    for variant, own in rows.groupby("variant", observed=True):
        cut = int((own["status"] == "incomplete").sum())
        if cut:
            shown = format_count(cut, "answer")
            yield f"{shown} of {variant} did not come to an end, such as at a token cap; they count as they are."


def findings(pairs: pd.DataFrame, variants: Sequence[str], *, level: float) -> Iterator[str]:
    """A line for each two variants: what is clear between them, what is not, and what n does not carry."""
    if pairs.empty:
        return
    shown = pairs if len(variants) <= FEW else pairs[pairs["first"] == variants[0]]
    order = {metric: place for place, metric in enumerate(_ORDER)}
    for _, rows in shown.groupby(["first", "second"], sort=False):
        records: list[dict[str, Any]] = [
            {str(key): value for key, value in row.items()} for row in rows.to_dict("records")
        ]
        ranked = sorted(records, key=lambda row: order.get(row["metric"], len(order)))
        yield _line(ranked, len(pairs), level)
    if len(shown) < len(pairs):
        yield f"Each variant is compared with {variants[0]} here; all pairs are in the table of pairs."


def _line(rows: Sequence[dict[str, Any]], family: int, level: float) -> str:
    """What can be said of two variants."""
    first, second = rows[0]["first"], rows[0]["second"]
    most = max(rows, key=lambda row: row["n"])
    if most["n"] < fewest(level):
        return f"{second} and {first}: no difference can be claimed: {_refusal(rows, most['n'], level)}."
    clear = [row for row in rows if row["clear"]]
    rest = [row for row in rows if not row["clear"]]
    even = all(row["n"] == most["n"] for row in rows)
    parts = []
    for place, row in enumerate(clear):
        claim, low_high = _claim(row)
        whom = f" {_joint(row)} {first}" if place == 0 else ""
        sure = f"{format_level(level)} interval {low_high}" if place == 0 else low_high
        count = "" if even and place else f", n = {row['n']:,} pairs"
        parts.append(f"{claim}{whom} ({sure}{count})")
    unclear = "; ".join(_unclear(row, family, even=even) for row in rest)
    if not clear:
        count = f"; n = {most['n']:,} pairs" if even else ""
        return f"{second} and {first}: no clear difference in {unclear}{count}."
    return f"{second} {'; '.join(parts)}{'; no clear difference in ' if rest else ''}{unclear}."


def _joint(row: dict[str, Any]) -> str:
    return "as" if row["metric"] == "cost_usd" and _by_ratio(row) else "than"


def _claim(row: dict[str, Any]) -> tuple[str, str]:
    """A clear difference as a verb, and its interval."""
    metric, gap = row["metric"], row["difference"]
    written, less = said(metric), gap < 0
    low, high = (-row["high"], -row["low"]) if less else (row["low"], row["high"])
    between, size = format_range(low, high, written), written(abs(gap))
    match metric:
        case "ttft_s":
            return f"starts {size} {'sooner' if less else 'later'}", between
        case "ttfa_s":
            return f"shows its first words {size} {'sooner' if less else 'later'}", between
        case "e2e_s":
            return f"answers {size} {'sooner' if less else 'later'}", between
        case "output_tokens":
            return f"writes {size} tokens {'fewer' if less else 'more'}", between
        case "cost_usd" if _by_ratio(row):
            times = format_range(row["ratio_low"], row["ratio_high"], format_number)
            return f"costs {format_number(row['ratio'])} times as much", times
        case "cost_usd":
            return f"costs {size} {'less' if less else 'more'} a call", between
        case _:
            return f"scores {size} {'lower' if less else 'higher'} by {metric.removeprefix('score_')}", between


def _by_ratio(row: dict[str, Any]) -> bool:
    """Whether the ratio says as clearly as the difference which of the two is more."""
    return bool(row["ratio_low"] > 1 or row["ratio_high"] < 1)


def _unclear(row: dict[str, Any], family: int, *, even: bool) -> str:
    metric, written = row["metric"], said(row["metric"])
    count = "" if even else f", n = {row['n']:,} pairs"
    if row["n"] < 2 or pd.isna(row["low"]):
        return f"{name(metric)} (n = {row['n']:,})"
    if row["low"] == row["high"] == 0:
        return f"{name(metric)} (the same in every pair{count})"
    alike = math.isclose(row["low"], row["high"], rel_tol=1e-9)
    found = f"{written(row['low'])} in every pair" if alike else None
    facts = f"{found or format_range(row['low'], row['high'], written)}{count}"
    if row["low"] > 0 or row["high"] < 0:
        facts += f", not enough for one of {family} comparisons"
    if pd.notna(row["needed"]) and row["needed"] > row["n"]:
        facts += f", about {_roughly(row['needed'])} pairs would show {written(row['notable'])}"
    return f"{name(metric)} ({facts})"


def _refusal(rows: Sequence[dict[str, Any]], n: int, level: float) -> str:
    """What too few pairs would have to be."""
    told = f"n = {format_count(n, 'pair')}"
    sized = [row for row in rows if pd.notna(row["needed"])]
    if not sized:
        return f"{told}; {fewest(level)} are the fewest that could show one"
    row = sized[0]
    wanted = said(row["metric"])(row["notable"])
    return f"{told}; about {_roughly(row['needed'])} would be needed to see {wanted} in the {name(row['metric'])}"


def _roughly(n: int) -> str:
    """Two significant digits."""
    return f"{int(float(f'{n:.1e}')):,}"
