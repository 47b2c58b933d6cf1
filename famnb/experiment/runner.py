"""The schedule of a run: one thread that starts calls within concurrency, rate and budget, and counts how they end.

todo ── warm-ups over? ── due by the rate? ── fits the budget? ── executor ── over ── counted
                                              └ no, and nothing in flight: stopped by the budget

What carries a call is the executor's business; nothing of a call stays here once it is over.
"""

from __future__ import annotations

import collections
import copy
import queue
import threading
import time

from famnb.errors import Interrupted, LedgerError
from famnb.experiment.budget import Outcome
from famnb.experiment.executor import Stop
from famnb.experiment.job import Job
from famnb.experiment.plan import Cell
from famnb.experiment.progress import Ending, Progress, RunReport
from famnb.experiment.tally import Tally, VariantProgress

GRACE_S = 20.0
"""How long an interrupt waits for stopped calls to be recorded."""
HELD_S = 0.5
"""Between two looks at a ledger that cannot be written."""
PATIENCE_S = 60.0
"""How long it is waited for before the run is given up."""
TRIES = 3
"""How often a cell is run at most in one run when the workers that carry its calls are lost."""


class Run:
    """A run under way: `progress` at any time, `stop()` from any thread, `wait()` for its report."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._todo = collections.deque(job.todo)
        self._running: dict[str, Stop] = {}
        self._warming = 0
        self._cells: dict[str, Cell] = {}
        self._lost: collections.Counter[str] = collections.Counter()
        self._ended: queue.SimpleQueue[tuple[str, Outcome] | None] = queue.SimpleQueue()
        self._skipped = job.planned - len(job.todo)
        self._tally = Tally(job.todo, job.variants)
        self._lock = threading.Lock()
        self._stopped_by: Ending | None = None
        self._due = self._began = time.monotonic()
        self._held_since: float | None = None
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
            tally, running = copy.copy(self._tally), len(self._running)
        elapsed = self._elapsed_s if self._elapsed_s is not None else time.monotonic() - self._began
        left = self._job.planned - self._skipped - tally.ended
        over = self._over.is_set()
        return Progress(
            total=self._job.planned,
            before=self._skipped,
            completed=tally.completed,
            failed=tally.failed,
            cancelled=tally.cancelled,
            running=running,
            spent_usd=tally.spent,
            unpriced=tally.unpriced,
            simulated=tally.simulated,
            elapsed_s=elapsed,
            eta_s=0.0 if over else left * elapsed / tally.ended if tally.ended else None,
            over=over,
        )

    @property
    def variants(self) -> tuple[VariantProgress, ...]:
        """What has come of each variant that it is to run; safe from any thread."""
        with self._lock:
            return self._tally.variants

    @property
    def errors(self) -> dict[str, int]:
        """How often each class of error ended a call, the most frequent first; safe from any thread."""
        with self._lock:
            return dict(self._tally.errors.most_common())

    @property
    def failure(self) -> BaseException | None:
        """What broke it, which `wait` raises; None where nothing did."""
        return self._failure

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
            failed_before=self._job.failed_before,
            simulated=now.simulated,
            lost=self._tally.lost,
            spent_usd=now.spent_usd,
            unpriced=now.unpriced,
            counted_usd=None if purse is None else purse.counted,
            budget_usd=None if purse is None else purse.limit,
            elapsed_s=now.elapsed_s,
            stopped_by=self._stopped_by,
        )

    def __repr__(self) -> str:
        return f"<Run {self._job.name}: {self.progress}>"

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
            if self._held():
                return
            if job.purse is not None and not job.purse.fits(cell.key):
                if not self._running:
                    self._stopped_by = "budget"
                return
            self._todo.popleft()
            self._start(cell)

    def _held(self) -> bool:
        """Whether calls cannot be recorded just now; LedgerError once nothing runs and that has lasted too long."""
        left, now = self._job.unrecorded(), time.monotonic()
        if not left:
            self._held_since = None
            return False
        self._held_since = self._held_since or now
        if now - self._held_since > PATIENCE_S and not self._running:
            raise LedgerError(
                f"{self._job.name} was stopped since its ledger cannot be written: {left:,} records wait in memory. "
                "Make room or unlock the file, then run() again in this process, so that nothing is paid for twice"
            )
        return True

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
            held = None if self._held_since is None else HELD_S
            ended = self._ended.get(timeout=max(wait, 0.0) if waiting else held)
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
        self._lost.update([key] * outcome.lost)
        again = outcome.lost and self._lost[key] < TRIES and self._stopped_by is None
        if again:
            self._todo.appendleft(cell)
        with self._lock:
            del self._running[key]
            self._tally.add(cell, outcome, again=again)
