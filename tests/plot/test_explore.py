"""Figures that are asked for as widgets: their calls, each where the figure counts it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from famnb import plot
from famnb.errors import InvalidRequest
from famnb.model_colours import PART_COLOURS
from famnb.reply import Reply
from famnb.widget.explorer import Explorer
from tests.plot.plot_figures import THOUGHTFUL
from tests.support.exchanges import exchange
from tests.support.plot_frames import calls, many_calls


def points_of(widget: object) -> plot.points.Points:
    """What a widget draws."""
    assert isinstance(widget, Explorer)
    return widget.points


def test_a_latency_is_the_share_of_the_calls_of_its_group():
    """As the figure's lines have it: of four calls the slowest is at 1, the second at a half; by hour, at its hour."""
    frame = calls(model=["a"] * 4 + ["b"], ttft_s=[0.4, 0.1, 0.2, 0.3, 9.0])
    points = points_of(plot.latency(frame, interactive=True))
    assert list(points.y.values) == [1, 0.25, 0.5, 0.75, 1]
    assert (points.x.label, list(points.x.values)) == ("time to first token (s)", [0.4, 0.1, 0.2, 0.3, 9])
    drawn = plot.latency(frame).axes[0].lines[0]
    assert set(zip(points.x.values[:4], points.y.values[:4], strict=True)) <= set(
        zip(np.asarray(drawn.get_xdata()), np.asarray(drawn.get_ydata()), strict=True)
    )
    by_hour = points_of(plot.latency(frame, over="hour", interactive=True))
    assert np.allclose(by_hour.x.values, 14 + 13 / 60 + np.arange(20, 25) / 3600)
    assert by_hour.title == "Time to first token by model and hour"


def test_a_timeline_is_its_events():
    """The characters so far of each part, in the part's own colour."""
    reply = exchange(THOUGHTFUL).reply
    points = points_of(plot.timeline(reply, interactive=True))
    answer = points.codes == points.groups.index("answer")
    assert list(points.y.values[answer]) == [7, 16]
    assert list(points.x.values[answer]) == [1.0, 2.0]
    assert points.looks["colours"] == tuple(PART_COLOURS[part] for part in points.groups)
    with pytest.raises(InvalidRequest, match="no event to point at"):
        plot.timeline(Reply(), interactive=True)


def test_groups_are_shown_call_by_call():
    """`pareto` places each call by its cost and latency, or score; `compare` in the row of its group."""
    frame = many_calls(60, models=3, missing=0.1)
    known = frame[frame["cost_usd"].notna()]
    points = points_of(plot.pareto(frame, interactive=True))
    assert list(points.x.values) == list(known["cost_usd"])
    assert points.title == "Time to the end of the reply against cost by model"
    assert points_of(plot.pareto(frame, score="score", interactive=True)).y.column == "score"
    compared = points_of(plot.compare(frame, interactive=True))
    assert list(compared.x.values) == list(known["e2e_s"])
    assert [compared.y.names[round(row)] for row in compared.y.values] == list(known["model"])


@pytest.mark.parametrize(
    ("draw", "options", "columns"),
    [
        (plot.cost, {}, ("started_at", "cost_usd")),
        (plot.tokens, {}, ("input_tokens", "output_tokens")),
        (plot.throughput, {}, ("started_at", "output_tokens")),
        (plot.throughput, {"of": "calls"}, ("started_at", "e2e_s")),
    ],
)
def test_sums_are_shown_call_by_call(draw: Any, options: dict[str, str], columns: tuple[str, str]):
    """Each call that has both lies at what it adds; those that lack one are counted in a note."""
    frame = many_calls(60, models=3, missing=0.1)
    points = points_of(draw(frame, interactive=True, **options))
    assert (points.x.column, points.y.column) == columns
    known = frame[list(columns)].notna().all(axis=1)
    assert list(points.frame.index) == list(frame.index[known])
    assert any("are not drawn" in note for note in points.notes) == (not known.all())


def test_a_success_is_a_status():
    points = points_of(plot.success(calls(model=["a", "b"], status=["completed", "failed"]), interactive=True))
    assert [points.y.names[round(row)] for row in points.y.values] == ["completed", "failed"]


def test_what_only_a_figure_can_follow_is_refused():
    with pytest.raises(InvalidRequest, match="figsize: a widget is as wide as its page and has one panel"):
        plot.latency(many_calls(4), figsize=(4, 3), interactive=True)
