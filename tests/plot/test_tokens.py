"""Tokens by kind."""

from __future__ import annotations

import pandas as pd

from famnb import plot
from tests.plot.plot_figures import figure_text
from tests.support.plot_frames import many_calls


def test_tokens_of_a_bar_add_up_to_input_and_output() -> None:
    """Unknown caching and unknown reasoning have their own part; nothing is counted twice or left out."""
    frame = many_calls(90, models=3)
    parts = [bar.get_width() for bar in plot.tokens(frame).axes[0].patches]
    assert sum(parts) == frame["input_tokens"].sum() + frame["output_tokens"].sum()
    text = figure_text(plot.tokens(frame))
    assert {"mixed input", "mixed output", "visible output"} <= set(text.split("\n"))


def test_estimated_tokens_are_marked_wherever_they_are_told() -> None:
    """In the sum, at the end of their bar and in the legend; a bar of reported counts has no mark."""
    counts = {"input_tokens": [10, 10], "cached_tokens": [0, 0], "output_tokens": [90, 50], "reasoning_tokens": [0, 0]}
    sources = {"input_tokens_source": "reported", "output_tokens_source": ["reported", "estimated"]}
    texts = figure_text(plot.tokens(pd.DataFrame({"model": ["a", "b"]} | counts | sources))).split("\n")
    assert {"100 · 100 a call", "a (n=1)", "≈ 60 · ≈ 60 a call", "≈ 160 tokens in 2 calls"} <= set(texts)
    assert {"20", "≈ 140"} <= set(texts)
