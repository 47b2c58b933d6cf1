"""Models that fail: how often scores, success rates and claims of either hold over many experiments of known truth.

Both variants would answer alike. B breaks off in the middle of six of ten answers that would have been wrong, so that
those it finishes are better than A's.
"""

import functools

import numpy as np
import pandas as pd
import pytest

from tests.support.experiment_frames import frame
from tests.support.truth_rates import FEWER_EXPERIMENTS, claims_are_rare, intervals_hold
from tests.truth.truth_experiments import compare, cut

pytestmark = pytest.mark.full

N = 20
"""Prompts of an experiment."""
REPEATS = 3
BREAKS_OFF = 0.6
"""Share of the wrong answers of B that break off."""
RIGHT = 0.5
"""Share of answers that would be right, over prompts that are harder and easier."""
VARIANTS = ("A", "B")


def draw(prompts):
    """The frame of many experiments."""
    rng = np.random.default_rng(prompts)
    calls = FEWER_EXPERIMENTS * prompts * REPEATS
    chance = np.repeat(rng.uniform(RIGHT - 0.2, RIGHT + 0.2, FEWER_EXPERIMENTS * prompts), REPEATS)
    right = [(rng.random(calls) < chance).astype(float) for _ in VARIANTS]
    fails = [np.zeros(calls, dtype=bool), (right[1] == 0) & (rng.random(calls) < BREAKS_OFF)]
    columns = {
        "score_right": tuple(np.where(broken, np.nan, scores) for scores, broken in zip(right, fails, strict=True)),
        "status": tuple(np.where(broken, "interrupted", "completed") for broken in fails),
        "error": tuple(np.where(broken, "StreamInterrupted", None) for broken in fails),
        "e2e_s": (1.0, 1.0),
    }
    table = frame(FEWER_EXPERIMENTS * prompts, repeats=REPEATS, variants=VARIANTS, **columns)
    return table.assign(variant=pd.Categorical(table["variant"], categories=VARIANTS))


@functools.cache
def comparisons(prompts, failed, metrics=("score_right",)):
    """The rows of every experiment's pairs, by metric."""
    rows = [compare(part, metrics, failed=failed) for part in cut(draw(prompts), prompts)]
    return dict(iter(pd.concat(rows).groupby("metric")))


def test_no_model_scores_higher_by_what_it_fails_on():
    pairs = comparisons(N, "zero", ("score_right", "success"))["score_right"]
    assert claims_are_rare(pairs["clear"])
    assert intervals_hold((pairs["low"] <= 0) & (pairs["high"] >= 0))


def test_the_difference_in_success_holds_and_is_found():
    pairs = comparisons(N, "zero", ("score_right", "success"))["success"]
    truth = -BREAKS_OFF * (1 - RIGHT)
    assert intervals_hold((pairs["low"] <= truth) & (truth <= pairs["high"]))
    assert pairs["clear"].mean() > 0.6


def test_failures_that_are_dropped_make_a_model_score_higher():
    """What who asks for `failed="drop"` gets, and what everyone got before, fails the check above."""
    pairs = comparisons(N, "drop")["score_right"]
    assert not claims_are_rare(pairs["clear"] & (pairs["difference"] > 0))
