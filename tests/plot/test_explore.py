"""Figures that are asked for as widgets: a point each call."""

from __future__ import annotations

from typing import Any

import pytest

from famnb import plot
from famnb.errors import InvalidRequest
from famnb.model_colours import PART_COLOURS
from famnb.reply import Reply
from famnb.widget.explorer import Explorer
from tests.plot.plot_figures import THOUGHTFUL
from tests.support.exchanges import exchange
from tests.support.plot_frames import many_calls


def points_of(widget: object) -> plot.points.Points:
    """What a widget draws."""
    assert isinstance(widget, Explorer)
    return widget.points


@pytest.mark.parametrize(
    ("draw", "options", "columns"),
    [
        (plot.latency, {"metric": "ttfa_s"}, ("started_at", "ttfa_s", "model")),
        (plot.compare, {"metric": "cost_usd"}, ("started_at", "cost_usd", "model")),
        (plot.pareto, {}, ("cost_usd", "e2e_s", "model")),
        (plot.pareto, {"score": "score"}, ("cost_usd", "score", "model")),
        (plot.success, {}, ("started_at", "e2e_s", "status")),
        (plot.cost, {}, ("started_at", "cost_usd", "model")),
        (plot.tokens, {}, ("input_tokens", "output_tokens", "model")),
        (plot.throughput, {}, ("started_at", "output_tokens", "model")),
    ],
)
def test_a_figure_is_shown_call_by_call(draw: Any, options: dict[str, str], columns: tuple[str, str, str]):
    """Each call that has both values is a point; those that lack one are counted in a note."""
    frame = many_calls(60, models=3, missing=0.1)
    points = points_of(draw(frame, interactive=True, **options))
    assert (points.x.column, points.y.column, points.by) == columns
    known = frame[list(columns[:2])].notna().all(axis=1)
    assert list(points.frame.index) == list(frame.index[known])
    assert any("are not drawn" in note for note in points.notes) == (not known.all())


def test_a_timeline_is_its_events():
    """Each in the colour of the part that it is of."""
    points = points_of(plot.timeline(exchange(THOUGHTFUL).reply, interactive=True))
    answer = points.codes == points.groups.index("text")
    assert (list(points.x.values[answer]), list(points.y.values[answer])) == ([1.0, 2.0], [7, 9])
    assert points.looks["colours"][points.groups.index("text")] == PART_COLOURS["answer"]
    assert points_of(plot.timeline(Reply(), interactive=True)).empty


def test_what_only_a_figure_can_follow_is_refused():
    with pytest.raises(InvalidRequest, match="figsize: a widget is as wide as its page and has one panel"):
        plot.latency(many_calls(4), figsize=(4, 3), interactive=True)
