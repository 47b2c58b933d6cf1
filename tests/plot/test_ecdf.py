"""Distributions: thinned without loss, on a scale that fits."""

import numpy as np
import pytest

from famnb import plot
from famnb.plot.ecdf import MAX_STEPS, ecdf_steps
from tests.plot.figure_boxes import faults
from tests.support.plot_frames import many_calls


def test_a_thinned_distribution_is_off_by_less_than_a_pixel():
    values = np.sort(np.random.default_rng(5).lognormal(0, 2, 100_000))
    x, shares = ecdf_steps(values)
    assert len(x) < MAX_STEPS + 200
    drawn = np.concatenate([[0.0], shares])[np.searchsorted(x, values, side="right")]
    true = np.searchsorted(values, values, side="right") / len(values)
    assert np.abs(drawn - true).max() <= 1 / MAX_STEPS + 1e-12
    assert (x[:50] == values[:50]).all()
    assert (x[-50:] == values[-50:]).all()


def test_a_logarithmic_axis_has_several_ticks():
    frame = many_calls(30, models=1).assign(ttft_s=np.geomspace(0.2, 6.1, 30))
    figure = plot.latency(frame)
    figure.draw_without_rendering()
    assert figure.axes[0].get_xscale() == "log"
    shown = [tick.get_text() for tick in figure.axes[0].get_xticklabels() if tick.get_text()]
    assert {"0.2", "0.5", "1", "2", "5"} <= set(shown)


@pytest.mark.filterwarnings("error")
def test_values_below_zero_are_on_the_axis():
    figure = plot.latency(many_calls(30).assign(score=np.linspace(-3, -1, 30)), metric="score")
    assert faults(figure) == []
    assert figure.axes[0].get_xlim()[0] < -3
