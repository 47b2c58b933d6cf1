"""Differences of two variants over experiments of known truth: how often intervals hold, and claims are false, by n.

Two variants answer the same prompts three times each. Prompts differ much, suit one variant more than the other, and
times have heavy tails. What a whole summary makes of such differences is in `test_summaries.py`.
"""

import functools
import math

import numpy as np
import pandas as pd
import pytest

from famnb import stats
from tests.support.truth_rates import EXPERIMENTS, LEVEL, PROMPTS, claims_are_rare, intervals_hold

pytestmark = pytest.mark.full

REPEATS = 3
LENGTH, SUITED, CALL = 0.8, 0.6, 0.5
"""Standard deviations of the logarithm of a time: of prompts, of how they suit a variant, and of calls."""
SLOWER = 1.5


@functools.cache
def experiments(prompts, slower=1.0):
    """The times and the answers (1 for a right one) of two variants in many experiments, by prompt."""
    rng = np.random.default_rng(prompts)
    names, shape = np.repeat(np.arange(prompts), REPEATS), (EXPERIMENTS, prompts, REPEATS)
    length, hardness = rng.normal(size=(2, EXPERIMENTS, prompts, 1))
    sides = []
    for factor in (1.0, slower):
        suited = rng.normal(size=(EXPERIMENTS, prompts, 1))
        times = factor * np.exp(LENGTH * length + SUITED * suited + CALL * rng.normal(size=shape))
        right = rng.random(shape) < 1 / (1 + np.exp(-1 - hardness - 3 * suited))
        sides.append([[pd.Series(rows.ravel(), names) for rows in values] for values in (times, right)])
    times, right = zip(*sides, strict=True)
    return list(zip(*times, strict=True)), list(zip(*right, strict=True))


@functools.cache
def differences(prompts, statistic, slower=1.0):
    """The difference of the two variants in every experiment."""
    times, right = experiments(prompts, slower)
    match statistic:
        case "mean":
            return [stats.paired(a, b) for a, b in times]
        case "share":
            return [stats.paired_share(a, b) for a, b in right]


@pytest.mark.parametrize("prompts", PROMPTS)
@pytest.mark.parametrize("statistic", ["mean", "share"])
def test_nothing_is_claimed_where_nothing_differs(prompts, statistic):
    found = differences(prompts, statistic)
    assert claims_are_rare(gap.p_value < 1 - LEVEL for gap in found)
    assert intervals_hold(gap.low <= 0 <= gap.high for gap in found)


@pytest.mark.parametrize("prompts", PROMPTS)
def test_intervals_of_a_difference_and_of_a_ratio_hold(prompts):
    """The mean of a log-normal is known in closed form; of the ratio the truth is the factor itself."""
    truth = (SLOWER - 1) * math.exp((LENGTH**2 + SUITED**2 + CALL**2) / 2)
    found = differences(prompts, "mean", SLOWER)
    # Of a difference with so long a tail nine of ten are what can be had, and all but the largest n say so.
    assert np.mean([gap.low <= truth <= gap.high for gap in found]) > 0.88
    assert prompts == 60 or all(gap.caution for gap in found)
    assert intervals_hold(gap.ratio.low <= SLOWER <= gap.ratio.high for gap in found)


def test_a_difference_is_found():
    assert np.mean([gap.ratio.low > 1 for gap in differences(60, "mean", SLOWER)]) > 0.8
    assert np.mean([gap.clear for gap in differences(60, "mean", SLOWER)]) > 0.5


def test_calls_that_are_taken_for_prompts_make_false_claims():
    times, right = experiments(20)
    assert not claims_are_rare(stats.paired(a.array, b.array).p_value < 1 - LEVEL for a, b in times)
    assert not claims_are_rare(
        stats.paired(a.array.astype(float), b.array.astype(float)).p_value < 1 - LEVEL for a, b in right
    )
