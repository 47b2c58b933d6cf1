"""Costs: sums with their intervals, periods, and what is in no sum."""

import numpy as np
import pandas as pd
import pytest

from famnb import plot
from tests.plot.plot_figures import figure_text, legend_texts
from tests.support.plot_frames import many_calls, priced_calls


def test_costs_add_up_with_their_interval():
    figure = plot.cost(priced_calls(["m"] * 3, [0.01, 0.02, 0.03], off=1.5))
    assert "≈ $0.06 ($0.04–$0.09)" in legend_texts(figure)
    assert "≈ $0.06 ($0.04–$0.09) for 3 calls" in figure_text(figure)
    assert "at most $0.12" in legend_texts(plot.cost(priced_calls(["m"] * 3, [0.01, 0.02, 0.03], off=2)))
    assert plot.cost(priced_calls(["m"], [0.5])).alt == "Cost by model: $0.50 for 1 call; m (n=1), $0.50"


def test_calls_without_a_price_are_named_with_the_way_to_set_one():
    frame = priced_calls(["fam-mini", "fam-2-5-pro", "fam-mini"], [0.01, None, None], input_tokens=[1, 1, None])
    text = figure_text(plot.cost(frame)).replace("\n", " ")
    assert "1 call of fam-2-5-pro, for want of a price" in text
    assert 'famnb.prices.set("fam-2-5-pro", input=…, output=…)' in text
    assert "1 call whose token counts are not known" in text
    assert "$0.01 for 1 call" in text


def test_costs_per_period_are_the_sums_of_the_periods():
    frame = many_calls(60, models=3, gap_s=600)
    bars = plot.cost(frame, per="hour").axes[0].patches
    drawn = pd.Series([bar.get_height() for bar in bars], index=[round(bar.get_x() + 0.4) for bar in bars])
    hours = frame["started_at"].dt.tz_localize(None).dt.floor("h")
    expected = frame.groupby(hours)["cost_usd"].sum()
    assert np.allclose(drawn.groupby(level=0).sum(), expected.to_numpy(dtype=float))


def test_a_sum_with_unknown_parts_is_the_least_that_was_spent():
    frame = priced_calls(["fam-mini"] * 3 + ["fam-2-5-pro"], [0.01, 0.02, None, None])
    texts = legend_texts(plot.cost(frame))
    assert "≥ $0.03 (1 of 3 calls without a price)" in texts
    assert "not known (1 of 1 call without a price)" in texts
    assert "≥ $0.03 for 2 calls of 4" in figure_text(plot.cost(frame))


def test_refused_calls_are_not_in_want_of_a_price():
    frame = priced_calls(["m"] * 3, [0.01, None, None], http_status=[200, 400, None], attempts=[1, 1, None])
    frame = frame.assign(status=["completed", "failed", "planned"])
    figure = plot.cost(frame)
    assert "$0.01 for 1 call" in figure_text(figure)
    assert "Not in the sum" not in figure_text(figure)
    assert "cost anything" in figure_text(plot.cost(frame.iloc[1:]))


@pytest.mark.parametrize(("gap_h", "period"), [(0.01, None), (3, "day"), (30, "week"), (150, "month")])
def test_calls_of_several_days_are_bars(gap_h: float, period: str | None):
    frame = many_calls(100, gap_s=gap_h * 3600)
    labels = plot.cost(frame).axes[0].get_ylabel(), plot.cost(frame, per="total").axes[0].get_ylabel()
    assert labels == (f"USD each {period}" if period else "USD so far", "USD so far")
