"""One sample's figures: against scipy, statsmodels and the binomial distribution, and by simulation."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special
from scipy import stats as peer
from statsmodels.stats.proportion import proportion_confint

from famnb import stats
from tests.support.truth_rates import PROMPTS, intervals_hold

Draw = Callable[[np.random.Generator, tuple[int, int]], Any]


def covers(interval: stats.Interval, truth: float) -> bool:
    """Whether an interval holds the truth; one that is not known does not."""
    return interval.low <= truth <= interval.high


def test_the_mean_of_what_is_not_skewed_has_students_interval() -> None:
    values = np.random.default_rng(1).normal(size=15)
    values = np.concatenate([values, -values])
    found = stats.mean(values, level=0.9)
    ends = peer.ttest_1samp(values, 0).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert (found.value, found.n) == (pytest.approx(values.mean()), 30)


@pytest.mark.parametrize(("count", "n"), [(0, 10), (3, 10), (10, 10), (480, 1000)])
def test_a_share_has_wilsons_interval(count: int, n: int) -> None:
    found = stats.proportion(count, n)
    assert (found.low, found.high) == pytest.approx(proportion_confint(count, n, method="wilson"), abs=1e-9)


def test_a_quantiles_interval_lies_between_two_of_the_values() -> None:
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


LIGHT: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, size: rng.normal(3, 2, size), 3.0),
    "uniform": (lambda rng, size: rng.random(size), 0.5),
    "mildly skewed": (lambda rng, size: rng.lognormal(0, 0.5, size), math.exp(0.125)),
    "exponential": (lambda rng, size: rng.exponential(1, size), 1.0),
}
HEAVY: dict[str, tuple[Draw, float]] = {
    "log-normal": (lambda rng, size: rng.lognormal(0, 1, size), math.exp(0.5)),
    "long tail": (lambda rng, size: rng.lognormal(0, 1.5, size), math.exp(1.125)),
    "one in five long": (lambda rng, size: rng.normal(1, 0.3, size) + 9 * (rng.random(size) < 0.2), 2.8),
    "one in ten long": (lambda rng, size: rng.normal(1, 0.3, size) + 9 * (rng.random(size) < 0.1), 1.9),
}


@pytest.mark.parametrize("n", PROMPTS)
@pytest.mark.parametrize("name", LIGHT)
def test_intervals_of_means_hold(name: str, n: int) -> None:
    draw, truth = LIGHT[name]
    samples = draw(np.random.default_rng(8), (400, n))
    assert intervals_hold(found.low <= truth <= found.high for found in map(stats.mean, samples))


@pytest.mark.parametrize("n", PROMPTS)
@pytest.mark.parametrize("name", HEAVY)
def test_intervals_of_means_hold_or_say_that_they_may_not(name: str, n: int) -> None:
    draw, truth = HEAVY[name]
    found = [stats.mean(sample) for sample in draw(np.random.default_rng(9), (400, n))]
    assert intervals_hold(interval.low <= truth <= interval.high or bool(interval.caution) for interval in found)


def test_intervals_of_means_follow_skewness() -> None:
    """The means of 60 log-normal values: with Student's interval as many are missed as the check does not allow."""
    samples, truth = np.random.default_rng(10).lognormal(0, 1, (1000, 60)), math.exp(0.5)
    found, student = list(map(stats.mean, samples)), peer.ttest_1samp(samples, 0, axis=1).confidence_interval(0.95)
    assert intervals_hold(interval.low <= truth <= interval.high for interval in found)
    assert not intervals_hold((student.low <= truth) & (truth <= student.high))
    wider = [interval.high - interval.low for interval in found] / (student.high - student.low)
    assert np.median(wider) < 1.35


