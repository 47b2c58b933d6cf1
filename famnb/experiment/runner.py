"""The run of an experiment: a thread that starts calls within concurrency, rate and budget, and counts how they end.

todo ── service open? ── warm-ups over? ── due by the rate? ── ledger writable? ── fits the budget? ── executor ──
 ▲      └ no: paused, or given up (`schedule.py`)                                  └ no, and nothing in flight: stopped
 │                                                                                   by the budget
 └────────── kept from being made ─────────── on_done ── counted
                                              └ 401, 402, 403: stopped by trouble

An executor carries the calls, in this process or on a cluster (`dask_executor.py`); `Run` decides when each one starts,
and whether at all, and keeps nothing of a call that is over but its counts.
"""

from __future__ import annotations

import collections
import dataclasses
import queue
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

from tqdm.auto import tqdm

from famnb.client.batch import ServiceLimiters
from famnb.client.client import BaseClient
from famnb.client.exchange import Exchange
from famnb.errors import Interrupted, LedgerError
from famnb.experiment.budget import Budget, CallOutcome
from famnb.experiment.plan import Cell
from famnb.experiment.progress import Progress, RunReport, StopReason
from famnb.experiment.schedule import Limit, ServiceQueue, why_denied
from famnb.formatting import format_duration

BRIEF_WAIT_S = 1.0
"""The longest wait asked for by a service that a call waits for itself; the schedule sees to longer ones, so that they
are shown, and hold back all calls to that service."""
RECENT_ANSWERS = 1000
"""Latest answers of a variant over which its median is taken, so that a run of any length needs bounded memory."""
TICK_S = 0.1
"""Seconds between two updates of a progress bar: often enough to look alive, seldom enough to cost nothing."""
GRACE_S = 20.0
"""How long an interrupt waits for stopped calls to be recorded."""
LEDGER_RETRY_S = 0.5
"""Seconds between two looks at a ledger that cannot be written."""
PATIENCE_S = 60.0
"""How long a run waits for a ledger that cannot be written before it gives up."""
TRIES = 3
"""How often one run carries a cell at most when the workers that carry its calls are lost.

More than once, since workers come and go; not for ever, since a cell that kills its worker would kill all of them.
"""


OnDone: TypeAlias = Callable[[CallOutcome], object]
"""Is told how a call ended."""
StopCall: TypeAlias = Callable[[], object]
"""Stops one call."""


class Executor(Protocol):
    """Carries calls; it may delay a call while the service throttles, and keeps nothing of a call that is over."""

    def start(self, cell: Cell, *, labels: Mapping[str, str], on_done: OnDone) -> StopCall:
        """Start a cell's call and return a function that stops it, from any thread; does not wait for the call.

        `on_done(outcome)` is called once, from any thread, when the call is over and recorded; it does not block.
        """


_Outcomes: TypeAlias = "queue.SimpleQueue[tuple[str, CallOutcome] | None]"
"""Calls that are over, each with its cell's key; None wakes the run's thread."""


