"""How often intervals hold the truth and claims are false over many experiments, with the tolerance of such counts.

A count of n experiments is binomial, and what a true rate of 95 % comes to in 999 of 1,000 suites is allowed: of 200
experiments at least 179 intervals that hold, and at most 21 false claims. Seeds are fixed, so the counts are, too.
"""

from collections.abc import Iterable

import numpy as np
from scipy import stats

LEVEL = 0.95
EXPERIMENTS = 200
FEWER_EXPERIMENTS = 100
"""Where each takes a tenth of a second: at least 87 intervals that hold, and at most 13 false claims."""
PROMPTS = (6, 12, 20, 60)
"""How many prompts an experiment has."""
CHANCE = 0.001
"""The probability with which a rate that is kept looks as if it were not."""


def intervals_hold(inside: Iterable[bool]) -> bool:
    """Whether as many intervals hold the truth as their level says, or more."""
    hits = np.array(list(inside), dtype=bool)
    return bool(hits.sum() >= stats.binom.ppf(CHANCE, len(hits), LEVEL))


def claims_are_rare(claims: Iterable[bool]) -> bool:
    """Whether no more of the experiments made a false claim than their level says."""
    false = np.array(list(claims), dtype=bool)
    return bool(false.sum() <= stats.binom.ppf(1 - CHANCE, len(false), 1 - LEVEL))
