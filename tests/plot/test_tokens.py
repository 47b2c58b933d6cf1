"""Tokens by kind."""

from __future__ import annotations

from famnb import plot
from tests.support.plot_figures import figure_text
from tests.support.plot_frames import many_calls


def test_tokens_of_a_bar_add_up_to_input_and_output() -> None:
    """Unknown caching and unknown reasoning have their own part; nothing is counted twice or left out."""
    frame = many_calls(90, models=3)
    parts = [bar.get_width() for bar in plot.tokens(frame).axes[0].patches]
    assert sum(parts) == frame["input_tokens"].sum() + frame["output_tokens"].sum()
    text = figure_text(plot.tokens(frame))
    assert {"input, cache unknown", "output, reasoning unknown", "visible output"} <= set(text.split("\n"))
