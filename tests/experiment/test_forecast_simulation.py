"""The runs drawn for a forecast, and how often its intervals hold."""

import math

import numpy as np
import pytest

from famnb.experiment.forecast import forecast
from famnb.record.serialize import input_chars
from tests.experiment.forecast_histories import cells, past

pytestmark = pytest.mark.full


def test_more_calls_at_once_take_less_time():
    plan, calls = cells(models=["fam-2-5-pro"]), past(100)
    times = [forecast(plan, calls, concurrency=many).wall_s.value for many in (1, 4, 10, 64)]
    assert times[0] > 2 * times[1] > 2 * times[2]
    assert times[2] == times[3] >= calls["e2e_s"].mean()


def test_the_expected_value_is_never_outside_its_interval():
    """One call in a hundred is long: the mean of a single call is more than 95 of 100 come to."""
    calls = past(100).assign(output_tokens=[30] * 99 + [400])
    found = forecast(cells(1, models=["fam-2-5-pro"]), calls, concurrency=1).total.output_tokens
    assert 29 < found.low < 30 < found.value <= found.high


@pytest.mark.parametrize("n", [8, 40])
def test_intervals_hold_the_truth_at_their_rate(n, prices):
    """Of 50 plans forecast from n past calls each, the true sum of 30 calls is inside as often as is said."""
    plan = cells(30, models=["fam-2-5-pro"], max_tokens=4000)
    truth, runs = np.random.default_rng(1), 50
    inside = {"output": 0, "cost": 0, "wall": 0}
    given = sum(input_chars(cell.request) for cell in plan) * 30 / 120
    for run in range(runs):
        found = forecast(plan, past(n, seed=run), concurrency=1, seed=run)
        output, took = truth.lognormal(5, 0.4, 30).round().sum(), truth.lognormal(0, 0.4, 30).sum()
        cost = given * 1e-6 + output * 4e-6
        for name, each, true in (
            ("output", found.total.output_tokens, output),
            ("cost", found.total.cost_usd, cost),
            ("wall", found.wall_s, took),
        ):
            inside[name] += each.low <= true <= each.high
    # 95 %, less three standard errors of a count; few calls cannot show how skewed their kind is.
    least = runs * 0.95 - 3 * math.sqrt(runs * 0.95 * 0.05) - (3 if n < 10 else 0)
    assert min(inside.values()) >= least, inside
