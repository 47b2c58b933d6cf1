"""The service under many streams, on one core, beside a bare Starlette response and another mock."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import socket
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import harness
import psutil
from harness import Goal, Result, Table, median, ratio

NAME = "service"
TITLE = "famnb serve beside a bare StreamingResponse and another mock, each on one core"
MOCK = "FAMNB_BENCH_MOCKLLM"
"""A Python that has `mockllm` installed, which is too heavy to ask of everybody."""
KEY = "benchmark-key"
PATH = "/v1/chat/completions"
MODEL = "fam-mini"
GAP_S = 0.033
"""Between the events of a paced stream; the mean of the simulated model's own gaps at SCALE."""
SCALE = 2.0
PIN = "import os, sys\nif hasattr(os, 'sched_setaffinity'): os.sched_setaffinity(0, {int(sys.argv[1])})\n"
EXEC = "os.execv(sys.argv[2], sys.argv[2:])"


def run(quick: bool) -> Result:
    """Measure flat out and paced, the servers in turn."""
    streams, repeats = (8, 1) if quick else (512, 3)
    scale, gap_s = (0.01, 0.0001) if quick else (SCALE, GAP_S)
    with tempfile.TemporaryDirectory() as folder:
        prompts = [f"Question {n}: what is so special about the number {n}?" for n in range(4 if quick else 16)]
        texts, blocks = _answers(prompts)
        house = _House(Path(folder), texts, blocks)
        flat = _measured(house.servers(0, 0), streams, repeats)
        paced = _measured(house.servers(scale, gap_s), streams, 1 if quick else 2)
    wrong = sum(figures["famnb serve"]["wrong"] for figures in (flat, paced))
    notes = [
        f"{streams} streams of one answer each ({len(blocks)} events or so); a request, its validation and its "
        "connection are part of each event's cost. Every stream's text is compared with that of the whole reply.",
        "The bare response sends events rendered before; famnb makes each from a typed event. mockllm's events are "
        "characters of the same text, at its own server's settings.",
        f"Paced: some {1 / gap_s:,.0f} events a second and stream.",
    ]
    if MOCK not in os.environ:
        notes.append(f"mockllm is skipped: set {MOCK} to a Python that has it (pip install mockllm).")
    return Result(
        tables=[_table("Flat out", flat), _table("Paced", paced)],
        goals=[
            Goal(claim=f"streams of {streams} with a lost or reordered event, both loads", limit=0, value=wrong),
        ],
        notes=notes,
    )


def _answers(prompts: list[str]) -> tuple[dict[str, str], list[str]]:
    """For each prompt the text of the whole reply, and the blocks of one streamed reply."""
    with _famnb(0) as (url, _, _):
        texts = {}
        for prompt in prompts:
            body = json.loads(_post(url, prompt, stream=False))
            texts[prompt] = body["choices"][0]["message"]["content"]
        sent = _post(url, prompts[0], stream=True).decode()
    return texts, [f"{block}\n\n" for block in sent.split("\n\n")[:-1]]


def _post(url: str, prompt: str, *, stream: bool) -> bytes:
    fields = {"model": MODEL, "stream": stream, "messages": [{"role": "user", "content": prompt}]}
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    asked = urllib.request.Request(url + PATH, json.dumps(fields).encode(), headers)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(asked, timeout=60) as response:
        return bytes(response.read())


Running = tuple[str, int, dict[str, str]]
"""Where a server is, its process id, and the right texts by prompt."""
Start = Callable[[], contextlib.AbstractContextManager[Running]]


