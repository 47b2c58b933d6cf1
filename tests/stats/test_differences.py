"""Differences of two samples: against scipy and statsmodels, and by simulation; more of these are in tests/truth."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats as peer
from statsmodels.stats.multitest import multipletests

from famnb import stats
from famnb.stats.differences import average_repeats
from tests.support.truth_rates import EXPERIMENTS, PROMPTS, claims_are_rare, intervals_hold

RNG = np.random.default_rng(3)
FIRST = RNG.lognormal(0, 0.5, 25)
SECOND = FIRST * 1.4 + RNG.normal(0, 0.1, 25)


def test_paired_differences_of_no_skewness_are_students() -> None:
    gaps = RNG.normal(0.4, 1, 12)
    gaps = np.concatenate([gaps, 0.8 - gaps])
    found = stats.paired(FIRST[:24], FIRST[:24] + gaps)
    test = peer.ttest_1samp(gaps, 0)
    ends = test.confidence_interval(0.95)
    assert (found.value, found.low, found.high) == pytest.approx((0.4, ends.low, ends.high))
    assert (found.p_value, found.n) == (pytest.approx(test.pvalue), 24)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_a_p_value_and_an_interval_claim_the_same(level: float) -> None:
    """However skewed the differences are: the p-value is below 1 − level exactly where 0 is outside."""
    gaps = np.random.default_rng(6).lognormal(0, 1, (400, 12)) - 1
    found = [stats.paired(np.zeros(12), row, level=level) for row in gaps]
    assert [result.p_value < 1 - level for result in found] == [result.clear for result in found]
    assert 0 < sum(result.clear for result in found) < 400


def test_the_ratio_is_the_geometric_mean_of_ratios() -> None:
    found = stats.paired(FIRST, SECOND).ratio
    assert found.value == pytest.approx(peer.gmean(SECOND / FIRST))
    assert math.isnan(stats.paired([0.0, 1.0, 2.0], [1.0, 2.0, 4.0]).ratio.value)
    logs = stats.mean(np.log(SECOND / FIRST))
    assert (found.low, found.high) == pytest.approx((math.exp(logs.low), math.exp(logs.high)))


def test_repeats_of_a_prompt_are_no_further_prompts() -> None:
    prompts, first, second = np.repeat(np.arange(8), 3), FIRST[:24], SECOND[:24]
    found = stats.paired(*(pd.Series(side, index=prompts) for side in (first, second)))
    means = stats.paired(first.reshape(8, 3).mean(axis=1), second.reshape(8, 3).mean(axis=1))
    assert found.n == 8
    assert (found.low, found.high) == pytest.approx((means.low, means.high))


def test_series_are_matched_by_their_index() -> None:
    a = pd.Series([1.0, 2.0, 9.0, None], index=["x", "y", "only here", "z"])
    b = pd.Series([3.0, 2.0, 5.0], index=["y", "x", "z"])
    found = stats.paired(a, b)
    assert (found.value, found.n) == (1.0, 2)


def answer_prompts(rng: np.random.Generator, prompts: int, repeats: int, *, times: float = 1.0) -> list[pd.Series]:
    """Positive values of two variants for the same prompts, the second's so many times the first's: log-normal.

    Prompts differ more than variants do, and each suits one variant better.
    """
    index = np.repeat(np.arange(prompts), repeats)
    prompt, suited = rng.normal(0, 1, (prompts, 1)), rng.normal(0, 0.5, (2, prompts, 1))
    values = np.exp(prompt + suited + rng.normal(0, 0.5, (2, prompts, repeats))).reshape(2, -1)
    return [pd.Series(values[0], index=index), pd.Series(values[1] * times, index=index)]


def estimates_within(side: pd.Series, factor: float, *, off: float) -> pd.DataFrame:
    """Estimates of values, too high by the factor `off`, that lie within `factor` of them either way."""
    value = side * off
    return pd.DataFrame({"low": value / factor, "value": value, "high": value * factor})


@pytest.mark.full
@pytest.mark.parametrize("prompts", PROMPTS)
def test_a_difference_of_estimates_is_claimed_at_its_worst_only(prompts: int) -> None:
    """Two alike, one of them estimated 40 % too dear within a factor of 1.5: no claim, and intervals hold."""
    rng = np.random.default_rng(5)
    sides = [answer_prompts(rng, prompts, 3) for _ in range(EXPERIMENTS)]
    found = [stats.paired_bounds(estimates_within(a, 1, off=1), estimates_within(b, 1.5, off=1.4)) for a, b in sides]
    assert claims_are_rare(result.clear or result.p_value < 0.05 for result in found)
    assert intervals_hold(result.low <= 0 <= result.high for result in found)
    assert intervals_hold(result.ratio.low <= 1 <= result.ratio.high for result in found)
    assert not any(result.exact for result in found)
    if prompts >= 20:
        # As if the estimates were exact, the difference is clear and there is none.
        assert not claims_are_rare(stats.paired(a, b * 1.4).clear for a, b in sides)


def test_a_difference_of_estimates_is_found_where_it_is_beyond_doubt() -> None:
    """Four times as dear, within a factor of 1.5: clear at both ends, the interval reaching over both."""
    a, b = answer_prompts(np.random.default_rng(6), 60, 3, times=4)
    found = stats.paired_bounds(estimates_within(a, 1, off=1), estimates_within(b, 1.5, off=1))
    ends = [stats.paired(a, b / 1.5), stats.paired(a, b * 1.5)]
    assert found.clear
    assert (found.low, found.high) == (min(end.low for end in ends), max(end.high for end in ends))
    assert (found.value_low, found.value_high) == (ends[0].value, ends[1].value)
    assert found.p_value == max(end.p_value for end in ends)
    assert (found.ratio.low, found.ratio.high) == (ends[0].ratio.low, ends[1].ratio.high)
    assert not stats.paired_bounds(estimates_within(a, 2, off=1), estimates_within(b, 2, off=1)).clear
    assert str(found).startswith("≈ ")


def test_known_inputs_differ_as_values_do() -> None:
    a, b = answer_prompts(np.random.default_rng(6), 20, 2)
    found = stats.paired_bounds(estimates_within(a, 1, off=1), estimates_within(b, 1, off=1))
    assert found.exact
    assert dataclasses.replace(found, value_low=math.nan, value_high=math.nan) == stats.paired(a, b)


def test_a_ratio_to_what_may_be_nothing_has_no_ends() -> None:
    a, b = (estimates_within(side, 1.2, off=1) for side in answer_prompts(np.random.default_rng(6), 20, 2))
    found = stats.paired_bounds(a.assign(low=0.0), b)
    assert not found.ratio.known
    assert math.isfinite(found.ratio.value)
    assert math.isfinite(found.low)


def test_bounds_hold_their_values() -> None:
    rows = pd.DataFrame({"low": [2.0], "value": [1.0], "high": [3.0]}, index=["p"])
    with pytest.raises(ValueError, match="first: expected low ≤ value ≤ high"):
        stats.paired_bounds(rows, rows)
    with pytest.raises(ValueError, match="columns low, value and high; low missing"):
        stats.paired_bounds(rows.drop(columns="low"), rows)


def test_a_difference_of_shares_is_never_certain() -> None:
    """All passed on both sides, or all on one: the interval has a width, and one call a prompt is McNemar's test."""
    index = range(20)
    same = stats.paired_share(pd.Series(1, index=index), pd.Series(1, index=index))
    assert (same.value, same.p_value) == (0, 1)
    assert same.low == -same.high == pytest.approx(-0.161, abs=0.01)
    result = stats.paired_share(pd.Series(0, index=range(8)), pd.Series(1, index=range(8)))
    assert (result.value, result.high) == (1, 1)
    assert result.low < 0.6
    assert result.p_value == 2**-7
    some = stats.paired_share(pd.Series([0] * 10), pd.Series([1] * 7 + [0] * 3))
    assert some.p_value == pytest.approx(peer.binomtest(7, 7).pvalue)


