"""Differences of two samples: against scipy and statsmodels, and by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats as peer
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestIndPower, TTestPower

from famnb import stats

RNG = np.random.default_rng(3)
FIRST = RNG.lognormal(0, 0.5, 25)
SECOND = FIRST * 1.4 + RNG.normal(0, 0.1, 25)


def test_paired_differences_of_no_skewness_are_students() -> None:
    """Interval, p-value and effect as scipy's paired test has them."""
    gaps = RNG.normal(0.4, 1, 12)
    gaps = np.concatenate([gaps, 0.8 - gaps])
    found = stats.paired(FIRST[:24], FIRST[:24] + gaps)
    test = peer.ttest_1samp(gaps, 0)
    ends = test.confidence_interval(0.95)
    assert (found.value, found.low, found.high) == pytest.approx((0.4, ends.low, ends.high))
    assert (found.p_value, found.n) == (pytest.approx(test.pvalue), 24)
    assert found.effect == pytest.approx(0.4 / gaps.std(ddof=1))


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_a_p_value_and_an_interval_claim_the_same(level: float) -> None:
    """However skewed the differences are: the p-value is below 1 − level exactly where 0 is outside."""
    gaps = np.random.default_rng(6).lognormal(0, 1, (400, 12)) - 1
    found = [stats.paired(np.zeros(12), row, level=level) for row in gaps]
    assert [one.p_value < 1 - level for one in found] == [one.clear for one in found]
    assert 0 < sum(one.clear for one in found) < 400


def test_the_ratio_is_the_geometric_mean_of_ratios() -> None:
    """Its interval is that of the logarithms."""
    found = stats.paired(FIRST, SECOND).ratio
    assert found.value == pytest.approx(peer.gmean(SECOND / FIRST))
    logs = stats.mean(np.log(SECOND / FIRST))
    assert (found.low, found.high) == pytest.approx((math.exp(logs.low), math.exp(logs.high)))


def test_repeats_of_a_prompt_are_no_further_prompts() -> None:
    """Three repeats of each prompt have the n, and the interval, of their means."""
    prompts, first, second = np.repeat(np.arange(8), 3), FIRST[:24], SECOND[:24]
    found = stats.paired(first, second, by=prompts)
    means = stats.paired(first.reshape(8, 3).mean(axis=1), second.reshape(8, 3).mean(axis=1))
    assert found.n == 8
    assert (found.low, found.high) == pytest.approx((means.low, means.high))


def test_series_are_matched_by_their_index() -> None:
    """In whatever order; a prompt that one side lacks is left out, a missing value too."""
    a = pd.Series([1.0, 2.0, 9.0, None], index=["x", "y", "only here", "z"])
    b = pd.Series([3.0, 2.0, 5.0], index=["y", "x", "z"])
    found = stats.paired(a, b)
    assert (found.value, found.n) == (1.0, 2)


def test_unpaired_differences_are_welchs() -> None:
    """Sides of different size and spread."""
    found = stats.unpaired(FIRST, SECOND[:11])
    test = peer.ttest_ind(SECOND[:11], FIRST, equal_var=False)
    ends = test.confidence_interval(0.95)
    assert (found.low, found.high, found.p_value) == pytest.approx((ends.low, ends.high, test.pvalue))
    assert found.n == 11


def test_paired_intervals_cover_the_truth_at_their_rate() -> None:
    """2,000 experiments of 10 prompts with 3 repeats each, prompts differing more than variants."""
    rng = np.random.default_rng(4)
    prompts, by = rng.normal(10, 5, (2000, 10, 1)), np.repeat(np.arange(10), 3)
    a = (prompts + rng.normal(0, 1, (2000, 10, 3))).reshape(2000, 30)
    b = (prompts + 0.7 + rng.normal(0, 1, (2000, 10, 1)) + rng.normal(0, 1, (2000, 10, 3))).reshape(2000, 30)
    few = range(400)
    covered = sum(found.low <= 0.7 <= found.high for found in (stats.paired(a[i], b[i], by=by) for i in few))
    assert peer.binom.ppf(0.001, len(few), 0.95) <= covered <= peer.binom.ppf(0.999, len(few), 0.95)


def test_words_claim_no_more_than_the_interval() -> None:
    """A difference that may be none is not claimed."""
    assert str(stats.paired([1, 2, 3, 4, 5, 6], [1.1, 1.9, 3.2, 3.8, 5, 6.1])).startswith("no clear difference: ")
    assert not str(stats.paired(FIRST, SECOND)).startswith("no clear")


