"""Cost against latency or score, and the front."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from famnb import plot
from famnb.plot import Figure
from famnb.plot.palette import MARKERS
from tests.plot.plot_figures import figure_text, legend_texts
from tests.support.plot_frames import many_calls


def calls_of(*levels: tuple[float, float], prompts: int = 20, repeats: int = 3, **columns: Any) -> pd.DataFrame:
    """Calls of models a, b, …, each with its level of cost and of time; prompts differ more than repeats do."""
    rng = np.random.default_rng(2)
    model, prompt, _ = (grid.ravel() for grid in np.indices((len(levels), prompts, repeats)))
    level, ease = np.array(levels), rng.lognormal(0, 1, prompts)
    costs, times = (level[model, axis] * ease[prompt] * rng.lognormal(0, 0.1, len(model)) for axis in (0, 1))
    names = np.array(list("abcdefgh"))[model]
    return pd.DataFrame({"model": names, "prompt_id": prompt, "cost_usd": costs, "e2e_s": times}).assign(**columns)


def standings(figure: Figure) -> list[str]:
    """The last column of the legend, in the order of groups."""
    return [text for text in legend_texts(figure) if text.startswith(("clear", "possible", "beaten"))]


def fills(figure: Figure) -> list[str]:
    """How the mark of each group is drawn."""
    marks = [line for line in figure.axes[0].lines if line.get_marker() in MARKERS]
    grounds = {mark.get_markerfacecoloralt() for mark in marks}
    return ["hollow" if mark.get_markerfacecolor() in grounds else mark.get_fillstyle() for mark in marks]


def test_a_figure_says_who_is_clear_who_is_beaten_and_who_may_be_either():
    figure = plot.pareto(calls_of((1, 2), (2, 1), (1.5, 3), (1, 2)))
    assert standings(figure) == ["possible", "clear", "beaten by a", "possible"]
    assert fills(figure) == ["left", "full", "hollow", "left"]


def test_repeats_are_no_prompts():
    figure = plot.pareto(calls_of((1, 1), (3, 3), prompts=5, repeats=40))
    assert standings(figure) == ["possible", "possible"]
    assert "fewer than 6 prompts in common are not told apart" in figure_text(figure)


def test_warm_ups_are_in_no_point():
    frame = calls_of((1, 2), (2, 1))
    slow = frame.assign(e2e_s=frame["e2e_s"] * 50, warmup=True)
    both = pd.concat([frame.assign(warmup=False), slow])
    assert legend_texts(plot.pareto(both)) == legend_texts(plot.pareto(frame))


def test_a_pareto_point_stands_at_mean_cost_and_median_latency():
    frame = many_calls(60, models=1)
    dot = next(line for line in plot.pareto(frame).axes[0].lines if line.get_marker() == "o")
    assert dot.get_xdata()[0] == pytest.approx(frame["cost_usd"].mean())
    assert dot.get_ydata()[0] == pytest.approx(frame["e2e_s"].median())


def test_twenty_passes_of_twenty_are_not_certain():
    figure = plot.pareto(many_calls(20, models=1).assign(score_whole=1.0), score="score_whole")
    assert "1 (0.758–1)" in figure_text(figure)
    assert "Score whole against cost by model" in figure_text(figure)


def test_an_estimated_cost_is_marked():
    frame = calls_of((1.0, 2.0), (2.0, 1.0))
    ends = {"cost_low_usd": 0.8, "cost_high_usd": 1.3}
    bounds = {name: frame["cost_usd"].where(frame["model"] == "a", frame["cost_usd"] * ends[name]) for name in ends}
    costs = [text for text in legend_texts(plot.pareto(frame.assign(**bounds))) if "$" in text]
    assert [text.startswith("≈ ") for text in costs] == [False, True]
