"""The run of an experiment: a thread that starts calls within concurrency, rate and budget, and counts how they end.

todo ── service open? ── warm-ups over? ── fits the budget? ── executor ──
 ▲      └ no: paused, or given up          └ no, and nothing in flight: stopped by the budget
 │        (`schedule.py`)
 └────────── service unavailable ──────────── on_done ── counted
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
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

from tqdm.auto import tqdm

from famnb.client.batch import ServiceLimiters
from famnb.client.client import BaseClient
from famnb.client.exchange import Exchange
from famnb.errors import Interrupted
from famnb.experiment.budget import NO_BUDGET, Budget, CallOutcome
from famnb.experiment.plan import Cell
from famnb.experiment.progress import RunReport, StopReason, VariantProgress
from famnb.experiment.resume import ANSWERED
from famnb.experiment.schedule import ServiceQueue, explain_denial
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
TRIES = 3
"""How often one run carries a cell at most when the workers that carry its calls are lost.

More than once, since workers come and go; not for ever, since a cell that kills its worker would kill all of them.
"""


OnDone: TypeAlias = Callable[[CallOutcome], object]
"""Receives a call's outcome."""
StopCall: TypeAlias = Callable[[], object]
"""Stops one call."""


class Executor(Protocol):
    """Carries calls; it may delay a call while the service throttles, and keeps nothing of a call that is over."""

    def start(self, cell: Cell, *, labels: Mapping[str, str], on_done: OnDone) -> StopCall:
        """Start a cell's call and return a function that stops it, from any thread; does not wait for the call.

        `on_done(outcome)` is called once, from any thread, when the call is over and recorded; it does not block.
        """

    def limit(self, cell: Cell) -> int | None:
        """How many calls the cell's service takes at once; None if nothing is known to limit it."""


_Outcomes: TypeAlias = "queue.SimpleQueue[tuple[str, CallOutcome] | None]"
"""Calls that are over, each with its cell's key; None wakes the run's thread."""


def wait_for_outcome(outcomes: _Outcomes, timeout: float | None) -> tuple[str, CallOutcome] | None:
    """Wait for the next outcome, at most `timeout` seconds; then it raises `queue.Empty`."""
    return outcomes.get(timeout=timeout)


