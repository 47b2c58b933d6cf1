"""A call while it runs: `LiveCall` as the I/O thread sees it, and `Stream`, its caller's handle.

I/O thread                                                          the caller, in any thread or on any event loop
CallEngine ── LiveCall ─┬─ ResponseReader ── EventBuffer ─────────► Stream: events, reply, `stop`
                        └─ DeadlineTimer ◄──────────────── stop ───┘
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import math
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent import futures
from concurrent.futures import Future
from typing import Any, Literal

from famnb.client.concurrency import ConcurrencyLimiter
from famnb.client.config import NO_DEADLINES, Deadlines
from famnb.client.exchange import Exchange
from famnb.client.io_thread import IOThread
from famnb.client.response_reader import ResponseReader
from famnb.client.retry import Retries
from famnb.errors import (
    Cancelled,
    DeadlineError,
    FamnbError,
    FirstEventTimeout,
    IdleTimeout,
    Interrupted,
    PoolTimeout,
    StreamInterrupted,
    TotalTimeout,
)
from famnb.events import Event
from famnb.reply import Reply
from famnb.request import structured_output

# Longer than a connection takes to close and DURABLE_S of engine.py, which a stopped call waits for its own record.
GRACE_S = 15.0
"""How many seconds leaving a `with` block, or an interrupt, waits for a stopped call to be recorded."""
_DROPPED = (
    "a stream was dropped while its call ran, so the call was stopped: keep the stream, read it to its end, or use "
    "`with client.stream(…) as stream:`"
)


class EventBuffer:
    """An append-only list of events, then a reply; costs the I/O thread nothing while nobody waits."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.outcome: Future[Reply] = Future()
        """The reply, once the call is over."""
        # Running, so that no cancelled waiter can cancel it.
        self.outcome.set_running_or_notify_cancel()
        self._lock = threading.Lock()
        self._waiters: list[Future[None]] = []
        """Done once there are more events."""

    @property
    def reply(self) -> Reply | None:
        """The outcome; None while the call runs."""
        return self.outcome.result() if self.outcome.done() else None

    def notify(self) -> None:
        """Wake who waits for a change, after events were appended."""
        # Looked at without the lock: this runs for every read of every stream, and mostly nobody waits.
        if self._waiters:
            with self._lock:
                waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if waiter.set_running_or_notify_cancel():
                    waiter.set_result(None)

    def finish(self, reply: Reply) -> None:
        """Set the outcome and wake everybody; on the I/O thread."""
        self.outcome.set_result(reply)
        self.notify()

    def change(self, seen: int) -> Future[None]:
        """A future that is done once the call is over or there are more events than `seen`, at times even before."""
        waiter: Future[None] = Future()
        # Registered before the events are looked at, and looked for after one was appended: none falls in between.
        with self._lock:
            self._waiters.append(waiter)
        if self.outcome.done() or len(self.events) > seen:
            self.notify()
        return waiter


_PHASES: dict[str, tuple[type[DeadlineError], str]] = {
    "pool": (PoolTimeout, "no connection of this client was free"),
    "first_event": (FirstEventTimeout, "the first event of the stream did not come"),
    "idle": (IdleTimeout, "nothing more of the answer came"),
    "total": (TotalTimeout, "the call did not end"),
}
"""What is waited for, by the deadline that limits it beside the total, and the error if it does not come."""


