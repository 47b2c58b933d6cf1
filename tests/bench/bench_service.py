"""The service under many streams, on one core, beside a bare Starlette response."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import harness
import psutil
from harness import Goal, Result, Table, median, ratio

TITLE = "famnb serve beside a bare StreamingResponse, each on one core"
KEY = "benchmark-key"
PATH = "/v1/chat/completions"
MODEL = "fam-mini"
GAP_S = 0.033
"""Between the events of a paced stream; the mean of the simulated model's own gaps at SCALE."""
SCALE = 2.0
SIMULATION, COMPAT, GATEWAY = OURS = ("famnb serve", "famnb serve --compat", "famnb serve --upstream")
PIN = """import os, sys
if hasattr(os, 'sched_setaffinity'): os.sched_setaffinity(0, {int(sys.argv[1])})
os.execv(sys.argv[2], sys.argv[2:])"""


def run(quick: bool) -> Result:
    """Measure flat out and paced, the servers in turn."""
    streams, repeats = (8, 1) if quick else (512, 3)
    scale, gap_s = (0.01, 0.0001) if quick else (SCALE, GAP_S)
    with tempfile.TemporaryDirectory() as folder:
        prompts = [f"Question {n}: what is so special about the number {n}?" for n in range(1 if quick else 16)]
        texts, blocks = _answers(prompts)
        file = Path(folder) / "blocks.json"
        file.write_text(json.dumps(blocks))
        flat_out, at_pace = _ways_to_start(file, texts, 0, 0), _ways_to_start(file, texts, scale, gap_s)
        if quick:
            flat_out, at_pace = {GATEWAY: flat_out[GATEWAY]}, {SIMULATION: at_pace[SIMULATION]}
        flat = _measure(flat_out, streams, repeats)
        paced = _measure(at_pace, streams, 1 if quick else 2)
    wrong = sum(row["wrong"] for figures in (flat, paced) for name, row in figures.items() if name in OURS)
    notes = [
        f"{streams} streams of one answer each ({len(blocks)} events or so); a request, its validation and its "
        "connection are part of each event's cost. Every stream's text is compared with that of the whole reply.",
        "The bare response sends events rendered before; famnb makes each from a typed event.",
        "The gateway stands before the bare response, on another core, which is the load's if there are two.",
        f"Paced: some {1 / gap_s:,.0f} events a second and stream.",
    ]
    return Result(
        tables=[_table("Flat out", flat), _table("Paced", paced)],
        goals=[
            Goal("CPU of an event beside the bare response's, flat out", 2, _cpu_ratio(flat)),
            Goal("CPU of an event beside the bare response's, paced", 2, _cpu_ratio(paced)),
            Goal(f"streams of {streams} with a lost or reordered event, both loads", 0, wrong),
        ],
        notes=notes,
    )


def _cpu_ratio(figures: Figures) -> float | None:
    """How many times the bare response's CPU an event of famnb's takes."""
    return ratio(figures.get(SIMULATION, {}).get("cpu_us"), figures.get("bare Starlette", {}).get("cpu_us"))


def _answers(prompts: list[str]) -> tuple[dict[str, str], list[str]]:
    """For each prompt the text of the whole reply, and the blocks of one streamed reply."""
    with _famnb(0) as (url, _, _):
        texts = {}
        for prompt in prompts:
            body = json.loads(post(url, prompt, stream=False))
            texts[prompt] = body["choices"][0]["message"]["content"]
        sent = post(url, prompts[0], stream=True).decode()
    return texts, [f"{block}\n\n" for block in sent.split("\n\n")[:-1]]


def post(url: str, prompt: str, *, stream: bool) -> bytes:
    fields = {"model": MODEL, "stream": stream, "messages": [{"role": "user", "content": prompt}]}
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    request = urllib.request.Request(url + PATH, json.dumps(fields).encode(), headers)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=60) as response:
        return bytes(response.read())


