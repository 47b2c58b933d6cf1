"""Percentile, median, mean and share of one sample, each with an interval if there are enough values for one."""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import Any, Literal, assert_never, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special, stats

from famnb.formatting import format_level, format_number

Values = npt.NDArray[np.float64]
Method = Literal["order", "bootstrap"]
# The ends of a 95 % interval then rest on some 50 resamples each; more would move them little and take longer.
RESAMPLES = 2000
"""Samples that a bootstrap draws."""
# With more values a bootstrap takes seconds and longer, and order statistics are as narrow.
MAX_RESAMPLED = 10_000
"""The most values that a bootstrap takes."""
# 80 MB of floats.
_BATCH = 10_000_000
"""Values that a bootstrap holds in memory at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """A value, the interval that holds the truth in `level` of all samples, and the number of values behind it."""

    value: float
    """The estimate; NaN where n carries none."""
    low: float
    """Lower end; NaN where n carries no interval."""
    high: float
    n: int
    level: float = 0.95

    @property
    def known(self) -> bool:
        """Whether n carries an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def __str__(self) -> str:
        if not math.isfinite(self.value):
            return f"not known (n = {self.n})"
        if not self.known:
            return f"{format_number(self.value)} (n = {self.n}, too few for an interval)"
        low, high = format_number(self.low), format_number(self.high)
        return f"{format_number(self.value)} ({format_level(self.level)} interval {low} to {high}, n = {self.n})"


def as_floats(values: Any) -> Values:
    """Return the values as floats, NaN where missing. Raises ValueError for anything but finite numbers."""
    try:
        series = pd.Series(values)
        if series.dtype.kind not in "biufO" or any(isinstance(value, str) for value in _objects(series)):
            raise ValueError(f"got {series.dtype}; texts, times and durations have to be made numbers of a unit first")
        array: Values = series.to_numpy(dtype=float, na_value=math.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected numbers: {error}") from None
    if np.isinf(array).any():
        raise ValueError("expected finite numbers: there are infinite ones; leave them out, or mark them as missing")
    return array


def _objects(series: pd.Series[Any]) -> pd.Series[Any]:
    """The values where their type says nothing of each of them, else none."""
    return series if series.dtype.kind == "O" else series.iloc[:0]


def present_floats(values: Any) -> Values:
    """Return the values that are not missing, as floats. Raises ValueError for anything but finite numbers."""
    present = as_floats(values)
    return present[~np.isnan(present)]


def check_share(name: str, share: float) -> float:
    """Return a number strictly between 0 and 1. Raises ValueError for anything else."""
    if not isinstance(share, int | float | np.number) or not 0 < share < 1:
        raise ValueError(f"{name}: expected a number between 0 and 1, such as 0.95; got {share!r}")
    return share


def carries(n: int, p: float) -> bool:
    """Whether n values carry a percentile: at least one of them is expected beyond it."""
    # In floats 1 / (1 - 0.9) is 10.000000000000002; a little is taken off, so that 10 values carry the 90th percentile.
    return n >= 1 / (1 - max(p, 1 - p)) - 1e-9


def percentile(values: Any, p: float, *, level: float = 0.95, method: Method = "order", seed: int = 0) -> Interval:
    """The p-quantile, 0 < p < 1; NaN where n does not carry it.

    "order" puts the interval between two of the values, by the binomial distribution, whatever the values' own; it
    covers at least `level`. "bootstrap" is the bias-corrected accelerated bootstrap, narrower and approximate, of at
    most 10,000 values; where so many are equal that it has no acceleration, the plain percentile bootstrap.
    """
    if method not in get_args(Method):
        raise ValueError(f"method: expected one of {', '.join(get_args(Method))}; got {method!r}")
    ascending = np.sort(present_floats(values))
    n, p, level = len(ascending), check_share("p", p), check_share("level", level)
    if not carries(n, p):
        return Interval(math.nan, math.nan, math.nan, n, level)
    value = float(np.quantile(ascending, p))
    match method:
        # The default, since it assumes nothing about latencies, which are skewed and have ties.
        case "order":
            low, high = _order_statistics(ascending, p, level)
        case "bootstrap":
            low, high = _bootstrap(ascending, p, level, seed)
        case _:
            assert_never(method)
    return Interval(value, low, high, n, level)


def median(values: Any, *, level: float = 0.95) -> Interval:
    """The median and its order-statistic interval; one value is its own median."""
    present = present_floats(values)
    if len(present) == 1:
        return Interval(float(present[0]), math.nan, math.nan, 1, level)
    return percentile(present, 0.5, level=level)


def mean(values: Any, *, level: float = 0.95) -> Interval:
    """The mean with Student's interval, which fewer than two values do not carry."""
    present = present_floats(values)
    n, level = len(present), check_share("level", level)
    if not n:
        return Interval(math.nan, math.nan, math.nan, 0, level)
    centre = float(np.mean(present))
    if n < 2:
        return Interval(centre, math.nan, math.nan, n, level)
    margin = float(special.stdtrit(n - 1, (1 + level) / 2)) * float(np.std(present, ddof=1)) / math.sqrt(n)
    return Interval(centre, centre - margin, centre + margin, n, level)


def summary(values: Any, *, level: float = 0.95) -> pd.DataFrame:
    """Mean, median and the 90th, 95th and 99th percentile, a row each with value, low, high and n; NaN as there."""
    present = present_floats(values)
    intervals = {"mean": mean(present, level=level), "median": median(present, level=level)}
    intervals |= {f"p{100 * p:.0f}": percentile(present, p, level=level) for p in (0.9, 0.95, 0.99)}
    rows = [(row.value, row.low, row.high, row.n) for row in intervals.values()]
    return pd.DataFrame(rows, index=pd.Index(intervals), columns=["value", "low", "high", "n"])


def proportion(count: int, n: int, *, level: float = 0.95) -> Interval:
    """The share `count / n` with Wilson's interval (as scipy's `binomtest` has it)."""
    try:
        count, n, level = operator.index(count), operator.index(n), check_share("level", level)
    except TypeError:
        raise ValueError(f"expected whole numbers, a count and the n that it is of; got {count!r} and {n!r}") from None
    if not 0 <= count <= n:
        raise ValueError(f"count: expected a number from 0 to n = {n}; got {count!r}")
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, level)
    # Wilson's, since the plain normal interval has no width at a share of 0 or 1, such as where every reply is right.
    ends = stats.binomtest(count, n).proportion_ci(level, method="wilson")
    return Interval(count / n, float(ends.low), float(ends.high), n, level)


