"""Latencies: percentiles where n carries them, units, hours."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from famnb import plot
from tests.plot.plot_figures import figure_text, legend_texts
from tests.support.plot_frames import calls, many_calls


@pytest.mark.parametrize(("n", "shown"), [(1, set()), (2, {"median"}), (19, {"median"}), (20, {"median", "p95"})])
def test_a_percentile_is_shown_where_n_carries_it(n: int, shown: set[str]) -> None:
    figure = plot.latency(calls(model=["fam-mini"] * n, ttft_s=[0.1 + number / 100 for number in range(n)]))
    text = " ".join(legend_texts(figure))
    assert f"fam-mini (n={n})" in text
    assert {name for name in ("median", "p95") if name in text} == shown


def test_a_latency_has_its_unit_and_its_values() -> None:
    """Below a second in milliseconds, from a second up in seconds; the median of 1, 2, 4 s is 2 s."""
    assert plot.latency(calls(model=["m"], ttft_s=[0.25])).axes[0].get_xlabel() == "time to first token (ms)"
    figure = plot.latency(calls(model=["m"] * 3, e2e_s=[4.0, 1.0, 2.0]), metric="e2e_s")
    assert figure.axes[0].get_xlabel() == "time to the end of the answer (s)"
    assert "○ median 2.00 s" in legend_texts(figure)
    assert list(figure.axes[0].lines[0].get_xdata()) == [1.0, 1.0, 2.0, 4.0]


def test_calls_without_a_value_are_counted_not_drawn() -> None:
    """They are in no share, and a footnote says how many; a group without any stays in the legend."""
    figure = plot.latency(calls(model=["a", "a", "b"], ttft_s=[0.1, None, None]))
    assert "2 of 3 calls have no time to first token" in figure_text(figure)
    assert {"a (n=1)", "b (n=0)"} <= set(legend_texts(figure))
    # Planned cells are no calls.
    frame = calls(model=["m"] * 3, ttft_s=[0.1, None, None]).assign(status=["completed", "failed", "planned"])
    assert "1 of 2 calls have no time to first token" in figure_text(plot.latency(frame))


def test_times_in_doubt_are_said() -> None:
    """By the user's clock, of a client that was kept from reading, or known as an interval; how many each."""
    frame = calls(model=["m"] * 4, ttft_s=[0.1, 0.2, 0.3, 0.4])
    frame = frame.assign(
        clock=["kernel", "kernel", "kernel", "user"],
        late_p50_ms=[0.1, 5.0, 12.0, None],
        ttft_low_s=[0.1, 0.2, 0.25, None],
    )
    text = figure_text(plot.latency(frame)).replace("\n", " ")
    assert "1 of 4 calls are timed by the user's program" in text
    assert "In 2 of 4 calls Python was kept from reading" in text
    assert "1 of 4 calls have their time to first token only as an interval" in text
    assert "kept from reading" not in figure_text(plot.latency(frame[:1]))


def test_a_latency_by_hour_is_the_median_of_that_hour() -> None:
    """The line has a gap where no call started."""
    frame = many_calls(480, models=1, gap_s=300)
    frame = frame[~frame["started_at"].dt.hour.isin([3, 4])]
    dots = plot.latency(frame, over="hour").axes[0].lines[-1]
    expected = (frame.groupby(frame["started_at"].dt.hour)["ttft_s"].median() * 1e3).reindex(range(24))
    assert np.allclose(np.asarray(dots.get_ydata(), dtype=float), expected.to_numpy(dtype=float), equal_nan=True)


def test_hours_are_those_of_the_wall_clock_when_clocks_change() -> None:
    """New York sets its clocks back in the night of 1 November 2026: the hour from one to two comes twice."""
    frame = many_calls(8, models=1)
    instants = pd.date_range("2026-11-01T04:30Z", periods=8, freq="30min").tz_convert("America/New_York")
    x, medians = plot.latency(frame.assign(started_at=instants), over="hour").axes[0].lines[-1].get_data()
    assert list(np.floor(x[np.isfinite(medians)])) == [1.0, 2.0]


MIXED = calls(
    model=["m"] * 4, ttft_s=[0.1, 0.2, 3.0, 4.0], e2e_s=[1.0, 2.0, 3.0, 4.0], streamed=[True, True, False, False]
)
"""Two streams and two whole replies of one model."""


@pytest.mark.parametrize(("metric", "streams", "whole"), [("ttft_s", [0.1, 0.2], [3, 4]), ("e2e_s", [1, 2], [3, 4])])
def test_streams_and_whole_replies_are_never_in_one_line(metric: str, streams: list[float], whole: list[float]) -> None:
    """Each has its own, named so; what the first token of a whole reply means is said where it is drawn."""
    figure = plot.latency(MIXED, metric=metric)
    assert {"m, streamed (n=2)", "m, whole (n=2)"} <= set(legend_texts(figure))
    lines = [list(map(float, line.get_xdata()))[1:] for line in figure.axes[0].lines if len(line.get_xdata()) == 3]
    assert lines == [pytest.approx(streams), pytest.approx(whole)]
    assert ("when its body has come" in figure_text(figure)) == (metric == "ttft_s")


def test_lines_that_are_apart_already_keep_their_names() -> None:
    """As do those of a frame with replies of one kind, whatever kind those without a value are of."""
    assert ", whole" not in figure_text(plot.latency(MIXED, by="streamed"))
    assert "m (n=2)" in legend_texts(plot.latency(MIXED.iloc[2:]))
    assert "m (n=2)" in legend_texts(plot.latency(MIXED.assign(ttft_s=MIXED["ttft_s"].mask(~MIXED["streamed"]))))


def test_the_hours_of_a_day_are_those_that_have_calls():
    low, high = plot.latency(many_calls(60), over="hour").axes[0].get_xlim()
    assert 13.9 < low < 14 < high == 15
