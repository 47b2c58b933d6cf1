"""`famnb.testing`, as a test of a user has it."""

from pathlib import Path

import pytest

import famnb
from famnb.testing import assert_no_regression, famnb_client, famnb_service

__all__ = ["famnb_client", "famnb_service"]


def test_answers_that_are_no_worse_pass_and_worse_ones_fail_with_the_reason(famnb_client: famnb.Client, tmp_path: Path):
    def run(name: str, score: float) -> famnb.Experiment:
        scorer = famnb.scorers.function(lambda reply: score, name="mine")
        prompts = [f"Question {number}?" for number in range(12)]
        exp = famnb.Experiment(prompts, scorers=[scorer], name=name, client=famnb_client, model="fam-mini")
        exp.run()
        exp.score()
        return exp

    baseline = run("before", 1.0).save_baseline(tmp_path / "baseline.json")
    assert_no_regression(run("same", 1.0), baseline, margin={"score_mine": 0.4})
    with pytest.raises(pytest.fail.Exception, match=r"fail: .*score mine changed by −1"):
        assert_no_regression(run("worse", 0.0), baseline, margin={"score_mine": 0.4})
