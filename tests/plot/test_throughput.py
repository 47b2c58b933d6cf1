"""Tokens a second."""

import numpy as np
import pandas as pd
import pytest

from famnb import plot
from famnb.plot.throughput import amount_by
from tests.support.plot_frames import many_calls


def test_throughput_loses_no_token():
    rows = pd.DataFrame({"begin": [0.0, 1.0, 2.5], "end": [1.0, 3.0, 2.5], "amount": [10.0, 10.0, 5.0]})
    assert np.diff(amount_by(np.array([0.0, 1, 2, 3]), rows)).tolist() == [10, 5, 10]


def test_throughput_is_drawn_as_tokens_a_second():
    frame = many_calls(60, models=1)
    values, edges, _ = plot.throughput(frame).axes[0].patches[0].get_data()
    area = (values * np.diff(edges) * 60 ** (edges[-1] < 10)).sum()
    assert area == pytest.approx(frame["output_tokens"].sum())


@pytest.mark.parametrize(("gap_s", "step"), [(0.1, "is 0.27 s;"), (60, "is 2.5 min;"), (3600, "is 2.5 h;")])
def test_a_step_is_told_in_its_own_unit(gap_s: float, step: str):
    assert step in plot.throughput(many_calls(300, models=1, gap_s=gap_s)).alt


def test_rates_of_estimated_tokens_are_marked():
    frame = many_calls(20, models=1).assign(output_tokens_source="estimated")
    assert "mean ≈ " in plot.throughput(frame).alt
    assert "≈" not in plot.throughput(frame.assign(output_tokens_source="reported")).alt


def test_no_step_is_narrower_than_a_line():
    figure = plot.throughput(many_calls(300, models=1), figsize=(3.3, 2.6))
    (steps,) = [patch for patch in figure.axes[0].patches if not patch.get_fill()]
    assert steps.get_data().values.size < 60
