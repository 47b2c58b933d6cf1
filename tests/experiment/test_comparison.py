"""Paired comparisons: the prompt is the unit, whatever its repeats."""

from __future__ import annotations

from famnb.experiment.summary import summary
from tests.support.experiment_frames import frame, spread


def test_many_repeats_of_one_prompt_are_one_pair():
    """Repeats say how one prompt varies, not how prompts do."""
    found = summary(frame(1, repeats=50, e2e_s=(spread(50, 2, 0.1), spread(50, 1, 0.1, 1))))
    assert found.pairs["n"].tolist() == [1]
    assert found.lines == ("B and A: no difference can be claimed: n = 1 pair; 6 are the fewest that could show one.",)
    assert found.table["e2e_s_n"].tolist() == [50, 50]


def test_equal_differences_are_judged_by_their_signs():
    """A difference without spread has no t test: ten of ten the same way are clear, all zero are the same."""
    found = summary(frame(10, output_tokens=(100, 90), cost_usd=(0.001, 0.001)))
    assert found.pairs.set_index("metric")["p_value"].tolist() == [2**-9, 1]
    assert found.lines[0].startswith("B writes 10 tokens fewer than A")
    assert "no clear difference in cost (the same in every pair)" in found.lines[0]
