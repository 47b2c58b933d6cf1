"""Latencies against a server that keeps a known pace: they are the server's, however busy this process is."""

from __future__ import annotations

import threading
import time

import pytest
from faultserver import chunked
from payloads import closing, delta, opening, request, thinking

PACE_S = 0.03


@pytest.fixture(params=["idle", "busy"])
def busy(request):
    """Whether another thread computes all the while, as a cell's plotting does."""
    over = threading.Event()

    def compute() -> None:
        while not over.is_set():
            sum(range(1000))

    thread = threading.Thread(target=compute)
    if request.param == "busy":
        thread.start()
    yield
    over.set()
    if thread.is_alive():
        thread.join()


def test_latencies_are_those_of_the_wire(serve, connect, busy):
    """First thought after 0.1 s, first word 0.2 s later, then a word every 30 ms: the figures say so.

    Tolerances are wide, since server and client share this machine; a median is not moved by a hiccup.
    """
    words = [step for _ in range(20) for step in (PACE_S, delta("messages", "word "))]
    server = serve(
        chunked(
            0.1, *opening("messages"), thinking("Hm."), 0.2, delta("messages", "first "), *words, *closing("messages")
        )
    )
    timing = connect(server).send(request("messages")).timing
    assert timing.ttft_s >= 0.1
    assert timing.think_s == pytest.approx(0.2, abs=0.1)
    assert timing.ttfa_s == pytest.approx(timing.ttft_s + timing.think_s)
    assert timing.icl_p50_s == pytest.approx(PACE_S, rel=0.5)
    assert timing.icl_p95_s is not None
    assert timing.e2e_s >= 0.85


def test_a_consumer_that_is_slow_does_not_change_the_times(serve, connect):
    """A loop that dawdles over every event sees the stream late; the figures do not."""
    steps = [step for _ in range(10) for step in (0.01, delta("web", "word "))]
    with connect(serve(chunked(*steps, *closing("web")))).stream(request("web")) as stream:
        began = time.monotonic()
        for _ in stream:
            time.sleep(0.05)
        dawdled = time.monotonic() - began
    assert stream.reply.timing.e2e_s < dawdled / 2