class Run:
    """A run under way: `progress` at any time, `stop()` from any thread, `wait()` for its report."""

    def __init__(
        self,
        todo: Sequence[Cell],
        report: RunReport,
        executor: Executor,
        *,
        concurrency: int,
        budget: Budget = NO_BUDGET,
        finish: Callable[[], object] = lambda: None,
        now: Callable[[], float] = time.monotonic,
        wait: Callable[[_Outcomes, float | None], tuple[str, CallOutcome] | None] = wait_for_outcome,
    ) -> None:
        """Begin to run the cells in their order, and count on `report`, which has what is known before.

        At most `concurrency` calls are in flight. `finish` is called on the run's thread once nothing runs any more.
        `now` and `wait` are the run's time; tests replace it.
        """
        self._report = report
        self._executor = executor
        self._concurrency = concurrency
        self._budget = budget
        self._finish = finish
        self._now = now
        self._wait_for_outcome = wait
        self._queues: dict[str, ServiceQueue] = {}
        """The cells to run, by their service."""
        self._variants = {variant.label: variant for variant in report.variants}
        for cell in todo:
            self._queues.setdefault(cell.service, ServiceQueue(cell.service)).add(cell)
            label = cell.variant.label
            self._variants.setdefault(label, VariantProgress(label=label)).planned += 1
        self._ttfts = {label: collections.deque[float](maxlen=RECENT_ANSWERS) for label in self._variants}
        self._errors: collections.Counter[str] = collections.Counter()
        self._running: dict[str, tuple[Cell, StopCall]] = {}
        """The cells whose calls are in flight, by their keys."""
        self._times_lost: collections.Counter[str] = collections.Counter()
        # A call's end and a stop come from other threads; both wake the run's own, which alone changes what follows.
        self._outcomes: _Outcomes = queue.SimpleQueue()
        # For what the run's thread changes and others read, or the reverse: the report, the counts, `_running`.
        self._lock = threading.Lock()
        self._start_time = now()
        self.failure: BaseException | None = None
        """The exception that broke it, which `wait` raises; None if none did."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"famnb-run-{report.name}", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it is still under way."""
        return not self._over.is_set()

    @property
    def progress(self) -> RunReport:
        """Its state now; safe from any thread."""
        with self._lock:
            report = dataclasses.replace(
                self._report,
                running=len(self._running),
                errors=dict(self._errors.most_common()),
                variants=tuple(
                    dataclasses.replace(variant, ttft_s=statistics.median(times) if times else None)
                    for variant, times in ((self._variants[label], times) for label, times in self._ttfts.items())
                    if variant.planned
                ),
            )
            if self._budget.limit is not None:
                report.counted_usd, report.budget_usd = self._budget.counted, self._budget.limit
            if report.is_over:
                return report
            now = self._now()
            report.elapsed_s = now - self._start_time
            if report.ended:
                report.eta_s = (report.planned - report.skipped - report.ended) * report.elapsed_s / report.ended
            waiting = [service_queue for service_queue in self._queues.values() if service_queue.has_work]
            last = max(waiting, key=attrgetter("paused_until"), default=None)
            if last is not None and last.paused_until > now and report.stopped_by is None:
                report.pause_s, report.pause_reason = last.paused_until - now, last.trouble
            return report

    def __repr__(self) -> str:
        return f"<Run {self._report.name}: {self.progress}>"

    def stop(self) -> None:
        """Start no further call and end those in flight, which keep what had come; from any thread, at any time."""
        self._stop("stop")

    def join(self, timeout: float | None = None) -> None:
        """Wait until it is over, at most `timeout` seconds, whatever becomes of it."""
        self._over.wait(timeout)

    def wait(self, timeout: float | None = None) -> RunReport:
        """Wait, at most `timeout` seconds, and return the report; raises what broke the run.

        An interrupt stops the run, keeps all that had come, and is raised as `Interrupted`.
        """
        try:
            self._over.wait(timeout)
        except KeyboardInterrupt:
            raise self.interrupt() from None
        if self.failure is not None:
            raise self.failure
        return self.progress

    def interrupt(self) -> Interrupted:
        """Stop it, wait until what was in flight is recorded, and return the error to raise, with the report."""
        self._stop("interrupt")
        self._over.wait(GRACE_S)
        return Interrupted(str(self.progress))

    def _stop(self, reason: StopReason) -> None:
        with self._lock:
            if not self._over.is_set():
                self._report.stopped_by = self._report.stopped_by or reason
        self._outcomes.put(None)

    def _work(self) -> None:
        try:
            self._schedule()
        except BaseException as failure:
            self.failure = failure
            # Whatever broke, calls in flight are ended and recorded.
            for _, stop in list(self._running.values()):
                stop()
            while self._running:
                self._count_outcomes()
        finally:
            elapsed_s = self._now() - self._start_time
            with self._lock:
                self._report.elapsed_s, self._report.eta_s, self._report.is_over = elapsed_s, 0.0, True
            # Before waiters wake: whoever runs the experiment again needs its lock and its workers free.
            self._finish()
            self._over.set()

    def _schedule(self) -> None:
        calls_stopped = False
        while self._has_work():
            # The same time for both, so that what is not due in the one is waited for in the other.
            now = self._now()
            self._start_calls(now)
            # A run that its budget stops lets calls in flight end: their cost is reserved already.
            if self._report.stopped_by in ("stop", "interrupt") and not calls_stopped:
                calls_stopped = True
                # Backwards, so that no call that waits for a connection gets that of a call that was just stopped.
                for _, stop in reversed(self._running.values()):
                    stop()
            if self._has_work():
                queues = self._queues.values() if len(self._running) < self._concurrency else ()
                # What is due already waits for something else, which wakes this thread; without room a call has to end.
                due = (waiting.paused_until for waiting in queues if waiting.has_work and waiting.paused_until > now)
                self._count_outcomes(min(due, default=None))
        given_up = [service_queue.why_given_up for service_queue in self._queues.values() if service_queue.is_given_up]
        if given_up:
            self._stop("trouble")
            self._report.reason = self._report.reason or "; ".join(given_up)

    def _has_work(self) -> bool:
        has_waiting = any(service_queue.has_work for service_queue in self._queues.values())
        return bool(self._running) or (self._report.stopped_by is None and has_waiting)

    def _start_calls(self, now: float) -> None:
        """Start every call that may start now."""
        while self._report.stopped_by is None and len(self._running) < self._concurrency:
            ready = [
                service_queue
                for service_queue in self._queues.values()
                if service_queue.can_start(now, self._executor.limit)
            ]
            if not ready:
                return
            service_queue = min(ready, key=attrgetter("turn"))
            cell = service_queue.first
            if not cell.warmup and any(running.warmup for running, _ in self._running.values()):
                return
            if not self._budget.fits(cell.key):
                # While calls are in flight there is hope: they may cost less than was reserved for them.
                if not self._running:
                    self._stop("budget")
                return
            service_queue.pop()
            service_queue.running += 1
            self._budget.reserve(cell.key)
            self._start(cell)

    def _start(self, cell: Cell) -> None:
        key, outcomes = cell.key, self._outcomes
        stop = self._executor.start(
            cell, labels=cell.labels(self._report.name), on_done=lambda outcome: outcomes.put((key, outcome))
        )
        with self._lock:
            self._running[key] = cell, stop

    def _count_outcomes(self, due: float | None = None) -> None:
        """Wait for a call to end, a stop, or a time; count every call that has ended."""
        now, is_idle = self._now(), not self._running
        timeout = None if due is None else max(0.0, due - now)
        try:
            ended = self._wait_for_outcome(self._outcomes, timeout)
            while True:
                if ended is not None:
                    self._settle(*ended)
                ended = self._outcomes.get_nowait()
        except queue.Empty:
            return
        finally:
            if is_idle and any(service_queue.paused_until > now for service_queue in self._queues.values()):
                self._report.waited_s += self._now() - now

    def _settle(self, key: str, outcome: CallOutcome) -> None:
        """Close a cell whose call is over, or have it wait again."""
        (cell, _), report = self._running[key], self._report
        service_queue = self._queues[cell.service]
        self._times_lost.update([key] * outcome.is_lost)
        is_retried = outcome.is_lost and self._times_lost[key] < TRIES and report.stopped_by is None
        with self._lock:
            self._budget.settle(self._budget.worst_of(key), outcome)
            del self._running[key]
            self._count(cell, outcome, is_retried=is_retried)
            service_queue.running -= 1
            if outcome.is_unavailable:
                service_queue.on_unavailable(outcome, self._now())
                service_queue.requeue(cell)
            elif outcome.status != "cancelled" and not outcome.is_lost:
                service_queue.on_available()
            if is_retried:
                service_queue.add(cell)
            if outcome.is_denied:
                report.reason = report.reason or explain_denial(cell.service, outcome)
                report.stopped_by = report.stopped_by or "trouble"

    def _count(self, cell: Cell, outcome: CallOutcome, *, is_retried: bool) -> None:
        """Count a call that is over; its cell is not if it `is_retried`."""
        report, variant = self._report, self._variants[cell.variant.label]
        report.lost += outcome.is_lost
        report.requeued += outcome.is_unavailable
        is_answered = outcome.status in ANSWERED
        if outcome.simulated:
            report.simulated |= is_answered
        elif not report.billed and (is_answered or outcome.high is not None):
            # What was simulated until now is not billed, and leaves the sums.
            report.billed, report.spent_usd, report.spent_is_estimate, report.unpriced = True, None, False, 0
        if report.billed != outcome.simulated and not outcome.replayed:
            report.unpriced += is_answered and outcome.high is None
            if outcome.high is not None:
                report.spent_usd = (report.spent_usd or Decimal()) + outcome.high
                report.spent_is_estimate |= outcome.is_estimate
        match outcome.status:
            case _ if outcome.is_unavailable:
                self._errors[outcome.error or "no reason given"] += 1
            case _ if is_retried:
                pass
            case _ if is_answered:
                report.completed += 1
                variant.answered += 1
                if outcome.ttft_s is not None and not cell.warmup:
                    self._ttfts[variant.label].append(outcome.ttft_s)
            case _ if outcome.is_failure:
                report.failed += 1
                variant.failed += 1
                self._errors[outcome.error or "no reason given"] += 1
            case _:
                report.cancelled += 1
                self._errors.update([outcome.error] if outcome.status == "interrupted" and outcome.error else [])


