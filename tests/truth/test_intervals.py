"""Intervals of one variant's figures, from repeats of prompts that differ much: how often they hold, by n.

The truth is that of all prompts there could be, known in closed form: times are log-normal, and the prompt decides more
of them than the call does.
"""

import functools
import math

import numpy as np
import pytest
from scipy import special

from famnb import stats
from tests.support.truth_rates import EXPERIMENTS, PROMPTS, intervals_hold

pytestmark = pytest.mark.full

REPEATS = 3
BETWEEN, WITHIN = 1.0, 0.3
"""Standard deviations of the logarithm of a time: between prompts, and between calls of one prompt."""
RIGHT = 0.95, 0.15
"""Shares of calls that are right: of easy prompts, which half of them are, and of hard ones."""
TRUE_SHARE = sum(RIGHT) / 2
TRUE_MEAN = math.exp((BETWEEN**2 + WITHIN**2) / 2)


def true_percentile(p):
    return math.exp(math.hypot(BETWEEN, WITHIN) * special.ndtri(p))


@functools.cache
def samples(prompts):
    """The times and the answers (1 for a right one) of many experiments, with the prompt of each call."""
    rng = np.random.default_rng(prompts)
    names = np.repeat(np.arange(prompts), REPEATS)
    for_prompts = rng.normal(size=(EXPERIMENTS, prompts, 1))
    times = np.exp(BETWEEN * for_prompts + WITHIN * rng.normal(size=(EXPERIMENTS, prompts, REPEATS)))
    is_easy = rng.random((EXPERIMENTS, prompts, 1)) < 0.5
    right = rng.random((EXPERIMENTS, prompts, REPEATS)) < np.where(is_easy, *RIGHT)
    return names, times.reshape(EXPERIMENTS, -1), right.reshape(EXPERIMENTS, -1)


def holds(intervals, truth):
    """Whether each interval that n carries holds the truth."""
    return [interval.low <= truth <= interval.high for interval in intervals if interval.known]


@pytest.mark.parametrize("prompts", PROMPTS)
def test_a_median_and_a_share_hold(prompts):
    names, times, right = samples(prompts)
    assert intervals_hold(holds([stats.median(values, clusters=names) for values in times], 1.0))
    assert intervals_hold(holds([stats.share(values, clusters=names) for values in right], TRUE_SHARE))


@pytest.mark.parametrize(("prompts", "p"), [(20, 0.9), (60, 0.9), (60, 0.95)])
def test_a_percentile_holds(prompts, p):
    names, times, _ = samples(prompts)
    assert intervals_hold(holds([stats.percentile(values, p, clusters=names) for values in times], true_percentile(p)))


@pytest.mark.parametrize("prompts", PROMPTS)
def test_the_mean_of_a_heavy_tail_holds_or_says_that_it_may_not(prompts):
    """No method holds the mean of so few of so long a tail; what is missing stands beside the interval."""
    names, times, _ = samples(prompts)
    means = [stats.mean(values, clusters=names) for values in times]
    assert all(mean.known for mean in means)
    outside = [mean for mean in means if not mean.low <= TRUE_MEAN <= mean.high]
    assert len(outside) < 0.12 * EXPERIMENTS
    if prompts < 60:
        assert all(mean.caution for mean in means)


def test_calls_that_count_one_by_one_do_not_hold():
    _, times, right = samples(20)
    assert not intervals_hold(holds([stats.median(values) for values in times], 1.0))
    assert not intervals_hold(holds([stats.percentile(values, 0.9) for values in times], true_percentile(0.9)))
    assert not intervals_hold(holds([stats.mean(np.log(values)) for values in times], 0.0))
    assert not intervals_hold(holds([stats.share(values) for values in right], TRUE_SHARE))
