"""What figures say of simulated calls and of no calls."""

from __future__ import annotations

import dataclasses

import pytest

from famnb import plot
from tests.support.exchanges import exchange
from tests.support.plot_figures import (
    DRAWS,
    REPLIES,
    SMALL_FRAMES,
    THOUGHTFUL,
    words,
)
from tests.support.plot_frames import calls, many, priced


def test_simulated_data_says_so() -> None:
    """All of it, or how much of it; a real service's data says nothing of the kind."""
    part = {"model": ["m"] * 3, "ttft_s": [0.1] * 3, "simulated": [True, False, None]}
    assert "Simulated: 1 of 3 calls were answered by a simulated engine" in words(plot.latency(calls(**part)))
    assert "Simulated: all calls were" in words(plot.cost(priced(["m"], [0.1], simulated=[True])))
    made = exchange(THOUGHTFUL).reply
    assert "Simulated" in words(plot.timeline(dataclasses.replace(made, service="sim")))
    assert "imulated" not in words(plot.timeline(made)) + words(
        plot.latency(calls(**{**part, "simulated": [False] * 3}))
    )


@pytest.mark.parametrize("name", DRAWS)
def test_simulated_calls_are_named_in_every_figure(name: str) -> None:
    """Every figure of a simulated engine's calls says so."""
    assert "Simulated: all calls" in words(DRAWS[name](many(30)))


def test_without_data_a_sentence_says_why() -> None:
    """An empty figure explains itself."""
    assert "Nothing to draw: there are no calls in this frame." in words(plot.latency(calls()))
    assert "Nothing to draw: none of these 3 calls has a time to first token." in words(
        plot.latency(SMALL_FRAMES["all missing"])
    )
    assert "Nothing to add up." in words(plot.cost(calls()))
    assert "No content arrived: 401: wrong key" in words(plot.timeline(REPLIES["refused"]))