class DeadlineTimer:
    """The one place where a running call is ended early: by a deadline that passes or by its caller's stop.

    waiting ──(a connection is free)── sent ──(first event)── streaming ──(end)
    PoolTimeout                        FirstEventTimeout      IdleTimeout
    └─────────────────────── TotalTimeout, or `stop` ────────────────────────┘

    Made before the call is on the event loop. A sign of life only moves a number, which the one timer reads when it
    fires; a timer for every chunk would cost more than reading the chunk.
    """

    def __init__(self) -> None:
        self._deadlines = NO_DEADLINES
        self._timeout: asyncio.Timeout | None = None
        """Ends the body of `limit`; None outside of one."""
        self._timer: asyncio.TimerHandle | None = None
        self._start = self._phase_start = 0.0
        self._phase, self._limit = "total", math.inf
        self._early_end: FamnbError | None = None

    @contextlib.asynccontextmanager
    async def limit(self, deadlines: Deadlines) -> AsyncIterator[None]:
        """While the body runs, a deadline or `stop` ends it, and the error that says why is raised."""
        self._deadlines, self._start = deadlines, time.monotonic()
        try:
            async with asyncio.timeout(None) as timeout:
                self._timeout = timeout
                # The total may be over at once, and `stop` may have come before the body.
                self.expect("total")
                yield
        except TimeoutError:
            if not timeout.expired():
                raise
            raise self._make_error() from None
        finally:
            self._timeout = None
            if self._timer is not None:
                self._timer.cancel()

    def expect(self, phase: Literal["pool", "first_event", "idle", "total"]) -> None:
        """Begin to wait for what the deadline of this name limits, beside the total."""
        # A call that is being stopped keeps that as its reason.
        if self._early_end is None:
            self._phase, self._limit = phase, math.inf if phase == "total" else getattr(self._deadlines, phase)
            self.note_activity()
        self._check()

    def note_activity(self) -> None:
        """A sign of life came; for every chunk, so it must cost next to nothing."""
        self._phase_start = time.monotonic()

    def stop(self, reason: FamnbError | None = None) -> None:
        """End the call, for its caller unless `reason` says otherwise; on the I/O thread."""
        # The first reason stays: the end of the process comes after a stop, and is not why.
        self._early_end = self._early_end or reason or Cancelled("stopped by the caller")
        self._check()

    def _check(self) -> None:
        """End the body if it is time, else set the timer for when it could be."""
        if self._timer is not None:
            self._timer.cancel()
        # asyncio.Timeout refuses to be rescheduled once it has expired.
        if self._timeout is None or self._timeout.expired():
            return
        loop, now = asyncio.get_running_loop(), time.monotonic()
        due = min(self._phase_start + self._limit, self._start + self._deadlines.total)
        if self._early_end is not None or due <= now:
            self._timeout.reschedule(loop.time())
        elif due < math.inf:
            self._timer = loop.call_later(due - now, self._check)

    def _make_error(self) -> FamnbError:
        if self._early_end is not None:
            return self._early_end
        name, seconds = self._phase, self._limit
        if self._phase_start + self._limit > self._start + self._deadlines.total:
            name, seconds = "total", self._deadlines.total
        # Of another class than a call that was sent: nobody can bill one that waits for a connection.
        error_type, what = _PHASES[self._phase if self._phase == "pool" else name]
        return error_type(f"{what} within {seconds:g} s (deadlines: {name})", seconds=seconds)


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class LiveCall:
    """A call while it runs; touched on the I/O thread alone, but for `exchange` and `buffer`, which others read."""

    exchange: Exchange
    body: bytes
    """The request's JSON, the same bytes for every attempt."""
    buffer: EventBuffer = dataclasses.field(default_factory=EventBuffer)
    limiter: ConcurrencyLimiter | None = None
    """Where a call of `send_many` waits for its turn; None for a call that is sent at once."""
    retries: Retries = dataclasses.field(default_factory=Retries)
    now_ns: Callable[[], int] = time.perf_counter_ns
    """The clock of its timings; a call that is played again has the recording's."""
    reader: ResponseReader | None = None
    """Reads the response of the present attempt; None before its headers have come."""
    sent_ns: int | None = None
    """When the present attempt was sent, or the first before it that got no answer; before that, when it began."""
    is_unanswered: bool = False
    """Whether a request was sent that no status has answered yet."""
    begun_ns: int | None = None
    """When the call was begun, before it waited for a connection; None for one that is played again."""
    should_retry: str | None = None
    """The `x-should-retry` header of the present attempt."""
    timer: DeadlineTimer = dataclasses.field(default_factory=DeadlineTimer)
    """Ends the call early."""

    def start_attempt(self) -> None:
        """Forget the previous attempt, and start the clock, unless that attempt got no answer: its time counts."""
        exchange = self.exchange
        exchange.attempts += 1
        exchange.broken_tries += exchange.http_status is not None and 200 <= exchange.http_status < 300
        self.is_unanswered = self.is_unanswered and exchange.http_status is None
        if not self.is_unanswered:
            exchange.connect_ns, self.sent_ns = None, self.now_ns()
        exchange.http_status = exchange.request_id = exchange.service = exchange.headers_ns = None
        exchange.response_headers = ()
        exchange.reads = []
        self.reader = self.should_retry = None

    def mark_sent(self, connect_ns: int | None) -> None:
        """The present attempt is sent now, over a connection that took so long to make; from here on time counts."""
        if not self.is_unanswered:
            self.exchange.connect_ns, self.sent_ns, self.is_unanswered = connect_ns, self.now_ns(), True

    def elapsed_ns(self) -> int:
        """Nanoseconds since the present attempt was sent."""
        return 0 if self.sent_ns is None else self.now_ns() - self.sent_ns

    def start_reading(self, *, streamed: bool, mask: Callable[[bytes], bytes] = bytes) -> ResponseReader:
        """Make the reader of a response whose headers have come; `mask` takes secrets out of what it reads."""
        exchange = self.exchange
        self.reader = ResponseReader(
            exchange.endpoint,
            streamed=streamed,
            headers_ns=exchange.headers_ns,
            connect_ns=exchange.connect_ns,
            events=self.buffer.events,
            mask=mask,
        )
        exchange.streamed = streamed
        exchange.reads = self.reader.reads
        return self.reader

    def partial_reply(self) -> Reply:
        """The reply so far; safe from any thread, since nothing on it is ever taken back."""
        reader = self.reader
        reply = Reply(endpoint=self.exchange.endpoint.name) if reader is None else reader.reply()
        return self.exchange.identify(dataclasses.replace(reply, status="running"))

    def conclude(self, error: FamnbError | None) -> FamnbError | None:
        """Nothing more comes: put the outcome on the exchange, and return the error that remains.

        What cuts a stream short after there was evidence of a complete reply is no error; nor is the caller's stop.
        """
        exchange, reader = self.exchange, self.reader
        if reader is None:
            reader = self.start_reading(streamed=False)
        reader.close(self.elapsed_ns())
        is_after_the_end = reader.streamed and reader.builder.ended is not None
        if is_after_the_end and isinstance(error, StreamInterrupted | DeadlineError | Cancelled):
            error = reader.failure()
        exchange.streamed = reader.streamed
        # A call that was never sent has no duration, not one of 0.
        if self.sent_ns is None:
            reader.stopwatch.note_end(None)
        exchange.end_ns = reader.stopwatch.end_ns
        if self.begun_ns is not None:
            exchange.wait_ns = self.now_ns() - self.begun_ns
            # Not until now for an answer: its connection is read on for a moment, for the sake of the next call.
            if error is None and exchange.end_ns is not None and self.sent_ns is not None:
                exchange.wait_ns = self.sent_ns + exchange.end_ns - self.begun_ns
        outcome = exchange.identify(reader.outcome(error))
        if isinstance(error, Cancelled):
            error, outcome = None, dataclasses.replace(outcome, error=None)
        exchange.reply = outcome
        return error


