"""Cost against latency or score, and the front."""

from __future__ import annotations

import numpy as np
import pytest

from famnb import plot
from famnb.plot.pareto import find_front
from tests.support.plot_figures import figure_text
from tests.support.plot_frames import many_calls


def test_the_front_is_what_nobody_beats() -> None:
    """A tie beats nobody; being worse in all ways is being beaten."""
    assert find_front(np.array([[1, 3], [2, 2], [3, 1], [3, 3], [1, 3]])).tolist() == [True, True, True, False, True]


def test_a_pareto_point_stands_at_mean_cost_and_median_latency() -> None:
    """Of a group's calls, by pandas' own mean and median."""
    frame = many_calls(60, models=1)
    dot = next(line for line in plot.pareto(frame).axes[0].lines if line.get_marker() == "o")
    assert dot.get_xdata()[0] == pytest.approx(frame["cost_usd"].mean())
    assert dot.get_ydata()[0] == pytest.approx(frame["e2e_s"].median())


def test_twenty_passes_of_twenty_are_not_certain() -> None:
    """A score of yes and no has Wilson's interval, and is called by its scorer's name."""
    figure = plot.pareto(many_calls(20, models=1).assign(score_whole=1.0), score="score_whole")
    assert "1 (0.839–1)" in figure_text(figure)
    assert "Score whole against cost by model" in figure_text(figure)
