"""Percentile, median, mean and share of one sample, each with an interval if there are enough values for one.

An interval is of a population, and says of which: of more calls with the same prompts, where the values count as
independent; or of new prompts, where `clusters` says which values belong together, and a prompt counts once.

`meets_slo` says which calls meet service-level objectives, for `share` and `paired_share` to count.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special, stats

from famnb.errors import InvalidRequest, UnknownName
from famnb.formatting import format_count, format_level, format_number

Values = npt.NDArray[np.float64]
SAME_PROMPTS = "more calls with these prompts"
"""The population of an interval that is made of single calls."""
NEW_PROMPTS = "new prompts"
"""The population of an interval that is made of clusters."""
MIN_CLUSTERS = 6
"""Clusters below which nothing is estimated of how alike the values of one are: each then counts as one value."""
# Values as rare as this in the population are in a sample of 59 with a probability of 95 %.
RARE_SHARE = 0.05
"""A mean is taken to hold if no value rarer than this moves it."""
MAX_REACH = 2.0
"""How far the interval of a mean reaches at most, as a multiple of Student's."""
# Equal differences, such as 0.3 - 0.1 and 0.4 - 0.2, differ in their last bit, which would make any gap significant.
ROUNDING = 1e-12
"""A spread smaller than this, relative to the values, comes from rounding alone and counts as none."""
# By simulation: what is more skewed than this has less than some 94 of 100 intervals at their rate.
MAX_SKEWNESS = 0.3
"""The skewness, as a share of √n, above which the interval of a mean says that a tail decides."""


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """A value, the interval that holds the truth in `level` of all samples, and the number of values behind it."""

    value: float
    """The estimate; NaN where n carries none."""
    low: float
    """Lower end; NaN where n carries no interval."""
    high: float
    n: int
    """Values."""
    level: float = 0.95
    population: str = ""
    """What it holds for: "more calls with these prompts" or "new prompts"; empty where nobody said."""
    clusters: int = 0
    """Prompts behind the n values; 0 where every value counts by itself."""
    caution: str = ""
    """Why the interval may hold the truth less often than in `level` of all samples; empty where nothing speaks so."""

    @property
    def known(self) -> bool:
        """Whether n carries an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def __str__(self) -> str:
        if not math.isfinite(self.value):
            return f"not known (n = {self.n})"
        n = f"n = {self.n}" + (f" in {format_count(self.clusters, 'prompt')}" if self.clusters else "")
        if math.isinf(self.high) and math.isfinite(self.low):
            return f"{format_number(self.value)} (at least {format_number(self.low)}, {n})"
        if not self.known:
            return f"{format_number(self.value)} ({n}, too few for an interval)"
        ends = f"{format_level(self.level)} interval {format_number(self.low)} to {format_number(self.high)}"
        population = f" for {self.population}" if self.population else ""
        return f"{format_number(self.value)} ({ends}{population}, {n}{f'; {self.caution}' if self.caution else ''})"


def as_floats(values: Any, *, finite: bool = True) -> Values:
    """Return the values as floats, NaN where missing. Raises ValueError for anything but finite numbers.

    Unless they need not be `finite`: infinity is the upper end of what nothing limits.
    """
    # Mostly they are floats already: a comparison looks at several of its columns more than once.
    if isinstance(values, pd.Series | np.ndarray) and values.dtype == np.float64 and values.ndim == 1:
        array: Values = np.asarray(values)
    else:
        try:
            series = pd.Series(values)
            is_object = series.dtype.kind == "O"
            if series.dtype.kind not in "biufO" or (is_object and any(isinstance(value, str) for value in series)):
                raise InvalidRequest(
                    f"got {series.dtype}; texts, times and durations have to be made numbers of a unit first"
                )
            array = series.to_numpy(dtype=float, na_value=math.nan)
        except (TypeError, ValueError) as error:
            raise InvalidRequest(f"expected numbers: {error}") from None
    if finite and np.isinf(array).any():
        raise InvalidRequest(
            "expected finite numbers: there are infinite ones; leave them out, or mark them as missing"
        )
    return array


def check_share(name: str, share: float) -> float:
    """Return a number strictly between 0 and 1. Raises ValueError for anything else."""
    if not isinstance(share, int | float | np.number) or not 0 < share < 1:
        raise InvalidRequest(f"{name}: expected a number between 0 and 1, such as 0.95; got {share!r}")
    return share


def carries(n: int, p: float) -> bool:
    """Whether n values carry a percentile: at least one of them is expected beyond it."""
    # In floats 1 / (1 - 0.9) is 10.000000000000002; a little is taken off, so that 10 values carry the 90th percentile.
    return n >= 1 / (1 - max(p, 1 - p)) - 1e-9


@functools.cache
def min_values(level: float = 0.95) -> int:
    """Return the fewest values, or pairs, with which anything can be shown without a guess of their distribution.

    With so many a sign test can be significant, and the smallest and the largest value hold the median: 6 at 95 %.
    """
    # All n differences have one sign by chance with a probability of 2 ** (1 - n).
    return math.ceil(1 - math.log2(1 - check_share("level", level)))


def percentile(values: Any, p: float, *, clusters: Any = None, level: float = 0.95) -> Interval:
    """The p-quantile, 0 < p < 1; NaN where n does not carry it.

    Without `clusters` the interval is of more calls with the same prompts; with the prompt of each value, of new ones.
    It lies between two of the values, by the binomial distribution, whatever the values' own: it covers at least
    `level`. Of clusters, the binomial is of as many values as they are worth (Woodruff, 1952, with the effective
    sample size of Korn and Graubard, 1998).
    """
    # A bootstrap of clusters holds a median in some 90 and a 95th percentile in 45 to 90 of 100 samples.
    present, codes = clustered_floats(values, clusters)
    n, p, level = len(present), check_share("p", p), check_share("level", level)
    groups = 0 if codes is None else int(codes.max(initial=-1)) + 1
    population = SAME_PROMPTS if codes is None else NEW_PROMPTS
    if not carries(n, p):
        return Interval(math.nan, math.nan, math.nan, n, level, population, groups)
    value = float(np.quantile(present, p))
    size = float(n) if codes is None else effective_size(present <= value, codes, level=level)
    # How many of the values lie below the quantile is binomial, whatever their distribution.
    worth = math.floor(size)
    below, above = (int(stats.binom.ppf(tail, worth, p)) for tail in ((1 - level) / 2, (1 + level) / 2))
    if below < 1 or above >= worth:
        return Interval(value, math.nan, math.nan, n, level, population, groups)
    # Of so many worth fewer, the outer ones of those that share the place.
    ascending = np.sort(present)
    low, high = ascending[n * (below - 1) // worth], ascending[-(n * (worth - above - 1) // worth) - 1]
    return Interval(value, float(low), float(high), n, level, population, groups)


def median(values: Any, *, clusters: Any = None, level: float = 0.95) -> Interval:
    """The median and its order-statistic interval, as `percentile` has it; one value is its own median."""
    middle = percentile(values, 0.5, clusters=clusters, level=level)
    return dataclasses.replace(middle, value=float(np.nanmax(as_floats(values)))) if middle.n == 1 else middle


def mean(values: Any, *, clusters: Any = None, level: float = 0.95) -> Interval:
    """The mean, over clusters if the prompt of each value is given; an interval takes six values or clusters at 95 %.

    The interval reaches as far as Student's and Hall's (1992), which follows the skewness of the values: Student's
    alone holds the mean of a log-normal (σ = 1) in 83 to 91 of 100 samples of 6 to 60, the two in 90 to 95. `caution`
    says where the values are too few to have what is rare in them, or have too long a tail.
    """
    present, codes = clustered_floats(values, clusters)
    level, total = check_share("level", level), len(present)
    if codes is not None:
        present = np.bincount(codes, present) / np.bincount(codes) if total else present
    n = len(present)
    clustered = ("", 0) if codes is None else (NEW_PROMPTS, n)
    centre = float(np.mean(present)) if n else math.nan
    if n < min_values(level):
        return Interval(centre, math.nan, math.nan, total, level, *clustered)
    # Student's and Hall's, to at most twice Student's reach.
    bound, error = float(special.stdtrit(n - 1, (1 + level) / 2)), float(np.std(present, ddof=1)) / math.sqrt(n)
    skewness = _skewness(present)
    a, hall = skewness / math.sqrt(n), np.array([bound, -bound])
    # The t whose transforms by Hall's cubic, t + a t² / 3 + a² t³ / 27 + a / 6, are the bounds. For a smaller `a` it is
    # a straight line but for rounding. Where it is flat, its inverse runs away.
    if abs(a) >= 1e-6:
        hall = 3 / a * (np.cbrt(1 + a * (hall - a / 6)) - 1)
    below, above = (min(max(bound, float(reach)), MAX_REACH * bound) for reach in (hall[0], -hall[1]))
    cautions = []
    # All of n values are common ones with a probability of (1 - share) ** n.
    if (1 - RARE_SHARE) ** n > 1 - level:
        unseen = 1 - (1 - level) ** (1 / n)
        cautions.append(f"{n} values may not include what happens less often than once in {1 / unseen:.0f}")
    if abs(skewness) > MAX_SKEWNESS * math.sqrt(n):
        cautions.append("few values decide them")
    low, high = centre - below * error, centre + above * error
    return Interval(centre, low, high, total, level, *clustered, " and ".join(cautions))


def mean_p_value(values: Values) -> float:
    """The p-value of the test that the mean is 0, by the interval of `mean`; the sign test's if all are alike."""
    n, spread, centre = len(values), float(np.std(values, ddof=1)), float(np.mean(values))
    if not spread:
        return 2.0 ** (1 - n) if centre else 1.0
    t, a = centre / spread * math.sqrt(n), _skewness(values) / math.sqrt(n)
    hall = t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6
    both = min(abs(t), abs(hall)) if t * hall > 0 else 0.0
    return float(2 * special.stdtr(n - 1, -max(both, abs(t) / MAX_REACH)))


