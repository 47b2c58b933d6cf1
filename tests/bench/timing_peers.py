"""One client that reads paced streams while another cell works, in a process of its own; prints what it recorded.

usage: timing_peers.py PEER URL STREAMS EVENTS HOG
The client runs on a thread of its own, as in a notebook; the hog is the cell, on the main thread:

idle     waits
loop     pure Python, which lets other threads run every 5 ms
holds    calls into C that keep the interpreter for about 20 ms each
savefig  draws figures
"""

from __future__ import annotations

import io
import itertools
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import harness
from peers import CHAT, KEY, PEERS, UNLIMITED, Arrivals, Meter, text_of

HOLD_S = 0.02
held_s: list[float] = []
"""How long each hold took."""


def idle(over: threading.Event) -> None:
    over.wait()


def loop(over: threading.Event) -> None:
    while not over.is_set():
        for number in range(1000):
            number * number


def holds(over: threading.Event) -> None:
    count = 500_000
    while not over.is_set():
        start = time.perf_counter()
        sum(range(count))
        held_s.append(time.perf_counter() - start)
        # As long by the wall clock on a machine that has other work: towards the right length, not for a single hold.
        count = int(count * (0.9 + 0.1 * min(2, HOLD_S / held_s[-1])))


def savefig(over: threading.Event) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    axes.plot(range(1000), [number % 7 for number in range(1000)])
    while not over.is_set():
        figure.savefig(io.BytesIO(), format="png")


HOGS: dict[str, Callable[[threading.Event], None]] = {"idle": idle, "loop": loop, "holds": holds, "savefig": savefig}


class Recorded(NamedTuple):
    """What a client recorded: errors of its times, lateness, the share of exact times, inter-chunk latencies."""

    errors_ms: list[float]
    lags_ms: list[float]
    exact_share: float | None
    icl_p95_ms: list[float | None]
    """Of each stream."""
    true_icl_p95_ms: list[float | None]


def read_with_famnb(url: str, streams: int) -> Recorded:
    """What famnb recorded, whose errors are those of its exact times alone."""
    import famnb

    request = famnb.ChatRequest(**CHAT)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.sqlite"
        # Beside a hog of 20 ms each step of a TLS handshake waits as long, and there may be 64 of them at once: what is
        # measured begins when all are connected.
        patient = famnb.Deadlines(connect=60, first_event=120)
        with famnb.Client(base_url=url, api_key=KEY, ledger=ledger, connections=UNLIMITED, deadlines=patient) as client:
            calls = [client.stream(request) for _ in range(streams)]
            replies = [call.result() for call in calls]
    errors_ms, lags_ms, recorded, true = [], [], [], []
    for call, reply in zip(calls, replies, strict=True):
        # Recorded moments count from the sending, which has no public name on the clock that the server reads.
        sent_ns, moments = call._call.sent_ns or 0, []
        for read in reply.reads:
            texts = [int(text) for text in map(text_of, read.data) if text]
            moments += texts
            lags_ms += [(sent_ns + read.t_ns + (read.late_ns or 0) - moment) / 1e6 for moment in texts]
            if len(read.data) == 1 and texts and not read.blurred:
                errors_ms.append((sent_ns + read.t_ns - texts[0]) / 1e6)
        recorded.append(None if reply.timing.icl_p95_s is None else reply.timing.icl_p95_s * 1e3)
        true.append(p95(gaps(moments)))
    exact_share = harness.median([reply.timing.exact_share for reply in replies])
    return Recorded(errors_ms, lags_ms, exact_share, recorded, true)


def read_with_peer(peer: str, url: str, streams: int) -> Recorded:
    """What a peer's own user would record: the moment of each event when the code that reads the stream has it."""
    arrivals: list[Arrivals] = PEERS[peer](url, streams, Meter())
    texts = [[(moment, int(text)) for moment, text in stream if text] for stream in arrivals]
    lags_ms = [(moment - sent) / 1e6 for stream in texts for moment, sent in stream]
    recorded = [p95(gaps([moment for moment, _ in stream])) for stream in texts]
    true = [p95(gaps([sent for _, sent in stream])) for stream in texts]
    return Recorded(lags_ms, lags_ms, None, recorded, true)


def gaps(moments_ns: list[int]) -> list[float]:
    return [(later - earlier) / 1e6 for earlier, later in itertools.pairwise(moments_ns)]


def p95(values: list[float]) -> float | None:
    return statistics.quantiles(values, n=20, method="inclusive")[-1] if len(values) >= 20 else None


def main(peer: str, url: str, streams: int, events: int, hog: str) -> None:
    """Read while the hog works, and print one line of JSON; raises unless every event came."""
    read = read_with_famnb if peer == "famnb" else lambda *arguments: read_with_peer(peer, *arguments)
    # Imports, certificates and the first connection are not what is measured.
    read(url.replace(f"/{events}/", "/3/"), 1)
    over, outcome = threading.Event(), Future[Recorded]()

    def run() -> None:
        try:
            outcome.set_result(read(url, streams))
        except Exception as error:
            outcome.set_exception(error)
        finally:
            over.set()

    thread = threading.Thread(target=run)
    thread.start()
    HOGS[hog](over)
    thread.join()
    found = outcome.result()
    if len(found.lags_ms) != streams * events:
        raise AssertionError(f"{len(found.lags_ms)} events came of {streams * events}")
    pairs = zip(found.icl_p95_ms, found.true_icl_p95_ms, strict=True)
    report: dict[str, Any] = {
        "exact_share": found.exact_share,
        "icl_p95_ms": harness.median(found.icl_p95_ms),
        "true_icl_p95_ms": harness.median(found.true_icl_p95_ms),
        # By how much, as a share of the true one, a stream's figure is wrong at most.
        "icl_deviation": max((abs(mine / right - 1) for mine, right in pairs if mine and right), default=None),
        "held_p50_ms": harness.median([duration * 1e3 for duration in held_s]),
        # Without stamps no event is claimed to be exact.
        "wrong_n": None if found.exact_share is None else sum(abs(error) > 0.1 for error in found.errors_ms),
    }
    for name, values in (("error", found.errors_ms), ("lag", found.lags_ms)):
        report |= {f"{name}_p50_ms": harness.median(values), f"{name}_p99_ms": harness.quantile(values, 0.99)}
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
