"""How many values it takes: against statsmodels, and by planning experiments from few pairs and running them."""

import math

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from famnb import stats
from famnb.stats.intervals import mean_p_value


@pytest.mark.parametrize("effect", [0.2, 0.5, 1.0])
def test_sample_sizes_are_those_of_statsmodels(effect: float) -> None:
    for power in (0.8, 0.9):
        pairs = TTestPower().solve_power(effect, alpha=0.05, power=power)
        assert stats.sample_size(sd=2, difference=2 * effect, power=power) == math.ceil(pairs)


@pytest.mark.parametrize(
    "wrong",
    [{"sd": 0}, {"difference": 0}, {"difference": 1e-9}, {"sd_n": 1}, {"comparisons": 0}],
)
def test_a_plan_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"sd|other than 0|less precision|comparisons"):
        stats.sample_size(**{"sd": 1, "difference": 1, **wrong})  # type: ignore[arg-type]  # wrong on purpose


def test_no_plan_is_below_what_a_sign_test_takes() -> None:
    assert [stats.sample_size(sd=1, difference=50, level=level) for level in (0.9, 0.95, 0.99)] == [5, 6, 8]


def share_found(comparisons: int, *, is_planned: bool, pilot: int = 12, difference: float = 0.6) -> float:
    """How often a difference is found beside others that are none, with as many pairs as a pilot's spread asks for."""
    rng, found = np.random.default_rng(3), 0
    for _ in range(400):
        sd = float(rng.normal(size=pilot).std(ddof=1))
        rule = {"sd_n": pilot, "comparisons": comparisons} if is_planned else {}
        n = stats.sample_size(sd=sd, difference=difference, **rule)  # type: ignore[arg-type]
        gaps = rng.normal(size=(comparisons, n)) + difference * np.eye(comparisons, 1)
        found += int(stats.holm([mean_p_value(row) for row in gaps])[0] < 0.05)
    return found / 400


@pytest.mark.full
@pytest.mark.parametrize("comparisons", [1, 6])
def test_a_plan_finds_what_it_promises(comparisons: int) -> None:
    """80 of 100, by the rule that judges: `paired`, and Holm's adjustment for all comparisons."""
    assert 0.78 <= share_found(comparisons, is_planned=True) <= 0.93


@pytest.mark.full
def test_a_plan_that_forgets_the_other_comparisons_finds_half() -> None:
    assert share_found(6, is_planned=False) < 0.6
