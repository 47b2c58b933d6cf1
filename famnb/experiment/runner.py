"""The schedule of a run: one thread that starts calls within concurrency, rate and budget, and counts how they end.

todo ── warm-ups over? ── due by the rate? ── fits the budget? ── executor ── over ── counted
                                              └ no, and nothing in flight: stopped by the budget

What carries a call is the executor's business; nothing of a call stays here once it is over.
"""

from __future__ import annotations

import collections
import dataclasses
import queue
import threading
import time
from collections.abc import Callable, MutableMapping, Sequence
from decimal import Decimal

from famnb.errors import Interrupted
from famnb.experiment.budget import Outcome, Purse
from famnb.experiment.executor import Executor, Stop
from famnb.experiment.plan import Cell
from famnb.experiment.progress import Ending, Progress, RunReport

GRACE_S = 20.0
"""How long an interrupt waits for stopped calls to be recorded."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be run, and how."""

    name: str
    """The experiment."""
    todo: Sequence[Cell]
    """The cells to run, in their order."""
    planned: int
    """Cells of the whole plan."""
    executor: Executor
    concurrency: int
    """Calls in flight at most."""
    rate: float | None
    """Calls started a second at most; None does not limit."""
    purse: Purse | None
    """The budget; None does not limit."""
    replayed: MutableMapping[str, str] = dataclasses.field(default_factory=dict)
    """Where to note which recorded call answered a cell."""
    finish: Callable[[], object] = lambda: None
    """Called on the schedule's thread once nothing runs any more."""


@dataclasses.dataclass(slots=True)
class _Tally:
    """What has happened so far."""

    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0
    spent: Decimal | None = None

    def add(self, outcome: Outcome) -> None:
        match outcome.status:
            case "completed" | "incomplete":
                self.completed += 1
            case "failed":
                self.failed += 1
            case _:
                self.cancelled += 1
        if outcome.high is not None and not outcome.replayed:
            self.spent = (self.spent or Decimal()) + outcome.high


class Run:
    """A run under way: `progress` at any time, `stop()` from any thread, `wait()` for its report."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._todo = collections.deque(job.todo)
        self._running: dict[str, Stop] = {}
        self._warming = 0
        self._cells: dict[str, Cell] = {}
        self._ended: queue.SimpleQueue[tuple[str, Outcome] | None] = queue.SimpleQueue()
        self._tally = _Tally(skipped=job.planned - len(job.todo))
        self._lock = threading.Lock()
        self._stopped_by: Ending | None = None
        self._due = self._began = time.monotonic()
        self._elapsed_s: float | None = None
        self._failure: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"famnb-run-{job.name}", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it is still under way."""
        return not self._over.is_set()

    @property
    def progress(self) -> Progress:
        """How far it is; safe from any thread."""
        with self._lock:
            tally, running = dataclasses.replace(self._tally), len(self._running)
        elapsed = self._elapsed_s if self._elapsed_s is not None else time.monotonic() - self._began
        ended = tally.completed + tally.failed + tally.cancelled
        left = self._job.planned - tally.skipped - ended
        over = self._over.is_set()
        return Progress(
            total=self._job.planned,
            before=tally.skipped,
            completed=tally.completed,
            failed=tally.failed,
            cancelled=tally.cancelled,
            running=running,
            spent_usd=tally.spent,
            elapsed_s=elapsed,
            eta_s=0.0 if over else left * elapsed / ended if ended else None,
            over=over,
        )

    @property
    def report(self) -> RunReport:
        """What it has come to."""
        now, purse = self.progress, self._job.purse
        return RunReport(
            name=self._job.name,
            planned=now.total,
            completed=now.completed,
            failed=now.failed,
            cancelled=now.cancelled,
            skipped=now.before,
            spent_usd=now.spent_usd,
            counted_usd=None if purse is None else purse.counted,
            budget_usd=None if purse is None else purse.limit,
            elapsed_s=now.elapsed_s,
            stopped_by=self._stopped_by,
        )

    def stop(self) -> None:
        """Start no further call and end those in flight, which keep what had come; from any thread, at any time."""
        self._stop("stop")

    def over(self, timeout: float | None = None) -> bool:
        """Wait, at most `timeout` seconds; whether it is over."""
        return self._over.wait(timeout)

    def wait(self, timeout: float | None = None) -> RunReport:
        """Wait, at most `timeout` seconds, and return what it has come to; raises what broke the run.

        An interrupt stops the run, keeps all that had come, and is raised as `Interrupted`.
        """
        try:
            self._over.wait(timeout)
        except KeyboardInterrupt:
            raise self.interrupted() from None
        if self._failure is not None:
            raise self._failure
        return self.report

    def interrupted(self) -> Interrupted:
        """Stop for an interrupt, wait until what was in flight is recorded, and say how far it came."""
        self._stop("interrupt")
        self._over.wait(GRACE_S)
        return Interrupted(str(self.report))

    def _stop(self, why: Ending) -> None:
        with self._lock:
            if not self._over.is_set():
                self._stopped_by = self._stopped_by or why
        self._ended.put(None)

    def _work(self) -> None:
        try:
            self._schedule()
        except BaseException as failure:
            self._failure = failure
            self._drain()
        finally:
            self._elapsed_s = time.monotonic() - self._began
            self._job.finish()
            self._over.set()

    def _schedule(self) -> None:
        stopped = False
        while self._running or (self._todo and self._stopped_by is None):
            self._fill()
            if self._stopped_by in ("stop", "interrupt") and not stopped:
                stopped = True
                for stop in reversed(self._running.values()):
                    stop()
            if self._running or (self._todo and self._stopped_by is None):
                self._take()

    def _drain(self) -> None:
        """Something broke: end what is in flight and wait until it is recorded."""
        for stop in list(self._running.values()):
            stop()
        while self._running:
            self._take()

    def _fill(self) -> None:
        """Start what may start now."""
        job = self._job
        while self._todo and self._stopped_by is None and len(self._running) < job.concurrency:
            cell = self._todo[0]
            if (self._warming and not cell.warmup) or self._due > time.monotonic():
                return
            if job.purse is not None and not job.purse.fits(cell.key):
                if not self._running:
                    self._stopped_by = "budget"
                return
            self._todo.popleft()
            self._start(cell)

    def _start(self, cell: Cell) -> None:
        job = self._job
        if job.purse is not None:
            job.purse.reserve(cell.key)
        if job.rate is not None:
            self._due = max(self._due, time.monotonic() - 1 / job.rate) + 1 / job.rate
        self._warming += cell.warmup
        self._cells[cell.key] = cell
        key, ended = cell.key, self._ended
        stop = job.executor.start(cell, labels=cell.labels(job.name), over=lambda outcome: ended.put((key, outcome)))
        with self._lock:
            self._running[key] = stop

    def _take(self) -> None:
        """Wait for a call to end, a stop, or the moment when the next call is due; count what has ended."""
        wait = self._due - time.monotonic()
        waiting = self._todo and wait > 0 and len(self._running) < self._job.concurrency
        try:
            ended = self._ended.get(timeout=max(wait, 0.0) if waiting else None)
            while True:
                if ended is not None:
                    self._count(*ended)
                ended = self._ended.get_nowait()
        except queue.Empty:
            return

    def _count(self, key: str, outcome: Outcome) -> None:
        cell = self._cells.pop(key)
        self._warming -= cell.warmup
        if outcome.replayed and outcome.call_id is not None:
            self._job.replayed[key] = outcome.call_id
        if self._job.purse is not None:
            self._job.purse.settle(key, outcome)
        with self._lock:
            del self._running[key]
            self._tally.add(outcome)
