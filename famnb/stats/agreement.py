"""How far two raters agree: the share of items on which both say the same, and Cohen's kappa, which chance leaves 0."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from famnb.errors import InvalidRequest
from famnb.stats.intervals import Interval, Values, check_share, min_values, share


@dataclasses.dataclass(frozen=True, slots=True)
class Agreement:
    """How far two raters agree."""

    rate: Interval
    """The share of items on which both say the same; of clusters the mean of their shares."""
    kappa: Interval
    """Cohen's kappa: 1 where they always agree, 0 where they agree as often as chance has it. NaN where both always say
    one and the same thing, which tells nothing."""


def agreement(
    first: Iterable[Any], second: Iterable[Any], *, clusters: Iterable[Any] | None = None, level: float = 0.95
) -> Agreement:
    """Return how far two raters agree on the same items; `clusters` names the prompt of each, for new prompts.

    The interval of kappa is the wider of two: that of the rate at this agreement by chance, which has a width also
    where all agree, and the jackknife's over clusters. It takes six of them at 95 %. ValueError for lists of different
    lengths.
    """
    level, ratings = check_share("level", level), [list(first), list(second)]
    n = len(ratings[0])
    names = range(n) if clusters is None else list(clusters)
    if not n == len(ratings[1]) == len(names):
        raise InvalidRequest(
            "agreement: expected as many ratings of both and a cluster of each; "
            f"got {n}, {len(ratings[1])}, {len(names)}"
        )
    codes = pd.factorize(pd.Series([*ratings[0], *ratings[1]], dtype=object))[0].reshape(2, n)
    cluster, groups = pd.factorize(pd.Series(list(names), dtype=object))
    rate = share(codes[0] == codes[1], clusters=None if clusters is None else cluster, level=level)
    unknown = dataclasses.replace(rate, value=math.nan, low=math.nan, high=math.nan, method="")
    if not n:
        return Agreement(rate, unknown)
    # Each cluster counts alike, as in the rate.
    weights = 1 / np.bincount(cluster)[cluster]
    kappa, chance = _kappa(codes, weights)
    if math.isnan(kappa) or len(groups) < min_values(level):
        return Agreement(rate, dataclasses.replace(unknown, value=kappa))
    others = (cluster != left_out for left_out in range(len(groups)))
    without_one = [_kappa(codes[:, mask], weights[mask])[0] for mask in others]
    spread = float(np.nanvar(without_one)) if np.isfinite(without_one).any() else 0.0
    margin = float(special.stdtrit(len(groups) - 1, (1 + level) / 2)) * math.sqrt((len(groups) - 1) * spread)
    ends = [(end - chance) / (1 - chance) for end in (rate.low, rate.high)]
    low, high = max(min(ends[0], kappa - margin), -1.0), min(max(ends[1], kappa + margin), 1.0)
    return Agreement(rate, dataclasses.replace(rate, value=kappa, low=low, high=high, method="Wilson and jackknife"))


def _kappa(codes: Any, weights: Values) -> tuple[float, float]:
    """Cohen's kappa and the agreement by chance; NaN where that is certain."""
    total = float(weights.sum())
    kinds = int(codes.max()) + 1
    shares = [np.bincount(rater, weights, minlength=kinds) / total for rater in codes]
    chance = float(shares[0] @ shares[1])
    agreed = float(weights[codes[0] == codes[1]].sum()) / total
    # Sums of floats differ in their last bits: by that much, two who agree as often as chance has it would not.
    beyond_chance = 0.0 if math.isclose(agreed, chance, rel_tol=1e-12) else agreed - chance
    return (beyond_chance / (1 - chance) if chance < 1 - 1e-12 else math.nan), chance
