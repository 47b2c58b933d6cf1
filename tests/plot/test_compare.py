"""Variants on the same prompts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from famnb import plot
from tests.support.plot_figures import figure_text, legend_texts


def test_a_comparison_is_over_the_pairs_that_both_have() -> None:
    """Prompts 1 and 2 differ by 1 s and 3 s, the third has no partner: 2 s over two pairs."""
    frame = pd.DataFrame({"model": list("aabbb"), "prompt": list("12123"), "e2e_s": [1.0, 1.0, 2.0, 4.0, 90.0]})
    assert "+2.00 s over 2 pairs" in legend_texts(plot.compare(frame))


def test_what_is_estimated_is_drawn_and_said_as_such() -> None:
    """Between ends that hold it, with the mark; a bound where they are too far apart; no claim beyond the ends."""
    cost = np.linspace(0.01, 0.02, 8)
    frame = pd.DataFrame(
        {
            "model": ["a"] * 8 + ["b"] * 8,
            "prompt": [*range(8)] * 2,
            "cost_usd": [*cost, *cost],
            "cost_low_usd": [*cost, *(cost / 1.5)],
            "cost_high_usd": [*cost, *(cost * 1.5)],
        }
    )
    texts = "\n".join(legend_texts(plot.compare(frame, metric="cost_usd")))
    assert "mean $0.015 ($" in texts
    assert "mean ≈ $0.015 ($" in texts
    assert "≈ 1 times (0.667–1.5 times) over 8 pairs" in texts
    far = frame.assign(cost_low_usd=frame["cost_usd"] / 4)
    assert "mean at most $0.0" in figure_text(plot.compare(far, metric="cost_usd"))


def test_calls_are_paired_by_what_they_ask() -> None:
    """By the id of the prompt within an experiment, else by the whole prompt, of which the column has but the head."""
    frame = pd.DataFrame(
        {
            "model": list("aabb"),
            "prompt": ["the same head …"] * 4,
            "prompt_hash": list("xyxy"),
            "prompt_id": ["p0", "p1", "p0", "p1"],
            "experiment": "one",
            "e2e_s": [1.0, 2.0, 2.0, 3.0],
        }
    )
    assert "paired by prompt_id" in figure_text(plot.compare(frame))
    assert "+1.00 s over 2 pairs" in legend_texts(plot.compare(frame))
    assert "paired by prompt_hash" in figure_text(plot.compare(frame.assign(experiment=list("ABAB"))))
    assert "paired by prompt" in figure_text(plot.compare(frame[["model", "prompt", "e2e_s"]]))


def test_the_baseline_is_the_group_that_is_named() -> None:
    """A slip says which there are."""
    frame = pd.DataFrame({"model": list("ab"), "prompt": list("11"), "e2e_s": [1.0, 2.0]})
    assert "−1.00 s over 1 pair" in legend_texts(plot.compare(frame, baseline="b"))
    with pytest.raises(ValueError, match="baseline: there is no group 'c' in the column 'model'; it has a, b"):
        plot.compare(frame, baseline="c")
