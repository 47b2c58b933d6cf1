"""The front: its three standings, by their definition and over many experiments of known truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from famnb import stats
from famnb.stats.front import SAME
from tests.support.truth_rates import claims_are_rare

COST, TIME, SCORE = stats.Objective("cost"), stats.Objective("time"), stats.Objective("score", more_is_better=True)
MEDIAN_TIME = stats.Objective("time", statistic="median")


def answers(*levels: tuple[float, ...], seed: int = 0, prompts: int = 20, repeats: int = 3) -> pd.DataFrame:
    """Calls of variants a, b, …, each with its level of cost and time; prompts differ, and each suits some variants."""
    rng = np.random.default_rng(seed)
    variant, prompt, _ = (grid.ravel() for grid in np.indices((len(levels), prompts, repeats)))
    shape = (2, len(levels), prompts)
    ease = rng.normal(0, 0.7, (2, 1, prompts)) + rng.normal(0, 0.3, shape)
    values = np.exp(ease[:, variant, prompt] + rng.normal(0, 0.3, (2, len(variant)))) * np.array(levels).T[:, variant]
    rows = {"variant": np.array(list("abcdef"))[variant], "prompt": prompt, "cost": values[0], "time": values[1]}
    return pd.DataFrame(rows)


def standings(frame: pd.DataFrame, *objectives: stats.Objective, prompts: str | None = "prompt") -> list[str]:
    found = stats.front(frame, objectives or (COST, TIME), by="variant", prompts=prompts)
    return found.table["standing"].tolist()


def test_a_trade_off_is_clear_and_what_is_worse_in_all_is_beaten() -> None:
    found = stats.front(answers((1, 4), (4, 1), (16, 16)), [COST, TIME], by="variant", prompts="prompt")
    assert found.table["standing"].tolist() == ["clear", "clear", "beaten"]
    assert found.table["beaten_by"].tolist()[2] == "a"
    assert (found.standing("a"), found.standing("c")) == ("clear", "beaten")
    better = {(row.first, row.second, row.metric): row.better for row in found.pairs.itertuples()}
    assert (better["a", "b", "cost"], better["a", "b", "time"]) == ("a", "b")
    assert (found.table["cost_low"] < found.table["cost"]).all()
    assert found.table["cost_n"].tolist() == [60] * 3


def test_more_of_a_score_is_better() -> None:
    """What is beaten in cost and time stays if it is right more often, and is clear if that is."""
    frame = answers((1, 1), (3, 3))
    right = np.random.default_rng(1).random(len(frame)) < np.where(frame["variant"] == "b", 0.95, 0.2)
    assert standings(frame.assign(score=right), COST, TIME, SCORE) == ["clear", "clear"]
    assert standings(frame.assign(score=~right), COST, TIME, SCORE) == ["clear", "beaten"]


def test_what_is_the_same_in_every_pair_is_no_worse() -> None:
    """Of equal cost, but slower: beaten. The same in all ways: neither beats the other, and that is clear."""
    frame = answers((1, 1), (1, 3)).assign(cost=2.0)
    found = stats.front(frame, [COST, TIME], by="variant", prompts="prompt")
    assert found.table["standing"].tolist() == ["clear", "beaten"]
    assert found.pairs.set_index("metric").loc["cost", "better"] == SAME
    assert standings(frame.assign(time=1.5)) == ["clear", "clear"]


def test_estimated_costs_count_at_their_worst() -> None:
    """Three times as dear, and slower; where either cost may be off by a factor of two, nothing is beaten."""
    frame = answers((1, 1), (3, 3)).assign(low=lambda rows: rows["cost"] / 2, high=lambda rows: rows["cost"] * 2)
    assert standings(frame) == ["clear", "beaten"]
    bounded = stats.Objective("cost", bounds=("low", "high"))
    found = stats.front(frame, [bounded, TIME], by="variant", prompts="prompt")
    assert found.table["standing"].tolist() == ["clear", "possible"]
    exact = stats.front(frame, [COST, TIME], by="variant", prompts="prompt").table
    assert found.table["cost_low"].tolist() == pytest.approx((exact["cost_low"] / 2).tolist())
    assert found.table["cost_high"].tolist() == pytest.approx((exact["cost_high"] * 2).tolist())


def test_calls_on_no_common_prompt_are_not_told_apart() -> None:
    """Nor calls without a prompt, nor those on five prompts only: their difference may be that of the prompts."""
    frame = answers((1, 1), (9, 9))
    assert standings(frame, prompts=None) == ["possible", "possible"]
    assert standings(frame.assign(prompt=pd.NA)) == ["possible", "possible"]
    assert standings(frame.assign(prompt=frame["prompt"].astype(str) + frame["variant"])) == ["possible", "possible"]
    assert standings(answers((1, 1), (9, 9), prompts=5, repeats=20)) == ["possible", "possible"]


def test_a_variant_without_a_value_has_no_standing() -> None:
    frame = answers((1, 1), (9, 9))
    found = stats.front(
        frame.assign(cost=frame["cost"].mask(frame["variant"] == "a")), [COST, TIME], by="variant", prompts="prompt"
    )
    assert found.table["standing"].isna().tolist() == [True, False]
    assert found.standing("b") == "clear"
    assert stats.front(frame.iloc[:0], [COST], by="variant", prompts="prompt").table.empty
    with pytest.raises(ValueError, match="objectives: expected at least one"):
        stats.front(frame, [], by="variant", prompts="prompt")


@pytest.mark.full
def test_alike_variants_are_seldom_claimed_to_be_anything() -> None:
    """Three of one kind, over 12 prompts, by medians: none of them is beaten, and none is better than another."""
    frames = [answers((1, 1), (1, 1), (1, 1), seed=seed, prompts=12, repeats=2) for seed in range(60)]
    assert claims_are_rare(set(standings(frame, COST, MEDIAN_TIME)) != {"possible"} for frame in frames)


@pytest.mark.full
@pytest.mark.parametrize("prompts", [6, 60])
def test_the_beaten_is_seldom_clear_and_the_front_seldom_beaten(prompts: int) -> None:
    """A and b trade cost for time, c is a little worse than a in both: a, b clear or possible, c possible or beaten."""
    found = [standings(answers((1, 1.3), (1.3, 1), (1.15, 1.45), seed=seed, prompts=prompts)) for seed in range(100)]
    assert claims_are_rare("beaten" in (a, b) or c == "clear" for a, b, c in found)


@pytest.mark.full
def test_what_is_true_is_found_with_many_prompts() -> None:
    found = [standings(answers((1, 1.6), (1.6, 1), (1.6, 2.4), seed=seed, prompts=60)) for seed in range(60)]
    assert np.mean([one == ["clear", "clear", "beaten"] for one in found]) > 0.8


@pytest.mark.full
def test_repeats_that_count_as_prompts_make_claims_of_nothing() -> None:
    frames = [answers((1, 1), (1, 1), (1, 1), seed=seed, prompts=12, repeats=5) for seed in range(60)]
    calls = [frame.assign(prompt=frame.groupby("variant").cumcount()) for frame in frames]
    assert not claims_are_rare(set(standings(one)) != {"possible"} for one in calls)


def test_what_is_not_worse_by_more_than_the_margin_does_not_keep_another_from_beating_it() -> None:
    """B costs a third and is slower by a hundredth, in every prompt: a trade-off, unless a tenth is none."""
    rng = np.random.default_rng(2)
    times = rng.lognormal(0, 0.3, 40)
    frame = pd.DataFrame({"variant": np.repeat(["a", "b"], 40), "prompt": [*range(40)] * 2})
    frame["cost"], frame["time"] = np.repeat([3.0, 1.0], 40), [*times, *(times + 0.01)]
    assert standings(frame, COST, TIME) == ["clear", "clear"]
    close = stats.Objective("time", margin=0.1)
    assert standings(frame, COST, close) == ["beaten", "clear"]
