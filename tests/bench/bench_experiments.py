"""A long experiment beside the same calls sent by hand: throughput, CPU per call, and memory as calls finish."""

from __future__ import annotations

import sys
from typing import Any

import harness
from harness import Goal, Result, Table, ratio

NAME = "experiments"
TITLE = "An experiment of many calls beside send_many and a bare httpx loop"
WAYS = {"Experiment.run": "experiment", "client.send_many": "send_many", "bare httpx loop": "httpx"}
GROWTH_MB = 16.0
"""What memory may move by while the second half of the calls finishes: noise of the allocator, no call kept."""


def run(quick: bool) -> Result:
    """Measure each way in a process of its own, against one `famnb serve` that does not wait."""
    calls, concurrency = (500, 32) if quick else (10_000, 256)
    rows = []
    command = [sys.executable, "-m", "famnb", "serve", "--time-scale", "0"]
    with harness.serving(command) as (served, _):
        for name, way in WAYS.items():
            arguments = [way, served["url"], served["key"], str(calls), str(concurrency)]
            found = harness.ran([sys.executable, str(harness.HERE / "runs.py"), *arguments], timeout_s=900).json
            rows.append(_row(name, found, calls))
    base = rows[0]["CPU ms/call"]
    rows = [{**row, "× CPU": ratio(row["CPU ms/call"], base)} for row in rows]
    ours = rows[0]
    return Result(
        tables=[Table(title=f"{calls:,} streamed calls, {concurrency} at once", rows=rows)],
        goals=[
            Goal(claim="calls of the experiment that are not answered", limit=0, value=calls - ours["answered"]),
            Goal(claim="answered calls of the experiment not recorded", limit=0, value=ours["answered"] - ours["rows"]),
            Goal(claim="memory growth over the second half, MB", limit=GROWTH_MB, value=_growth(ours)),
            Goal(claim="Experiment.run's CPU per call, × send_many's", limit=1.25, value=1 / (rows[1]["× CPU"] or 1)),
        ],
        notes=[
            "Memory is the process's own, less what it was before the first call, when so many calls are over. An "
            "experiment keeps no reply; send_many returns all of them.",
            "The service runs on the same machine and is what limits the calls a second; CPU is the caller's alone.",
            "famnb decodes, times and records every event, the experiment keeps a budget; the loop drops the bytes.",
        ],
    )


def _row(name: str, found: dict[str, Any], calls: int) -> dict[str, Any]:
    marks = [mark - found["before_mb"] for mark in found["marks_mb"]]
    return {
        "way": name,
        "calls/s": calls / found["wall_s"],
        "CPU ms/call": found["cpu_s"] / calls * 1000,
        "MB at 10 %": marks[0],
        "MB at 50 %": marks[1],
        "MB at the end": marks[2],
        "answered": found["answered"],
        "rows": found["recorded"],
    }


def _growth(row: dict[str, Any]) -> float:
    return float(row["MB at the end"] - row["MB at 50 %"])
