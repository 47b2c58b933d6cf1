"""A long experiment, here and on Dask, beside `send_many`: throughput, CPU per call, and memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import harness
from harness import Goal, Result, Table, ratio

TITLE = "An experiment of many calls, here and on two Dask workers, beside send_many"
WAYS = {
    "Experiment.run": "experiment",
    "client.send_many": "send_many",
    "run(on=), 2 workers": "dask",
}
GROWTH_MB = 16.0
"""What memory may move by while the second half of the calls finishes: noise of the allocator, no call kept."""
NOTES = (
    "Memory is the process's own, less what it was before the first call, when so many calls are over. An "
    "experiment keeps no reply; send_many returns all of them.",
    "The service runs on the same machine and is what limits the calls a second; CPU is the caller's alone.",
    "famnb decodes, times and records every event, the experiment keeps a budget.",
    "On Dask the workers decode and time; this process, which is Dask's scheduler too, counts and records. "
    "All of it shares the machine with the service: calls a second on a cluster are others.",
)


def run(quick: bool) -> Result:
    """Measure each way in a process of its own, against one `famnb serve` that does not wait."""
    calls, concurrency = (80, 8) if quick else (10_000, 256)
    rows: dict[str, dict[str, Any]] = {}
    # Each way is a process that imports pandas, which in quick sizes takes longer than its calls.
    ways = {"Experiment.run": "experiment"} if quick else WAYS
    command = [sys.executable, "-m", "famnb", "serve", "--time-scale", "0"]
    with harness.run_server(command) as (served, _):
        for name, method in ways.items():
            arguments = [method, served["url"], served["key"], str(calls), str(concurrency)]
            figures = harness.run_child([sys.executable, str(harness.HERE / "runs.py"), *arguments], timeout_s=900)
            rows[name] = _row(name, figures, calls)
    return Result(
        tables=[Table(f"{calls:,} streamed calls, {concurrency} at once", [*rows.values()])],
        goals=_goals(rows, calls),
        notes=NOTES,
    )


def _goals(rows: Mapping[str, dict[str, Any]], calls: int) -> list[Goal]:
    ours, by_hand, dask = (rows.get(name, {}) for name in ("Experiment.run", "client.send_many", "run(on=), 2 workers"))
    share = ratio(ours["CPU ms/call"], by_hand.get("CPU ms/call"))
    goals = [
        Goal("calls of the experiment that are not answered", 0, calls - ours["answered"]),
        Goal("answered calls of the experiment not recorded", 0, ours["answered"] - ours["rows"]),
        Goal("memory growth over the second half, MB", GROWTH_MB, _growth(ours)),
        Goal("Experiment.run's CPU per call, × send_many's", 1.25, share),
    ]
    if dask:
        goals += [
            Goal("on Dask, cells not answered exactly once", 0, calls - dask["cells once"]),
            Goal("on Dask, the driver's memory growth, MB", GROWTH_MB, _growth(dask)),
        ]
    return goals


def _row(name: str, figures: dict[str, Any], calls: int) -> dict[str, Any]:
    marks = [mark - figures["before_mb"] for mark in figures["marks_mb"]]
    return {
        "way": name,
        "calls/s": calls / figures["wall_s"],
        "CPU ms/call": figures["cpu_s"] / calls * 1000,
        "workers' CPU ms/call": figures["workers_cpu_s"] / calls * 1000 if "workers_cpu_s" in figures else None,
        "MB at 10 %": marks[0],
        "MB at 50 %": marks[1],
        "MB at the end": marks[2],
        "answered": figures["answered"],
        "cells once": figures.get("once"),
        "rows": figures.get("recorded"),
    }


def _growth(row: dict[str, Any]) -> float:
    return float(row["MB at the end"] - row["MB at 50 %"])