def share(values: Any, *, clusters: Any = None, level: float = 0.95) -> Interval:
    """The share of values that are true (or 1), with Wilson's interval, of new prompts where `clusters` names each's.

    Of clusters it is the mean of their shares, and n in Wilson's formula what the values are worth by how alike those
    of one cluster are (Korn and Graubard, 1998). ValueError for values other than 0 and 1.
    """
    present, codes = clustered_floats(values, clusters)
    if not np.isin(present, (0, 1)).all():
        raise InvalidRequest("share: expected values that are true or false (1 or 0)")
    if codes is None:
        return proportion(int(present.sum()), len(present), level=level)
    level, n = check_share("level", level), len(present)
    if not n:
        return Interval(math.nan, math.nan, math.nan, 0, level, NEW_PROMPTS)
    shares = np.bincount(codes, present) / np.bincount(codes)
    value = float(shares.mean())
    low, high = wilson(value, effective_size(present, codes, level=level), level)
    return Interval(value, low, high, n, level, NEW_PROMPTS, len(shares))


def effective_size(passes: Any, codes: npt.NDArray[np.intp], *, level: float, informative: int = MIN_CLUSTERS) -> float:
    """How many independent values so many yes and no of clusters are worth for a share of them.

    As many as would give the variance between clusters, and fewer for how well few clusters tell that variance. Each
    cluster is worth one value if it has one only, and where fewer clusters than `informative` hold the rarer of yes
    and no: they tell nothing of how clusters vary.
    """
    sizes = np.bincount(codes)
    shares, groups, n = np.bincount(codes, passes) / sizes, len(sizes), len(codes)
    value = float(shares.mean())
    if groups in (1, len(codes)) or min(np.count_nonzero(shares > 0), np.count_nonzero(shares < 1)) < informative:
        return float(groups)
    variance = float(np.var(shares, ddof=1)) / groups
    size = min(value * (1 - value) / variance, n) if variance else float(n)
    tail = (1 + level) / 2
    return float(size * (special.ndtri(tail) / special.stdtrit(groups - 1, tail)) ** 2)


