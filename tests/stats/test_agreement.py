"""Agreement of two raters: known values, what it says of too little, and how often its intervals hold."""

import math

import numpy as np
import pytest

from famnb import stats


def test_kappa_is_what_the_textbook_has() -> None:
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    found = stats.agreement(first, second)
    assert (found.rate.value, found.kappa.value) == (0.7, pytest.approx(0.4))
    assert found.kappa.low < 0.4 < found.kappa.high


def test_full_agreement_has_an_interval_that_is_no_point() -> None:
    found = stats.agreement([0, 1] * 5, [0, 1] * 5)
    assert (found.rate.value, found.kappa.value, found.kappa.high) == (1, 1, 1)
    assert found.kappa.low < 0.9


def test_what_tells_nothing_is_not_known() -> None:
    assert math.isnan(stats.agreement([1] * 9, [1] * 9).kappa.value)
    few = stats.agreement([0, 1] * 10, [0, 1] * 10, clusters=[0, 1, 2, 3, 4] * 4)
    assert (few.kappa.value, few.kappa.known, few.kappa.clusters) == (1, False, 5)
    assert math.isnan(stats.agreement([], []).rate.value)


def test_raters_of_different_items_are_refused() -> None:
    with pytest.raises(ValueError, match="as many ratings of both and a cluster of each; got 2, 1, 2"):
        stats.agreement([1, 0], [1])


@pytest.mark.full
@pytest.mark.parametrize(("prompts", "votes"), [(12, 1), (20, 3), (60, 1)])
def test_intervals_of_kappa_hold(prompts: int, votes: int) -> None:
    """The second repeats the first in six of ten votes and else says what is as likely of the prompt."""
    rng = np.random.default_rng(prompts)

    def rate(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        lean = np.repeat(rng.normal(0, 1, count), votes)
        chances = np.stack([np.exp(lean), np.full_like(lean, 0.5), np.exp(-lean)], axis=1)
        bounds = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
        said = [(rng.random((len(lean), 1)) > bounds).sum(axis=1) for _ in range(2)]
        return said[0], np.where(rng.random(len(lean)) < 0.6, said[0], said[1]), np.repeat(np.arange(count), votes)

    first, second, _ = rate(20_000)
    shares = [np.bincount(rater) / len(rater) for rater in (first, second)]
    chance = float(shares[0] @ shares[1])
    truth = (float((first == second).mean()) - chance) / (1 - chance)
    found = [stats.agreement(a, b, clusters=c).kappa for a, b, c in (rate(prompts) for _ in range(200))]
    assert np.mean([one.low <= truth <= one.high for one in found]) > 0.93


def test_agreement_as_often_as_chance_has_it_is_exactly_zero() -> None:
    prompts = [prompt for prompt in range(9) for _ in range(6)]
    assert stats.agreement([0] * 54, [0, 1, 2] * 18, clusters=prompts).kappa.value == 0
