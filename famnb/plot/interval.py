"""Values with their 95% intervals, as figures draw them; none where the number of values does not carry one."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from scipy.stats import binom, t

Values = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """A value, the interval that holds the truth in 95 of 100 samples, and the number of values behind it."""

    value: float
    low: float
    high: float
    n: int

    @property
    def known(self) -> bool:
        """Whether n carries an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)


def carries(n: int, p: float) -> bool:
    """Whether n values carry a percentile: n >= 1 / (1 - p)."""
    return n >= 1 / (1 - p) - 1e-9


def percentile(values: Values, p: float, *, level: float = 0.95) -> Interval:
    """The p-quantile of ascending values; the interval is between two of them, whatever the distribution."""
    n = len(values)
    low = int(binom.ppf((1 - level) / 2, n, p))
    high = int(binom.ppf((1 + level) / 2, n, p)) + 1
    inside = low >= 1 and high <= n
    low_value, high_value = (float(values[low - 1]), float(values[high - 1])) if inside else (math.nan, math.nan)
    return Interval(float(np.quantile(values, p)), low_value, high_value, n)


def mean(values: Values, *, level: float = 0.95) -> Interval:
    """The mean with Student's interval; none for fewer than two values."""
    n, centre = len(values), float(np.mean(values))
    if n < 2:
        return Interval(centre, math.nan, math.nan, n)
    off = float(t.ppf((1 + level) / 2, n - 1)) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Interval(centre, centre - off, centre + off, n)
