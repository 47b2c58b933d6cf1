"""The share of calls that were answered, and what the others failed of."""

import pandas as pd
import pytest
from scipy.stats import binomtest

from famnb import plot
from tests.plot.plot_figures import figure_text, legend_texts


def frame_of_ends(**ends: list[tuple[str, str | None, int | None]]) -> pd.DataFrame:
    """Calls of models with how they ended: status, error, HTTP status."""
    rows = [(model, *end) for model, values in ends.items() for end in values]
    return pd.DataFrame(rows, columns=["model", "status", "error", "http_status"])


OK, CUT = ("completed", None, 200), ("incomplete", None, 200)
BUSY, BROKEN = ("failed", "RateLimited", 429), ("interrupted", "StreamInterrupted", 200)


def test_shares_have_wilsons_intervals():
    figure = plot.success(frame_of_ends(a=[OK] * 16 + [CUT] + [BUSY] * 3))
    wilson = binomtest(17, 20).proportion_ci(method="wilson")
    (interval,) = [line for line in figure.axes[0].lines if line.get_linewidth() == 2.6]
    assert list(interval.get_xdata()) == pytest.approx([wilson.low, wilson.high])
    assert legend_texts(figure)[:3] == ["a (n=20)", "85% (64%–94.8%)", "3 failed"]


def test_failures_are_counted_by_what_they_were():
    figure = plot.success(frame_of_ends(a=[OK] + [BUSY] * 2, b=[OK, BUSY, BROKEN]))
    lower = figure.axes[1]
    assert [label.get_text() for label in lower.get_yticklabels()] == ["RateLimited 429", "StreamInterrupted 200"]
    parts = sorted((round(bar.get_y() + 0.31), bar.get_x(), bar.get_width()) for bar in lower.patches)
    assert [part for part in parts if part[2]] == [(0, 0, 2), (0, 2, 1), (1, 0, 1)]
    assert "b: RateLimited 429 1, StreamInterrupted 200 1." in figure.caption


def test_calls_without_an_end_are_in_no_share_and_said():
    others = [("cancelled", None, 200), ("running", None, None), ("interrupted", None, None)]
    figure = plot.success(frame_of_ends(a=[OK, OK, *others]))
    assert "a (n=2)" in legend_texts(figure)
    assert "3 of 5 calls came to no end, or were cancelled" in figure_text(figure).replace("\n", " ")
    assert "Nothing to draw: none of these calls came to an end" in figure_text(plot.success(frame_of_ends(a=others)))


def test_rare_reasons_share_a_row():
    kinds = [("failed", f"Error{number}", None) for number in range(9) for _ in range(9 - number)]
    labels = [label.get_text() for label in plot.success(frame_of_ends(a=kinds)).axes[1].get_yticklabels()]
    assert labels == [*(f"Error{number}" for number in range(6)), "3 other reasons"]