def wilson(share: float, n: float, level: float) -> tuple[float, float]:
    """The ends of Wilson's interval of a share of n, which need not be whole."""
    z = float(special.ndtri((1 + level) / 2))
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    margin = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # At a share of 0 or 1 the end that is equal to it differs by rounding.
    return 0.0 if share == 0 else max(centre - margin, 0.0), 1.0 if share == 1 else min(centre + margin, 1.0)


def meets_slo(frame: pd.DataFrame, slo: Mapping[str, float], *, failed: Any) -> pd.Series[Any]:
    """Return whether each call keeps every limit of `slo`, such as {"ttft_s": 0.5, "e2e_s": 5}; a boolean Series.

    `failed` says which calls failed: they miss. A call that is over one limit misses; else, where a limited value is
    not known, such as the first token of a reply that came whole, so is the answer (missing). ValueError without
    limits, for a limit that is not a number, KeyError for a column that is not there.
    """
    if not slo:
        raise InvalidRequest('slo: expected limits, such as {"ttft_s": 0.5, "e2e_s": 5}; got none')
    absent = [name for name in slo if name not in frame]
    if absent:
        raise UnknownName(f"slo: there is no column {', '.join(map(repr, absent))}")
    for name, limit in slo.items():
        if isinstance(limit, bool) or not isinstance(limit, int | float | np.number) or not math.isfinite(limit):
            raise InvalidRequest(f"slo: expected a number as the limit of {name}; got {limit!r}")
    values = np.column_stack([as_floats(frame[name]) for name in slo])
    misses = (values > np.array(list(slo.values()), dtype=float)).any(axis=1)
    misses |= pd.Series(failed, dtype="boolean").fillna(False).to_numpy(dtype=bool)
    met = pd.Series(~misses, index=frame.index, dtype="boolean")
    return met.mask(~misses & np.isnan(values).any(axis=1))


