"""One reply over time."""

import dataclasses

import pytest

from famnb import plot
from famnb.record import Ledger
from tests.plot.plot_figures import REPLIES, THOUGHTFUL, figure_text
from tests.support.exchanges import exchange


def test_a_timeline_tells_waiting_thinking_and_answer():
    text = figure_text(plot.timeline(exchange(THOUGHTFUL).reply))
    for fact in ("waiting  400 ms", "thinking  600 ms", "answer  1.10 s", "first token", "first answer", "end"):
        assert fact in text
    assert "thinking: 7 characters" in text
    assert "answer: 16 characters" in text


@pytest.mark.parametrize(
    ("status", "mark"), [("cancelled", "stopped"), ("interrupted", "cut off"), ("failed", "failed")]
)
def test_a_timeline_marks_an_end_that_was_not_the_replys_own(status: str, mark: str):
    reply = dataclasses.replace(exchange(THOUGHTFUL[:3]).reply, status=status)
    figure = plot.timeline(reply)
    assert mark in figure_text(figure).split("\n")
    assert f"{mark} 1.00 s" in figure.alt


def test_a_timeline_is_drawn_from_a_reply_a_call_or_an_id(monkeypatch: pytest.MonkeyPatch):
    call = exchange(THOUGHTFUL)
    with Ledger() as ledger:
        ledger.on_close(call).result()
        from_worker = dataclasses.replace(ledger.call(call.id).reply, reads=())
        sources = (call.reply, ledger.call(call.id), call.id, from_worker)
        assert len({plot.timeline(which).alt for which in sources}) == 1


def test_the_axis_of_a_timeline_has_the_unit_of_its_times():
    axes = plot.timeline(REPLIES["one instant"]).axes[0]
    assert axes.get_xlabel() == "milliseconds since the request was sent"
    assert axes.xaxis.get_major_formatter()(0.25, 0) == "250"
