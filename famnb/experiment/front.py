"""Which variants no other beats, such as in cost, latency and score at once, as far as the data can say.

    clear      every other variant is clearly worse in one metric at least: none can beat it
    possible   the data do not decide
    beaten     another is clearly better in one metric at least, and in each other clearly better, the same in every
               pair, or not worse by more than a margin

Variants are compared as in a summary, with Holm's adjustment over all comparisons of all variants in all metrics: any
false clear or beaten is then as rare as one false difference, 5 % at a level of 95 %.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import pandas as pd

from famnb import stats
from famnb.experiment.comparison import compare_variants, estimate
from famnb.experiment.metrics import Measured, Metric
from famnb.stats.differences import is_clear

Standing: TypeAlias = Literal["clear", "possible", "beaten"]
_SAME = "same in every pair"


class Place(NamedTuple):
    """Where a variant stands."""

    figures: tuple[stats.Interval, ...]
    """Its figure of each metric, for new prompts."""
    n: int
    """Its calls with a value of each metric."""
    standing: Standing
    beaten_by: str | None
    """The first variant that beats it."""
    fewest_shared: int
    """Prompts that it has in common with another, of all others the fewest."""


def place_variants(
    variants: pd.Series[Any],
    prompts: pd.Series[Any],
    measured: Mapping[Metric, Measured],
    *,
    margins: Mapping[str, float | str] | None = None,
    level: float = 0.95,
) -> dict[str, Place]:
    """Return where each variant stands that has a figure of every metric.

    `variants` and `prompts` have those of each call, as texts and as anything; a call without a prompt is one of its
    own. Of a metric less is better unless it says that more is. `margins` are as for `compare_variants`.
    """
    codes, names = pd.factorize(prompts)
    is_alone = codes < 0
    codes[is_alone] = range(len(names), len(names) + int(is_alone.sum()))
    rows = pd.DataFrame({"variant": variants.array, "prompt_id": codes}, index=variants.index)
    figures: dict[str, tuple[stats.Interval, ...]] = {}
    sizes: dict[str, int] = {}
    for name in rows["variant"].dropna().unique():
        parts = {
            metric: values.to_frame(rows["variant"] == name, rows["prompt_id"]) for metric, values in measured.items()
        }
        estimates = tuple(estimate(metric, part, level=level) for metric, part in parts.items())
        if all(math.isfinite(figure.value) for figure in estimates):
            figures[name], sizes[name] = estimates, min(map(len, parts.values()))
    pairs = list(itertools.combinations(figures, 2))
    records = compare_variants(rows, measured, pairs, baseline="", primary="", level=level, margins=margins)
    adjusted = stats.holm(record["p_value"] for record in records)
    betters = [
        _compare(record, more_is_better=metric.better == "more", clear=bool(is_clear(p_value, record["n"], level)))
        for record, p_value, metric in zip(records, adjusted, itertools.cycle(measured), strict=False)
    ]
    places = {}
    for name, estimates in figures.items():
        verdicts: dict[str, set[str]] = {}
        shared = []
        for record, (winner, closes) in zip(records, betters, strict=True):
            if name in (record["first"], record["second"]):
                rival = record["second"] if record["first"] == name else record["first"]
                verdicts.setdefault(rival, set()).add(_SAME if rival in closes and winner != rival else winner)
                shared.append(record["n"])
        # The first of those that beat it, by what it and each rival show of the metrics.
        beaten_by = next((rival for rival, best in verdicts.items() if rival in best and best <= {rival, _SAME}), None)
        cannot_lose = all(name in best or best == {_SAME} for best in verdicts.values())
        standing: Standing = "beaten" if beaten_by is not None else "clear" if cannot_lose else "possible"
        places[name] = Place(estimates, sizes[name], standing, beaten_by, min(shared, default=0))
    return places


def _compare(record: Mapping[str, Any], *, more_is_better: bool, clear: bool) -> tuple[str, set[str]]:
    """Which of two is clearly better, _SAME if nothing differs, else empty; and which are within their margin."""
    first, second, low, high = (record[name] for name in ("first", "second", "low", "high"))
    low, high = (-high, -low) if more_is_better else (low, high)
    closes = {name for name, most in ((first, -low), (second, high)) if most <= record["margin"]}
    if low == high == 0 and record["n"] >= stats.min_values():
        return _SAME, closes
    is_second = (record["difference"] < 0) != more_is_better
    return (second if is_second else first) if clear else "", closes
