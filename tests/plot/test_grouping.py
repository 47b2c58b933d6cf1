"""Columns that are missing, odd or of another type: named, read or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from famnb import plot
from tests.support.plot_figures import DRAWS
from tests.support.plot_frames import calls, many_calls


def test_a_column_that_is_not_there_is_named() -> None:
    """A slip in `by` or `metric` says what there is."""
    with pytest.raises(KeyError, match="the frame has no column 'modle'; it has call_id, started_at"):
        plot.latency(calls(), by="modle")
    with pytest.raises(KeyError, match="'ttfb'"):
        plot.latency(calls(), metric="ttfb")


@pytest.mark.parametrize("name", DRAWS)
def test_a_missing_column_is_named(name: str) -> None:
    """In the error of every figure."""
    with pytest.raises(KeyError, match="the frame has no column 'modle'"):
        DRAWS[name](many_calls(), by="modle")


def test_a_metric_that_is_no_number_is_refused() -> None:
    """The sentence says which columns are latencies."""
    with pytest.raises(ValueError, match="'prompt' holds no numbers; latencies are ttfb_s"):
        plot.latency(calls(prompt=["Hi"]), metric="prompt")


def test_infinite_numbers_are_refused() -> None:
    """With the column's name, and what to do."""
    for draw in (plot.latency, plot.compare, plot.pareto, plot.throughput):
        with pytest.raises(ValueError, match=r"the column '\w+' has infinite numbers; leave them out"):
            draw(many_calls(10).assign(ttft_s=np.inf, e2e_s=np.inf))


@pytest.mark.parametrize("name", DRAWS)
def test_a_frame_from_a_csv_file_is_drawn(name: str, tmp_path: Path) -> None:
    """Its times are text, its words no categories, its missing numbers NaN."""
    frame = many_calls(60, missing=0.2)
    frame.to_csv(tmp_path / "calls.csv")
    again = pd.read_csv(tmp_path / "calls.csv")
    assert DRAWS[name](again).alt == DRAWS[name](frame).alt


@pytest.mark.parametrize("name", ["latency by hour", "cost", "cost stacked", "cost per hour", "throughput"])
def test_times_without_a_zone_or_missing_are_no_trouble(name: str) -> None:
    """What names no zone is UTC; a call without a time is in no curve over time."""
    frame = many_calls(40)
    naive = frame["started_at"].dt.tz_localize(None)
    assert DRAWS[name](frame.assign(started_at=naive)).alt
    assert DRAWS[name](frame.assign(started_at=naive.mask(frame.index < 10))).alt
    assert DRAWS[name](frame.assign(started_at=pd.NaT)).alt
    with pytest.raises(ValueError, match=r"'started_at' holds no times; expected datetimes"):
        DRAWS[name](frame.assign(started_at=range(40)))