def test_too_few_pairs_give_no_interval() -> None:
    """Five pairs have a difference and nothing more, however alike they are; none at all has none."""
    five, none = stats.paired(range(5), range(1, 6)), stats.paired([], [])
    assert (five.value, five.n) == (1.0, 5)
    assert math.isnan(five.low)
    assert math.isnan(five.p_value)
    assert math.isnan(none.value)
    assert not five.clear


def test_sides_of_different_length_are_refused() -> None:
    """Only an index can say what belongs together then."""
    with pytest.raises(ValueError, match="as many values on both sides, got 2 and 3"):
        stats.paired([1, 2], [1, 2, 3])


def test_values_at_or_below_zero_have_no_ratio() -> None:
    """A logarithm of them is none."""
    assert math.isnan(stats.paired([0.0, 1.0, 2.0], [1.0, 2.0, 4.0]).ratio.value)


def test_holm_adjusts_as_statsmodels_does() -> None:
    """In the order given."""
    raw = [0.04, 0.001, 0.03, 0.2]
    assert stats.holm(raw) == pytest.approx(multipletests(raw, method="holm")[1])


def test_holm_counts_tests_not_gaps() -> None:
    """A missing p-value stays missing and makes the others no larger; what is no probability is refused."""
    assert stats.holm([0.01, math.nan, 0.04]) == pytest.approx([0.02, math.nan, 0.04], nan_ok=True)
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        stats.holm([0.5, 2.0])


@pytest.mark.parametrize("compare", [stats.paired, stats.unpaired])
def test_rounding_is_no_spread(compare: Callable[..., stats.Difference]) -> None:
    """Equal differences have no effect size, though floats make them differ in the last digit; pairs a sign test."""
    first = [1.1, 2.1, 3.1] * 2 if compare is stats.paired else [0.1 + 0.2, 0.3, 0.3]
    second = [1.2, 2.2, 3.2] * 2 if compare is stats.paired else [0.4, 0.4, 0.4]
    found = compare(first, second)
    assert (found.value, found.low, found.high) == pytest.approx((0.1,) * 3)
    assert math.isnan(found.effect)
    assert found.p_value == 2**-5 if compare is stats.paired else math.isnan(found.p_value)


def test_one_side_without_spread_is_no_trouble() -> None:
    """Welch's interval as scipy has it, without its warning."""
    found = stats.unpaired([1, 1, 1], [1, 2, 3])
    off = peer.t.ppf(0.975, 2) / math.sqrt(3)
    assert (found.low, found.high) == pytest.approx((1 - off, 1 + off))


@pytest.mark.parametrize("wrong", [["a", "b"], [1.0, math.inf]])
def test_what_is_no_number_has_no_difference(wrong: list[object]) -> None:
    """Refused on either side, before anything is averaged."""
    with pytest.raises(ValueError, match="expected"):
        stats.paired(wrong, [1.0, 2.0])
    with pytest.raises(ValueError, match="expected"):
        stats.paired(pd.Series([1.0, 2.0]), pd.Series(wrong))


@pytest.mark.parametrize("effect", [0.2, 0.5, 1.0])
def test_sample_sizes_are_those_of_statsmodels(effect: float) -> None:
    """For power 0.8 and 0.9, pairs and sides."""
    for power in (0.8, 0.9):
        pairs = TTestPower().solve_power(effect, alpha=0.05, power=power)
        sides = TTestIndPower().solve_power(effect, alpha=0.05, power=power)
        assert stats.sample_size(sd=2, difference=2 * effect, power=power) == math.ceil(pairs)
        assert stats.sample_size(sd=2, difference=2 * effect, power=power, paired=False) == math.ceil(sides)


def test_a_half_width_is_reached_and_not_with_one_less() -> None:
    """N values of that spread give an interval of at most that width."""
    n = stats.sample_size(sd=1.0, half_width=0.2)
    width = [peer.t.ppf(0.975, size - 1) / math.sqrt(size) for size in (n, n - 1)]
    assert width[0] <= 0.2 < width[1]


def test_a_percentile_needs_enough_for_its_interval() -> None:
    """One value less has no interval."""
    n = stats.percentile_size(0.95)
    assert stats.percentile(range(n), 0.95).known
    assert not stats.percentile(range(n - 1), 0.95).known


@pytest.mark.parametrize(
    "wrong", [{"sd": 0, "half_width": 1}, {"sd": 1}, {"sd": 1, "half_width": 0}, {"sd": 1, "difference": 1e-9}]
)
def test_advice_that_cannot_be_given_is_refused(wrong: dict[str, float]) -> None:
    """With the reason."""
    with pytest.raises(ValueError, match=r"sd|give either|other than 0|less precision"):
        stats.sample_size(**wrong)  # type: ignore[arg-type]
