"""Latencies against a server that knows when it sent what: they are the server's, however busy this process is."""

import contextlib
import itertools
import json
import math
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.support.fault_server import chunked
from tests.support.wire_payloads import closing, delta, request

ROOT = Path(__file__).parents[2]
WORDS = 20
ATTEMPTS = 30
TOKENS = 4
"""What the server says the reply has."""
PACED = f"""
import json, sys, time
sys.path.insert(0, {str(ROOT)!r})
from tests.support.fault_server import FaultServer, chunked
from tests.support.wire_payloads import closing, delta, opening, thinking

words = [step for _ in range({WORDS}) for step in (0.03, delta("messages", "word "))]
said = [*opening("messages"), thinking("Hm."), 0.2, delta("messages", "first "), *words, *closing("messages")]
server = FaultServer([0.1, *chunked(*said)])
print(server.url, flush=True)
for _ in sys.stdin:
    print(json.dumps([server.requests[-1].at, *server.sent]), flush=True)
    server.sent.clear()
"""


@pytest.fixture
def paced():
    """A server in a process of its own, which keeps its pace whatever this one does."""
    command = [sys.executable, "-c", PACED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.fixture(params=[pytest.param("idle", marks=pytest.mark.full), "busy"])
def load(request):
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


def test_latencies_are_those_of_the_wire(paced, connect, load):
    """First thought, first word 0.2 s later, then a word every 30 ms: the figures agree with the server's own clock.

    What a thread that only sleeps was late by in the same call is the machine's doing, not the clock's; beyond that a
    latency may be wrong by half the shortest of them, the median gap by a third of itself. A machine under load may be
    late once more; a clock that is read at the wrong moment is wrong every time.
    """
    client = connect(paced.stdout.readline().strip())
    verdicts = []
    for _ in range(ATTEMPTS):
        with measure_lateness() as lateness:
            timing = client.send(request("messages")).timing
        verdicts.append(judge(timing, read_server_times(paced), lateness[0]))
        if all(map(any, zip(*verdicts, strict=True))):
            return
    raise AssertionError(verdicts)


@contextlib.contextmanager
def measure_lateness():
    """The longest that a thread was late by which only sleeps, in seconds: in a list that is filled at the end."""
    over, lateness = threading.Event(), [0.0]

    def measure() -> None:
        while not over.is_set():
            due = time.monotonic() + 0.005
            time.sleep(0.005)
            lateness[0] = max(lateness[0], time.monotonic() - due)

    thread = threading.Thread(target=measure)
    thread.start()
    yield lateness
    over.set()
    thread.join()


def read_server_times(paced):
    """When the server had the request and sent each step, in seconds."""
    paced.stdin.write("\n")
    paced.stdin.flush()
    return json.loads(paced.stdout.readline())


def judge(timing, times, lateness):
    """Whether the latencies are right, and whether the median gap is."""
    start, head, _, thought, first, *rest = times
    words = [first, *rest[:WORDS]]
    end = rest[WORDS + 1] - start
    gaps = [later - earlier for earlier, later in itertools.pairwise([thought, *words])]
    pairs = [
        (timing.ttfb_s, head - start),
        (timing.ttft_s, thought - start),
        (timing.ttfa_s, first - start),
        (timing.think_s, first - thought),
        (timing.e2e_s, end),
        (timing.icl_max_s, max(gaps)),
        (timing.icl_p95_s, statistics.quantiles(gaps, n=20, method="inclusive")[-1]),
        (timing.tpot_s, (words[-1] - thought) / (TOKENS - 1)),
        (TOKENS / timing.output_tps, end),
    ]
    # Words that a machine under load reads together leave too few gaps for a percentile.
    latencies = max(math.inf if measured is None else abs(measured - true) for measured, true in pairs)
    shortest, gap = min(true for _, true in pairs[:5]), statistics.median(gaps)
    median = math.inf if timing.icl_p50_s is None else timing.icl_p50_s
    return latencies - lateness < shortest / 2, abs(median - gap) - lateness < gap / 3


def test_a_consumer_that_is_slow_does_not_change_the_times(serve, connect):
    steps = [step for _ in range(10) for step in (0.01, delta("web", "word "))]
    with connect(serve(chunked(*steps, *closing("web")))).stream(request("web")) as stream:
        start = time.monotonic()
        for _ in stream:
            time.sleep(0.05)
        dawdled = time.monotonic() - start
    assert stream.reply.timing.e2e_s < dawdled / 2
