"""What figures say of simulated calls and of no calls."""

import dataclasses

from famnb import plot
from famnb.plot.labels import format_in
from tests.plot.plot_figures import REPLIES, THOUGHTFUL, figure_text
from tests.support.exchanges import exchange
from tests.support.plot_frames import calls


def test_simulated_data_says_so():
    part = {"model": ["m"] * 3, "ttft_s": [0.1] * 3, "simulated": [True, False, None]}
    assert "Simulated: 1 of 3 calls were answered by a simulated engine" in figure_text(plot.latency(calls(**part)))
    reply = exchange(THOUGHTFUL).reply
    assert "Simulated" in figure_text(plot.timeline(dataclasses.replace(reply, service="sim")))
    assert "Simulated" in figure_text(plot.gaps(dataclasses.replace(reply, service="sim")))
    assert "imulated" not in figure_text(plot.timeline(reply)) + figure_text(
        plot.latency(calls(**{**part, "simulated": [False] * 3}))
    )


def test_without_data_a_sentence_says_why():
    assert "Nothing to draw: there are no calls in this frame." in figure_text(plot.latency(calls()))
    assert "Nothing to draw: none of these 3 calls has a known time to first token." in figure_text(
        plot.latency(calls(model=["m"] * 3))
    )
    assert "Nothing to add up." in figure_text(plot.cost(calls()))
    assert "No content arrived: 401: wrong key" in figure_text(plot.timeline(REPLIES["refused"]))


def test_values_beside_an_axis_have_its_unit():
    in_seconds, in_milliseconds = format_in("e2e_s", 1.0), format_in("e2e_s", 1e3)
    assert [in_seconds(value) for value in (0.004, 1.5, -12.34, 345.6)] == ["0.00 s", "1.50 s", "−12.3 s", "346 s"]
    assert [in_milliseconds(value) for value in (0.004, -0.25)] == ["4.00 ms", "−250 ms"]
    assert format_in("cost_usd", 1.0)(0.5) == "$0.50"
