"""How often a difference is claimed that is not there, by the rules that made false claims before: 200 runs of each."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from famnb.experiment.comparison import compare_two, compare_variants, judge
from famnb.experiment.metrics import MEAN, MEDIAN, find_metric, measure
from famnb.stats import holm
from tests.support.experiment_frames import frame

MOST = 0.07
"""The most false claims, as a share of runs."""
SIZES = [12, pytest.param(60, marks=pytest.mark.full)]


def runs(prompts: int) -> int:
    """Few in the suite, all with the whole of it."""
    return 60 if prompts == 12 else 200


def side(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"low": values, "value": values, "high": values}, index=range(len(values)))


def spiky(rng: np.random.Generator, prompts: int) -> np.ndarray:
    return rng.normal(1, 0.05, prompts) * np.where(rng.random(prompts) < 0.05, 20.0, 1.0)


@pytest.mark.parametrize("prompts", SIZES)
def test_rare_spikes_that_few_prompts_miss_are_no_claim_about_a_mean(prompts: int):
    """The means are equal: B typically takes half of A's time, and in one of twenty calls twenty times as long."""
    rng, metric, claims, medians = np.random.default_rng(prompts), find_metric("e2e_s"), [], []
    for _ in range(runs(prompts)):
        a, b = rng.normal(1.95, 0.05, prompts), spiky(rng, prompts)
        row = compare_two(metric, side(a), side(b), level=0.95)
        claims.append(row["statistic"] == MEAN and row["p_value"] < 0.05)
        medians.append(row["statistic"] == MEDIAN and row["p_value"] < 0.05 and row["difference"] < 0)
    assert np.mean(claims) <= MOST
    # What is true of most prompts is claimed instead.
    assert np.mean(np.array(medians) | np.array(claims)) > 0.9


@pytest.mark.parametrize("prompts", SIZES)
def test_the_best_of_six_metrics_that_is_named_afterwards_is_rarely_a_claim(prompts: int):
    rng, metric = np.random.default_rng(prompts), find_metric("score_x")
    p_values = np.array(
        [
            [compare_two(metric, *map(side, rng.normal(size=(2, prompts))), level=0.95)["p_value"] for _ in range(6)]
            for _ in range(runs(prompts))
        ]
    )
    assert np.mean(p_values.min(axis=1) < 0.05) > 0.15
    assert np.mean([holm(row).min() < 0.05 for row in p_values]) <= MOST


@pytest.mark.parametrize("prompts", SIZES)
def test_a_variant_that_is_added_a_day_later_is_never_a_claim(prompts: int):
    """Both are the same model, on a service that is slower by a tenth the next day."""
    rng, metric = np.random.default_rng(prompts), find_metric("e2e_s")
    times = rng.normal(2, 0.1, prompts)
    rows = frame(prompts, e2e_s=(times, times * 1.1 + rng.normal(0, 0.02, prompts)))
    days = np.repeat([0, 1], prompts)
    for started_at, is_claimed in ((days, False), (days * 0, True)):
        dated = rows.assign(started_at=pd.Timestamp("2026-03-01", tz="UTC") + pd.to_timedelta(started_at, unit="D"))
        measured = {metric: measure(dated, metric, failed="zero", slo={})}
        found = compare_variants(dated, measured, [("A", "B")], baseline="A", primary="e2e_s", level=0.95)
        assert judge(found, 0.95)["clear"].tolist() == [is_claimed]