def test_a_mean_says_what_its_values_can_miss() -> None:
    """12 values miss what is as rare as 1 in 5 in one of 20 samples; 59 have what is 1 in 20, unless few decide."""
    assert stats.mean(range(12)).caution == "12 values may not include what happens less often than once in 5"
    assert stats.mean(range(59)).caution == ""
    assert stats.mean([*range(59), 1000]).caution == "few values decide them"
    assert "for new prompts, n = 24 in 12 prompts; 12 values" in str(stats.mean(range(24), clusters=[*range(12)] * 2))


@pytest.mark.parametrize("take", [stats.mean, stats.median])
def test_five_values_carry_no_interval(take: Callable[..., stats.Interval]) -> None:
    assert not take(range(5)).known
    assert take(range(5)).value == 2
    assert take(range(6)).known
    assert stats.min_values(0.95) == 6


def calls_of_prompts(rng: np.random.Generator, prompts: int, repeats: int, *, spread: float) -> tuple[Any, Any]:
    """Times of calls, log-normal of median 1, prompts differing so much; and the prompt of each."""
    logs = rng.normal(0, spread, (prompts, 1)) + rng.normal(0, math.sqrt(1 - spread**2), (prompts, repeats))
    return np.exp(logs).ravel(), np.repeat(np.arange(prompts), repeats)


@pytest.mark.parametrize("spread", [0.0, 0.9])
def test_high_percentiles_of_clusters_hold_for_new_prompts_or_are_not_known(spread: float) -> None:
    """Ten calls with each of 20 or 60 prompts: where these differ, twenty seldom carry an interval of p90."""
    truth, rng = math.exp(special.ndtri(0.9)), np.random.default_rng(12)
    few, many = ([calls_of_prompts(rng, n, 10, spread=spread) for _ in range(200)] for n in (20, 60))
    found = [stats.percentile(values, 0.9, clusters=codes) for values, codes in [*few, *many]]
    assert intervals_hold(covers(interval, truth) for interval in found if interval.known)
    assert np.mean([interval.known for interval in found[200:]]) > 0.95
    known = [interval.known for interval in found[:200]]
    assert all(known) if spread == 0 else np.mean(known) < 0.5


def test_a_percentile_says_what_it_holds_for() -> None:
    """Single calls stand for more calls with the same prompts, clusters for new prompts."""
    calls, prompts = stats.median(range(60)), stats.median(range(60), clusters=[*range(12)] * 5)
    assert (calls.population, prompts.population) == ("more calls with these prompts", "new prompts")
    assert (calls.n, calls.clusters, prompts.n, prompts.clusters) == (60, 0, 60, 12)
    assert "95% interval 21 to 38 for more calls with these prompts, n = 60" in str(calls)


def test_values_that_go_together_count_once() -> None:
    """Five equal calls with each of 30 prompts have the median's interval that one call with each has."""
    values = np.random.default_rng(2).normal(size=30)
    once, five = stats.median(values), stats.median(np.repeat(values, 5), clusters=np.repeat(np.arange(30), 5))
    assert (five.value, five.low, five.high) == pytest.approx((once.value, once.low, once.high), abs=0.15)
    alone = stats.median(values, clusters=range(30))
    assert (alone.low, alone.high) == (once.low, once.high)


def test_a_share_of_all_has_a_width() -> None:
    """As many prompts as there are count, not their repeats: 12 of 12 are some 76 to 100 %, 60 of 60 no more."""
    assert stats.share([True] * 60, clusters=[*range(12)] * 5).low == pytest.approx(stats.proportion(12, 12).low)
    assert stats.share([0] * 60, clusters=[*range(12)] * 5).high == pytest.approx(stats.proportion(0, 12).high)
    assert stats.share([True, False, None], clusters=list("abc")).n == 2
    assert stats.share([True] * 3 + [False]) == stats.proportion(3, 4)
    assert math.isnan(stats.share([], clusters=[]).value)


def test_clusters_are_one_for_each_value() -> None:
    with pytest.raises(ValueError, match="clusters: expected one for each of 3 values; got 2"):
        stats.mean([1, 2, 3], clusters=["a", "b"])
    with pytest.raises(ValueError, match="clusters: expected one for each value; 1 of 3 have none"):
        stats.median([1, 2, 3], clusters=["a", None, "b"])
    with pytest.raises(ValueError, match="share: expected values that are true or false"):
        stats.share([0.5, 1])


