"""Variants on the same prompts."""

from __future__ import annotations

import pandas as pd

from famnb import plot
from tests.support.plot_figures import figure_text


def test_a_comparison_is_over_the_pairs_that_both_have() -> None:
    """Prompts 1 and 2 differ by 1 s and 3 s, the third has no partner: 2 s over two pairs."""
    frame = pd.DataFrame({"model": list("aabbb"), "prompt": list("12123"), "e2e_s": [1.0, 1.0, 2.0, 4.0, 90.0]})
    texts = figure_text(plot.compare(frame)).split("\n")
    assert any(text.startswith("+2.00 s") and text.endswith(", 2 pairs") for text in texts)
