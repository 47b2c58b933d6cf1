"""Gaps between reads."""

import numpy as np
import pytest

import famnb
from famnb import plot
from tests.plot.plot_figures import figure_text
from tests.support.exchanges import exchange, spoken
from tests.support.plot_frames import events


def test_gaps_are_those_that_the_timing_knows():
    reply = exchange(spoken("one ", "two ", "three ", "four")).reply
    drawn = plot.gaps(reply).axes[0].lines[0].get_xdata()
    assert np.median(drawn[1:]) == pytest.approx(reply.timing.icl_p50_s * 1e3)
    table = events(streams=6, reads=60)
    text = figure_text(plot.gaps(table))
    assert "text (n=240 gaps)" in text
    assert "○ median 18.7 ms" in text
    assert "thinking (n=114 gaps)" in text
    assert "no stream here" in figure_text(plot.gaps(table.iloc[:0]))


def test_gaps_of_simulated_streams_say_so(client: famnb.Client):
    reply = client.send(famnb.compose("messages", "Hi", model="fam-2-5-mini", max_tokens=20, stream=True))
    for which in (reply, famnb.deltas(None, client.ledger)):
        assert "Simulated" in figure_text(plot.gaps(which))
    assert "Simulated" not in figure_text(plot.gaps(exchange(spoken("one ", "two ", "three ")).reply))