def test_calls_are_matched_by_prompts() -> None:
    a, b = (pd.Series([0, 1, 0, 1, 1, 0, 1, 0], index=list("abcdefgh")) for _ in range(2))
    more = pd.concat([b, pd.Series([1, 1, None], index=["only here", "only here", "a"])])
    found, plain = stats.paired_share(a, more), stats.paired_share(a, b)
    assert (found.value, found.low, found.n) == (plain.value, plain.low, 8)


def test_words_claim_no_more_than_the_interval() -> None:
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


def test_holm_adjusts_as_statsmodels_does_and_counts_tests_not_gaps() -> None:
    """A missing p-value stays missing and makes the others no larger; a number beyond 0 and 1 is refused."""
    raw = [0.04, 0.001, 0.03, 0.2]
    assert stats.holm(raw) == pytest.approx(multipletests(raw, method="holm")[1])
    assert stats.holm([0.01, math.nan, 0.04]) == pytest.approx([0.02, math.nan, 0.04], nan_ok=True)
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        stats.holm([0.5, 2.0])


def test_rounding_is_no_spread() -> None:
    """Equal differences have no spread, though floats make them differ in the last digit; pairs a sign test."""
    found = stats.paired([1.1, 2.1, 3.1] * 2, [1.2, 2.2, 3.2] * 2)
    assert (found.value, found.low, found.high) == pytest.approx((0.1,) * 3)
    assert found.p_value == 2**-5


@pytest.mark.parametrize("wrong", [["a", "b"], [1.0, math.inf]])
def test_what_is_no_number_has_no_difference(wrong: list[object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        stats.paired(wrong, [1.0, 2.0])
    with pytest.raises(ValueError, match="expected"):
        stats.paired(pd.Series([1.0, 2.0]), pd.Series(wrong))
    with pytest.raises(ValueError, match="as many values on both sides, got 2 and 3"):
        stats.paired([1, 2], [1, 2, 3])


def test_repeats_are_averaged_once_and_bounds_stay_bounds() -> None:
    """A row a prompt, in the order in which they come first; what no call has above its value, no mean has."""
    rng = np.random.default_rng(3)
    value = rng.lognormal(0, 3, 3000)
    calls = pd.DataFrame({"low": value * (1 - 1e-16 * rng.integers(0, 2, 3000)), "value": value})
    calls.index = pd.Index(rng.integers(0, 40, 3000))
    means = average_repeats(calls)
    assert means.index.tolist() == calls.index.unique().tolist()
    assert means["value"].sort_index().to_numpy() == pytest.approx(calls.groupby(level=0)["value"].mean().to_numpy())
    assert (means["low"] <= means["value"]).all()
    gone = pd.DataFrame({"value": [1.0, 2.0]}, index=pd.Index([None, "p"], dtype="object"))
    assert average_repeats(gone)["value"].to_dict() == {"p": 2.0}


def test_medians_of_differences_are_compared_by_the_sign_test():
    gaps = np.array([-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0, 40.0])
    found = stats.paired_median(np.zeros(10), gaps)
    assert (found.value, found.share, found.share_more) == (-4.5, 0.9, 0.1)
    assert found.p_value == pytest.approx(peer.binomtest(1, 10).pvalue)
    assert (found.low, found.high) == (-8.0, -1.0)
    assert math.isnan(stats.paired_median(np.zeros(5), gaps[:5]).p_value)
