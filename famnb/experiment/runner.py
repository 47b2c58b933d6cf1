"""The schedule of a run: one thread that starts calls within concurrency, rate and budget, and counts how they end.

todo ── warm-ups over? ── due by the rate? ── fits the budget? ── executor ── over ── counted
                                              └ no, and nothing in flight: stopped by the budget

What carries a call is the executor's business; nothing of a call stays here once it is over.

MERGED: What a run is given: cells, who carries their calls, and within which limits; running them is left to
`runner`.
MERGED: What a run has counted so far: its calls by how they ended, by variant and by error, and what they cost.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import queue
import statistics
import threading
import time
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from decimal import Decimal

from famnb.errors import Interrupted, LedgerError
from famnb.experiment.budget import Budget, Outcome
from famnb.experiment.executor import Executor, Stop
from famnb.experiment.plan import Cell
from famnb.experiment.progress import Progress, RunReport, Shutdown


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be run, and how."""

    name: str
    """The experiment."""
    todo: Sequence[Cell]
    """The cells to run, in their order."""
    planned: int
    """Cells of the whole plan."""
    failed_before: int = 0
    """Of the cells that are left alone, those that failed earlier."""
    variants: Sequence[str] = ()
    """Labels in the order in which they are shown; of others, the order of their cells."""
    executor: Executor
    concurrency: int
    """Calls in flight at most."""
    rate: float | None
    """Calls started a second at most; None does not limit."""
    purse: Budget | None
    """The budget; None does not limit."""
    replayed: MutableMapping[str, str] = dataclasses.field(default_factory=dict)
    """Where to note which recorded call answered a cell."""
    unrecorded: Callable[[], int] = lambda: 0
    """How many records could not be written: while there are some no call starts, since it would be paid for again."""
    finish: Callable[[], object] = lambda: None
    """Called on the schedule's thread once nothing runs any more."""


LATEST = 1000
"""Answers of a variant over which its median is taken: a run of any length needs no more memory than one of these."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class VariantProgress:
    """What a run has had of one variant."""

    label: str
    planned: int
    """Cells of it that the run is to run."""
    answered: int
    """Cells answered, whole or cut short by their token cap."""
    failed: int
    ttft_s: float | None
    """The median time to first token of the latest answers, in seconds, warm-ups left out; None before there is one."""


class _VariantTally:
    """The same while it is counted."""

    def __init__(self) -> None:
        self.planned = self.answered = self.failed = 0
        self.times: collections.deque[float] = collections.deque(maxlen=LATEST)


class Tally:
    """The counts of one run; used by one thread at a time."""

    def __init__(self, todo: Iterable[Cell], variants: Iterable[str] = ()) -> None:
        self.completed = self.failed = self.cancelled = 0
        self.unpriced = 0
        """Answered cells whose cost is not known."""
        self.spent: Decimal | None = None
        """The high end of what ended calls cost; None while no cost is known."""
        self.lost = 0
        """Calls cut off because the worker that carried them was lost."""
        self.simulated = False
        """Whether a simulated service answered any of them."""
        self.errors: collections.Counter[str] = collections.Counter()
        """How often each class of error ended a call."""
        self._variants = {label: _VariantTally() for label in variants}
        for cell in todo:
            self._variants.setdefault(cell.variant.label, _VariantTally()).planned += 1

    @property
    def ended(self) -> int:
        """Cells whose call is over."""
        return self.completed + self.failed + self.cancelled

    @property
    def variants(self) -> tuple[VariantProgress, ...]:
        """What has come of each variant of which there is anything to run."""
        return tuple(
            VariantProgress(
                label=label,
                planned=own.planned,
                answered=own.answered,
                failed=own.failed,
                ttft_s=statistics.median(own.times) if own.times else None,
            )
            for label, own in self._variants.items()
            if own.planned
        )

    def add(self, cell: Cell, outcome: Outcome, *, again: bool = False) -> None:
        """A cell's call is over; `again` says that the cell is not, since it is run again."""
        own = self._variants[cell.variant.label]
        self.lost += outcome.lost
        match outcome.status:
            case _ if again:
                pass
            case "completed" | "incomplete":
                self.completed += 1
                own.answered += 1
                self.unpriced += outcome.high is None and not outcome.replayed
                if outcome.ttft_s is not None and not cell.warmup:
                    own.times.append(outcome.ttft_s)
            case _ if outcome.failed:
                self.failed += 1
                own.failed += 1
                self.errors[outcome.error or "no reason given"] += 1
            case _:
                self.cancelled += 1
                self.errors.update([outcome.error] if outcome.status == "interrupted" and outcome.error else [])
        self.simulated |= outcome.simulated
        if outcome.high is not None and not outcome.replayed:
            self.spent = (self.spent or Decimal()) + outcome.high


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
        self._stopped_by: Shutdown | None = None
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

    def _stop(self, why: Shutdown) -> None:
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
