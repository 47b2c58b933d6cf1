"""One call as the I/O thread knows it: what is sent, what has come, and how to end it early.

MERGED: From the I/O thread to whoever waits, in any thread or on any loop: events as they come, and the reply at the
end.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from famnb.client.concurrency import ConcurrencyLimiter
from famnb.client.config import Deadlines
from famnb.client.exchange import Exchange
from famnb.client.response_reader import ResponseReader
from famnb.client.timeouts import DeadlineTimer
from famnb.errors import Cancelled, DeadlineError, FamnbError, StreamInterrupted
from famnb.events import Event
from famnb.reply import Reply
from famnb.timing import Read

_log = logging.getLogger("famnb")


class EventBuffer:
    """An append-only list of events and then a reply; costs the I/O thread nothing while nobody waits.

    A waiter puts its waker on a list *before* it looks a last time, and the I/O thread looks at the list *after* it
    has appended, so that no event falls between.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.reply: Reply | None = None
        """The outcome; None while the call runs."""
        self._lock = threading.Lock()
        self._on_events: list[Callable[[], object]] = []
        self._on_end: list[Callable[[], object]] = []

    def grew(self) -> None:
        """New events are on the list; on the I/O thread."""
        if self._on_events:
            with self._lock:
                wakers, self._on_events = self._on_events, []
            _all(wakers)

    def finish(self, reply: Reply) -> None:
        """The call is over; on the I/O thread."""
        with self._lock:
            self.reply = reply
            wakers, self._on_events, self._on_end = [*self._on_events, *self._on_end], [], []
        _all(wakers)

    def at_end(self, waker: Callable[[], object]) -> None:
        """Have a function called once the call is over; at once if it is."""
        with self._lock:
            if self.reply is None:
                self._on_end.append(waker)
                return
        _all([waker])

    def wait(self, timeout: float | None = None, *, seen: int | None = None) -> bool:
        """Block until the call is over, or until there are more events than `seen`; False when time runs out."""
        due = None if timeout is None else time.monotonic() + timeout
        while not self._ready(seen):
            woken = threading.Event()
            with self._enlisted(woken.set, seen):
                left = None if due is None else max(0.0, due - time.monotonic())
                if not self._ready(seen) and not woken.wait(left):
                    return self._ready(seen)
        return True

    async def until(self, *, seen: int | None = None) -> None:
        """The same without blocking the loop this runs on."""
        loop = asyncio.get_running_loop()
        while not self._ready(seen):
            woken = loop.create_future()
            with self._enlisted(functools.partial(_nudge, loop, woken), seen):
                if not self._ready(seen):
                    await woken

    def _ready(self, seen: int | None) -> bool:
        return self.reply is not None or (seen is not None and len(self.events) > seen)

    @contextlib.contextmanager
    def _enlisted(self, waker: Callable[[], object], seen: int | None) -> Iterator[None]:
        """While the body runs, the waker is called when what is waited for comes."""
        with self._lock:
            (self._on_end if seen is None else self._on_events).append(waker)
        try:
            yield
        finally:
            with self._lock:
                for wakers in (self._on_end, self._on_events):
                    if waker in wakers:
                        wakers.remove(waker)


def _nudge(loop: asyncio.AbstractEventLoop, woken: asyncio.Future[None]) -> None:
    # The waiter's loop may have been closed meanwhile; then nobody is left to wake.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_set, woken)


