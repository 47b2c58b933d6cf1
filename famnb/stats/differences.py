"""Differences of two samples, paired over the same prompts, with intervals, and Holm's adjustment.

`paired` compares means, `paired_bounds` means of what is known between bounds only, `paired_share` shares of yes and
no: each over prompts, which count once, whatever their repeats. `paired_median` is for few values or long tails, of
which means tell nothing.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from famnb.errors import InvalidRequest
from famnb.stats.intervals import (
    ROUNDING,
    Interval,
    Values,
    as_floats,
    check_share,
    effective_size,
    mean,
    mean_p_value,
    median,
    min_values,
    wilson,
)

Codes = npt.NDArray[np.intp]
"""The number of each value's prompt."""
FLIPS = 1999
"""Random flips behind the p-value of a difference of shares."""
MAX_FLIPPED = 11
"""Prompts up to which all flips are made: some 2,000."""
MIN_COUNTED = 10
"""Flips that have to come to as much for their number to tell how rare that is."""
_NO_LIMIT = Interval(math.inf, 0.0, math.inf, 0)
_UNKNOWN = Interval(math.nan, math.nan, math.nan, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """How much more the second is than the first."""

    value: float
    """Second − first, in the values' unit; NaN without values."""
    low: float
    """Lower end of the interval; NaN where n carries none."""
    high: float
    n: int
    """Pairs."""
    level: float
    ratio: Interval
    """Geometric mean of second / first; NaN unless all are above 0."""
    p_value: float
    """Of the test that there is no difference; NaN where n carries none."""
    sd: float = math.nan
    """The standard deviation of the paired differences of prompts, to plan with: see `sample_size`."""
    caution: str = ""
    """Why the interval may hold the truth less often than in `level` of all samples; empty where nothing speaks so."""
    value_low: float = math.nan
    """Of uncertain inputs, the difference if the first is as much, and the second as little, as they may be."""
    value_high: float = math.nan
    share: float = math.nan
    """Of a median, the share of pairs in which the second is less."""
    share_more: float = math.nan
    """The share of those in which it is more."""

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0, so that it is clear which of the two is more."""
        return self.low > 0 or self.high < 0

    @property
    def exact(self) -> bool:
        """Whether the inputs were known, so that the interval is of sampling alone."""
        return math.isnan(self.value_low) or self.value_low == self.value_high

    def __str__(self) -> str:
        difference = Interval(self.value, self.low, self.high, self.n, self.level, caution=self.caution)
        mark = "" if self.exact else "≈ "
        return (
            f"{mark}{difference}" if self.clear or not difference.known else f"no clear difference: {mark}{difference}"
        )


def paired(first: Any, second: Any, *, level: float = 0.95) -> Difference:
    """Return the difference of the means of two variants that answered the same prompts.

    Series are matched by their index, the prompt, anything else by position. Repeats of a prompt are averaged first,
    since they are no further prompts; a prompt that one side lacks is left out. The interval is that of `mean`, over
    prompts, and takes six of them at 95 %; the p-value is of the same tests.
    """
    level = check_share("level", level)
    a, b = _average(_match(first, second))
    spread = _spread(b - a, of=(a, b))
    # Differences that differ by rounding alone are all alike.
    gaps = b - a if spread else np.full(len(a), np.mean(b - a)) if len(a) else b
    gap, is_positive = mean(gaps, level=level), bool(len(a)) and bool((a > 0).all()) and bool((b > 0).all())
    ratio = _exponential(mean(np.log(b) - np.log(a), level=level)) if is_positive else _UNKNOWN
    p_value, sd = mean_p_value(gaps) if gap.known else math.nan, spread if len(gaps) > 1 else math.nan
    return _difference(gap, p_value, ratio=ratio, sd=sd)


def paired_median(first: Any, second: Any, *, level: float = 0.95) -> Difference:
    """Return the median of the differences of two variants that answered the same prompts, matched as in `paired`.

    The interval is between two of the differences, the p-value the sign test's: neither assumes anything of how the
    values are distributed. `share` is the share of prompts with less on the second side, `share_more` that with more.
    """
    level = check_share("level", level)
    a, b = _average(_match(first, second))
    gaps, n = b - a, len(a)
    if n:
        # Differences that come from rounding are not differences.
        gaps = np.where(np.abs(gaps) > ROUNDING * max(np.abs(a).max(), np.abs(b).max()), gaps, 0.0)
    middle, less, more = median(gaps, level=level), np.count_nonzero(gaps < 0), np.count_nonzero(gaps > 0)
    p_value = math.nan
    if n >= min_values(level):
        p_value = min(1.0, 2 * float(special.bdtr(min(less, more), less + more, 0.5))) if less + more else 1.0
        p_value = max(p_value, 1 - level) if middle.low <= 0 <= middle.high else p_value
    # A median of normal values takes π / 2 times as many as a mean. One of long tails takes fewer: by the width of its
    # interval (McKean and Schrader, 1984), in which the few largest values have no part.
    spread = float(np.std(gaps, ddof=1)) * math.sqrt(math.pi / 2) if n > 1 else math.nan
    if middle.high > middle.low:
        bound = float(special.ndtri((1 + level) / 2))
        spread = min(spread, (middle.high - middle.low) / 2 / bound * math.sqrt(n))
    found = _difference(middle, p_value, sd=spread)
    return dataclasses.replace(found, share=less / n, share_more=more / n) if n else found


def widen_for_runs(
    difference: Difference, first: Values, second: Values, *, assumed_sd: float = math.nan
) -> Difference:
    """Return a difference over prompts with the error of runs in its interval and its p-value.

    `first` and `second` have the value of each run, on either side of a change. How runs differ by themselves is told
    by the runs of each side, as in Student's test; with one run a side by `assumed_sd`, and without that by nothing:
    the difference then comes back as it is, and leaves out how runs differ.
    """
    free = len(first) + len(second) - 2
    if not free:
        sd, bound = assumed_sd, float(special.ndtri((1 + difference.level) / 2))
    else:
        squares = sum(float(np.sum((side - np.mean(side)) ** 2)) for side in (first, second))
        sd, bound = math.sqrt(squares / free), float(special.stdtrit(free, (1 + difference.level) / 2))
    reach = bound * sd * math.sqrt(1 / len(first) + 1 / len(second))
    if math.isnan(reach) or math.isnan(difference.low):
        return difference
    below, above = (
        math.hypot(side, reach) for side in (difference.value - difference.low, difference.high - difference.value)
    )
    towards = below if difference.value > 0 else above
    # The p-value whose interval just reaches 0.
    t = -abs(difference.value) / towards * bound if towards else -math.inf
    tail = float(special.stdtr(free, t)) if free else float(special.ndtr(t))
    return dataclasses.replace(
        difference,
        low=difference.value - below,
        high=difference.value + above,
        p_value=float(np.maximum(difference.p_value, 2 * tail)),
    )


def paired_bounds(
    first: pd.DataFrame, second: pd.DataFrame, *, level: float = 0.95, of: Callable[..., Difference] | None = None
) -> Difference:
    """Return the paired difference of means of inputs that are known between bounds only, such as estimated costs.

    `of` compares other statistics than means: `paired_median`.

    Both sides have the columns low, value and high, a row a call, and the prompt as their index; a row that lacks one
    of the three is left out. The interval reaches over those of (second's low − first's high) and (second's high −
    first's low), so it holds the truth at its rate wherever between its bounds each input lies; the p-value is the
    larger of the two, and 1 unless both are on one side of 0: clear is what is clear at both ends. `ratio` likewise.
    ValueError for bounds whose means do not enclose that of the values.
    """
    level = check_share("level", level)
    a, b = _check_bounds("first", first), _check_bounds("second", second)
    # Ends that enclose the mean of all prompts may stand the other way round on those that both have.
    shared = a["value"].index.intersection(b["value"].index)
    for side in (a, b):
        if side["low"][side["low"].index.isin(shared)].mean() > side["high"][side["high"].index.isin(shared)].mean():
            side["low"], side["high"] = side["high"], side["low"]
    compare = of or paired
    middle = compare(a["value"], b["value"], level=level)
    if math.isnan(middle.value) or all((side["low"] == side["high"]).all() for side in (a, b)):
        # Most inputs are known, and the two others would be the same.
        return dataclasses.replace(middle, value_low=middle.value, value_high=middle.value)
    least, most = (
        # Where nothing limits an input, nothing limits the difference on that side.
        dataclasses.replace(middle, value=end, low=end, high=end, ratio=_NO_LIMIT, p_value=0.0)
        if np.isinf(open_side["high"]).any()
        else compare(a[end_a], b[end_b], level=level)
        for open_side, end_a, end_b, end in ((a, "high", "low", -math.inf), (b, "low", "high", math.inf))
    )
    (low, high), (ratio_low, ratio_high) = _envelope(least, most), _envelope(least.ratio, most.ratio)
    # numpy's maximum, unlike Python's, is NaN where one of the two is.
    p_value = float(np.maximum(least.p_value, most.p_value))
    return dataclasses.replace(
        middle,
        low=low,
        high=high,
        ratio=dataclasses.replace(middle.ratio, low=ratio_low, high=ratio_high),
        p_value=p_value if least.value * most.value > 0 else float(np.maximum(p_value, 1.0)),
        caution=least.caution or most.caution,
        value_low=least.value,
        value_high=most.value,
    )


def paired_ratio(first: pd.DataFrame, second: pd.DataFrame, *, level: float = 0.95) -> Difference:
    """Return the ratio of two variants' means over the prompts that both have, such as of what an answer costs.

    Both sides are as for `paired_bounds`. `ratio` has the ratio with its interval, `value`, `low` and `high` its
    logarithm; each prompt counts as far as it moves that (the linearised ratio). NaN unless both means are above 0.
    """
    return paired_bounds(first, second, level=level, of=_compare_totals)


def _compare_totals(first: pd.Series[float], second: pd.Series[float], *, level: float) -> Difference:
    """The ratio of two means, as `paired_ratio` has it."""
    sides = _average(_match(first, second))
    n, totals = len(sides[0]), [float(np.mean(side)) if len(side) else math.nan for side in sides]
    if not min(totals) > 0:
        return _difference(Interval(math.nan, math.nan, math.nan, n, level), math.nan)
    moves = sides[1] / totals[1] - sides[0] / totals[0]
    # Equal ratios differ by rounding.
    logs = math.log(totals[1] / totals[0]) + (moves if np.abs(moves).max() > ROUNDING else np.zeros(n))
    gap = mean(logs, level=level)
    p_value, sd = mean_p_value(logs) if gap.known else math.nan, float(np.std(logs, ddof=1)) if n > 1 else math.nan
    return _difference(gap, p_value, ratio=_exponential(gap), sd=sd)


def paired_share(first: pd.Series[Any], second: pd.Series[Any], *, level: float = 0.95) -> Difference:
    """Return the difference of the shares of yes (true or 1) of two variants over the prompts that both answered.

    Both are a value a call, with the prompt as their index, such as whether the call met its limits. The interval is
    Newcombe's (1998, method 10), of two of Wilson's by prompts and of how the shares go together: it has a width even
    where all calls are alike. The p-value is of flipping the signs of prompts' differences, which with one call a
    prompt is McNemar's exact test.
    """
    level = check_share("level", level)
    sides = _match(first, second)
    means = _average(sides)
    n = len(means[0])
    if not n:
        return _difference(Interval(math.nan, math.nan, math.nan, 0, level), math.nan)
    if not all(np.isin(values, (0, 1)).all() for values, _ in sides):
        raise InvalidRequest("paired_share: expected values that are true or false (1 or 0)")
    shares = [float(side.mean()) for side in means]
    ends = [
        wilson(side_share, effective_size(values, codes, level=level, informative=1), level)
        for side_share, (values, codes) in zip(shares, sides, strict=True)
    ]
    margins = [(side_share - low, high - side_share) for side_share, (low, high) in zip(shares, ends, strict=True)]
    # A correlation narrows the interval; as much of it as n prompts may show by chance does not count.
    together = float(np.corrcoef(means[0], means[1])[0, 1]) if all(map(np.ptp, means)) else 0.0
    together = max(together - 2 / math.sqrt(n), 0.0) if together > 0 else together
    gaps, value = means[1] - means[0], shares[1] - shares[0]
    low = value - _combine(margins[1][0], margins[0][1], together)
    high = value + _combine(margins[1][1], margins[0][0], together)
    p_value = math.nan if n < min_values(level) else _flip_p_value(gaps)
    if low <= 0 <= high:
        p_value = max(p_value, 1 - level)
    spread = _spread(gaps, of=(means[0], means[1]))
    less, more = float((gaps < 0).mean()), float((gaps > 0).mean())
    return Difference(value, low, high, n, level, _UNKNOWN, p_value, spread, share=less, share_more=more)


def average_repeats(calls: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of each prompt's calls in every column, a row a prompt, in the order in which they come first."""
    codes, prompts = pd.factorize(calls.index)
    is_known = codes >= 0
    codes, counts = codes[is_known], np.bincount(codes[is_known])
    # In plain sums, unlike in compensated ones, what is no more in any call is no more in the mean: bounds stay bounds.
    means = {name: np.bincount(codes, calls[name].to_numpy()[is_known]) / counts for name in calls}
    return pd.DataFrame(means, index=prompts)


def holm(p_values: Iterable[float]) -> npt.NDArray[np.float64]:
    """Return p-values adjusted for multiple tests by Holm's method, in the order given; a missing one is no test."""
    values = as_floats(list(p_values))
    if ((values < 0) | (values > 1)).any():
        raise InvalidRequest(f"expected p-values, numbers from 0 to 1; got {values.min():g} to {values.max():g}")
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    # The smallest of m p-values is multiplied by m, the next by m - 1, and none may end below the one before it. Like
    # Bonferroni's, this needs no independence of the tests, which share prompts here, and it rejects more.
    stepped = values[order] * np.arange(len(order), 0, -1)
    adjusted = np.full_like(values, math.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


def is_clear(p_adjusted: Any, n: Any, level: float) -> Any:
    """Whether differences may be claimed, by their adjusted p-values and their n; of arrays for each of them.

    A p-value that is missing or too few values for a sign test to show anything claim nothing.
    """
    return (p_adjusted < 1 - level) & (n >= min_values(level))


def _difference(gap: Interval, p_value: float, *, ratio: Interval = _UNKNOWN, sd: float = math.nan) -> Difference:
    """A difference with this interval."""
    return Difference(gap.value, gap.low, gap.high, gap.n, gap.level, ratio, p_value, sd, gap.caution)


def _envelope(first: Difference | Interval, second: Difference | Interval) -> tuple[float, float]:
    """The ends of what holds both intervals; NaN if one has none."""
    return float(np.minimum(first.low, second.low)), float(np.maximum(first.high, second.high))


def _check_bounds(name: str, side: pd.DataFrame) -> dict[str, pd.Series[float]]:
    """The columns of the rows that have low, value and high. Raises ValueError if their means are in another order."""
    missing = {"low", "value", "high"} - set(side.columns)
    if missing:
        raise InvalidRequest(f"{name}: expected the columns low, value and high; {', '.join(sorted(missing))} missing")
    low, value, high = (as_floats(side[column], finite=column != "high") for column in ("low", "value", "high"))
    is_known = ~np.isnan(low + value + high)
    means = [float(end[is_known].mean()) for end in (low, value, high)] if is_known.any() else [0.0]
    if any(less > more and not math.isclose(less, more, rel_tol=1e-9) for less, more in itertools.pairwise(means)):
        raise InvalidRequest(f"{name}: expected low ≤ value ≤ high, on average")
    columns, index = {"low": low, "value": value, "high": high}, side.index[is_known]
    return {column: pd.Series(values[is_known], index=index) for column, values in columns.items()}


def _match(first: Any, second: Any) -> list[tuple[Values, Codes]]:
    """The values of either side on the prompts that both have, each with the number of its prompt.

    Two Series are matched by their index, anything else by position; ValueError unless these are as many.
    """
    sides = [side if isinstance(side, pd.Series) else pd.Series(as_floats(side)) for side in (first, second)]
    if sides[0] is not first and sides[1] is not second and len(sides[0]) != len(sides[1]):
        raise InvalidRequest(f"expected as many values on both sides, got {len(sides[0])} and {len(sides[1])}")
    arrays = [as_floats(side) for side in sides]
    known = [~np.isnan(values) & side.index.notna() for values, side in zip(arrays, sides, strict=True)]
    prompts = [side.index[is_known] for side, is_known in zip(sides, known, strict=True)]
    both = prompts[0].unique().intersection(prompts[1].unique())
    codes = [both.get_indexer(index) for index in prompts]
    # −1: a prompt that the other side lacks.
    return [
        (values[is_known][numbers >= 0], numbers[numbers >= 0])
        for values, is_known, numbers in zip(arrays, known, codes, strict=True)
    ]


def _average(sides: Iterable[tuple[Values, Codes]]) -> tuple[Values, Values]:
    """The mean of each prompt, in one order on both sides."""
    a, b = (np.bincount(codes, values) / np.bincount(codes) for values, codes in sides)
    return a, b


def _flip_p_value(gaps: Values) -> float:
    """How often a mean as far from 0 comes of flipping the signs of the differences at random."""
    if not gaps.any():
        return 1.0
    n, observed = len(gaps), abs(float(gaps.sum()))
    is_complete, rng = n <= MAX_FLIPPED, np.random.default_rng(0)
    flips = np.arange(2**n)[:, None] >> np.arange(n) & 1 if is_complete else rng.integers(0, 2, (FLIPS, n))
    sums = (1 - 2 * flips) @ gaps
    as_large = np.count_nonzero(np.abs(sums) >= observed * (1 - ROUNDING))
    if is_complete:
        return as_large / len(sums)
    counted = (as_large + 1) / (len(sums) + 1)
    if as_large >= MIN_COUNTED:
        return counted
    # Rarer than so many draws can tell: by Student's t, and no rarer than n swaps to one side can be.
    return float(min(counted, max(2 * special.stdtr(n - 1, -observed / float(np.std(sums))), 2.0 ** (1 - n))))


def _combine(margin: float, other: float, correlation: float) -> float:
    """The margin of a difference from those of its two sides."""
    return math.sqrt(max(margin**2 + other**2 - 2 * correlation * margin * other, 0.0))


def _exponential(logs: Interval) -> Interval:
    low, high = math.exp(logs.low), math.exp(logs.high)
    return dataclasses.replace(logs, value=math.exp(logs.value), low=low, high=high)


def _spread(values: Values, *, of: tuple[Values, Values]) -> float:
    """The standard deviation; 0 for a single value, and where it is only what rounding left of `of`."""
    if len(values) < 2:
        return 0.0
    spread = float(np.std(values, ddof=1))
    return spread if spread > ROUNDING * max(float(np.abs(side).max()) for side in of) else 0.0