def _order_statistics(ascending: Values, p: float, level: float) -> tuple[float, float]:
    """The two order statistics between which the quantile lies; NaN where one of them would be beyond the sample."""
    n = len(ascending)
    # How many of the values lie below the quantile is binomial, whatever their distribution.
    low = int(stats.binom.ppf((1 - level) / 2, n, p))
    high = int(stats.binom.ppf((1 + level) / 2, n, p)) + 1
    if low < 1 or high > n:
        return math.nan, math.nan
    return float(ascending[low - 1]), float(ascending[high - 1])


def _bootstrap(ascending: Values, p: float, level: float, seed: int) -> tuple[float, float]:
    n = len(ascending)
    if n > MAX_RESAMPLED:
        raise ValueError(f"bootstrap: expected at most {MAX_RESAMPLED:,} values, got {n:,}; use method='order'")
    if ascending[0] == ascending[-1]:
        return float(ascending[0]), float(ascending[0])
    # Where leaving out either end changes nothing, leaving out any value does not, and BCa would divide by zero.
    moves = np.quantile(ascending[1:], p) != np.quantile(ascending[:-1], p)
    ends = stats.bootstrap(
        (ascending,),
        lambda sample, axis: np.quantile(sample, p, axis=axis),
        n_resamples=RESAMPLES,
        confidence_level=level,
        batch=max(1, _BATCH // n),
        method="BCa" if moves else "percentile",
        rng=np.random.default_rng(seed),
        vectorized=True,
    ).confidence_interval
    return float(ends.low), float(ends.high)
