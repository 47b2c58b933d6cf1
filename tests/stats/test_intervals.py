"""One sample's figures: against scipy, statsmodels and the binomial distribution, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats as peer
from statsmodels.stats.proportion import proportion_confint

from famnb import stats


def test_the_mean_of_what_is_not_skewed_has_students_interval() -> None:
    """As scipy's one-sample t test gives it."""
    values = np.random.default_rng(1).normal(size=15)
    values = np.concatenate([values, -values])
    found = stats.mean(values, level=0.9)
    ends = peer.ttest_1samp(values, 0).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert (found.value, found.n) == (pytest.approx(values.mean()), 30)


@pytest.mark.parametrize(("count", "n"), [(0, 10), (3, 10), (10, 10), (480, 1000)])
def test_a_share_has_wilsons_interval(count: int, n: int) -> None:
    """As statsmodels computes it, also at the ends."""
    found = stats.proportion(count, n)
    assert (found.low, found.high) == pytest.approx(proportion_confint(count, n, method="wilson"), abs=1e-9)


def test_a_quantiles_interval_lies_between_two_of_the_values() -> None:
    """For the median of 1 to 100 the textbook's order statistics are the 40th and the 61st."""
    found = stats.percentile(range(1, 101), 0.5)
    assert (found.low, found.high, found.value) == (40, 61, 50.5)


@pytest.mark.parametrize(("p", "n", "level"), [(0.5, 15, 0.95), (0.9, 60, 0.9), (0.95, 200, 0.95)])
def test_order_intervals_cover_at_least_their_level(p: float, n: int, level: float) -> None:
    """The binomial says how often two order statistics hold the quantile: never less than promised."""
    found = stats.percentile(np.arange(1, n + 1), p, level=level)
    covered = peer.binom.cdf(found.high - 1, n, p) - peer.binom.cdf(found.low - 1, n, p)
    assert covered >= level - 1e-12
    narrower = peer.binom.cdf(found.high - 2, n, p) - peer.binom.cdf(found.low, n, p)
    assert narrower < level


@pytest.mark.parametrize("method", ["order", "bootstrap"])
def test_median_intervals_cover_the_truth_at_their_rate(method: str) -> None:
    """Of 300 samples of a skewed distribution with median 1, some 95 in 100 hold it (bootstrap: about)."""
    rng = np.random.default_rng(7)
    samples = rng.lognormal(size=(300, 41))
    found = [stats.percentile(sample, 0.5, method=method) for sample in samples]  # type: ignore[arg-type]
    covered = sum(each.low <= 1 <= each.high for each in found)
    assert covered >= peer.binom.ppf(0.001, 300, 0.95 if method == "order" else 0.92)


def test_mean_intervals_cover_the_truth_at_their_rate() -> None:
    """Neither less nor more often than 95 in 100, within what 2,000 samples can tell."""
    samples = np.random.default_rng(8).normal(3, 2, size=(2000, 12))
    covered = sum(found.low <= 3 <= found.high for found in map(stats.mean, samples))
    assert peer.binom.ppf(0.001, 2000, 0.95) <= covered <= peer.binom.ppf(0.999, 2000, 0.95)


@pytest.mark.parametrize(("p", "fewest"), [(0.5, 2), (0.9, 10), (0.95, 20), (0.99, 100), (0.1, 10)])
def test_a_percentile_that_n_does_not_carry_is_not_known(p: float, fewest: int) -> None:
    """One value at least is expected beyond it, on either side."""
    assert math.isnan(stats.percentile(range(fewest - 1), p).value)
    assert math.isfinite(stats.percentile(range(fewest), p).value)


def test_missing_values_are_dropped_and_n_says_so() -> None:
    """NA, None and NaN are no values."""
    found = stats.mean(pd.Series([1.0, None, pd.NA, 3.0, float("nan")], dtype="Float64"))
    assert (found.value, found.n) == (2.0, 2)


def test_nothing_is_known_of_no_values_and_little_of_one() -> None:
    """No error, no zero: NaN, and words that say why."""
    assert math.isnan(stats.mean([]).value)
    assert math.isnan(stats.median([]).value)
    assert math.isnan(stats.proportion(0, 0).value)
    assert stats.median([4.0]).value == 4.0
    assert str(stats.mean([4.0])) == "4 (n = 1, too few for an interval)"
    assert str(stats.mean([])) == "not known (n = 0)"


def test_equal_values_have_a_bootstrap_interval_of_no_width() -> None:
    """Where resampling has nothing to vary."""
    found = stats.percentile([2.0] * 9, 0.5, method="bootstrap")
    assert (found.low, found.high) == (2.0, 2.0)


def test_mostly_equal_values_have_a_bootstrap_interval_without_acceleration() -> None:
    """Leaving out any value changes nothing: no NaN and no warning, the plain percentile bootstrap."""
    found = stats.percentile([1.0] * 40 + [2.0], 0.5, method="bootstrap")
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)


def test_a_bootstrap_of_very_many_values_is_refused() -> None:
    """It would take the square of their number; order statistics serve as well."""
    with pytest.raises(ValueError, match=r"at most 10,000 values, got 10,001; use method='order'"):
        stats.percentile(range(10_001), 0.5, method="bootstrap")


def test_a_method_that_is_none_is_refused_with_those_that_are() -> None:
    """By name."""
    with pytest.raises(ValueError, match="method: expected one of order, bootstrap; got 'exact'"):
        stats.percentile([1, 2, 3], 0.5, method="exact")  # type: ignore[arg-type]


@pytest.mark.parametrize(("count", "n"), [(1.5, 3), (1, 3.0), (4, 3), (-1, 3)])
def test_a_share_is_of_whole_numbers(count: float, n: float) -> None:
    """Nothing is rounded in silence."""
    with pytest.raises(ValueError, match="expected"):
        stats.proportion(count, n)  # type: ignore[arg-type]


def test_a_summary_has_each_figure_with_its_interval() -> None:
    """Of 30 values the 99th percentile is not known."""
    found = stats.summary([*range(30), None])
    assert list(found.index) == ["mean", "median", "p90", "p95", "p99"]
    middle = stats.median(range(30))
    assert found.loc["median"].tolist() == [middle.value, middle.low, middle.high, 30]
    assert math.isnan(found.loc["p99", "value"])


@pytest.mark.parametrize(
    "values",
    [["a"], ["1", "2"], [1.0, math.inf], pd.to_datetime(["2026-01-01"]), pd.to_timedelta(["1s"]), np.ones((2, 2))],
)
def test_what_is_no_number_is_refused(values: object) -> None:
    """With what was expected; times and durations too, whose unit nobody said."""
    with pytest.raises(ValueError, match="expected"):
        stats.mean(values)


@pytest.mark.parametrize("p", [0, 1, 95])
def test_a_percentile_is_a_share(p: float) -> None:
    """95 is a common slip."""
    with pytest.raises(ValueError, match=r"between 0 and 1, such as 0\.95"):
        stats.percentile([1, 2, 3], p)