def follow(run: Run, *, shown: bool) -> None:
    """Wait until a run is over; if `shown`, under a bar with the money spent, the time left and the failures."""
    start = run.progress
    bar: tqdm[Any]
    with tqdm(total=start.planned, initial=start.skipped, unit="call", disable=not shown) as bar:
        is_over = False
        while not is_over:
            run.join(TICK_S if shown else None)
            # Read in this order: the last update is of a run that is over, so that the bar ends at its true count.
            is_over, progress = not run.running, run.progress
            notes = [progress.spent] if progress.spent else []
            notes += [f"{progress.failed:,} failed"] if progress.failed else []
            notes += [f"paused for {format_duration(progress.pause_s, brief=True)}"] if progress.pause_s else []
            bar.set_postfix_str(", ".join(notes), refresh=False)
            bar.update(progress.done - bar.n)
            if progress.pause_s:
                # The bar draws itself anew only when it advances, and the time left goes down meanwhile.
                bar.refresh()


class LocalExecutor:
    """Carries calls with clients of this process, fewer at a time while a service is throttling."""

    def __init__(
        self, client_of: Callable[[Cell], BaseClient], *, concurrency: int, replayed: MutableMapping[str, str]
    ) -> None:
        """`client_of` gives the client that carries a cell's call.

        `replayed` is filled with the id of the recorded call that answered a cell, by the cell's key.
        """
        self._client_of = client_of
        self._limiters = ServiceLimiters(concurrency)
        self._replayed = replayed

    def start(self, cell: Cell, *, labels: Mapping[str, str], on_done: OnDone) -> StopCall:
        """See `Executor`."""
        engine = self._client_of(cell).engine
        retries = engine.retries.with_max_wait(BRIEF_WAIT_S)
        stream = engine.start(cell.request, labels=labels, limiters=self._limiters, retries=retries)

        def report(exchange: Exchange) -> None:
            outcome = outcome_of(exchange)
            if outcome.replayed and outcome.call_id is not None:
                self._replayed[cell.key] = outcome.call_id
            on_done(outcome)

        stream.add_done_callback(lambda ended: report(ended.exchange))
        return stream.stop

    def limit(self, cell: Cell) -> int | None:
        """See `Executor`; None unless the service has asked for less."""
        return self._client_of(cell).engine.batch_limit(cell.request.endpoint)


def outcome_of(exchange: Exchange) -> CallOutcome:
    """The outcome of a call that is over."""
    return CallOutcome.from_reply(exchange.reply, http_status=exchange.http_status, attempts=exchange.attempts)