@dataclasses.dataclass(frozen=True, slots=True)
class RunClock:
    """Time as a run uses it; tests replace it."""

    now: Callable[[], float] = time.monotonic
    """Seconds."""
    wait: Callable[[_Outcomes, float | None], tuple[str, CallOutcome] | None] = lambda outcomes, timeout: outcomes.get(
        timeout=timeout
    )
    """Waits for what comes next, at most so many seconds; then it raises `queue.Empty`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a run is given: its cells, who carries their calls, and within which limits."""

    name: str
    """The experiment's name."""
    todo: Sequence[Cell]
    """The cells to run, in their order."""
    planned: int
    """Number of cells of the whole plan."""
    failed_before: int = 0
    """How many of the cells that are left alone failed earlier."""
    elsewhere: int = 0
    """How many of the cells to run were answered by another service, which does not count."""
    variants: Sequence[str] = ()
    """Labels in the order in which they are shown; variants that are not in it follow in the order of their cells."""
    executor: Executor
    concurrency: int
    """Calls in flight at most."""
    rate: float | None
    """Calls started a second at most; None for no limit."""
    budget: Budget | None
    """None for no limit."""
    replayed: MutableMapping[str, str] = dataclasses.field(default_factory=dict)
    """Filled with the id of the recorded call that answered a cell, by the cell's key."""
    limit: Limit = lambda _cell: None
    """Gives how many calls the service of a cell takes at once, as far as is known."""
    clock: RunClock = dataclasses.field(default_factory=RunClock)
    count_unrecorded: Callable[[], int] = lambda: 0
    """Returns how many records could not be written: no call starts meanwhile, since it would be paid for again."""
    finish: Callable[[], object] = lambda: None
    """Called on the run's thread once nothing runs any more."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class VariantProgress:
    """The state of one variant of a run."""

    label: str
    planned: int
    """Cells of it that the run is to run."""
    answered: int
    """Cells answered, whole or cut short by their token cap."""
    failed: int
    ttft_s: float | None
    """Median time to first token of the latest answers in seconds, warm-ups left out; None before there is one."""


class _VariantTally:
    """The counts behind a VariantProgress."""

    def __init__(self) -> None:
        self.planned = self.answered = self.failed = 0
        self.times: collections.deque[float] = collections.deque(maxlen=RECENT_ANSWERS)


@dataclasses.dataclass(frozen=True, slots=True)
class _Spending:
    """Answers, and what they and calls without an answer cost."""

    answers: int = 0
    unpriced: int = 0
    """Answers whose cost is not known."""
    usd: Decimal | None = None
    """The high end of the cost of ended calls; None while no cost is known."""
    is_estimate: bool = False
    """Whether a cost in it is an estimate."""

    def with_call(self, outcome: CallOutcome) -> _Spending:
        """The same and one more call that is over."""
        is_answered = outcome.status in ("completed", "incomplete")
        high = None if outcome.replayed else outcome.high
        return _Spending(
            self.answers + is_answered,
            self.unpriced + (is_answered and outcome.high is None and not outcome.replayed),
            self.usd if high is None else (self.usd or Decimal()) + high,
            self.is_estimate or (high is not None and outcome.is_estimate),
        )


class Tally:
    """The counts of one run; used by one thread at a time."""

    def __init__(self, todo: Iterable[Cell], variants: Iterable[str] = ()) -> None:
        self.completed = self.failed = self.cancelled = 0
        self.lost = 0
        """Calls cut off because the worker that carried them was lost."""
        self.put_back = 0
        """Calls that were kept from being made."""
        self.simulated = self.billed = _Spending()
        """Answers of simulated services, and all others."""
        self.errors: collections.Counter[str] = collections.Counter()
        """How often each class of error ended a call."""
        self._variants = {label: _VariantTally() for label in variants}
        for cell in todo:
            self._variants.setdefault(cell.variant.label, _VariantTally()).planned += 1

    @property
    def spending(self) -> _Spending:
        """What was billed; what would have been where all answers are simulated."""
        return self.billed if self.billed.answers or not self.simulated.answers else self.simulated

    @property
    def cells_over(self) -> int:
        """Number of cells whose call is over."""
        return self.completed + self.failed + self.cancelled

    @property
    def variants(self) -> tuple[VariantProgress, ...]:
        """The state of each variant that has cells to run."""
        return tuple(
            VariantProgress(
                label=label,
                planned=tally.planned,
                answered=tally.answered,
                failed=tally.failed,
                ttft_s=statistics.median(tally.times) if tally.times else None,
            )
            for label, tally in self._variants.items()
            if tally.planned
        )

    def add(self, cell: Cell, outcome: CallOutcome, *, runs_again: bool = False) -> None:
        """Count a call that is over; `runs_again` if its cell is not, because it is run again."""
        variant = self._variants[cell.variant.label]
        self.lost += outcome.is_lost
        self.put_back += outcome.is_unmade
        if outcome.simulated:
            self.simulated = self.simulated.with_call(outcome)
        else:
            self.billed = self.billed.with_call(outcome)
        match outcome.status:
            case _ if outcome.is_unmade:
                self.errors[outcome.error or "no reason given"] += 1
            case _ if runs_again:
                pass
            case "completed" | "incomplete":
                self.completed += 1
                variant.answered += 1
                if outcome.ttft_s is not None and not cell.warmup:
                    variant.times.append(outcome.ttft_s)
            case _ if outcome.is_failure:
                self.failed += 1
                variant.failed += 1
                self.errors[outcome.error or "no reason given"] += 1
            case _:
                self.cancelled += 1
                self.errors.update([outcome.error] if outcome.status == "interrupted" and outcome.error else [])


class Run:
    """A run under way: `progress` at any time, `stop()` from any thread, `wait()` for its report."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._clock = job.clock
        self._queues: dict[str, ServiceQueue] = {}
        """The cells to run, by their service."""
        for cell in job.todo:
            self._queues.setdefault(cell.service, ServiceQueue(cell.service)).add(cell)
        self._running: dict[str, StopCall] = {}
        self._warmups_running = 0
        self._cells: dict[str, Cell] = {}
        self._times_lost: collections.Counter[str] = collections.Counter()
        # A call's end and a stop come from other threads; both wake the run's own, which alone changes what follows.
        self._outcomes: _Outcomes = queue.SimpleQueue()
        self._skipped = job.planned - len(job.todo)
        self._tally = Tally(job.todo, job.variants)
        # For what the run's thread changes and others read, or the reverse: `_running`, `_tally`, `_stopped_by`.
        self._lock = threading.Lock()
        self._stopped_by: StopReason | None = None
        self._denial = ""
        """Why the run ended at once."""
        self._waited_s = 0.0
        self._next_start = self._start_time = self._clock.now()
        self._unwritable_since: float | None = None
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
        """Its state now; safe from any thread."""
        now = self._clock.now()
        elapsed = self._elapsed_s if self._elapsed_s is not None else now - self._start_time
        is_over = self._over.is_set()
        with self._lock:
            tally, spending = self._tally, self._tally.spending
            left = self._job.planned - self._skipped - tally.cells_over
            paused = (
                []
                if is_over or self._stopped_by
                else [service_queue for service_queue in self._queues.values() if service_queue.has_work]
            )
            last = max(paused, key=attrgetter("paused_until"), default=None)
            pause_s = 0.0 if last is None else max(0.0, last.paused_until - now)
            return Progress(
                total=self._job.planned,
                before=self._skipped,
                completed=tally.completed,
                failed=tally.failed,
                cancelled=tally.cancelled,
                running=len(self._running),
                spent_usd=spending.usd,
                spent_is_estimate=spending.is_estimate,
                unpriced=spending.unpriced,
                simulated=tally.simulated.answers > 0,
                elapsed_s=elapsed,
                eta_s=0.0 if is_over else left * elapsed / tally.cells_over if tally.cells_over else None,
                over=is_over,
                billed=tally.billed.answers > 0,
                pause_s=pause_s,
                pause_reason=last.trouble if last is not None and pause_s else "",
            )

    @property
    def variants(self) -> tuple[VariantProgress, ...]:
        """The state of each variant that it is to run; safe from any thread."""
        with self._lock:
            return self._tally.variants

    @property
    def errors(self) -> dict[str, int]:
        """How often each class of error ended a call, the most frequent first; safe from any thread."""
        with self._lock:
            return dict(self._tally.errors.most_common())

    @property
    def failure(self) -> BaseException | None:
        """The exception that broke it, which `wait` raises; None if none did."""
        return self._failure

    @property
    def report(self) -> RunReport:
        """Its result so far."""
        progress, budget = self.progress, self._job.budget
        return RunReport(
            name=self._job.name,
            planned=progress.total,
            completed=progress.completed,
            failed=progress.failed,
            cancelled=progress.cancelled,
            skipped=progress.before,
            failed_before=self._job.failed_before,
            simulated=progress.simulated,
            billed=progress.billed,
            lost=self._tally.lost,
            put_back=self._tally.put_back,
            waited_s=self._waited_s,
            elsewhere=self._job.elsewhere,
            reason=self._reason,
            spent_usd=progress.spent_usd,
            spent_is_estimate=progress.spent_is_estimate,
            unpriced=progress.unpriced,
            counted_usd=None if budget is None else budget.counted,
            budget_usd=None if budget is None else budget.limit,
            elapsed_s=progress.elapsed_s,
            stopped_by=self._stopped_by,
        )

    @property
    def _reason(self) -> str:
        """What trouble ended it; empty if none did."""
        given_up = [service_queue.why_given_up for service_queue in self._queues.values() if service_queue.is_given_up]
        return "; ".join([self._denial] if self._denial else given_up)

    def __repr__(self) -> str:
        return f"<Run {self._job.name}: {self.progress}>"

    def stop(self) -> None:
        """Start no further call and end those in flight, which keep what had come; from any thread, at any time."""
        self._stop("stop")

    def over(self, timeout: float | None = None) -> bool:
        """Wait, at most `timeout` seconds; return whether it is over."""
        return self._over.wait(timeout)

    def wait(self, timeout: float | None = None) -> RunReport:
        """Wait, at most `timeout` seconds, and return the report; raises what broke the run.

        An interrupt stops the run, keeps all that had come, and is raised as `Interrupted`.
        """
        try:
            self._over.wait(timeout)
        except KeyboardInterrupt:
            raise self.interrupt() from None
        if self._failure is not None:
            raise self._failure
        return self.report

    def interrupt(self) -> Interrupted:
        """Stop it, wait until what was in flight is recorded, and return the error to raise, with the report."""
        self._stop("interrupt")
        self._over.wait(GRACE_S)
        return Interrupted(str(self.report))

    def _stop(self, reason: StopReason) -> None:
        with self._lock:
            if not self._over.is_set():
                self._stopped_by = self._stopped_by or reason
        self._outcomes.put(None)

    def _work(self) -> None:
        try:
            self._schedule()
        except BaseException as failure:
            self._failure = failure
            self._drain()
        finally:
            self._elapsed_s = self._clock.now() - self._start_time
            # Before waiters wake: whoever runs the experiment again needs its lock and its workers free.
            self._job.finish()
            self._over.set()

    def _schedule(self) -> None:
        calls_stopped = False
        while self._has_work():
            # One time for both: what is not due for the one is what the other waits for.
            now = self._clock.now()
            self._start_calls(now)
            # A run that its budget stops lets calls in flight end: their cost is reserved already.
            if self._stopped_by in ("stop", "interrupt") and not calls_stopped:
                calls_stopped = True
                # Backwards, so that no call that waits for a place gets that of one that was just stopped.
                for stop in reversed(self._running.values()):
                    stop()
            if self._has_work():
                self._count_outcomes(self._next_due(now))
        if any(service_queue.is_given_up for service_queue in self._queues.values()):
            self._stopped_by = self._stopped_by or "trouble"

    def _has_work(self) -> bool:
        has_waiting = any(service_queue.has_work for service_queue in self._queues.values())
        return bool(self._running) or (self._stopped_by is None and has_waiting)

    def _drain(self) -> None:
        """End the calls in flight and wait until they are recorded, because something broke."""
        for stop in list(self._running.values()):
            stop()
        while self._running:
            self._count_outcomes()

    def _start_calls(self, now: float) -> None:
        """Start every call that may start now."""
        job = self._job
        while self._stopped_by is None and len(self._running) < job.concurrency:
            ready = [
                service_queue for service_queue in self._queues.values() if service_queue.can_start(now, job.limit)
            ]
            if not ready:
                return
            service_queue = min(ready, key=attrgetter("turn"))
            cell = service_queue.first
            if (self._warmups_running and not cell.warmup) or self._next_start > now:
                return
            if self._waits_for_ledger():
                return
            if job.budget is not None and not job.budget.fits(cell.key):
                # While calls are in flight there is hope: they may cost less than was reserved for them.
                if not self._running:
                    self._stopped_by = "budget"
                return
            service_queue.pop()
            service_queue.running += 1
            self._start(cell)

    def _waits_for_ledger(self) -> bool:
        """Whether calls cannot be recorded now. Raises LedgerError once nothing runs and that has lasted too long."""
        unrecorded, now = self._job.count_unrecorded(), self._clock.now()
        if not unrecorded:
            self._unwritable_since = None
            return False
        self._unwritable_since = self._unwritable_since or now
        if now - self._unwritable_since > PATIENCE_S and not self._running:
            raise LedgerError(
                f"{self._job.name} was stopped since its ledger cannot be written: "
                f"{unrecorded:,} records wait in memory. "
                "Make room or unlock the file, then run() again in this process, so that nothing is paid for twice"
            )
        return True

    def _start(self, cell: Cell) -> None:
        job = self._job
        if job.budget is not None:
            job.budget.reserve(cell.key)
        if job.rate is not None:
            # Counted from when the call was due, at most one interval back: a late wake-up slows nothing down, and
            # after a pause calls do not come in a burst.
            interval = 1 / job.rate
            self._next_start = max(self._next_start, self._clock.now() - interval) + interval
        self._warmups_running += cell.warmup
        self._cells[cell.key] = cell
        key, outcomes = cell.key, self._outcomes
        stop = job.executor.start(
            cell, labels=cell.labels(job.name), on_done=lambda outcome: outcomes.put((key, outcome))
        )
        with self._lock:
            self._running[key] = stop

    def _next_due(self, now: float) -> float | None:
        """When something can be started that cannot `now`, if time alone decides; None if a call has to end first."""
        due = [] if self._unwritable_since is None else [now + LEDGER_RETRY_S]
        if len(self._running) < self._job.concurrency:
            due += [
                max(service_queue.paused_until, self._next_start)
                for service_queue in self._queues.values()
                if service_queue.has_work
            ]
        # What is due already waits for something else, which wakes this thread.
        return min((time_due for time_due in due if time_due > now), default=None)

    def _count_outcomes(self, due: float | None = None) -> None:
        """Wait for a call to end, a stop, or a time; count every call that has ended."""
        now, is_idle = self._clock.now(), not self._running
        timeout = None if due is None else max(0.0, due - now)
        try:
            ended = self._clock.wait(self._outcomes, timeout)
            while True:
                if ended is not None:
                    self._count(*ended)
                ended = self._outcomes.get_nowait()
        except queue.Empty:
            return
        finally:
            if is_idle and any(service_queue.paused_until > now for service_queue in self._queues.values()):
                self._waited_s += self._clock.now() - now

    def _count(self, key: str, outcome: CallOutcome) -> None:
        cell = self._cells.pop(key)
        service_queue = self._queues[cell.service]
        self._warmups_running -= cell.warmup
        if outcome.replayed and outcome.call_id is not None:
            self._job.replayed[key] = outcome.call_id
        if self._job.budget is not None:
            self._job.budget.settle(key, outcome)
        self._times_lost.update([key] * outcome.is_lost)
        runs_again = outcome.is_lost and self._times_lost[key] < TRIES and self._stopped_by is None
        with self._lock:
            del self._running[key]
            self._tally.add(cell, outcome, runs_again=runs_again)
            service_queue.running -= 1
            if outcome.is_unmade:
                service_queue.on_unmade(outcome, self._clock.now())
                service_queue.put_back(cell)
            elif outcome.status != "cancelled" and not outcome.is_lost:
                service_queue.on_made()
            if runs_again:
                service_queue.add(cell)
            if outcome.is_denied:
                self._denial = self._denial or why_denied(cell.service, outcome)
                self._stopped_by = self._stopped_by or "trouble"


