"""Two samples: how much more the second is than the first, paired over the same prompts or not."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from famnb.stats.interval import Interval, checked, mean, numbers

FEWEST = 2
"""Pairs, or values a side, below which no interval is given."""
_NONE = Interval(math.nan, math.nan, math.nan, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """How much more the second is than the first."""

    value: float
    """Mean of second − first, in the values' unit; NaN without values."""
    low: float
    high: float
    n: int
    """Pairs; unpaired, the smaller side."""
    level: float
    ratio: Interval
    """Geometric mean of second / first; NaN unless all are above 0."""
    effect: float
    """Standardised: Cohen's d_z when paired, Hedges' g when not; NaN where there is no spread to measure by."""
    p_value: float
    """Of Student's (Welch's, unpaired) test that there is no difference."""

    @property
    def clear(self) -> bool:
        """Whether the interval leaves no doubt which of the two is more."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        difference = Interval(self.value, self.low, self.high, self.n, self.level)
        return f"{difference}" if self.clear or not difference.known else f"no clear difference: {difference}"


def paired(first: Any, second: Any, *, by: Iterable[Any] | None = None, level: float = 0.95) -> Difference:
    """The difference of two variants that answered the same prompts.

    Series are matched by their index, anything else by position; `by` names each position's prompt instead. Repeats of
    a prompt are averaged first, since they are no further prompts; a prompt that one side lacks is left out. The
    interval is Student's, over prompts.
    """
    level = checked("level", level)
    table = _matched(first, second, by)
    both = table.groupby(level=0).mean().dropna()
    a, b = numbers(both["first"]), numbers(both["second"])
    gap = mean(b - a, level=level)
    positive = bool(len(a)) and bool((a > 0).all()) and bool((b > 0).all())
    ratio = _exponential(mean(np.log(b) - np.log(a), level=level)) if positive else _NONE
    spread = float(np.std(b - a, ddof=1)) if len(a) >= FEWEST else 0.0
    return Difference(
        gap.value,
        gap.low,
        gap.high,
        gap.n,
        level,
        ratio,
        effect=gap.value / spread if spread else math.nan,
        p_value=float(stats.ttest_1samp(b - a, 0.0).pvalue) if spread else math.nan,
    )


def unpaired(first: Any, second: Any, *, level: float = 0.95) -> Difference:
    """The difference of two samples that share nothing, by Welch's interval."""
    level = checked("level", level)
    a, b = numbers(first), numbers(second)
    n = min(len(a), len(b))
    gap = float(np.mean(b) - np.mean(a)) if n else math.nan
    if n < FEWEST or not (np.ptp(a) or np.ptp(b)):
        return Difference(gap, math.nan, math.nan, n, level, _NONE, math.nan, math.nan)
    test = stats.ttest_ind(b, a, equal_var=False)
    ends = test.confidence_interval(level)
    ratio = _NONE
    if (a > 0).all() and (b > 0).all():
        logs = stats.ttest_ind(np.log(b), np.log(a), equal_var=False).confidence_interval(level)
        centre = float(np.mean(np.log(b)) - np.mean(np.log(a)))
        ratio = _exponential(Interval(centre, float(logs.low), float(logs.high), n, level))
    return Difference(
        gap, float(ends.low), float(ends.high), n, level, ratio, _hedges(a, b), p_value=float(test.pvalue)
    )


def holm(p_values: Iterable[float]) -> npt.NDArray[np.float64]:
    """p-values adjusted for being several, by Holm's method, in the order given."""
    found = np.asarray(list(p_values), dtype=float)
    order = np.argsort(found)
    stepped = found[order] * np.arange(len(found), 0, -1)
    adjusted = np.empty_like(found)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


def _matched(first: Any, second: Any, by: Iterable[Any] | None) -> pd.DataFrame:
    """Both samples side by side, one row a prompt and repeat."""
    if by is None and isinstance(first, pd.Series) and isinstance(second, pd.Series):
        sides = [side.astype("Float64").groupby(level=0).mean() for side in (first, second)]
        return pd.concat(sides, axis=1, keys=["first", "second"], join="inner")
    a, b = list(first), list(second)
    names = list(range(len(a))) if by is None else list(by)
    if not len(a) == len(b) == len(names):
        raise ValueError(
            f"paired: expected as many values on both sides, got {len(a)} and {len(b)}"
            + (f" for {len(names)} prompts" if by is not None else "")
            + "; Series with the prompt as their index are matched by it"
        )
    table = pd.DataFrame({"first": a, "second": b}, index=pd.Index(names))
    return table.astype("Float64").dropna()


def _exponential(logs: Interval) -> Interval:
    return Interval(math.exp(logs.value), math.exp(logs.low), math.exp(logs.high), logs.n, logs.level)


def _hedges(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    """Cohen's d with Hedges' correction for small samples."""
    free = len(a) + len(b) - 2
    pooled = math.sqrt(((len(a) - 1) * np.var(a, ddof=1) + (len(b) - 1) * np.var(b, ddof=1)) / free)
    return float((np.mean(b) - np.mean(a)) / pooled * (1 - 3 / (4 * free - 1)))
