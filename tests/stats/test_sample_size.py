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


@pytest.mark.full
@pytest.mark.parametrize(
    ("comparisons", "rule", "least", "most"),
    [(1, {"sd_n": 12}, 0.78, 0.93), (6, {"sd_n": 12, "comparisons": 6}, 0.78, 0.93), (6, {}, 0, 0.6)],
)
def test_a_plan_finds_what_it_promises(comparisons: int, rule: dict[str, int], least: float, most: float) -> None:
    """80 of 100, by the rule that judges: `paired`, and Holm's adjustment for all comparisons; without that half."""
    rng, found = np.random.default_rng(3), 0
    for _ in range(400):
        sd = float(rng.normal(size=12).std(ddof=1))
        n = stats.sample_size(sd=sd, difference=0.6, **rule)  # type: ignore[arg-type]
        gaps = rng.normal(size=(comparisons, n)) + 0.6 * np.eye(comparisons, 1)
        found += int(stats.holm([mean_p_value(row) for row in gaps])[0] < 0.05)
    assert least <= found / 400 <= most
