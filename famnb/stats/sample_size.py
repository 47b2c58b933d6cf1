"""How many pairs a difference needs, before any call is made."""

from __future__ import annotations

import bisect
import math

import numpy as np
from scipy import special

from famnb.errors import InvalidRequest
from famnb.stats.intervals import check_share, min_values

# By simulation: so planned, 80 % of power come out as 82 to 92 % for normal differences, 71 to 83 % for heavy tails.
HEAVY_TAILS = 2.0
"""A spread is taken to be known as well as that of so many times fewer normal values."""
CHANCE_SKEWNESS = 0.5 * math.sqrt(6)
"""Half the standard error of a skewness, times √n."""
_SPREADS = 100
"""Spreads that stand for all those that a sample's may come of."""
MAX_SIZE = 10_000_000
"""Larger sizes raise ValueError: no experiment makes so many calls, and the search has to end."""


def sample_size(
    *,
    sd: float,
    sd_n: int | None = None,
    difference: float,
    level: float = 0.95,
    power: float = 0.8,
    comparisons: int = 1,
) -> int:
    """How many pairs it takes to find a difference of this size, in the unit of `sd`, that of the differences.

    It is found with probability `power` at `level`, by the t test; that there is no loss beyond it is shown by as many.
    The spread counts as known unless `sd_n` says of how many values it is, as where the first pairs tell how many more
    it takes: the power is then that over all spreads that such a sample can have (Julious and Owen, 2006), and of the
    test that `stats.paired` makes, which asks for more of few pairs. With `comparisons` judged together by Holm's
    adjustment the difference has to pass its first step, so that it is found whatever the others show. Pairs are at
    least six at 95 %: see `min_values`.
    """
    check_share("level", level)
    check_share("power", power)
    if not (math.isfinite(sd) and sd > 0):
        raise InvalidRequest(f"sd: expected a standard deviation above 0; got {sd!r}")
    if sd_n is not None and sd_n < 2:
        raise InvalidRequest(f"sd_n: expected the number of values behind sd, at least 2; got {sd_n!r}")
    if comparisons < 1:
        raise InvalidRequest(f"comparisons: expected a number of at least 1; got {comparisons!r}")
    if not abs(difference) > 0:
        raise InvalidRequest(f"expected a difference other than 0; got {difference!r}")
    fewest, level = min_values(level), 1 - (1 - level) / comparisons
    spreads, skewness = np.ones(1), 0.0
    if sd_n is not None:
        # The spreads that may lie behind one estimated from so few values, as shares of it, all equally likely.
        chances, free = (np.arange(_SPREADS) + 0.5) / _SPREADS, (sd_n - 1) / HEAVY_TAILS
        spreads, skewness = np.sqrt(free / special.chdtri(free, chances)), CHANCE_SKEWNESS
    effects = abs(difference) / (sd * spreads)

    def has_power(n: int) -> bool:
        """Whether n pairs make a significant result probable enough, by the noncentral t distribution."""
        free, shift = n - 1, effects * math.sqrt(n)
        bound = float(special.stdtrit(free, (1 + level) / 2))
        # What skewness of so many values by chance adds to the bound in Hall's test, which has to reject as well.
        bound += skewness * bound**2 / (3 * n)
        chances = 1 - special.nctdtr(free, shift, bound) + special.nctdtr(free, shift, -bound)
        # NaN so far out that the distribution has no figure left.
        return float(np.nan_to_num(chances, nan=1.0).mean()) >= power

    high = 2
    while not has_power(high):
        high *= 2
        if high > MAX_SIZE:
            raise InvalidRequest(f"more than {MAX_SIZE:,} values would be needed; ask for less precision")
    return max(bisect.bisect_left(range(high), True, lo=high // 2 + 1, key=has_power), fewest)
