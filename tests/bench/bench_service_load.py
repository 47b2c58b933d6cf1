"""The service under load and abuse: endless engines behind it, many streams, many short requests, half-open sockets."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import bench_service
import harness
import psutil
from harness import Goal, Result, Table, median

NAME = "service_load"
TITLE = "famnb serve under load, beside another checkout of it"
BASELINE = "FAMNB_BENCH_BASELINE"
"""Another checkout of famnb, to be measured beside this one."""
KEY = "benchmark-key"
ENDLESS = {
    "chat": ("/v1/chat/completions", {"model": "any/model"}),
    "responses": ("/v1/responses", {"max_output_tokens": 10**9, "store": False}),
    "web": ("/v1/web/chat/completions", {"max_new_tokens": 10**9}),
    "messages": ("/v1/messages", {"max_tokens": 10**9}),
}
"""For each endpoint its path, and the fields of a request that is never cut."""
MB = 1e6


def run(quick: bool) -> Result:
    """Measure this checkout, and the other one if it is named."""
    seconds = 0.3 if quick else 60
    sizes = (8, 40, 10) if quick else (1000, 10_000, 3000)
    endless = [_relay_endlessly(name, seconds) for name in ENDLESS]
    checkouts = {"this": None} | ({"baseline": os.environ[BASELINE]} if BASELINE in os.environ else {})
    loads: dict[str, list[dict[str, Any]]] = {name: [] for name in checkouts}
    for name in harness.rotate(list(checkouts), 1 if quick else 2):
        loads[name].append(_load(checkouts[name], *sizes))
    rows = [
        {"checkout": name, **{figure: median([run[figure] for run in runs]) for figure in runs[0]}}
        for name, runs in loads.items()
    ]
    streams, requests, half_open = sizes
    relayed = f"An endless engine at full speed, {seconds:g} s on each endpoint, then its caller gone"
    loaded = f"{streams} streams; {requests} short requests; the same with {half_open} sockets half open"
    return Result(
        tables=[Table(title=relayed, rows=endless), Table(title=loaded, rows=rows)],
        goals=[
            Goal(claim="MB that an endless stream adds", limit=50, value=max(row["grown MB"] for row in endless)),
            Goal(claim="MB that it leaves", limit=50, value=max(row["left MB"] for row in endless)),
            Goal(claim="answers that were wrong", limit=0, value=rows[0]["wrong"]),
        ],
        notes=[
            "grown: the most that the resident memory was above what it was after a tenth of the time; left: what it "
            f"was above that {max(1, seconds / 6):g} s after the caller had gone.",
            "A responses stream holds its text for its end, and is cut at 30 MB: the next one follows. None is stored, "
            "which would be kept, up to 256 MB of them.",
        ],
    )


@contextlib.contextmanager
def _serve(*options: str, checkout: str | None = None) -> Iterator[tuple[str, psutil.Process]]:
    env = {"FAMNB_SERVICE_KEY": KEY} | ({"PYTHONPATH": checkout} if checkout else {})
    command = [sys.executable, "-m", "famnb", "serve", *options]
    with harness.run_server(command, env=env) as (line, pid):
        yield line["url"], psutil.Process(pid)


def _relay_endlessly(name: str, seconds: float) -> dict[str, Any]:
    """Read from an endless engine for so long, then leave; what became of the memory meanwhile, and afterwards."""
    with (
        harness.run_server([sys.executable, str(harness.HERE / "endless.py")]) as (upstream, _),
        _serve("--upstream", upstream, "--upstream-model", "endless") as (url, process),
    ):
        start = peak = received = 0
        began = time.monotonic()
        while (left := began + seconds - time.monotonic()) > 0:
            for size in _read_stream(url, name, left):
                received += size
                memory = process.memory_info().rss
                if time.monotonic() > began + seconds / 10:
                    start = start or memory
                    peak = max(peak, memory)
        time.sleep(max(1, seconds / 6))
        return {
            "endpoint": name,
            "MB relayed": received / MB,
            "resident MB": start / MB,
            "grown MB": (peak - start) / MB,
            "left MB": (process.memory_info().rss - start) / MB,
        }


def _read_stream(url: str, name: str, seconds: float) -> Iterator[int]:
    """Yield what one stream brings each tenth of a second, in bytes, for at most so long."""
    path, fields = ENDLESS[name]
    prompt = {"input": "Go on."} if name == "responses" else {"messages": [{"role": "user", "content": "Go on."}]}
    body = json.dumps({"model": "fam-2-5-pro", "stream": True, **prompt, **fields}).encode()
    address = urlsplit(url)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n"
    deadline = time.monotonic() + seconds
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)
        size, told = 0, time.monotonic()
        while (now := time.monotonic()) < deadline and (data := connection.recv(1 << 20)):
            size += len(data)
            if now > told + 0.1:
                yield size
                size, told = 0, now
        yield size


def _load(checkout: str | None, streams: int, requests: int, half_open: int) -> dict[str, Any]:
    """Hold many streams, then send short requests, then the same beside half-open sockets."""
    with _serve("--time-scale", "0.2", checkout=checkout) as (url, process):
        text = _answer(url)
        job = {"url": url, "path": ENDLESS["chat"][0], "key": KEY, "model": "fam-mini"}
        _run("load.py", {**job, "texts": text, "streams": 4})
        many, cpu_streams = _measure(process, "load.py", {**job, "texts": text, "streams": streams})
        memory = process.memory_info().rss
    with _serve("--time-scale", "0", checkout=checkout) as (url, process):
        job = {"url": url, "path": ENDLESS["chat"][0], "key": KEY, "model": "fam-mini", "requests": requests}
        short, cpu_short = _measure(process, "requests_load.py", {**job, "connections": 20, "half_open": 0})
        beside, cpu_beside = _measure(process, "requests_load.py", {**job, "connections": 20, "half_open": half_open})
        return {
            "stream CPU µs/event": cpu_streams / many["events"] * 1e6,
            "streams MB": memory / MB,
            "request CPU µs": cpu_short / requests * 1e6,
            "requests/s": requests / short["wall_s"],
            "p99 ms": short["p99_ms"],
            "beside: CPU µs": cpu_beside / requests * 1e6,
            "beside: p99 ms": beside["p99_ms"],
            "MB after": process.memory_info().rss / MB,
            "wrong": many["wrong"] + short["wrong"] + beside["wrong"],
        }


def _answer(url: str) -> dict[str, str]:
    """A prompt and the text of the whole reply to it."""
    prompt = "Why is the sky blue?"
    body = json.loads(bench_service.post(url, prompt, stream=False))
    return {prompt: body["choices"][0]["message"]["content"]}


def _measure(process: psutil.Process, script: str, job: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """Run a load; what it says, and the seconds of CPU that it cost the server."""
    before = process.cpu_times()
    load = _run(script, job)
    after = process.cpu_times()
    return load, after.user + after.system - before.user - before.system


def _run(script: str, job: dict[str, Any]) -> dict[str, Any]:
    load: dict[str, Any] = harness.run_child([sys.executable, str(harness.HERE / script), json.dumps(job)]).json
    return load