class _House:
    """The ways to start each server, given what all of them shall say."""

    def __init__(self, folder: Path, texts: dict[str, str], blocks: list[str]) -> None:
        self._texts = texts
        self._first = next(iter(texts.items()))
        self._blocks = folder / "blocks.json"
        self._blocks.write_text(json.dumps(blocks))
        self._responses = folder / "responses.yml"

    def servers(self, scale: float, gap_s: float) -> dict[str, Start]:
        """A server for each name; those that say the same to everyone are asked the first prompt alone."""
        found: dict[str, Start] = {
            "famnb serve": lambda: _famnb(scale, self._texts),
            "bare Starlette": lambda: self._bare(gap_s),
        }
        if MOCK in os.environ:
            found["mockllm"] = lambda: self._mock(gap_s)
        return found

    @contextlib.contextmanager
    def _bare(self, gap_s: float) -> Iterator[Running]:
        with harness.serving(_pinned(sys.executable, str(harness.HERE / "bare.py"), str(self._blocks), str(gap_s))) as (
            line,
            pid,
        ):
            yield line["url"], pid, dict([self._first])

    @contextlib.contextmanager
    def _mock(self, gap_s: float) -> Iterator[Running]:
        prompt, text = self._first
        settings = {"lag_enabled": bool(gap_s), "lag_factor": 0.1 / gap_s if gap_s else 10}
        said = {"responses": {}, "defaults": {"unknown_response": text[:200]}, "settings": settings}
        self._responses.write_text(json.dumps(said))  # JSON is YAML
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        # What it logs must not fill a pipe that nobody reads any more.
        tell = f"print('{{\"port\": {port}}}', flush=True)\nos.dup2(2, 1)\n"
        start = ["-m", "uvicorn", "mockllm.server:app", "--no-access-log", "--port", str(port)]
        env = {"MOCKLLM_RESPONSES_FILE": str(self._responses)}
        with harness.serving(_pinned(os.environ[MOCK], *start, tell=tell), env=env) as (_, pid):
            yield f"http://127.0.0.1:{port}", pid, {prompt: text[:200]}


@contextlib.contextmanager
def _famnb(scale: float, texts: dict[str, str] | None = None) -> Iterator[Running]:
    command = [sys.executable, "-m", "famnb", "serve", "--time-scale", str(scale)]
    with harness.serving(_pinned(*command), env={"FAMNB_SERVICE_KEY": KEY}) as (line, pid):
        yield line["url"], pid, texts or {}


def _pinned(*command: str, tell: str = "") -> list[str]:
    """A command that runs on one core, the last of those there are, where the system can do that."""
    core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return [sys.executable, "-c", PIN + tell + EXEC, str(core), *command]


Figures = dict[str, dict[str, Any]]


def _measured(servers: dict[str, Start], streams: int, repeats: int) -> Figures:
    found: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for name in harness.rotated(list(servers), repeats):
        with servers[name]() as (url, pid, texts):
            job = {"url": url, "path": PATH, "key": KEY, "model": MODEL, "texts": texts}
            _loaded({**job, "streams": 4})  # also waits until it accepts connections
            found[name].append(_costed(pid, {**job, "streams": streams}))
    return {
        name: {figure: median([each[figure] for each in runs]) for figure in ("cpu_us", "per_s", "rss_mb")}
        | {"wrong": sum(each["wrong"] for each in runs)}
        for name, runs in found.items()
    }


def _loaded(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = harness.ran([sys.executable, str(harness.HERE / "load.py"), json.dumps(job)]).json
    return found


def _costed(pid: int, job: dict[str, Any]) -> dict[str, Any]:
    """One load with what it cost the server."""
    server = psutil.Process(pid)
    before = server.cpu_times()
    found = _loaded(job)
    after = server.cpu_times()
    cpu_s = after.user + after.system - before.user - before.system
    return {
        "cpu_us": cpu_s / found["events"] * 1e6,
        "per_s": found["events"] / found["wall_s"],
        "rss_mb": server.memory_info().rss / 1e6,
        "wrong": found["wrong"],
    }


def _table(title: str, figures: Figures) -> Table:
    base = figures["famnb serve"]
    rows = [
        {
            "server": name,
            "events/s": each["per_s"],
            "× famnb": ratio(each["per_s"], base["per_s"]),
            "CPU µs/event": each["cpu_us"],
            "× famnb's": ratio(each["cpu_us"], base["cpu_us"]),
            "RSS MB": each["rss_mb"],
            "wrong streams": each["wrong"],
        }
        for name, each in figures.items()
    ]
    return Table(title=title, rows=rows)
