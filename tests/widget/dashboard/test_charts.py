"""Charts: spans of a round length, sums that are those of the calls, and few numbers however many calls there are."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

import famnb
from famnb.widget.dashboard.charts import MAX_GROUPS, MAX_SPANS, Groups, Timeline, draw_charts
from famnb.widget.dashboard.overview import READ_COLUMNS
from famnb.widget.dashboard.views import ChartView
from famnb.widget.runtime.view import Encoder

START = datetime(2026, 3, 5, 10, 0, 7, tzinfo=UTC)


def frame_of(count: int, *, models: int = 3, over: timedelta = timedelta(hours=1)) -> pd.DataFrame:
    """Calls evenly over a time, every tenth of which failed, every second without a price."""
    number = np.arange(count)
    frame = famnb.calls(columns=READ_COLUMNS).iloc[:0].reindex(number)
    frame["started_at"] = pd.to_datetime(START) + pd.to_timedelta(number * over.total_seconds() / count, unit="s")
    frame["model"] = [f"model-{index % models}" for index in number]
    frame["endpoint"] = "chat"
    frame["status"] = np.where(number % 10 == 0, "failed", "completed")
    frame["http_status"], frame["output_tokens"] = 200, 7
    frame["cost_usd"] = np.where(number % 2, 0.25, np.nan)
    frame["ttft_s"] = 0.1 + number / count
    return frame


def draw(frame: pd.DataFrame) -> dict[str, ChartView]:
    """The charts by name."""
    timeline = Timeline.over(frame["started_at"].min().to_pydatetime(), frame["started_at"].max().to_pydatetime())
    return {chart.key: chart for chart in draw_charts(frame, timeline, Groups.of(frame, "model"))}


@pytest.mark.parametrize(
    ("length", "step"),
    [
        (timedelta(0), timedelta(seconds=1)),
        (timedelta(seconds=39), timedelta(seconds=1)),
        (timedelta(minutes=15), timedelta(seconds=30)),
        (timedelta(hours=1), timedelta(minutes=2)),
        (timedelta(days=1), timedelta(hours=1)),
        (timedelta(days=30), timedelta(days=1)),
        (timedelta(days=900), timedelta(days=28)),
    ],
)
def test_spans_have_a_round_length_and_hold_both_ends(length: timedelta, step: timedelta):
    timeline = Timeline.over(START, START + length)
    assert timeline.step == step
    assert timeline.count <= MAX_SPANS
    assert timeline.span(0)[0] <= START < timeline.span(0)[1]
    assert timeline.span(timeline.count - 1)[1] > START + length


def test_every_call_is_in_its_span_and_sums_are_those_of_the_calls():
    frame = frame_of(600)
    charts = draw(frame)
    total = {name: sum(value or 0 for column in chart.values for value in column) for name, chart in charts.items()}
    assert total["calls"] == 600
    assert total["errors"] == 60
    assert total["spend"] == pytest.approx(0.25 * 300, rel=1e-3)
    assert charts["spend"].words[1] == "≥ $2.50 (10 of 20 calls without a price): " + ", ".join(
        f"model-{number} ≥ ${amount:.2f}" for number, amount in ((0, 0.75), (1, 1.0), (2, 0.75))
    )
    assert charts["errors"].words[1].startswith("2 of 20 calls failed: ")
    assert charts["median time to first token"].words[1].startswith("of 18 answers: model-0 0.1")


def test_a_hundred_thousand_calls_are_a_few_kilobytes():
    frame = frame_of(100_000, models=30, over=timedelta(days=3))
    timeline = Timeline.over(frame["started_at"].iloc[0].to_pydatetime(), frame["started_at"].iloc[-1].to_pydatetime())
    groups = Groups.of(frame, "model")
    assert len(groups.labels) == MAX_GROUPS + 1
    assert groups.labels[-1] == "23 others"
    assert len(json.dumps(Encoder().encode(draw_charts(frame, timeline, groups)))) < 40_000


def test_an_axis_ends_at_a_round_number_above_its_values():
    charts = draw(frame_of(10, over=timedelta(seconds=30)))
    assert charts["calls"].top >= 1
    assert [text for _, text in charts["errors"].ticks] == ["0", "1"]
    assert charts["spend"].ticks[-1][1].startswith("$")
    nothing = draw(frame_of(1).assign(cost_usd=np.nan, status="completed"))
    assert (nothing["spend"].top, nothing["spend"].ticks) == (0, ())
