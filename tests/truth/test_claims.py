"""How often a difference is claimed that is not there, by the five rules that made false claims before.

Of 12 and of 60 prompts, 200 runs each; plain pytest makes 60 of 12 prompts.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest

from famnb import stats
from famnb.experiment.comparison import compare_two, compare_variants, judge
from famnb.experiment.metrics import MEAN, MEDIAN, find_metric, measure
from famnb.stats import holm
from famnb.stats.intervals import mean_p_value
from tests.support.experiment_frames import frame
from tests.support.truth_rates import claims_are_rare

MOST = 0.07
"""The most false claims, as a share of runs."""
LOOKS = 10


def are_rare(claims: Iterable[bool]) -> bool:
    """Whether false claims are no more than MOST; of few runs, whether that many may come of a rate of 5 %."""
    false = np.array(list(claims), dtype=bool)
    return bool(false.mean() <= MOST) if len(false) >= 200 else claims_are_rare(false)


SIZES = [(12, 60), *(pytest.param(prompts, 200, marks=pytest.mark.full) for prompts in (12, 60))]


def side(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"low": values, "value": values, "high": values}, index=range(len(values)))


def spiky(rng: np.random.Generator, prompts: int) -> np.ndarray:
    return rng.normal(1, 0.05, prompts) * np.where(rng.random(prompts) < 0.05, 20.0, 1.0)


@pytest.mark.parametrize(("prompts", "runs"), SIZES)
def test_rare_spikes_that_few_prompts_miss_are_no_claim_about_a_mean(prompts: int, runs: int):
    """The means are equal: B typically takes half of A's time, and in one of twenty calls twenty times as long."""
    rng, metric, claims, medians = np.random.default_rng(prompts), find_metric("e2e_s"), [], []
    for _ in range(runs):
        a, b = rng.normal(1.95, 0.05, prompts), spiky(rng, prompts)
        row = compare_two(metric, side(a), side(b), level=0.95)
        claims.append(row["statistic"] == MEAN and row["p_value"] < 0.05)
        medians.append(row["statistic"] == MEDIAN and row["p_value"] < 0.05 and row["difference"] < 0)
    assert are_rare(claims)
    # What is true of most prompts is claimed instead.
    assert np.mean(np.array(medians) | np.array(claims)) > 0.9


@pytest.mark.parametrize(("prompts", "runs"), SIZES)
def test_the_best_of_six_metrics_that_is_named_afterwards_is_rarely_a_claim(prompts: int, runs: int):
    rng, metric = np.random.default_rng(prompts), find_metric("score_x")
    p_values = np.array(
        [
            [compare_two(metric, *map(side, rng.normal(size=(2, prompts))), level=0.95)["p_value"] for _ in range(6)]
            for _ in range(runs)
        ]
    )
    assert np.mean(p_values.min(axis=1) < 0.05) > 0.15
    assert are_rare(holm(row).min() < 0.05 for row in p_values)


@pytest.mark.parametrize(("prompts", "runs"), SIZES)
def test_a_variant_that_is_added_a_day_later_is_rarely_a_claim(prompts: int, runs: int):
    """Both are the same model, on a service that is slower by a tenth the next day."""
    rng, metric, later, at_once = np.random.default_rng(prompts), find_metric("e2e_s"), [], []

    def is_claimed_after(rows: pd.DataFrame, days: object) -> bool:
        dated = rows.assign(started_at=pd.Timestamp("2026-03-01", tz="UTC") + pd.to_timedelta(days, unit="D"))
        measured = {metric: measure(dated, metric, failed="zero", slo={})}
        found = compare_variants(dated, measured, [("A", "B")], baseline="A", primary="e2e_s", level=0.95)
        return bool(judge(found, 0.95)["clear"].item())

    for run in range(runs):
        times = rng.normal(2, 0.1, prompts)
        rows = frame(prompts, e2e_s=(times, times * 1.1 + rng.normal(0, 0.02, prompts)))
        later.append(is_claimed_after(rows, np.repeat([0, 1], prompts)))
        if run < 10:
            at_once.append(is_claimed_after(rows, 0))
    assert are_rare(later)
    assert all(at_once)


@pytest.mark.parametrize(("before", "after", "noise"), [(1, 1, 0.1), (3, 3, 0.1), (4, 1, 0.05), (4, 2, 0.2)])
@pytest.mark.parametrize(("prompts", "runs"), SIZES)
def test_runs_that_differ_by_themselves_are_rarely_a_change(prompts: int, runs: int, before, after, noise):
    """Run-to-run noise moves all prompts alike: by prompts alone it is a claim, by runs it is not."""
    rng = np.random.default_rng(7)
    values = rng.lognormal(0, 0.5, (runs, 1, prompts)) * rng.lognormal(0, noise, (runs, before + after, 1))
    values *= rng.lognormal(0, 0.05, values.shape)
    plain, widened = [], []
    for times in values:
        sides = times[:before], times[before:]
        plain.append(stats.paired(*(side.mean(axis=0) for side in sides)))
        located = (side.mean(axis=1) for side in sides)
        widened.append(stats.widen_for_runs(plain[-1], *located, assumed_sd=0.1 * times.mean()))
    assert are_rare(gap.clear for gap in widened)
    assert [gap.clear for gap in widened] == [gap.p_value < 0.05 for gap in widened]
    assert np.mean([gap.clear for gap in plain]) > 0.3


@pytest.mark.parametrize("looks", [LOOKS, None])
@pytest.mark.parametrize(("prompts", "runs"), SIZES)
def test_ten_looks_claim_no_more_often_than_one(prompts: int, runs: int, looks: int | None):
    rng = np.random.default_rng(prompts)
    sizes = np.unique(np.linspace(prompts / LOOKS, prompts, LOOKS).astype(int))
    levels = [stats.look(sizes[: index + 1], looks=looks).nominal for index in range(len(sizes))]
    data = rng.normal(size=(runs, prompts))
    assert are_rare(is_claimed(gaps, sizes, levels) for gaps in data)
    if prompts == 60:
        assert np.mean([is_claimed(gaps, sizes, [0.95] * len(sizes)) for gaps in data]) > 0.1


def is_claimed(gaps: np.ndarray, sizes: np.ndarray, levels: list[float]) -> bool:
    return any(
        size >= stats.min_values(level) and mean_p_value(gaps[:size]) < 1 - level
        for size, level in zip(sizes, levels, strict=True)
    )