class Stream:
    """A call under way. Iterate it for typed events, sync or async; ask it for its `reply` at any time.

    Iteration and `result` raise the call's error, with what had come on its `.reply`, already recorded. A call that was
    stopped has no error: iteration ends, and `result` is the partial reply with status `cancelled`. Awaited, it is what
    `result` returns; a cancelled await stops the call.
    """

    def __init__(self, call: LiveCall, io: IOThread) -> None:
        self._call = call
        self._io = io
        self._buffer = call.buffer
        self._is_stopped = False

    def __del__(self) -> None:
        # Nobody can read the answer any more, and it would be paid for to its end.
        if self.running and not self._is_stopped:
            # The loop of an interpreter that shuts down is closed; where warnings are errors, nobody would catch this.
            with contextlib.suppress(RuntimeError):
                self.stop()
                if not self._call.exchange.replayed:
                    warnings.warn(_DROPPED, RuntimeWarning, stacklevel=2)

    @property
    def exchange(self) -> Exchange:
        """The call as it is recorded."""
        return self._call.exchange

    @property
    def events(self) -> list[Event]:
        """The typed events so far: a list that only grows, to be read and indexed from any thread."""
        return self._buffer.events

    @property
    def running(self) -> bool:
        """Whether the call is still under way."""
        return self._buffer.reply is None

    @property
    def reply(self) -> Reply:
        """The reply as far as it has come, then the outcome."""
        return self._buffer.reply or self._call.partial_reply()

    @property
    def partial(self) -> Any:
        """The JSON value of the answer as far as it has come, unchecked; None while there is none."""
        return structured_output.parse_partial(self.reply.text)

    def stop(self) -> None:
        """End the call; it keeps what had come. Safe from any thread, more than once, and when it is over."""
        self._is_stopped = True
        self._io.call(self._call.timer.stop)

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the call is over and recorded, at most `timeout` seconds; return whether it is."""
        return self._wait(lambda: self._buffer.outcome, timeout)

    async def ended(self) -> None:
        """Wait, on any event loop and without blocking it, until the call is over and recorded."""
        await asyncio.wrap_future(self._buffer.outcome)

    def result(self) -> Reply:
        """Wait for the outcome and return it; raises the call's error."""
        self._wait(lambda: self._buffer.outcome)
        return self._raise_or_return()

    def add_done_callback(self, callback: Callable[[Stream], object]) -> None:
        """Have `callback(stream)` called once the call is over, on the I/O thread: it must not block."""
        # Held until then, and no longer: the future keeps its callbacks for ever.
        held = [self]
        self._buffer.outcome.add_done_callback(lambda _: callback(held.pop()))

    def __iter__(self) -> Iterator[Event]:
        seen, events = 0, self.events
        while self._wait(functools.partial(self._buffer.change, seen)):
            # In this order: once the call is over, the list grows no more.
            if not self.running and seen == len(events):
                break
            while seen < len(events):
                yield events[seen]
                seen += 1
        self._raise_or_return()

    async def __aiter__(self) -> AsyncIterator[Event]:
        seen, events = 0, self.events
        # As in `__iter__`.
        while True:
            await asyncio.wrap_future(self._buffer.change(seen))
            if not self.running and seen == len(events):
                break
            while seen < len(events):
                yield events[seen]
                seen += 1
        self._raise_or_return()

    def __await__(self) -> Generator[object, None, Reply]:
        try:
            yield from self.ended().__await__()
        except asyncio.CancelledError:
            self.stop()
            raise
        return self._raise_or_return()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_failure: object) -> None:
        if self.running:
            self.stop()
            futures.wait([self._buffer.outcome], GRACE_S)

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, *_failure: object) -> None:
        if self.running:
            self.stop()
            await self.ended()

    def __repr__(self) -> str:
        return f"<Stream {self.reply!r}>"

    def _wait(self, get_future: Callable[[], Future[Any]], timeout: float | None = None) -> bool:
        """Block until a future is done, and return whether it is; an interrupt of the kernel stops the call."""
        try:
            return bool(futures.wait([get_future()], timeout).done)
        except KeyboardInterrupt:
            self.stop()
            futures.wait([self._buffer.outcome], GRACE_S)
        # Raised outside the handler: a cell's traceback would show the bare KeyboardInterrupt above this one.
        reply = self.reply
        interrupted = Interrupted(f"{len(reply.text):,} characters of the answer had come; `client.last` has them")
        interrupted.reply = reply
        raise interrupted

    def _raise_or_return(self) -> Reply:
        """The outcome of a call that is over; raises its error."""
        reply = self.reply
        if reply.error is None:
            return reply
        # Without the I/O thread's frames, which say nothing to a caller.
        raise reply.error.with_traceback(None)
