"""Differences of two samples, paired over the same prompts or not, with intervals, and Holm's adjustment."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from famnb.stats.intervals import Interval, Values, as_floats, check_share, mean, present_floats

# One value has no standard deviation.
MIN_VALUES = 2
"""Pairs, or values a side, below which no interval is given."""
# Equal differences, such as 0.3 - 0.1 and 0.4 - 0.2, differ in their last bit, which would make any gap significant.
_ROUNDING = 1e-12
"""A spread smaller than this, relative to the values, comes from rounding alone and counts as none."""
_UNKNOWN = Interval(math.nan, math.nan, math.nan, 0)


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
        """Whether the interval excludes 0, so that it is clear which of the two is more."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        difference = Interval(self.value, self.low, self.high, self.n, self.level)
        return f"{difference}" if self.clear or not difference.known else f"no clear difference: {difference}"


def paired(first: Any, second: Any, *, by: Iterable[Any] | None = None, level: float = 0.95) -> Difference:
    """Return the difference of two variants that answered the same prompts.

    Series are matched by their index, anything else by position; `by` names each position's prompt instead. Repeats of
    a prompt are averaged first, since they are no further prompts; a prompt that one side lacks is left out. The
    interval is Student's, over prompts.
    """
    level = check_share("level", level)
    table = _side_by_side(first, second, by)
    both = (table if table.index.is_unique else table.groupby(level=0).mean()).dropna()
    a, b = present_floats(both["first"]), present_floats(both["second"])
    gap = mean(b - a, level=level)
    positive = bool(len(a)) and bool((a > 0).all()) and bool((b > 0).all())
    ratio = _exponential(mean(np.log(b) - np.log(a), level=level)) if positive else _UNKNOWN
    spread = _spread(b - a, of=(a, b))
    return Difference(
        gap.value,
        gap.low,
        gap.high,
        gap.n,
        level,
        ratio,
        effect=gap.value / spread if spread else math.nan,
        p_value=float(2 * special.stdtr(gap.n - 1, -abs(gap.value) * math.sqrt(gap.n) / spread))
        if spread
        else math.nan,
    )


def unpaired(first: Any, second: Any, *, level: float = 0.95) -> Difference:
    """Return the difference of two independent samples, with Welch's interval."""
    level = check_share("level", level)
    a, b = present_floats(first), present_floats(second)
    n = min(len(a), len(b))
    gap = float(np.mean(b) - np.mean(a)) if n else math.nan
    if n < MIN_VALUES:
        return Difference(gap, math.nan, math.nan, n, level, _UNKNOWN, math.nan, math.nan)
    # Welch's, since two variants need not spread alike, and Student's test assumes that they do.
    interval, p_value = _welch(a, b, level)
    positive = bool((a > 0).all()) and bool((b > 0).all())
    ratio = _exponential(_welch(np.log(a), np.log(b), level)[0]) if positive else _UNKNOWN
    return Difference(gap, interval.low, interval.high, n, level, ratio, _hedges(a, b), p_value)


def holm(p_values: Iterable[float]) -> npt.NDArray[np.float64]:
    """Return p-values adjusted for multiple tests by Holm's method, in the order given; a missing one is no test."""
    values = as_floats(list(p_values))
    if ((values < 0) | (values > 1)).any():
        raise ValueError(f"expected p-values, numbers from 0 to 1; got {values.min():g} to {values.max():g}")
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    # The smallest of m p-values is multiplied by m, the next by m - 1, and none may end below the one before it. Like
    # Bonferroni's, this needs no independence of the tests, which share prompts here, and it rejects more.
    stepped = values[order] * np.arange(len(order), 0, -1)
    adjusted = np.full_like(values, math.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


def _side_by_side(first: Any, second: Any, by: Iterable[Any] | None) -> pd.DataFrame:
    """Both samples side by side, one row a prompt and repeat."""
    if by is None and isinstance(first, pd.Series) and isinstance(second, pd.Series):
        sides = [pd.Series(as_floats(side), index=side.index) for side in (first, second)]
        means = [side if side.index.is_unique else side.groupby(level=0).mean() for side in sides]
        return pd.concat(means, axis=1, keys=["first", "second"], join="inner")
    a, b = as_floats(first), as_floats(second)
    names = list(range(len(a))) if by is None else list(by)
    if not len(a) == len(b) == len(names):
        raise ValueError(
            f"paired: expected as many values on both sides, got {len(a)} and {len(b)}"
            + (f" for {len(names)} prompts" if by is not None else "")
            + "; Series with the prompt as their index are matched by it"
        )
    return pd.DataFrame({"first": a, "second": b}, index=pd.Index(names)).dropna()


def _exponential(logs: Interval) -> Interval:
    return Interval(math.exp(logs.value), math.exp(logs.low), math.exp(logs.high), logs.n, logs.level)


def _spread(values: Values, *, of: tuple[Values, Values]) -> float:
    """The standard deviation; 0 for a single value, and where it is only what rounding left of `of`."""
    if len(values) < MIN_VALUES:
        return 0.0
    spread = float(np.std(values, ddof=1))
    return spread if spread > _ROUNDING * max(float(np.abs(side).max()) for side in of) else 0.0


def _welch(a: Values, b: Values, level: float) -> tuple[Interval, float]:
    """Welch's interval of mean(b) − mean(a) and its p-value; scipy's own warns where one side has no spread."""
    errors = [_spread(side, of=(a, b)) ** 2 / len(side) for side in (a, b)]
    gap, n, error = float(np.mean(b) - np.mean(a)), min(len(a), len(b)), math.sqrt(sum(errors))
    if not error:
        return Interval(gap, gap, gap, n, level), math.nan
    free = sum(errors) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(errors, (a, b), strict=True))
    margin = float(special.stdtrit(free, (1 + level) / 2)) * error
    return Interval(gap, gap - margin, gap + margin, n, level), float(2 * special.stdtr(free, -abs(gap) / error))


def _hedges(a: Values, b: Values) -> float:
    """Cohen's d with Hedges' correction for small samples; NaN where neither side has a spread."""
    spreads = [_spread(side, of=(a, b)) for side in (a, b)]
    if not any(spreads):
        return math.nan
    free = len(a) + len(b) - 2
    pooled = math.sqrt(((len(a) - 1) * spreads[0] ** 2 + (len(b) - 1) * spreads[1] ** 2) / free)
    return float((np.mean(b) - np.mean(a)) / pooled * (1 - 3 / (4 * free - 1)))
