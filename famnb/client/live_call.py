"""A call while it runs: `LiveCall` as the I/O thread sees it, and `Stream`, its caller's handle.

I/O thread                                                          the caller, in any thread or on any event loop
CallEngine ── LiveCall ─┬─ ResponseReader ── EventBuffer ─────────► Stream: events, reply, `stop`
                        └─ DeadlineTimer ◄──────────────── stop ───┘
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent import futures
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from famnb.client.concurrency import ConcurrencyLimiter
from famnb.client.config import Deadlines
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
from famnb.timing import Read

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
        """Wake who waits for events, after some were appended; on the I/O thread."""
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

    def wait(self, timeout: float | None = None, *, seen: int | None = None) -> bool:
        """Block until the call is over, or until there are more events than `seen`; False if time runs out first."""
        with self._watch(seen) as change:
            return bool(futures.wait([change], timeout).done)

    async def await_change(self, *, seen: int | None = None) -> None:
        """Wait as `wait` does, without a time limit and without blocking the loop this runs on."""
        with self._watch(seen) as change:
            await asyncio.wrap_future(change)

    @contextlib.contextmanager
    def _watch(self, seen: int | None) -> Iterator[Future[Any]]:
        """While the body runs, a future that is done once the call is over or there are more events than `seen`."""
        if seen is None:
            yield self.outcome
            return
        waiter: Future[None] = Future()
        # Registered before the events are looked at, and looked for after one was appended: none falls in between.
        with self._lock:
            self._waiters.append(waiter)
            if self.outcome.done() or len(self.events) > seen:
                self._waiters.remove(waiter)
                waiter.set_result(None)
        try:
            yield waiter
        finally:
            with self._lock:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)


class DeadlineTimer:
    """The one place where a running call is ended early: by a deadline that passes or by its caller's stop.

    waiting ──(a connection is free)── sent ──(first event)── streaming ──(end)
    PoolTimeout                        FirstEventTimeout      IdleTimeout
    └─────────────────────── TotalTimeout, or `stop` ────────────────────────┘

    An async context manager: it ends its body, and raises the error that says why. A sign of life only moves a number,
    which the one timer reads when it fires; a timer for every chunk would cost more than reading the chunk.
    """

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        self._start = self._phase_start = self._loop.time()
        self._limit = math.inf
        self._error_type: type[DeadlineError] = TotalTimeout
        self._message = ""
        self._early_end: FamnbError | None = None
        self._is_open = False

    async def __aenter__(self) -> DeadlineTimer:
        await self._timeout.__aenter__()
        self._is_open = True
        # The total may be over at once, and `stop` may have come before the body.
        self._check()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            raise self._make_error() from None

    def expect_connection(self) -> None:
        """The call waits for one of the client's connections."""
        self._begin_phase(PoolTimeout, self._deadlines.pool, "no connection of this client was free")

    def expect_end(self) -> None:
        """The call pauses, or has no first event to wait for: only the total counts."""
        self._begin_phase(TotalTimeout, math.inf, "")

    def expect_first_event(self) -> None:
        """The request of a stream is on its way."""
        self._begin_phase(FirstEventTimeout, self._deadlines.first_event, "the first event of the stream did not come")

    def expect_more(self) -> None:
        """The answer has begun: from here on it must not fall silent."""
        self._begin_phase(IdleTimeout, self._deadlines.idle, "nothing more of the answer came")

    def note_activity(self) -> None:
        """A sign of life came; for every chunk, so it must cost next to nothing."""
        self._phase_start = self._loop.time()

    def stop(self, reason: FamnbError) -> None:
        """End the call, which raises `reason`; on the loop's own thread."""
        self._early_end = reason
        self._check()

    def _begin_phase(self, error_type: type[DeadlineError], limit: float, message: str) -> None:
        # A call that is being stopped keeps that as its reason.
        if self._early_end is not None:
            return
        self._error_type, self._limit, self._message = error_type, limit, message
        self._phase_start = self._loop.time()
        self._check()

    def _check(self) -> None:
        """End the call if it is time, else set the timer for when it could be."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = min(self._phase_start + self._limit, self._start + self._deadlines.total)
        if self._early_end is not None:
            due = -math.inf
        if due <= self._loop.time():
            # asyncio.Timeout refuses to be rescheduled once it has expired, or outside its body.
            if self._is_open and not self._timeout.expired():
                self._timeout.reschedule(self._loop.time())
        elif due < math.inf:
            self._timer = self._loop.call_at(due, self._check)

    def _make_error(self) -> FamnbError:
        if self._early_end is not None:
            return self._early_end
        total = self._deadlines.total
        if self._phase_start + self._limit > self._start + total:
            # Of another class than a call that was sent: nobody can bill this one.
            if self._error_type is PoolTimeout:
                return PoolTimeout(f"{self._message} within {total:g} s (deadlines: total)", seconds=total)
            return TotalTimeout(f"the call took longer than {total:g} s (deadlines: total)", seconds=total)
        name = {PoolTimeout: "pool", FirstEventTimeout: "first_event", IdleTimeout: "idle"}[self._error_type]
        message = f"{self._message} within {self._limit:g} s (deadlines: {name})"
        return self._error_type(message, seconds=self._limit)


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class LiveCall:
    """A call while it runs; touched on the I/O thread alone, but for `exchange` and `buffer`, which others read."""

    exchange: Exchange
    body: bytes
    """The request's JSON, the same bytes for every attempt."""
    streams: bool = False
    """Whether the reply is asked for as a stream."""
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
    timer: DeadlineTimer | None = None
    """Ends the call early; None before its first limit."""
    early_end: FamnbError | None = None
    """Why the call is ended early; None if it is not."""

    @contextlib.asynccontextmanager
    async def limit_time(self, deadlines: Deadlines) -> AsyncIterator[DeadlineTimer]:
        """While the body runs, a deadline or `stop` ends it."""
        async with DeadlineTimer(deadlines) as timer:
            self.timer = timer
            if self.early_end is not None:
                timer.stop(self.early_end)
            yield timer

    def stop(self, reason: FamnbError | None = None) -> None:
        """End the call, for its caller unless `reason` says otherwise."""
        # The first reason stays: the end of the process comes after a stop, and is not why.
        self.early_end = self.early_end or reason or Cancelled("stopped by the caller")
        if self.timer is not None:
            self.timer.stop(self.early_end)

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

    def keep_body(self, body: bytes) -> None:
        """Keep a body that is no reply, an error's."""
        reader = self.start_reading(streamed=False)
        if body:
            reader.reads.append(Read(self.elapsed_ns(), (body,)))

    def partial_reply(self) -> Reply:
        """The reply so far; safe from any thread, since nothing on it is ever taken back."""
        reader = self.reader
        reply = Reply(endpoint=self.exchange.endpoint.name) if reader is None else reader.reply()
        return self._identify(dataclasses.replace(reply, status="running"))

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
        exchange.wait_ns = self._wait_ns(is_answered=error is None)
        outcome = self._identify(reader.outcome(error))
        if isinstance(error, Cancelled):
            error, outcome = None, dataclasses.replace(outcome, error=None)
        exchange.reply = outcome
        return error

    def _wait_ns(self, *, is_answered: bool) -> int | None:
        """Nanoseconds that the caller has waited, to the terminal event of an answer, else until now."""
        if self.begun_ns is None:
            return None
        end_ns, sent_ns = self.exchange.end_ns, self.sent_ns
        # Not until now for an answer: its connection is read on for a moment, for the sake of the next call.
        if is_answered and end_ns is not None and sent_ns is not None:
            return sent_ns + end_ns - self.begun_ns
        return self.now_ns() - self.begun_ns

    def _identify(self, reply: Reply) -> Reply:
        """The reply with what only the call knows."""
        exchange = self.exchange
        return dataclasses.replace(
            reply,
            call_id=exchange.id,
            request=exchange.request,
            service=exchange.service,
            profile=exchange.profile,
            replayed=exchange.replayed,
        )


