"""Rankings from votes with repeats and ties: how often intervals hold, and how often a difference is claimed of none.

Each prompt suits each variant more or less, so that all votes on two answers to it lean to one side; every two are
voted on several times a prompt. The truth is what infinitely many prompts would give.
"""

import functools
import math

import numpy as np
import pytest
from scipy import special

from famnb import stats
from famnb.experiment.votes import ranking_sentences
from tests.support.truth_rates import EXPERIMENTS, PROMPTS, claims_are_rare, intervals_hold

pytestmark = pytest.mark.full

VARIANTS = ("a", "b", "c")
VOTES = 5
"""On every two answers to a prompt, by repeats or by voters."""
TIES = 1.0
"""Davidson's ν: of two alike, a third of the votes are ties."""
SUITED = 1.5
"""Standard deviation of how a prompt suits a variant, in log odds."""
ALIKE, APART = (0.0, 0.0, 0.0), (0.8, 0.0, -0.8)
"""Strengths of the variants."""


def cast_votes(rng, strengths, prompts, *, votes=VOTES):
    """Votes, each with its prompt: Davidson's model of how well each variant answered the prompt."""
    qualities = np.array(strengths) + rng.normal(0, SUITED, (prompts, len(strengths)))
    cast, clusters = [], []
    for first in range(len(strengths)):
        for second in range(first):
            gap = (qualities[:, first] - qualities[:, second]) / 2
            odds = special.softmax(np.stack([gap, -gap, np.full(prompts, math.log(TIES))]), axis=0)
            outcome = (rng.random((votes, prompts, 1)) > np.cumsum(odds, axis=0).T[None]).sum(axis=2)
            winners = np.array([VARIANTS[first], VARIANTS[second], None], dtype=object)[outcome]
            cast += [(VARIANTS[first], VARIANTS[second], winner) for winner in winners.T.ravel()]
            clusters += np.repeat(np.arange(prompts), votes).tolist()
    return cast, clusters


@functools.cache
def rankings(strengths, prompts, *, clustered=True):
    """The rankings of many experiments."""
    experiments = [cast_votes(np.random.default_rng(seed), strengths, prompts) for seed in range(EXPERIMENTS)]
    return [stats.bradley_terry(cast, clusters=clusters if clustered else None) for cast, clusters in experiments]


def claims_a_winner(ranking):
    return any("is chosen over" in sentence for sentence in ranking_sentences(ranking))


@pytest.fixture(scope="module")
def truth():
    """The strengths that very many prompts give."""
    cast, _ = cast_votes(np.random.default_rng(1000), APART, 20_000, votes=1)
    return stats.bradley_terry(cast).frame["strength"]


@pytest.mark.parametrize("prompts", PROMPTS)
def test_intervals_of_strengths_hold(truth, prompts):
    frames = [ranking.frame for ranking in rankings(APART, prompts)]
    for name in VARIANTS:
        assert intervals_hold(frame.low[name] <= truth[name] <= frame.high[name] for frame in frames)


@pytest.mark.parametrize("prompts", PROMPTS)
def test_no_variant_is_claimed_to_be_better_where_none_is(prompts):
    assert claims_are_rare(map(claims_a_winner, rankings(ALIKE, prompts)))


def test_a_clear_difference_is_found():
    found = ["a is chosen over c" in " ".join(ranking_sentences(ranking)) for ranking in rankings(APART, 60)]
    assert np.mean(found) > 0.8


def test_votes_that_count_one_by_one_do_not_hold(truth):
    """Without the prompts the same votes seem five times as many, and both checks above fail."""
    frames = [ranking.frame for ranking in rankings(APART, 20, clustered=False)]
    assert not intervals_hold(frame.low["a"] <= truth["a"] <= frame.high["a"] for frame in frames)
    assert not claims_are_rare(map(claims_a_winner, rankings(ALIKE, 20, clustered=False)))
