"""Streams in a real notebook: what a board costs websocket, kernel and page, beside `HTML.value +=`.

Every way shows the same streams of the same client in a JupyterLab page in Chromium; only the showing differs.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import harness
import psutil
from harness import Goal, Result, Table, ratio

TITLE = "a board of streams in JupyterLab beside `HTML.value +=`"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
SETTLE_S = 1.0
"""After the last word is on screen, until the figures are taken: what still follows counts too."""
PATIENCE_S = 45.0
"""How long after the last delta a way may take to show it."""

SETUP = """
import os, pathlib, threading, famnb, ipywidgets
client = famnb.Client(base_url="{url}", api_key="benchmark-key", ledger="{ledger}")
requests = [famnb.compose("chat", f"pane {{n}}", stream=True, max_tokens=10_000) for n in range({panes})]
def follow(show):
    def read(stream, show):
        for event in stream:
            if isinstance(event, famnb.events.Delta):
                show(event.text)
    for number, request in enumerate(requests):
        threading.Thread(target=read, args=(client.stream(request), show(number)), daemon=True).start()
pathlib.Path("{pid}").write_text(str(os.getpid()))
"""
WAYS: Mapping[str, tuple[str, str]] = {
    "famnb.Board": (
        "board = famnb.Board(client, {str(n): request for n, request in enumerate(requests)})\nboard",
        "streams = board.submit()",
    ),
    "HTML.value +=": (
        "boxes = [ipywidgets.HTML() for _ in requests]\nipywidgets.VBox(boxes)",
        "def show(n):\n  def add(text): boxes[n].value += text\n  return add\nfollow(show)",
    ),
}
"""What shows the streams, and what starts them, each a cell."""

PROBE = """([from]) => {
  const cells = [...document.querySelectorAll(".jp-CodeCell .jp-OutputArea")];
  // Without what is there to be saved alone, which would count every word a second time.
  const outputs = () => cells.flatMap((cell) => [...cell.children]);
  const shown = () => outputs().filter((output) => !output.querySelector(".famnb-saved"));
  const read = () => shown().map((output) => output.textContent).join(" ");
  const probe = (window.probe = { lags: {}, shown: {}, longest: 0, tasks: 0, busy: 0, last: performance.now(), read });
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) {
      probe.tasks += 1;
      probe.busy = Math.max(probe.busy, task.duration);
    }
  }).observe({ type: "longtask" });
  const frame = (now) => {
    probe.longest = Math.max(probe.longest, now - probe.last);
    probe.last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  setInterval(() => {
    const now = performance.timeOrigin + performance.now();
    if (now < from) return;
    for (const [mark, at] of read().matchAll(/END(\\d{19})/g)) {
      probe.lags[mark] ??= now - Number(at) / 1e6;
      probe.shown[mark] ??= now;
    }
  }, 10);
}"""
DONE = "(panes) => Object.keys(window.probe.lags).length >= panes"
FOUND = """() => {
  const { lags, shown, longest, tasks, busy, read } = window.probe;
  const words = read().match(/x[0-9A-F]{3}/g) ?? [];
  return { lags: Object.values(lags), shown: Object.values(shown), longest, tasks, busy, words: words.length };
}"""
_IDLE = """() => {
  const panel = window.jupyterapp?.shell?.currentWidget;
  return panel?.sessionContext?.session?.kernel?.status === "idle" && panel.content.widgets.length > 0;
}"""
_RUN = """async number => {
  const panel = window.jupyterapp.shell.currentWidget;
  panel.content.deselectAll();
  panel.content.activeCellIndex = number;
  await window.jupyterapp.commands.execute("notebook:run-cell");
}"""


def run(quick: bool) -> Result:
    """Measure every way in a fresh kernel and page; without Chromium or JupyterLab there are no figures."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return Result(tables=[], goals=[], notes=["not measured: no `chromium` on the PATH"])
    seconds = 1 if quick else 20
    ways = tuple(WAYS)
    loads = {
        f"8 panes, 100 deltas a second each, for {seconds} s": (8, 100 * seconds, 100, ways[:1] if quick else ways),
        f"one stream of {100 * seconds:,} deltas, 100 a second": (1, 100 * seconds, 100, () if quick else ways),
        "a burst: 8 panes, 16,000 deltas in 2 s": (8, 2_000, 1_000, () if quick else ways),
    }
    served = harness.run_server([sys.executable, str(harness.HERE / "canned.py")])
    with _browser(chromium) as browser, _lab() as lab, served as (url, _):
        figures_by_load = {
            title: {tool: _measure(browser, lab, url, tool, panes, events, pace) for tool in ways}
            for title, (panes, events, pace, ways) in loads.items()
        }
    board, single, burst = figures_by_load.values()
    return Result(
        tables=[Table(title, _rows(figures)) for title, figures in figures_by_load.items() if figures],
        goals=_goals(board, single, burst, seconds),
        notes=[
            "MB and messages: what the page gets on the kernel's websocket from the moment the streams start until the "
            "last delta is on screen; MB at the end: with what follows, such as the board's table for the saved file.",
            "Kernel CPU includes the client itself: reading, folding, recording.",
            "Late by: from the server's clock, read just before it writes the last delta, until the page has it.",
            "Frames and tasks are those of the page's main thread; the machine's other load is in them.",
        ],
    )


Figures = dict[str, float | None]


