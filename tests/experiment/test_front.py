"""The front: its three standings, by their definition and over many experiments of known truth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from famnb.experiment.front import Place, place_variants
from famnb.experiment.metrics import Metric, measure_column
from tests.support.truth_rates import claims_are_rare

COST, TIME = (Metric(name=name, title=name) for name in ("cost", "time"))
SCORE = Metric(name="score", title="score", better="more")


def answers(*levels: tuple[float, ...], seed: int = 0, prompts: int = 20, repeats: int = 3) -> pd.DataFrame:
    """Calls of variants a, b, …, each with its level of cost and time; prompts differ, and each suits some variants."""
    rng = np.random.default_rng(seed)
    variant, prompt, _ = (grid.ravel() for grid in np.indices((len(levels), prompts, repeats)))
    shape = (2, len(levels), prompts)
    ease = rng.normal(0, 0.7, (2, 1, prompts)) + rng.normal(0, 0.3, shape)
    values = np.exp(ease[:, variant, prompt] + rng.normal(0, 0.3, (2, len(variant)))) * np.array(levels).T[:, variant]
    rows = {"variant": np.array(list("abcdef"))[variant], "prompt": prompt, "cost": values[0], "time": values[1]}
    return pd.DataFrame(rows)


def places(frame: pd.DataFrame, *metrics: Metric, margins: Mapping[str, float] | None = None) -> dict[str, Place]:
    measured = {metric: measure_column(frame, metric.name, by="variant") for metric in metrics or (COST, TIME)}
    return place_variants(frame["variant"], frame["prompt"], measured, margins=margins)


def standings(frame: pd.DataFrame, *metrics: Metric, margins: Mapping[str, float] | None = None) -> list[str]:
    return [place.standing for place in places(frame, *metrics, margins=margins).values()]


def test_a_trade_off_is_clear_and_what_is_worse_in_all_is_beaten() -> None:
    found = places(answers((1, 4), (4, 1), (16, 16)))
    assert [(place.standing, place.beaten_by) for place in found.values()] == [
        ("clear", None),
        ("clear", None),
        ("beaten", "a"),
    ]
    assert all(place.figures[0].low < place.figures[0].value for place in found.values())
    assert [(place.n, place.fewest_shared) for place in found.values()] == [(60, 20)] * 3


def test_more_of_a_score_is_better() -> None:
    """What is beaten in cost and time stays if it is right more often, and is clear if that is."""
    frame = answers((1, 1), (3, 3))
    right = np.random.default_rng(1).random(len(frame)) < np.where(frame["variant"] == "b", 0.95, 0.2)
    assert standings(frame.assign(score=right), COST, TIME, SCORE) == ["clear", "clear"]
    assert standings(frame.assign(score=~right), COST, TIME, SCORE) == ["clear", "beaten"]


def test_what_is_the_same_in_every_pair_is_no_worse() -> None:
    """Of equal cost, but slower: beaten. The same in all ways: neither beats the other, and that is clear."""
    frame = answers((1, 1), (1, 3)).assign(cost=2.0)
    assert standings(frame) == ["clear", "beaten"]
    assert standings(frame.assign(time=1.5)) == ["clear", "clear"]


def test_estimated_costs_count_at_their_worst() -> None:
    """Three times as dear, and slower; where either cost may be off by a factor of two, nothing is beaten."""
    frame = answers((1, 1), (3, 3))
    assert standings(frame) == ["clear", "beaten"]
    guessed = frame.assign(cost_low=frame["cost"] / 2, cost_high=frame["cost"] * 2)
    assert standings(guessed) == ["clear", "possible"]
    exact, bounded = (places(rows)["a"].figures[0] for rows in (frame, guessed))
    assert (bounded.low, bounded.high) == pytest.approx((exact.low / 2, exact.high * 2))


def test_calls_on_no_common_prompt_are_not_told_apart() -> None:
    """Nor calls without a prompt, nor those on five prompts only: their difference may be that of the prompts."""
    frame = answers((1, 1), (9, 9))
    assert standings(frame.assign(prompt=pd.NA)) == ["possible", "possible"]
    assert standings(frame.assign(prompt=frame["prompt"].astype(str) + frame["variant"])) == ["possible", "possible"]
    assert standings(answers((1, 1), (9, 9), prompts=5, repeats=20)) == ["possible", "possible"]


def test_a_variant_without_a_value_has_no_place() -> None:
    frame = answers((1, 1), (9, 9))
    found = places(frame.assign(cost=frame["cost"].mask(frame["variant"] == "a")))
    assert {name: place.standing for name, place in found.items()} == {"b": "clear"}
    assert places(frame.iloc[:0]) == {}


@pytest.mark.full
def test_the_beaten_is_seldom_clear_and_the_front_seldom_beaten() -> None:
    """A and b trade cost for time, c is a little worse than a in both: a, b clear or possible, c possible or beaten."""
    found = [standings(answers((1, 1.3), (1.3, 1), (1.15, 1.45), seed=seed)) for seed in range(100)]
    assert claims_are_rare("beaten" in (a, b) or c == "clear" for a, b, c in found)


@pytest.mark.full
@pytest.mark.parametrize("slower", [1, 3])
def test_alike_in_cost_nothing_is_beaten_and_what_is_faster_is_clear(slower: float) -> None:
    """B may still be the cheaper one; where it is as fast, too, neither has a place."""
    found = [standings(answers((1, 1), (1, slower), seed=seed)) for seed in range(100)]
    assert claims_are_rare("beaten" in pair or (slower == 1 and "clear" in pair) for pair in found)
    assert slower == 1 or np.mean([a == "clear" for a, _ in found]) > 0.5


@pytest.mark.full
def test_what_is_true_is_found_with_many_prompts() -> None:
    found = [standings(answers((1, 1.6), (1.6, 1), (1.6, 2.4), seed=seed, prompts=60)) for seed in range(20)]
    assert np.mean([result == ["clear", "clear", "beaten"] for result in found]) > 0.8


def test_what_is_not_worse_by_more_than_the_margin_does_not_keep_another_from_beating_it() -> None:
    """B costs a third and is slower by a hundredth, in every prompt: a trade-off, unless a tenth does not count."""
    rng = np.random.default_rng(2)
    times = rng.lognormal(0, 0.3, 40)
    frame = pd.DataFrame({"variant": np.repeat(["a", "b"], 40), "prompt": [*range(40)] * 2})
    frame["cost"], frame["time"] = np.repeat([3.0, 1.0], 40), [*times, *(times + 0.01)]
    assert standings(frame) == ["clear", "clear"]
    assert standings(frame, margins={"time": 0.1}) == ["beaten", "clear"]