def follow(run: Run, *, shown: bool) -> None:
    """Wait until a run is over; if `shown`, under a bar with the money spent, the time left and the failures."""
    start = run.progress
    bar: tqdm[Any]
    with tqdm(total=start.total, initial=start.before, unit="call", disable=not shown) as bar:
        while True:
            is_over = run.over(TICK_S if shown else None)
            # Read after the wait: the last update is of a run that is over, so that the bar ends at its true count.
            progress = run.progress
            bar.set_postfix_str(_postfix(progress), refresh=False)
            bar.update(progress.done - bar.n)
            if progress.pause_s:
                # The bar draws itself anew only when it advances, and the time left goes down meanwhile.
                bar.refresh()
            if is_over:
                return


def _postfix(progress: Progress) -> str:
    parts = [progress.spent] if progress.spent_usd is not None else []
    parts += [f"{progress.failed:,} failed"] if progress.failed else []
    parts += [f"paused for {format_duration(progress.pause_s, brief=True)}"] if progress.pause_s else []
    return ", ".join(parts)


class LocalExecutor:
    """Carries calls with clients of this process, fewer at a time while a service is throttling."""

    def __init__(self, client_of: Callable[[Cell], BaseClient], *, concurrency: int) -> None:
        """`client_of` gives the client that carries a cell's call."""
        self._client_of = client_of
        self._limiters = ServiceLimiters(concurrency)

    def start(self, cell: Cell, *, labels: Mapping[str, str], on_done: OnDone) -> StopCall:
        client = self._client_of(cell)
        retries = client.engine.retries.capped(BRIEF_WAIT_S)
        stream = client.engine.start(cell.request, labels=labels, limiters=self._limiters, retries=retries)
        stream.add_done_callback(lambda ended: on_done(outcome_of(ended.exchange)))
        return stream.stop

    def limit(self, cell: Cell) -> int | None:
        """How many calls the cell's service takes at once; None unless it has asked for less."""
        return self._client_of(cell).engine.batch_limit(cell.request.endpoint)


def outcome_of(exchange: Exchange) -> CallOutcome:
    """The outcome of a call that is over."""
    return CallOutcome.from_reply(exchange.reply, http_status=exchange.http_status, attempts=exchange.attempts)
