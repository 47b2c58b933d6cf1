"""Many calls in a process of its own, in one of several ways; prints what they cost, as JSON.

usage: runs.py WAY URL KEY CALLS CONCURRENCY
    experiment   famnb.Experiment.run: recorded, within a budget, no reply kept
    dask         the same, carried by two Dask workers on this machine, a process with one thread each
    send_many    famnb's client: recorded, every reply kept
"""

from __future__ import annotations

import collections
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil

import famnb

MARKS = (0.1, 0.5, 1.0)
"""The shares of the calls after which memory is looked at."""
CAP = 16
ANSWERED = ("completed", "incomplete")
"""The states of a call that answers its cell; the cap cuts most answers off."""


class CountingLedger(famnb.Ledger):
    """A ledger that counts the calls that are over."""

    over = 0

    def on_close(self, exchange: Any) -> Any:
        self.over += 1
        return super().on_close(exchange)


def experiment(client: Any, calls: int) -> famnb.Experiment:
    """An experiment whose plan has that many cells, four to a prompt."""
    famnb.prices.set("fam-2-5-pro", input=1, output=4)
    prompts = [f"Question {number}: what is so special about this number?" for number in range(calls // 4)]
    grid = famnb.grid(temperature=[0, 0.5])
    plan = famnb.Experiment(prompts, grid, 2, name="bench", client=client, endpoint="messages", max_tokens=CAP)
    assert len(plan.cells) == calls
    return plan


@contextmanager
def measure(calls: int, over: Callable[[], int]) -> Iterator[dict[str, Any]]:
    """Processor and wall time of the block, and the memory when each share of the calls was over."""
    process, ended = psutil.Process(), threading.Event()
    figures: dict[str, Any] = {"before_mb": process.memory_info().rss / (1 << 20), "marks_mb": []}

    def watch_memory() -> None:
        for share in MARKS:
            while over() < share * calls and not ended.wait(0.005):
                pass
            figures["marks_mb"].append(process.memory_info().rss / (1 << 20))

    watcher = threading.Thread(target=watch_memory)
    watcher.start()
    cpu, wall = time.process_time(), time.monotonic()
    yield figures
    figures |= {"cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - wall}
    ended.set()
    watcher.join()


def by_famnb(method: str, url: str, key: str, calls: int, concurrency: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        # Prices are set for the run, and not in the file of whoever runs it.
        os.environ["FAMNB_PRICES"] = f"{folder}/prices.toml"
        ledger = CountingLedger(f"{folder}/ledger.sqlite")
        with famnb.Client(base_url=url, api_key=key, ledger=ledger, connections=concurrency) as client:
            plan = experiment(client, calls)
            match method:
                case "send_many":
                    figures = run_send_many(client, plan, ledger, concurrency)
                case "experiment":
                    figures = run_experiment(plan, ledger, concurrency)
                case _:
                    figures = run_on_dask(plan, ledger, concurrency, key)
        return {**figures, "recorded": len(ledger)}


def run_send_many(
    client: famnb.Client, plan: famnb.Experiment, ledger: CountingLedger, concurrency: int
) -> dict[str, Any]:
    requests = [cell.request for cell in plan.cells]
    with measure(len(requests), lambda: ledger.over) as figures:
        replies = client.send_many(requests, concurrency=concurrency, progress=False)
    return {**figures, "answered": sum(reply.error is None for reply in replies)}


def run_experiment(plan: famnb.Experiment, ledger: CountingLedger, concurrency: int, on: Any = None) -> dict[str, Any]:
    with measure(len(plan.cells), lambda: ledger.over) as figures:
        report = plan.run(concurrency=concurrency, budget_usd=1000, progress=False, on=on)
    answers = collections.Counter(row["cell"] for row in ledger.select() if row["standing"] in ANSWERED)
    once = sum(answers[cell.key] == 1 for cell in plan.cells)
    return {**figures, "answered": report.completed, "once": once}


def run_on_dask(plan: famnb.Experiment, ledger: CountingLedger, concurrency: int, key: str) -> dict[str, Any]:
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", env={"FAM_API_KEY": key}
        ) as cluster,
        distributed.Client(cluster) as dask_client,
    ):
        pids = list(dask_client.run(os.getpid).values())
        before = cpu_s(pids)
        figures = run_experiment(plan, ledger, concurrency, dask_client)
        return {**figures, "workers_cpu_s": cpu_s(pids) - before}


def cpu_s(pids: list[int]) -> float:
    """The processor seconds of some processes so far."""
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


if __name__ == "__main__":
    method, url, key, calls, concurrency = sys.argv[1:]
    print(json.dumps(by_famnb(method, url, key, int(calls), int(concurrency))))
