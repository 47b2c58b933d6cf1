"""Tokens by kind."""

from __future__ import annotations

from famnb import plot
from tests.support.plot_figures import (
    words,
)
from tests.support.plot_frames import many


def test_tokens_of_a_bar_add_up_to_input_and_output() -> None:
    """Unknown caching and unknown reasoning have their own part; nothing is counted twice or left out."""
    frame = many(90, models=3)
    parts = [bar.get_width() for bar in plot.tokens(frame).axes[0].patches]
    assert sum(parts) == frame["input_tokens"].sum() + frame["output_tokens"].sum()
    said = words(plot.tokens(frame))
    assert {"input, cache unknown", "output, reasoning unknown", "visible output"} <= set(said.split("\n"))
