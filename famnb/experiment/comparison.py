"""Variants compared over the same prompts, two at a time; what a comparison says in words is left to `findings`.

repeats of a prompt ── averaged ── one value a prompt and variant ── second − first ── over prompts

The unit of sampling is the prompt: its repeats tell how one prompt varies, not how prompts do. The intervals are each
comparison's own. A difference is clear only if Holm's adjustment for all comparisons of the table leaves it so, and
only with so many pairs that a sign test could show one: fewer rest on a guess of how differences are distributed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from scipy import special

from famnb import stats

METRICS = ("ttft_s", "ttfa_s", "e2e_s", "output_tokens", "cost_usd")
"""What is compared, and every score besides."""
NOTABLE = 0.1
"""A difference of this share of the first variant's mean is what a sample should be able to show."""
ROUGH = 4
"""Pairs below which their spread is not known well enough to say how many would do."""
COLUMNS = {
    "first": "string",
    "second": "string",
    "metric": "string",
    "n": "Int64",
    "difference": "Float64",
    "low": "Float64",
    "high": "Float64",
    "ratio": "Float64",
    "ratio_low": "Float64",
    "ratio_high": "Float64",
    "p_value": "Float64",
    "p_adjusted": "Float64",
    "clear": "boolean",
    "notable": "Float64",
    "needed": "Int64",
}


def fewest(level: float) -> int:
    """The fewest pairs in which a sign test can show a difference: 6 at 95 %."""
    return math.ceil(1 - math.log2(1 - level))


def compared(measured: pd.DataFrame, variants: Sequence[str], metrics: Sequence[str], *, level: float) -> pd.DataFrame:
    """One row a metric and pair of variants, of answered calls; the columns are COLUMNS.

    `difference` is the mean over prompts of second − first, in the metric's unit, with Student's interval; `ratio` the
    geometric mean of second / first. `notable` is a tenth of the first variant's mean, rounded; `needed`, where the
    difference is not clear, the pairs that would find so much with a probability of 80 %. Missing where n carries none.
    """
    means = {
        metric: measured.groupby(["prompt_id", "variant"], observed=True)[metric].mean().unstack("variant")
        for metric in metrics
    }
    rows = [
        _row(metric, first, second, means[metric], level)
        for first, second in itertools.combinations(variants, 2)
        for metric in metrics
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)
    adjusted = stats.holm(table["p_value"].to_numpy(dtype=float, na_value=math.nan))
    table["p_adjusted"] = pd.array(adjusted, dtype="Float64")
    enough = (table["n"] >= fewest(level)).to_numpy(dtype=bool)
    clear = enough & (np.nan_to_num(adjusted, nan=1.0) < 1 - level)
    table["clear"] = pd.array(clear, dtype="boolean")
    needed = [None if done else _needed(*each, level) for done, each in zip(clear, _spreads(table), strict=True)]
    table["needed"] = pd.array(needed, dtype="Int64")
    return table


def metrics_of(measured: pd.DataFrame) -> list[str]:
    """What can be compared: measures that some call has, the first answer text only where it is not the first token."""
    known = [name for name in METRICS if name in measured and measured[name].notna().any()]
    if {"ttft_s", "ttfa_s"} <= set(known) and (measured["ttft_s"] == measured["ttfa_s"]).all():
        known.remove("ttfa_s")
    return [*known, *score_columns(measured)]


def score_columns(measured: pd.DataFrame) -> list[str]:
    """The columns of scores that some call has."""
    return [name for name in map(str, measured.columns) if name.startswith("score_") and measured[name].notna().any()]


def _row(metric: str, first: str, second: str, means: pd.DataFrame, level: float) -> dict[str, object]:
    sides = [means[name].astype("Float64") if name in means else pd.Series(dtype="Float64") for name in (first, second)]
    found = stats.paired(*sides, level=level)
    both = sides[0].index[sides[0].notna()].intersection(sides[1].index[sides[1].notna()])
    notable = _rounded(NOTABLE * abs(float(sides[0].loc[both].mean()))) if found.n else math.nan
    return {
        "first": first,
        "second": second,
        "metric": metric,
        "n": found.n,
        "difference": found.value,
        "low": found.low,
        "high": found.high,
        "ratio": found.ratio.value,
        "ratio_low": found.ratio.low,
        "ratio_high": found.ratio.high,
        "p_value": _p_value(found),
        "notable": notable,
    }


def _p_value(found: stats.Difference) -> float:
    """Student's; where all differences are equal, which leaves it none, the sign test's."""
    if found.n < 2 or not math.isnan(found.p_value):
        return found.p_value
    return 1.0 if found.value == 0 else 2.0 ** (1 - found.n)


def _spreads(table: pd.DataFrame) -> Iterator[tuple[int, float, float]]:
    """Of each comparison its pairs, half its interval, and what difference would be notable."""
    half = (table["high"] - table["low"]) / 2
    columns = (series.to_numpy(dtype=float, na_value=math.nan) for series in (half, table["notable"]))
    yield from zip(table["n"].astype(int), *columns, strict=True)


def _needed(n: int, half: float, notable: float, level: float) -> int | None:
    """The pairs that would show a notable difference; None where there is no spread to reckon with."""
    if n < ROUGH or not notable > 0:
        return None
    spread = half * math.sqrt(n) / float(special.stdtrit(n - 1, (1 + level) / 2))
    if not spread > 1e-9 * notable:
        return None
    try:
        return max(stats.sample_size(sd=spread, difference=notable, level=level), fewest(level))
    except ValueError:
        return None


def _rounded(value: float) -> float:
    """One significant digit, which is all that a wish has."""
    return float(f"{value:.0e}")
