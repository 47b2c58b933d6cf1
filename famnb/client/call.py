"""One call as the I/O thread knows it: what is sent, what has come, and how to end it early."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from famnb.client.deadlines import Deadlines
from famnb.client.exchange import Exchange
from famnb.client.gate import Gate
from famnb.client.handover import Handover
from famnb.client.intake import Intake
from famnb.client.watch import Watch
from famnb.errors import Cancelled, DeadlineError, FamnbError, StreamInterrupted
from famnb.reply import Reply
from famnb.timing import Read

Clock = Callable[[], int]


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """A call while it runs; touched on the I/O thread alone, but for `exchange` and `handover`, which are read."""

    exchange: Exchange
    body: bytes
    """The request's JSON, the same bytes for every try."""
    handover: Handover = dataclasses.field(default_factory=Handover)
    gate: Gate | None = None
    """Where a fan-out's call waits for its turn."""
    clock: Clock = time.monotonic_ns
    intake: Intake | None = None
    sent_ns: int | None = None
    """When the present try was sent."""
    should_retry: str | None = None
    """The `x-should-retry` header of the present try."""
    watch: Watch | None = None
    ending: FamnbError | None = None
    """Why the call is ended early."""

    @asynccontextmanager
    async def guarded(self, deadlines: Deadlines) -> AsyncIterator[Watch]:
        """While the body runs, a deadline or `stop` ends it."""
        async with Watch(deadlines) as watch:
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

    def begin_intake(self, *, streamed: bool, mask: Callable[[bytes], bytes] = bytes) -> Intake:
        """The answer's headers have come; its body goes here, secrets taken out of it by `mask`."""
        exchange = self.exchange
        self.intake = Intake(
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


def _proof(intake: Intake) -> FamnbError | None:
    """The failure that the service reported, if it did."""
    try:
        intake.prove()
    except FamnbError as fault:
        return fault
    return None
