"""Recorded times against a server that knows when it sent what, while another cell works; famnb beside its peers."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness
from harness import Goal, Result, Table

TITLE = "what is recorded of a stream while another cell works, against the server's own clock"
HOGS = ("idle", "loop", "holds", "savefig")
HEARTBEATS = ("comments", "names", "ends")
"""Bytes that belong to no event and come 6 ms after each, as `paced.c` has them."""
PEERS = {"famnb": "famnb", "openai": "openai", "aiohttp": "aiohttp+msgspec"}
"""The clients, and what `peers.py` calls them."""
LOADS = {1: (100, 200), 64: (30, 100)}
"""For each number of streams the events a second of each, and how many events it has."""
QUICK_LOADS = {2: (100, 30)}


def run(quick: bool) -> Result:
    """Measure every client with every hog, each in a fresh process."""
    loads = QUICK_LOADS if quick else LOADS
    hogs = ("loop",) if quick else HOGS
    if shutil.which("cc") is None:
        return Result(tables=[], notes=["not measured: no `cc` on the PATH, which compiles the server"])
    with _paced_server() as (url, note):
        plain = [
            _measure(name, url, load, hog)
            for load in loads.items()
            for hog in hogs
            for name in PEERS
            # What a client without stamps records beside a loop or a drawing, aiohttp shows for all of them.
            if name == "famnb" or (not quick and (hog in ("idle", "holds") or name == "aiohttp"))
        ]
        beats = [
            {"heartbeat": kind, **_measure("famnb", url, load, hog, heartbeat=kind)}
            for load in loads.items()
            for hog in hogs[:3]
            for kind in HEARTBEATS[: 1 if quick else None]
        ]
    with _tls_server() as (url, certificate):
        tls = [
            _measure("famnb", url, load, hog, env={"SSL_CERT_FILE": str(certificate)})
            for load in (loads.items() if url else ())
            for hog in hogs
        ]
    return Result(
        tables=[
            Table(title, rows)
            for title, rows in (
                ("Plain", plain),
                ("Heartbeats: bytes of no event, 6 ms after each", beats),
                ("Through TLS", tls),
            )
            if rows
        ],
        goals=_goals(plain, beats, tls),
        notes=[
            note,
            "An error is from the server's clock, read just before its write, to the recorded time: famnb's over "
            "events with a time of their own, whose share is `exact`; every other client's over all, to the moment "
            "that its user has it.",
            "`off 0.1 ms` is how many of famnb's errors are larger, each of which is a false claim, unless the machine "
            "stopped the server between its look at the clock and its write.",
            "A lag is to the moment that Python had the event, for famnb too.",
            "icl p95 is the inter-chunk latency as recorded, beside that of the server's writes: medians over streams. "
            "`wrong by` is the most that any stream's is off; famnb gives none where too few times are exact for one.",
            "`load` is the machine's load average of one minute. Where it is above the cores, others work, too: errors "
            "are free of that, while a client that waits for a core is late, and merged segments take from its share. "
            "`held` is the median hold.",
            "Through TLS an error includes the server's encryption, which is Python's.",
            *([] if tls else ["TLS is not measured: `openssl`, which makes the certificate, is not installed."]),
        ],
    )


@contextlib.contextmanager
def _paced_server() -> Iterator[tuple[str, str]]:
    """The paced server, which is in C, and what to say of it."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "paced"
        subprocess.run(["cc", "-O2", "-o", str(program), str(harness.HERE / "paced.c")], check=True)
        note = "The server is in C, one process."
        with harness.run_server([str(program)]) as (url, pid):
            if not harness.give_precedence(pid):
                note += " On a busy machine it is late, too: only root may have it go before other processes."
            yield url, note


@contextlib.contextmanager
def _tls_server() -> Iterator[tuple[str | None, Path]]:
    """A server with TLS and the certificate that vouches for it; no address without openssl."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder) / "certificate.pem", Path(folder) / "key.pem"
        openssl = shutil.which("openssl")
        if openssl is None:
            yield None, certificate
            return
        names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        files = ["-keyout", str(key), "-out", str(certificate)]
        command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *names, *files]
        subprocess.run(command, check=True, capture_output=True)
        server = [sys.executable, str(harness.HERE / "canned.py"), str(certificate), str(key)]
        with harness.run_server(server) as (url, pid):
            harness.give_precedence(pid)
            yield url, certificate


def _measure(
    name: str,
    url: str,
    load: tuple[int, tuple[int, int]],
    hog: str,
    *,
    heartbeat: str = "",
    env: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Run one client once, and return its row."""
    streams, (per_second, events) = load
    path = f"/live/{events}/{per_second}" + (heartbeat and f"/{heartbeat}")
    arguments = [PEERS[name], f"{url}{path}", str(streams), str(events), hog]
    command = [sys.executable, str(harness.HERE / "timing_peers.py"), *arguments]
    figures = harness.run_child(command, env=env)
    return {
        "streams": streams,
        "hog": hog,
        "client": name,
        "load": os.getloadavg()[0],
        "exact": figures["exact_share"],
        "error p50 ms": figures["error_p50_ms"],
        "error p99 ms": figures["error_p99_ms"],
        "off 0.1 ms": figures["wrong_n"],
        "lag p50 ms": figures["lag_p50_ms"],
        "lag p99 ms": figures["lag_p99_ms"],
        "icl p95 ms": figures["icl_p95_ms"],
        "true": figures["true_icl_p95_ms"],
        "wrong by": figures["icl_deviation"],
        "held ms": figures["held_p50_ms"],
    }


def _goals(plain: list[dict[str, Any]], beats: list[dict[str, Any]], tls: list[dict[str, Any]]) -> list[Goal]:
    rows = [row for row in plain if row["client"] == "famnb"]
    shares = {row["hog"]: row["exact"] for row in rows if row["streams"] == 1}
    inter_chunk = "recorded inter-chunk p95, where there is one, wrong by at most"
    return [
        Goal("famnb's error p99 over events with a time of their own, ms", 0.1, _worst(rows, "error p99 ms")),
        Goal("the same with heartbeats, ms", 0.1, _worst(beats, "error p99 ms")),
        Goal("the same through TLS, ms", 0.3, _worst(tls, "error p99 ms")),
        *(
            Goal(f"share of events with a time of their own, 1 stream, {hog}", 0.9, shares.get(hog), True)
            for hog in ("holds", "loop")
        ),
        Goal(inter_chunk, 0.05, _worst([*rows, *tls], "wrong by")),
    ]


def _worst(rows: list[dict[str, Any]], column: str) -> float | None:
    return max((row[column] for row in rows if row[column] is not None), default=None)
