"""All metrics of an experiment against its baseline."""

from __future__ import annotations

import pandas as pd
import pytest

import famnb
from famnb import plot
from famnb.experiment.summary import Summary, summary
from famnb.plot import Figure
from tests.plot.plot_figures import figure_text, legend_texts, marks
from tests.support.experiment_frames import frame, spread

PROMPTS = 12


def three_variants(**options: object) -> Summary:
    """B takes twice as long as A and costs half; C is as A, but for noise; all are right in as many of the answers."""
    times, noise = spread(PROMPTS, 2, 0.3), [spread(PROMPTS, 0, 0.02, seed) for seed in range(2)]
    rows = frame(
        PROMPTS,
        variants=("A", "B", "C"),
        e2e_s=(times, 2 * times, times + noise[0]),
        cost_usd=(times / 100, times / 200, times / 100 * (1 + noise[1])),
        score_exact=([1, 0] * 6, [0, 1] * 6, [1, 0] * 6),
    )
    for end in ("low", "high"):
        rows[f"cost_{end}_usd"] = rows["cost_usd"]
    return summary(rows, **{"primary": "e2e_s", **options})


def row_names(figure: Figure, panel: int) -> list[str]:
    return [
        label.get_text().replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ")
        for label in figure.axes[panel].get_yticklabels()
    ]


def test_times_and_costs_are_multiples_of_the_baselines() -> None:
    """By the summary's own figures: time as difference over the baseline's mean, cost as the mean ratio."""
    found = three_variants()
    figure = plot.differences(found)
    pairs = found.pairs.set_index(["metric", "second"])
    times = [1 + pairs.loc[("e2e_s", name), "difference"] / pairs.loc[("e2e_s", name), "first_value"] for name in "BC"]
    costs = [pairs.loc[("cost_usd", name), "ratio"] for name in "BC"]
    assert row_names(figure, 0) == ["time to the end of the answer ↓ (primary)", "cost ↓"]
    assert [value for value, _ in marks(figure, 0)] == pytest.approx([*times, *costs])
    assert [filled for _, filled in marks(figure, 0)] == [True, False, True, False]
    assert figure.axes[0].get_xscale() == "log"


def test_shares_and_scores_have_axes_of_their_own() -> None:
    figure = plot.differences(three_variants())
    assert (row_names(figure, 1), marks(figure, 1)) == (["score exact ↑"], [(0.0, False), (0.0, False)])
    assert row_names(plot.differences(three_variants(primary="score_exact")), 0) == ["score exact ↑ (primary)"]


def test_the_caption_has_every_difference_in_its_unit() -> None:
    small = plot.differences(three_variants(), figsize=(3, 2))
    assert "B, cost: 0.5 times" in small.caption
    assert "clear (p <" in small.caption
    assert "No room for: 1 metric" in small.caption
    assert row_names(small, 0)[0].endswith("primary)")
    assert "No room" not in plot.differences(three_variants()).caption


def test_n_is_of_the_axes_that_are_drawn() -> None:
    """Into the caller's axes go the times, which all prompts have, and not the scores, which two lack."""
    rows = frame(8, e2e_s=(spread(8, 1, 0.1), spread(8, 2, 0.1)), score_exact=([None] * 2 + [1, 0] * 3, [1, 0] * 4))
    found = summary(rows, primary="e2e_s")
    assert "(n=6–8 prompts)" in figure_text(plot.differences(found))
    assert "(n=8 prompts)" in figure_text(plot.differences(found, ax=Figure().add_subplot())).replace("\n", " ")


def test_variants_have_a_legend_if_there_are_several() -> None:
    assert legend_texts(plot.differences(three_variants())) == ["B", "C"]
    two = plot.differences(summary(frame(8, e2e_s=(spread(8, 1, 0.1), spread(8, 2, 0.1)))))
    assert two.axes[0].get_legend() is None
    assert "B against A" in figure_text(two)


def test_one_variant_has_nothing_to_compare() -> None:
    alone = summary(frame(8, variants=("A",), e2e_s=(spread(8, 1, 0.1),)))
    assert "there is one variant" in figure_text(plot.differences(alone))
    with pytest.raises(famnb.InvalidRequest, match=r"expected what Experiment.summary\(\) returns, got DataFrame"):
        plot.differences(pd.DataFrame())