def _measure(browser: Any, lab: tuple[str, Path], url: str, tool: str, panes: int, events: int, pace: int) -> Figures:
    """One way, once."""
    address, home = lab
    files = {name: home / f"{name}-{time.monotonic_ns()}" for name in ("ledger", "pid")}
    setup = SETUP.format(url=f"{url}/words/{events}/{pace}", panes=panes, **files)
    cells = [{"cell_type": "code", "source": text, "outputs": [], "metadata": {}} for text in (setup, *WAYS[tool])]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": [{**cell, "execution_count": None} for cell in cells], "metadata": kernel}
    (home / "root" / "bench.ipynb").write_text(json.dumps({**notebook, "nbformat": 4, "nbformat_minor": 4}))
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    try:
        page = context.new_page()
        page.set_default_timeout(60_000)
        frames: list[tuple[float, int]] = []
        page.on(
            "websocket", lambda socket: socket.on("framereceived", lambda data: frames.append((time.time(), len(data))))
        )
        page.goto(f"{address}/lab/tree/bench.ipynb?reset")
        page.wait_for_function(_IDLE)
        for number in (0, 1):
            page.evaluate(_RUN, number)
            page.wait_for_function(_IDLE)
        page.wait_for_timeout(1000)
        meter = context.new_cdp_session(page)
        meter.send("Performance.enable")
        process = psutil.Process(int(files["pid"].read_text()))
        began = _cpu_s(process), _main_s(meter), len(frames)
        page.evaluate(PROBE, [1000 * (time.time() + max(events / pace - 1, 0))])
        page.evaluate(_RUN, 2)
        time_limit = 1000 * (events / pace + PATIENCE_S)
        with contextlib.suppress(Exception):  # late beyond patience is a finding, not a failure
            page.wait_for_function(DONE, arg=panes, timeout=time_limit, polling=200)
        page.wait_for_timeout(1000 * SETTLE_S)
        seen = page.evaluate(FOUND)
        shown = max(seen["shown"]) / 1000 if seen["shown"] else time.time()
        counted = [size for time_s, size in frames[began[2] :] if time_s <= shown]
        figures: Figures = {
            "MB": sum(counted) / 1e6,
            "messages": len(counted),
            "MB at the end": sum(size for _, size in frames[began[2] :]) / 1e6,
            "kernel CPU s": _cpu_s(process) - began[0],
            "page main s": _main_s(meter) - began[1],
            "late by ms": max(seen["lags"]) if len(seen["lags"]) == panes else None,
            "longest frame ms": seen["longest"],
            "long tasks": seen["tasks"],
            "text shown %": 100 * min(seen["words"] / (panes * (events - 1)), 1),
        }
        page.evaluate("() => window.jupyterapp.serviceManager.sessions.shutdownAll()")
        return figures
    finally:
        context.close()


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _main_s(meter: Any) -> float:
    """Seconds that the page's main thread was busy so far."""
    metrics = {metric["name"]: metric["value"] for metric in meter.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def _rows(figures: Mapping[str, Figures]) -> list[dict[str, Any]]:
    ours = figures["famnb.Board"]
    compared = ("MB", "MB at the end", "messages", "kernel CPU s", "page main s")
    return [
        {"way": tool, **figure, **{f"{name} / famnb": ratio(figure[name], ours[name]) for name in compared}}
        for tool, figure in figures.items()
    ]


def _goals(
    board: Mapping[str, Figures], single: Mapping[str, Figures], burst: Mapping[str, Figures], seconds: int
) -> list[Goal]:
    ours, html = board["famnb.Board"], board.get("HTML.value +=", {})
    goals = [
        Goal(f"MB on the websocket, 8 panes, {seconds} s", 0.5, ours["MB"]),
        Goal(f"messages, 8 panes, {seconds} s", 600, ours["messages"]),
        Goal("kernel CPU as a share of HTML.value's", 1 / 3, ratio(ours["kernel CPU s"], html.get("kernel CPU s"))),
        Goal("last delta on screen after, ms", 100, ours["late by ms"]),
        Goal("longest frame of the page, ms", 100, ours["longest frame ms"]),
        Goal("text shown, %", 100, ours["text shown %"], True),
    ]
    if burst:
        goals.append(Goal("text shown of a burst, %", 100, burst["famnb.Board"]["text shown %"], True))
    if single:
        late = single["famnb.Board"]["late by ms"]
        goals.append(Goal("last delta of a single stream on screen after, ms", 100, late))
    return goals


@contextlib.contextmanager
def _browser(chromium: str) -> Iterator[Any]:
    # An extra of the tests: without it the other benchmarks run all the same.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


@contextlib.contextmanager
def _lab() -> Iterator[tuple[str, Path]]:
    """A JupyterLab whose every folder is its own: its address, and where they are."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
        extra = {name: str(home / name) for name in names}
        for name in (*names, "root"):
            (home / name).mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = [
            *("--no-browser", "--allow-root", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
            *(f"--ServerApp.root_dir={home / 'root'}", "--IdentityProvider.token=", "--expose-app-in-browser"),
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options],
            env=harness.environment(extra),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_until_up(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}", home
        finally:
            process.terminate()
            process.wait(20)


def _wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{url}/api", timeout=2).close()
            return
        time.sleep(0.1)
    raise RuntimeError("JupyterLab did not start; `python -m jupyterlab` says why")
