"""Paired comparisons of variants over the same prompts; `narrative.py` puts them in words.

repeats of a prompt ── averaged ── one value a prompt and variant ── second − first ── over prompts

The unit of sampling is the prompt: its repeats tell how one prompt varies, not how prompts do. The intervals are each
comparison's own. A difference is clear only if Holm's adjustment for all comparisons of the table leaves it so, and
only with so many pairs that a sign test could show one: fewer rest on a guess of how differences are distributed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from famnb import stats

METRICS = ("ttft_s", "ttfa_s", "e2e_s", "output_tokens", "cost_usd")
"""The columns that are compared, besides every score."""
NOTABLE = 0.1
"""The difference, as a share of the first variant's mean, that a sample should be able to show."""
MIN_PAIRS_FOR_SPREAD = 4
"""With fewer pairs their spread is not known well enough to say how many would suffice."""
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


def min_pairs(level: float) -> int:
    """The fewest pairs in which a sign test can show a difference: 6 at 95 %."""
    return stats.min_values(level)


def compare_variants(
    answered: pd.DataFrame, variants: Sequence[str], metrics: Sequence[str], *, level: float
) -> pd.DataFrame:
    """One row a metric and pair of variants, from answered calls; the columns are COLUMNS.

    `difference` is the mean over prompts of second − first, in the metric's unit, with Student's interval; `ratio` the
    geometric mean of second / first. `notable` is a tenth of the first variant's mean, rounded; `needed`, where the
    difference is not clear, the pairs that would find so much with a probability of 80 %. Missing where n carries none.
    """
    means = {
        metric: answered.groupby(["prompt_id", "variant"], observed=True)[metric].mean().unstack("variant")
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
    has_enough = (table["n"] >= min_pairs(level)).to_numpy(dtype=bool)
    clear = has_enough & (np.nan_to_num(adjusted, nan=1.0) < 1 - level)
    table["clear"] = pd.array(clear, dtype="boolean")
    table["needed"] = table["needed"].mask(clear)
    return table


def comparable_metrics(answered: pd.DataFrame) -> list[str]:
    """The metrics and scores that some call has; that to first answer text only if it is not that to first token."""
    metrics = [name for name in METRICS if name in answered and answered[name].notna().any()]
    if {"ttft_s", "ttfa_s"} <= set(metrics) and (answered["ttft_s"] == answered["ttfa_s"]).all():
        # Without thinking the two are one; a second line of the same comparison would cost power in Holm's adjustment.
        metrics.remove("ttfa_s")
    return [*metrics, *score_columns(answered)]


def score_columns(answered: pd.DataFrame) -> list[str]:
    """The columns of scores that some call has."""
    return [name for name in map(str, answered.columns) if name.startswith("score_") and answered[name].notna().any()]


def _row(metric: str, first: str, second: str, means: pd.DataFrame, level: float) -> dict[str, object]:
    sides = [means[name].astype("Float64") if name in means else pd.Series(dtype="Float64") for name in (first, second)]
    difference = stats.paired(*sides, level=level)
    both = sides[0].index[sides[0].notna()].intersection(sides[1].index[sides[1].notna()])
    notable = _round_to_one_digit(NOTABLE * abs(float(sides[0].loc[both].mean()))) if difference.n else math.nan
    return {
        "first": first,
        "second": second,
        "metric": metric,
        "n": difference.n,
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "ratio": difference.ratio.value,
        "ratio_low": difference.ratio.low,
        "ratio_high": difference.ratio.high,
        "p_value": difference.p_value,
        "notable": notable,
        "needed": _pairs_needed(difference, notable),
    }


def _pairs_needed(difference: stats.Difference, notable: float) -> int | None:
    """The number of pairs that would show a notable difference; None without a spread to compute it from."""
    n, level, spread = difference.n, difference.level, difference.sd
    if n < MIN_PAIRS_FOR_SPREAD or not notable > 0:
        return None
    # Differences that are all equal have a spread of rounding errors.
    if not spread > 1e-9 * notable:
        return None
    try:
        return stats.sample_size(sd=spread, sd_n=n, difference=notable, level=level)
    except ValueError:
        return None


def _round_to_one_digit(value: float) -> float:
    """Round to one significant digit: a tenth of the mean is a rule of thumb."""
    return float(f"{value:.0e}")
