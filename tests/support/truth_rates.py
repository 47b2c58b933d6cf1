"""How often intervals hold the truth and claims are false over many experiments, with the tolerance of such counts.

A count of n experiments is binomial. `keeps_level` allows what a true rate of 95 % comes to in 999 of 1,000 harnesses:
of 200 experiments at least 180 intervals, and at most 20 false claims. Seeds are fixed, so the counts are, too.
"""

from collections.abc import Iterable

import numpy as np
from scipy import stats

LEVEL = 0.95
EXPERIMENTS = 200
PROMPTS = (6, 12, 20, 60)
"""How many prompts an experiment has."""
CHANCE = 0.001
"""The probability with which a rate that is kept looks as if it were not."""


def intervals_hold(inside: Iterable[bool]) -> bool:
    """Whether as many intervals hold the truth as their level says, or more."""
    held = np.array(list(inside), dtype=bool)
    return bool(held.sum() >= stats.binom.ppf(CHANCE, len(held), LEVEL))


def claims_are_rare(claims: Iterable[bool]) -> bool:
    """Whether no more of the experiments made a false claim than their level says."""
    made = np.array(list(claims), dtype=bool)
    return bool(made.sum() <= stats.binom.ppf(1 - CHANCE, len(made), 1 - LEVEL))