Running = tuple[str, int, dict[str, str]]
"""Where a server is, its process id, and the right texts by prompt."""
Start = Callable[[], contextlib.AbstractContextManager[Running]]


def _ways_to_start(blocks: Path, texts: dict[str, str], scale: float, gap_s: float) -> dict[str, Start]:
    """A server for each name; those that say the same to everyone are asked the first prompt alone."""
    first = dict([next(iter(texts.items()))])
    return {
        SIMULATION: lambda: _famnb(scale, texts),
        "bare Starlette": lambda: _bare(blocks, first, gap_s),
        COMPAT: lambda: _famnb(scale, texts, "--compat"),
        GATEWAY: lambda: _gateway(blocks, first, gap_s),
    }


@contextlib.contextmanager
def _bare(blocks: Path, texts: dict[str, str], gap_s: float, *, core: int = -1) -> Iterator[Running]:
    command = (sys.executable, str(harness.HERE / "bare.py"), str(blocks), str(gap_s))
    with harness.run_server(_pin(*command, core=core)) as (line, pid):
        yield line["url"], pid, texts


@contextlib.contextmanager
def _gateway(blocks: Path, texts: dict[str, str], gap_s: float) -> Iterator[Running]:
    with _bare(blocks, texts, gap_s, core=0) as (url, _, _), _famnb(0, texts, "--upstream", url) as running:
        yield running


@contextlib.contextmanager
def _famnb(scale: float, texts: dict[str, str] | None = None, *options: str) -> Iterator[Running]:
    command = [sys.executable, "-m", "famnb", "serve", "--time-scale", str(scale), *options]
    with harness.run_server(_pin(*command), env={"FAMNB_SERVICE_KEY": KEY}) as (line, pid):
        yield line["url"], pid, texts or {}


def _pin(*command: str, core: int = -1) -> list[str]:
    """A command that runs on one core, by default the last of those there are, where the system can do that."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    return [sys.executable, "-c", PIN, str(cores[core]), *command]


Figures = dict[str, dict[str, Any]]


def _measure(servers: dict[str, Start], streams: int, repeats: int) -> Figures:
    loads: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for name in harness.rotate(list(servers), repeats):
        with servers[name]() as (url, pid, texts):
            job = {"url": url, "path": PATH, "key": KEY, "model": MODEL, "texts": texts}
            _run_load({**job, "streams": 4})
            loads[name].append(_measure_load(pid, {**job, "streams": streams}))
    return {
        name: {figure: median([run[figure] for run in runs]) for figure in ("cpu_us", "per_s", "rss_mb")}
        | {"wrong": sum(run["wrong"] for run in runs)}
        for name, runs in loads.items()
    }


def _run_load(job: dict[str, Any]) -> dict[str, Any]:
    load: dict[str, Any] = harness.run_child([sys.executable, str(harness.HERE / "load.py"), json.dumps(job)])
    return load


def _measure_load(pid: int, job: dict[str, Any]) -> dict[str, Any]:
    """One load with what it cost the server."""
    server = psutil.Process(pid)
    before = server.cpu_times()
    load = _run_load(job)
    after = server.cpu_times()
    cpu_s = after.user + after.system - before.user - before.system
    return {
        "cpu_us": cpu_s / load["events"] * 1e6,
        "per_s": load["events"] / load["wall_s"],
        "rss_mb": server.memory_info().rss / 1e6,
        "wrong": load["wrong"],
    }


def _table(title: str, figures: Figures) -> Table:
    base = figures.get(SIMULATION, {})
    rows = [
        {
            "server": name,
            "events/s": figure["per_s"],
            "× famnb": ratio(figure["per_s"], base.get("per_s")),
            "CPU µs/event": figure["cpu_us"],
            "× famnb's": ratio(figure["cpu_us"], base.get("cpu_us")),
            "RSS MB": figure["rss_mb"],
            "wrong streams": figure["wrong"],
        }
        for name, figure in figures.items()
    ]
    return Table(title, rows)