def proportion(count: int, n: int, *, level: float = 0.95) -> Interval:
    """The share `count / n` with Wilson's interval."""
    try:
        count, n, level = operator.index(count), operator.index(n), check_share("level", level)
    except TypeError:
        raise InvalidRequest(
            f"expected whole numbers, a count and the n that it is of; got {count!r} and {n!r}"
        ) from None
    if not 0 <= count <= n:
        raise InvalidRequest(f"count: expected a number from 0 to n = {n}; got {count!r}")
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, level)
    # Wilson's, since the plain normal interval has no width at a share of 0 or 1, such as where every reply is right.
    return Interval(count / n, *wilson(count / n, n, level), n, level)


def clustered_floats(values: Any, clusters: Any) -> tuple[Values, npt.NDArray[np.intp] | None]:
    """The values that are not missing and, as numbers from 0, the cluster of each; None without clusters."""
    array = as_floats(values)
    present = ~np.isnan(array)
    if clusters is None:
        return array[present], None
    names = pd.Series(clusters)
    if len(names) != len(array):
        raise InvalidRequest(f"clusters: expected one for each of {len(array)} values; got {len(names)}")
    names = names if present.all() else names[present]
    if names.isna().any():
        raise InvalidRequest(
            f"clusters: expected one for each value; {int(names.isna().sum())} of {len(names)} have none"
        )
    return array[present], pd.factorize(names)[0]


def _skewness(values: Values) -> float:
    """The skewness of the population, as estimated (scipy's `skew` with `bias=False`, faster); 0 without a spread."""
    n, centred = len(values), values - np.mean(values)
    spread = math.sqrt(float(np.mean(centred**2)))
    if spread <= ROUNDING * float(np.abs(values).max()):
        return 0.0
    return float(np.mean((centred / spread) ** 3)) * math.sqrt(n * (n - 1)) / (n - 2)