class Stream:
    """A call under way. Iterate it for typed events, sync or async; ask it for its `reply` at any time.

    Iteration and `result` raise the call's error, with what had come on its `.reply`, already recorded. A call that was
    stopped has no error: iteration ends, and `result` is the partial reply with status `cancelled`.
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
        self._io.call(self._call.stop)

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the call is over and recorded, at most `timeout` seconds; return whether it is."""
        return self._wait(timeout)

    async def ended(self) -> None:
        """Wait, on any event loop and without blocking it, until the call is over and recorded."""
        await self._buffer.await_change()

    def result(self) -> Reply:
        """Wait for the outcome and return it; raises the call's error."""
        self._wait()
        return self._raise_or_return()

    def add_done_callback(self, callback: Callable[[Stream], object]) -> None:
        """Have `callback(stream)` called once the call is over, on the I/O thread: it must not block."""
        # Held until then, and no longer: the future keeps its callbacks for ever.
        held = [self]
        self._buffer.outcome.add_done_callback(lambda _: callback(held.pop()))

    def __iter__(self) -> Iterator[Event]:
        seen, events = 0, self.events
        while self._wait(seen=seen):
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
            await self._buffer.await_change(seen=seen)
            if not self.running and seen == len(events):
                break
            while seen < len(events):
                yield events[seen]
                seen += 1
        self._raise_or_return()

    def __await__(self) -> Generator[object, None, Reply]:
        yield from self.ended().__await__()
        return self._raise_or_return()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.running:
            self.stop()
            self._buffer.wait(GRACE_S)

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.running:
            self.stop()
            await self.ended()

    def __repr__(self) -> str:
        return f"<Stream {self.reply!r}>"

    def _wait(self, timeout: float | None = None, *, seen: int | None = None) -> bool:
        """Wait; an interrupt of the kernel stops the call, keeps what had come, and says so."""
        try:
            return self._buffer.wait(timeout, seen=seen)
        except KeyboardInterrupt:
            self.stop()
            self._buffer.wait(GRACE_S)
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
