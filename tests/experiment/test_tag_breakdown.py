"""The primary metric by a tag of prompts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from famnb.experiment.metrics import find_metric
from famnb.experiment.tag_breakdown import break_down, grouping_tags
from tests.support.experiment_frames import frame, spread
from tests.support.truth_rates import claims_are_rare

PROMPTS = 24


def frame_of_topics(shift: float = 0.5, **columns: object) -> pd.DataFrame:
    """B is slower than A by `shift` on questions of law, and as fast on those of art; every second one is of law."""
    times, noise = spread(PROMPTS, 2, 0.3), spread(PROMPTS, 0, 0.05, 1)
    is_law = np.arange(PROMPTS) % 2
    rows = frame(PROMPTS, e2e_s=(times, times + noise + shift * is_law), **columns)
    return rows.assign(topic=np.tile(np.where(is_law, "law", "art"), 2))


def test_each_value_of_a_tag_is_compared_by_itself() -> None:
    """Over its own prompts, with the baseline; what is clear is so beyond the chance of several comparisons."""
    found = break_down(frame_of_topics(), "topic", find_metric("e2e_s"), baseline="A").set_index("value")
    assert found.index.tolist() == ["art", "law"]
    assert found["n"].tolist() == [12, 12]
    assert found["difference"].tolist() == pytest.approx([0, 0.5], abs=0.05)
    assert found["clear"].tolist() == [False, True]
    assert (found["p_adjusted"] >= found["p_value"]).all()


def test_failed_calls_score_the_lowest_of_all_values() -> None:
    """Grades are 2 at the least, also where a value of the tag has better ones only."""
    rows = frame_of_topics(score_grade=([3.0] * PROMPTS, [4.0] * PROMPTS))
    rows.loc[(rows["topic"] == "law") & (rows["variant"] == "A"), "score_grade"] = -2.0
    is_failure = (rows["topic"] == "art") & (rows["variant"] == "B") & (rows["prompt_id"] == "p0")
    rows.loc[is_failure, ["status", "score_grade"]] = ["failed", np.nan]
    found = break_down(rows, "topic", find_metric("score_grade"), baseline="A").set_index("value")
    assert found.loc["art", "second_value"] == pytest.approx((11 * 4 - 2) / 12)


def test_tags_that_group_nothing_are_left_out() -> None:
    """One value, one a prompt, or more than a table has room for."""
    rows = frame_of_topics().assign(same="x", own=lambda rows: rows["prompt_id"])
    rows["many"] = rows["prompt_id"].str[1:].astype(int) % 20
    assert grouping_tags(rows, ["same", "own", "many", "topic", "absent"]) == ["topic"]


def test_a_false_claim_of_any_value_is_rare() -> None:
    """Of tables in which no value has a difference."""

    def is_false(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        rows = frame(36, e2e_s=(rng.lognormal(0, 0.5, 36), rng.lognormal(0, 0.5, 36)))
        rows["topic"] = np.tile(np.arange(36) % 4, 2)
        return bool(break_down(rows, "topic", find_metric("e2e_s"), baseline="A")["clear"].any())

    assert claims_are_rare(is_false(seed) for seed in range(150))
