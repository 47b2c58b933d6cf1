"""Columns that are missing, odd or of another type: named, read or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from famnb import plot
from tests.plot.plot_figures import DRAWS, figure_text, legend_texts
from tests.support.plot_frames import calls, many_calls


@pytest.mark.parametrize(
    "name", [name if name in ("latency", "cost") else pytest.param(name, marks=pytest.mark.full) for name in DRAWS]
)
def test_one_name_at_two_vendors_is_two_models(name: str) -> None:
    """Wherever groups are named; a model that one vendor has keeps its name, and so does one without a profile."""
    frame = many_calls(240, models=3)
    names = sorted(frame["model"].unique())
    profiles = np.where(frame["model"] == names[0], np.where(np.arange(240) % 2, "openai", "azure"), "openai")
    figure = DRAWS[name](frame.assign(profile=pd.Categorical(profiles)), by="model")
    text = figure_text(figure) + figure.caption
    for label in (f"{names[0]} · azure", f"{names[0]} · openai", names[1], names[2]):
        assert label in text, text
    assert f"{names[1]} ·" not in text
    assert f"{names[0]} ·" not in figure_text(DRAWS[name](frame.assign(profile="openai"), by="model"))


@pytest.mark.parametrize("name", DRAWS)
def test_a_missing_column_is_named(name: str) -> None:
    with pytest.raises(KeyError, match="the frame has no column 'modle'; it has model, endpoint"):
        DRAWS[name](many_calls(), by="modle")


def test_a_metric_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="'prompt' holds no numbers; latencies are columns of numbers such as ttft_s"):
        plot.latency(calls(prompt=["Hi"]), metric="prompt")


def test_infinite_numbers_are_refused() -> None:
    frame = many_calls(10)
    frame[frame.select_dtypes("float").columns] = np.inf
    for draw in (plot.latency, plot.compare, plot.pareto, plot.throughput):
        with pytest.raises(ValueError, match=r"the column '\w+' has infinite numbers; leave them out"):
            draw(frame)


@pytest.mark.full
@pytest.mark.parametrize("name", DRAWS)
def test_a_frame_from_a_csv_file_is_drawn(name: str, tmp_path: Path) -> None:
    frame = many_calls(60, missing=0.2)
    frame.to_csv(tmp_path / "calls.csv")
    again = pd.read_csv(tmp_path / "calls.csv")
    assert DRAWS[name](again).alt == DRAWS[name](frame).alt


@pytest.mark.parametrize("name", ["latency by hour", "cost", "cost per hour", "throughput"])
def test_times_without_a_zone_or_missing_are_no_trouble(name: str) -> None:
    frame = many_calls(40)
    naive = frame["started_at"].dt.tz_localize(None)
    assert DRAWS[name](frame.assign(started_at=naive)).alt
    assert DRAWS[name](frame.assign(started_at=naive.mask(frame.index < 10))).alt
    assert DRAWS[name](frame.assign(started_at=pd.NaT)).alt
    with pytest.raises(ValueError, match=r"'started_at' holds no times; expected datetimes"):
        DRAWS[name](frame.assign(started_at=range(40)))


@pytest.mark.parametrize("name", ["cost", "throughput"])
def test_what_is_said_to_be_utc_is_utc(name: str) -> None:
    frame = many_calls(20)
    tokyo = frame.assign(started_at=frame["started_at"].dt.tz_convert("Asia/Tokyo"))
    assert DRAWS[name](tokyo).axes[0].get_xlabel() == DRAWS[name](frame).axes[0].get_xlabel()
    assert f"{frame['started_at'].min():%H:%M} UTC" in DRAWS[name](tokyo).axes[0].get_xlabel()


WITH_WARMUPS = many_calls(24).assign(
    warmup=[True] * 4 + [False] * 20, status="completed", prompt_id=[f"p{i // 2 % 6}" for i in range(24)]
)
"""Twenty calls of two models, and four that only warmed the service up."""
OF_MEASURES = {"latency": plot.latency, "pareto": plot.pareto, "compare": plot.compare}
OF_USE = {"cost": plot.cost, "tokens": plot.tokens, "throughput": plot.throughput}


@pytest.mark.parametrize("name", [*OF_MEASURES, *OF_USE])
def test_warmups_are_in_no_figure_of_an_experiment(name: str) -> None:
    draw = (OF_MEASURES | OF_USE)[name]
    frame = WITH_WARMUPS.assign(order=range(24))
    whole, measured = draw(frame), draw(frame.iloc[4:])
    assert "4 warm-up calls are left out." in figure_text(whole)
    assert legend_texts(whole) == legend_texts(measured)
    assert "warm-up" not in figure_text(measured)
    # Of calls outside of one they are left out of measures, not of what was used.
    assert ("4 warm-up calls are left out." in figure_text(draw(WITH_WARMUPS))) == (name in OF_MEASURES)


def test_variants_stand_in_the_order_of_their_experiment() -> None:
    names = pd.Categorical(["b", "a", "c"] * 2, categories=["b", "c", "a"])
    frame = pd.DataFrame({"variant": names, "model": names, "prompt": list("111222"), "e2e_s": [1.0, 2, 3, 1, 2, 4]})
    rows = {by: plot.compare(frame, by=by).axes[0].get_yticklabels() for by in ("variant", "model")}
    found = {by: [label.get_text()[0] for label in labels] for by, labels in rows.items()}
    assert found == {"variant": ["b", "c", "a"], "model": ["a", "b", "c"]}