def _set(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


def _all(wakers: list[Callable[[], object]]) -> None:
    for waker in wakers:
        try:
            waker()
        except Exception:
            _log.exception("a callback at the end of a call failed")


Clock = Callable[[], int]


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class LiveCall:
    """A call while it runs; touched on the I/O thread alone, but for `exchange` and `handover`, which are read."""

    exchange: Exchange
    body: bytes
    """The request's JSON, the same bytes for every try."""
    handover: EventBuffer = dataclasses.field(default_factory=EventBuffer)
    gate: ConcurrencyLimiter | None = None
    """Where a fan-out's call waits for its turn."""
    clock: Clock = time.monotonic_ns
    intake: ResponseReader | None = None
    sent_ns: int | None = None
    """When the present try was sent."""
    should_retry: str | None = None
    """The `x-should-retry` header of the present try."""
    watch: DeadlineTimer | None = None
    ending: FamnbError | None = None
    """Why the call is ended early."""

    @asynccontextmanager
    async def guarded(self, deadlines: Deadlines) -> AsyncIterator[DeadlineTimer]:
        """While the body runs, a deadline or `stop` ends it."""
        async with DeadlineTimer(deadlines) as watch:
            self.watch = watch
            if self.ending is not None:
                watch.stop(self.ending)
            yield watch

    def stop(self, why: FamnbError | None = None) -> None:
        """End the call, for its caller unless `why` says otherwise."""
        self.ending = self.ending or why or Cancelled("stopped by the caller")
        if self.watch is not None:
            self.watch.stop(self.ending)

    def begin_try(self) -> None:
        """Forget the try before; from here on time counts."""
        exchange = self.exchange
        exchange.attempts += 1
        exchange.http_status = exchange.request_id = exchange.service = exchange.headers_ns = None
        exchange.response_headers = ()
        exchange.reads = []
        self.intake = self.should_retry = None
        self.sent_ns = self.clock()

    def elapsed(self) -> int:
        """Nanoseconds since the present try was sent."""
        return 0 if self.sent_ns is None else self.clock() - self.sent_ns

    def begin_intake(self, *, streamed: bool, mask: Callable[[bytes], bytes] = bytes) -> ResponseReader:
        """The answer's headers have come; its body goes here, secrets taken out of it by `mask`."""
        exchange = self.exchange
        self.intake = ResponseReader(
            exchange.endpoint,
            streamed=streamed,
            headers_ns=exchange.headers_ns,
            events=self.handover.events,
            mask=mask,
        )
        exchange.streamed = streamed
        exchange.reads = self.intake.reads
        return self.intake

    def keep_body(self, body: bytes) -> None:
        """Keep a body that is no reply, an error's."""
        intake = self.begin_intake(streamed=False)
        if body:
            intake.reads.append(Read(self.elapsed(), (body,)))

    def snapshot(self) -> Reply:
        """The reply so far; safe from any thread, since nothing on it is ever taken back."""
        intake = self.intake
        reply = Reply(endpoint=self.exchange.endpoint.name) if intake is None else intake.reply()
        return self._signed(dataclasses.replace(reply, status="running"))

    def conclude(self, error: FamnbError | None) -> FamnbError | None:
        """Nothing more comes: put the outcome on the exchange, and return the error that remains.

        What cuts a stream short after there was evidence of a complete reply is no error; nor is the caller's stop.
        """
        exchange, intake = self.exchange, self.intake
        if intake is None:
            intake = self.begin_intake(streamed=False)
        elapsed = self.elapsed()
        intake.close(elapsed)
        late = intake.streamed and intake.folding.ended is not None
        if late and isinstance(error, StreamInterrupted | DeadlineError | Cancelled):
            error = _proof(intake)
        exchange.streamed = intake.streamed
        exchange.end_ns = None if self.sent_ns is None else intake.stopwatch.end_ns
        intake.stopwatch.end_ns = exchange.end_ns
        outcome = self._signed(intake.outcome(error))
        if isinstance(error, Cancelled):
            error, outcome = None, dataclasses.replace(outcome, error=None)
        exchange.reply = outcome
        return error

    def _signed(self, reply: Reply) -> Reply:
        exchange = self.exchange
        return dataclasses.replace(
            reply, call_id=exchange.id, request=exchange.request, service=exchange.service, replayed=exchange.replayed
        )


def _proof(intake: ResponseReader) -> FamnbError | None:
    """The failure that the service reported, if it did."""
    try:
        intake.prove()
    except FamnbError as fault:
        return fault
    return None