@pytest.mark.parametrize(("p", "fewest"), [(0.5, 2), (0.9, 10), (0.95, 20), (0.99, 100), (0.1, 10)])
def test_a_percentile_that_n_does_not_carry_is_not_known(p: float, fewest: int) -> None:
    assert math.isnan(stats.percentile(range(fewest - 1), p).value)
    assert math.isfinite(stats.percentile(range(fewest), p).value)


def test_missing_values_are_dropped_and_n_says_so() -> None:
    found = stats.mean(pd.Series([1.0, None, pd.NA, 3.0, float("nan")], dtype="Float64"))
    assert (found.value, found.n) == (2.0, 2)


def test_nothing_is_known_of_no_values_and_little_of_one() -> None:
    assert math.isnan(stats.mean([]).value)
    assert math.isnan(stats.median([]).value)
    assert math.isnan(stats.proportion(0, 0).value)
    assert stats.median([4.0]).value == 4.0
    assert str(stats.mean([4.0])) == "4 (n = 1, too few for an interval)"
    assert str(stats.mean([])) == "not known (n = 0)"


@pytest.mark.parametrize(
    "values",
    [["a"], ["1", "2"], [1.0, math.inf], pd.to_datetime(["2026-01-01"]), pd.to_timedelta(["1s"]), np.ones((2, 2))],
)
def test_what_is_no_number_is_refused(values: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        stats.mean(values)


def test_a_share_is_of_whole_numbers_and_a_percentile_is_one() -> None:
    for count, n in [(1.5, 3), (1, 3.0), (4, 3), (-1, 3)]:
        with pytest.raises(ValueError, match="expected"):
            stats.proportion(count, n)  # type: ignore[arg-type]
    for p in (0, 1, 95):
        with pytest.raises(ValueError, match=r"between 0 and 1, such as 0\.95"):
            stats.percentile([1, 2, 3], p)


# Which calls meet objectives

CALLS = pd.DataFrame(
    {
        "ttft_s": [0.4, 0.6, 0.5, None, None, 0.1],
        "e2e_s": [4.0, 4.0, 6.0, 4.0, 6.0, 1.0],
        "status": ["completed"] * 5 + ["failed"],
    },
    index=list("uvwxyz"),
)


def test_a_call_meets_all_limits_or_misses() -> None:
    """A failed one misses however quick it was; of one without a first token only what it is over is known."""
    met = stats.meets_slo(CALLS, {"ttft_s": 0.5, "e2e_s": 5}, failed=CALLS["status"] == "failed")
    assert met[met.notna()].to_dict() == {"u": True, "v": False, "w": False, "y": False, "z": False}


def test_a_limit_is_met_by_what_equals_it_and_goodput_counts_what_is_known() -> None:
    met = stats.meets_slo(CALLS, {"ttft_s": 0.5}, failed=[False] * 6)
    assert (met["w"], stats.share(met).n) == (True, 4)
    met = stats.meets_slo(CALLS, {"ttft_s": 0.5, "e2e_s": 5}, failed=CALLS["status"] == "failed")
    found = stats.share(met, clusters=list("pppqqq"))
    assert (found.n, found.clusters) == (5, 2)
    assert found.value == pytest.approx((1 / 3 + 0) / 2)


@pytest.mark.parametrize(
    ("slo", "error", "words"),
    [
        ({}, ValueError, "expected limits"),
        ({"ttft_s": "0.5"}, ValueError, "a number as the limit of ttft_s"),
        ({"ttft_s": math.nan}, ValueError, "a number as the limit of ttft_s"),
        ({"ttft": 0.5}, KeyError, "there is no column 'ttft'"),
    ],
)
def test_an_invalid_objective_is_refused(slo: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        stats.meets_slo(CALLS, slo, failed=CALLS["status"] == "failed")
