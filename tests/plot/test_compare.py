"""Groups on the same prompts, and their differences from a baseline."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from famnb import plot
from famnb.experiment.summary import summary
from famnb.plot import Figure
from tests.plot.plot_figures import figure_text, legend_texts, marks


def paired_calls(prompts: int = 12, **shifts: float) -> pd.DataFrame:
    """A call of every group on every prompt: as slow as the prompt is, and by its group's shift slower."""
    ease = np.random.default_rng(1).lognormal(0, 0.4, prompts)
    noise = np.random.default_rng(2).normal(0, 0.05, (len(shifts), prompts))
    parts = [
        pd.DataFrame({"model": name, "prompt": [f"p{i}" for i in range(prompts)], "e2e_s": ease + shift + jitter})
        for (name, shift), jitter in zip(shifts.items(), noise, strict=True)
    ]
    return pd.concat(parts, ignore_index=True)


def intervals(figure: Figure, panel: int) -> list[tuple[float, float]]:
    """The thick lines of a panel."""
    lines = [line for line in figure.axes[panel].lines if line.get_linewidth() == 2.6]
    return [(float(line.get_xdata()[0]), float(line.get_xdata()[1])) for line in lines]


def test_a_comparison_is_over_the_pairs_that_both_have() -> None:
    frame = pd.DataFrame({"model": list("aabbb"), "prompt": list("12123"), "e2e_s": [1.0, 1.0, 2.0, 4.0, 90.0]})
    figure = plot.compare(frame)
    assert "+2.00 s over 2 pairs" in legend_texts(figure)
    assert marks(figure, 1) == [(2.0, False)]


def test_differences_are_drawn_as_the_summary_of_an_experiment_has_them() -> None:
    frame = paired_calls(a=0.0, b=0.4, c=0.02).rename(columns={"model": "variant", "prompt": "prompt_id"})
    frame = frame.assign(status="completed", error=None, warmup=False, cost_usd=None, cost_low_usd=None)
    frame = frame.assign(cost_high_usd=None, output_tokens=None, ttft_s=None, ttfa_s=None, input_tokens=None)
    pairs = summary(frame, metrics=["e2e_s"]).pairs
    figure = plot.compare(frame, by="variant")
    assert [value for value, _ in marks(figure, 1)] == pytest.approx(pairs["difference"].tolist())
    assert [filled for _, filled in marks(figure, 1)] == pairs["clear"].tolist() == [True, False]
    assert np.array(intervals(figure, 1)) == pytest.approx(pairs[["low", "high"]].to_numpy(dtype=float))


def test_one_unit_is_chosen_for_the_whole_figure() -> None:
    """Of times up to 3 s a difference of 4 ms is in seconds, of times below one second all is in milliseconds."""
    figure = plot.compare(paired_calls(a=0.0, b=0.004))
    assert " ms" not in figure_text(figure)
    assert [axes.get_xlabel()[-3:] for axes in figure.axes] == ["(s)", "(s)"]
    frame = paired_calls(a=0.0, b=0.004)
    figure = plot.compare(frame.assign(e2e_s=frame["e2e_s"] / 10))
    assert " s " not in figure_text(figure)
    assert [axes.get_xlabel()[-4:] for axes in figure.axes] == ["(ms)", "(ms)"]


def test_groups_without_a_common_prompt_are_said_not_to_be_paired() -> None:
    frame = paired_calls(a=0.0, b=0.4)
    figure = plot.compare(frame.assign(prompt=range(len(frame))))
    assert "not paired" in figure_text(figure)
    assert "no difference is claimed" in figure_text(figure).replace("\n", " ")
    assert len(figure.axes) == 1


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


def test_costs_are_compared_by_their_ratio_on_a_scale_of_ratios() -> None:
    frame = paired_calls(a=0.0, b=0.0, c=0.0)
    factor = frame["model"].map({"a": 1.0, "b": 0.5, "c": 2.0})
    figure = plot.compare(frame.assign(cost_usd=frame["e2e_s"].tolist()[:12] * 3 * factor), metric="cost_usd")
    lower = figure.axes[1]
    assert lower.get_xscale() == "log"
    assert lower.get_xlabel() == "cost, times that of a"
    assert [value for value, _ in marks(figure, 1)] == pytest.approx([0.5, 2.0])


def test_what_failed_calls_cost_puts_no_prompt_below_nothing() -> None:
    """Half of b's calls fail at a high price, which its answers share; a cheap prompt still cost what it cost."""
    frame = pd.DataFrame(
        {
            "variant": ["a"] * 8 + ["b"] * 8,
            "prompt_id": [f"p{i}" for i in range(8)] * 2,
            "status": ["completed"] * 12 + ["failed"] * 4,
            "error": [None] * 12 + ["StreamError"] * 4,
            "output_tokens": [1] * 16,
            "cost_usd": [0.02] * 8 + [0.001] * 4 + [0.03] * 4,
        }
    )
    figure = plot.compare(frame, by="variant", metric="cost_usd")
    drawn = np.concatenate([line.get_xdata() for line in figure.axes[0].lines if line.get_marker() == "o"])
    assert min(drawn) == 0.001
    assert "mean $0.031" in figure_text(figure)


def test_calls_are_paired_by_what_they_ask() -> None:
    """By the id of the prompt within an experiment, else by the whole prompt, of which the column has but the head."""
    frame = pd.DataFrame(
        {
            "model": list("aabb"),
            "prompt": ["the same head …"] * 4,
            "prompt_hash": list("xyxz"),
            "prompt_id": ["p0", "p1", "p0", "p1"],
            "experiment": "one",
            "e2e_s": [1.0, 2.0, 2.0, 3.0],
        }
    )
    assert "+1.00 s over 2 pairs" in legend_texts(plot.compare(frame))
    assert "+1.00 s over 1 pair" in legend_texts(plot.compare(frame.assign(experiment=list("ABAB"))))
    assert "by model, paired by prompt" in figure_text(plot.compare(frame.assign(experiment=list("ABAB"))))
    assert "+1.00 s over 1 pair" in legend_texts(plot.compare(frame[["model", "prompt", "e2e_s"]]))


def test_the_baseline_is_the_group_that_is_named() -> None:
    frame = pd.DataFrame({"model": list("ab"), "prompt": list("11"), "e2e_s": [1.0, 2.0]})
    assert "−1.00 s over 1 pair" in legend_texts(plot.compare(frame, baseline="b"))
    with pytest.raises(ValueError, match="baseline: there is no group 'c' in the column 'model'; it has a, b"):
        plot.compare(frame, baseline="c")


def test_failed_calls_of_an_experiment_count_in_its_scores() -> None:
    """As in the summary: b answered half of the prompts, all of them right, and scores half."""
    frame = pd.DataFrame(
        {
            "variant": ["a"] * 8 + ["b"] * 8,
            "prompt_id": [f"p{i}" for i in range(8)] * 2,
            "status": ["completed"] * 12 + ["failed"] * 4,
            "error": [None] * 12 + ["ServerError"] * 4,
            "score_exact": [1.0] * 12 + [None] * 4,
        }
    )
    assert [value for value, _ in marks(plot.compare(frame, by="variant", metric="score_exact"), 0)] == [1.0, 0.5]
