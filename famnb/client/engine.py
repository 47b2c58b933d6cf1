"""The engine under both shells: tries, pauses and records calls on the I/O thread.

start ── (found in the memory: played) ── (turn in a fan-out) ── opened ── try ── (pause ── try …) ── closed ── over
                                          └ free connection ── POST ── headers ── body

MERGED: Reads the body of an answer: into the intake as it comes, or whole when it is an error's.
MERGED: Calls the recorder at the right moments, so that nothing it does can break a call.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import random
import threading
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TypeVar

from famnb.client.auth import Credential
from famnb.client.concurrency import ConcurrencyLimiter
from famnb.client.config import PATIENT, Deadlines
from famnb.client.exchange import Exchange, Recorder
from famnb.client.io_thread import IOThread, io_thread
from famnb.client.live_call import LiveCall
from famnb.client.redaction import conceal
from famnb.client.replay import Replays
from famnb.client.retry import THROTTLED, Retries, RetryBudget, pause, worth_retrying
from famnb.client.stream import Stream
from famnb.client.timeouts import DeadlineTimer
from famnb.client.transport import Response, Transport, origin_of
from famnb.errors import APIStatusError, FamnbError, ProcessEnded, ResponseFormatError, StreamInterrupted, status_error
from famnb.reply import Reply
from famnb.wire import errors

DRAIN_S = 0.25
"""How long a finished stream may take to end its body, so that its connection can be used again."""
ERROR_BODY_S = 5.0
"""How long the body of an error may take; then what has come of it must do."""
ERROR_BODY_BYTES = 1_000_000


async def taken(
    call: LiveCall, watch: DeadlineTimer, answer: Response, *, streamed: bool, mask: Callable[[bytes], bytes] = bytes
) -> None:
    """Read a body to its end, or to the end of what it means; raises unless that is a complete reply."""
    intake, grew = call.begin_intake(streamed=streamed, mask=mask), call.handover.grew
    sent_ns, clock = call.sent_ns or 0, call.clock
    begun = not streamed
    if begun:
        watch.streaming()
    signs = 0
    async with aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            if intake.feed(chunk, clock() - sent_ns):
                grew()
                if not begun:
                    begun = True
                    watch.streaming()
                if intake.finished:
                    await drained(chunks)
                    break
            if begun and intake.signs != signs:
                signs = intake.signs
                watch.alive()
        intake.end(call.elapsed())


async def drained(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read on to the end of the body: a connection whose body was not read to its end cannot be used again."""
    with contextlib.suppress(StreamInterrupted, TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass


async def error_body(answer: Response) -> bytes:
    """The body of an error, as far as it comes within reason."""
    body = bytearray()
    with contextlib.suppress(StreamInterrupted, TimeoutError):
        async with asyncio.timeout(ERROR_BODY_S), aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > ERROR_BODY_BYTES:
                    break
    return bytes(body)


T = TypeVar("T")
NOTE_S = 1.0
"""How often a running call's new reads are handed on."""
PATIENCE_S = 10.0
"""How long a call waits for its record to be durable."""


class Recording:
    """A recorder that never raises; its first failure is a warning, later ones are silent."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self._warned = False

    def opened(self, exchange: Exchange) -> None:
        """The call starts."""
        if self._recorder is not None:
            self._tried(self._recorder.opened, exchange)

    def arrived(self, exchange: Exchange) -> None:
        """More of its reads came."""
        if self._recorder is not None:
            self._tried(self._recorder.arrived, exchange)

    @contextlib.contextmanager
    def noting(self, exchange: Exchange) -> Iterator[None]:
        """While the call runs, its new reads are handed on about once a second."""
        if self._recorder is None:
            yield
            return
        loop = asyncio.get_running_loop()
        noted = 0
        timer: asyncio.TimerHandle

        def note() -> None:
            nonlocal noted, timer
            if len(exchange.reads) != noted:
                noted = len(exchange.reads)
                self.arrived(exchange)
            timer = loop.call_later(NOTE_S, note)

        timer = loop.call_later(NOTE_S, note)
        try:
            yield
        finally:
            timer.cancel()

    async def closed(self, exchange: Exchange) -> None:
        """The call is over; returns when its record is durable, or when it will not be."""
        if self._recorder is None:
            return
        future = self._tried(self._recorder.closed, exchange)
        if future is None:
            return
        kept = asyncio.wrap_future(future)
        await asyncio.wait({kept}, timeout=PATIENCE_S)
        if not kept.done():
            self._warn(f"the recorder did not finish within {PATIENCE_S:g} s")
        elif not kept.cancelled() and (failure := kept.exception()):
            self._warn(f"{type(failure).__name__}: {failure}")

    def _tried(self, method: Callable[[Exchange], T], exchange: Exchange) -> T | None:
        try:
            return method(exchange)
        except Exception as failure:
            self._warn(f"{type(failure).__name__}: {failure}")
            return None

    def _warn(self, words: str) -> None:
        if not self._warned:
            self._warned = True
            # Where warnings are errors, this one would break the call.
            with contextlib.suppress(Warning):
                warnings.warn(f"calls are answered but not recorded: {words}", stacklevel=2)


_log = logging.getLogger("famnb")


class _Service:
    """What all calls to one origin share."""

    def __init__(self, transport: Transport, connections: int) -> None:
        self.transport = transport
        self.slots = ConcurrencyLimiter(connections)
        self.quota = RetryBudget()
        self.fan = ConcurrencyLimiter(1)
        """What all fan-outs share, so that the next one begins with what the last one learned."""


class CallEngine:
    """Carries the calls of one client."""

    def __init__(
        self,
        *,
        credential: Credential,
        recorder: Recorder | None,
        retries: Retries,
        deadlines: Deadlines,
        connections: int,
        replays: Replays | None = None,
    ) -> None:
        self.retries = retries
        self.deadlines = deadlines
        self.last: Reply | None = None
        """The outcome of the call that ended last."""
        self.sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
        self.uniform: Callable[[float, float], float] = random.uniform
        self.mask: Callable[[str], str] = credential.masked
        """Takes the key out of a text."""
        self._credential = credential
        self._recording = Recording(recorder)
        self._replays = replays
        self._connections = connections
        self._lock = threading.Lock()
        self._io: IOThread | None = None
        self._services: dict[str, _Service] = {}
        self._orphans: list[dict[str, _Service]] = []
        self._calls: set[LiveCall] = set()
        self._closed = False

    @property
    def in_use(self) -> int:
        """Connections that carry a call just now."""
        return sum(service.slots.running for service in list(self._services.values()))

    @property
    def replays(self) -> bool:
        """Whether some calls are answered from recorded ones."""
        return self._replays is not None

    def start(self, call: LiveCall) -> Stream:
        """Have a call carried, without waiting for any of it."""
        with self._lock:
            if self._closed:
                raise FamnbError("this client is closed; make a new one")
            io = io_thread()
            if io is not self._io:
                # After a fork the parent's connections belong to the parent: kept, so that none is closed, never used.
                self._orphans.append(self._services)
                self._io, self._services, self._calls = io, {}, set()
                io.call(io.open.add, self)
            self._calls.add(call)
        io.start(self._run(call))
        return Stream(call, io)

    def retire(self) -> None:
        """Close once no call is running; from any thread, also from the garbage collector's."""
        self._closed = True
        if self._io is not None and not self._calls:
            self._io.start(self._close_connections())

    def shut(self) -> Future[None]:
        """Stop what is running, wait until it is recorded, and close every connection; on any other thread."""
        self._closed = True
        io = self._io
        if io is None or io is not io_thread():
            nothing: Future[None] = Future()
            nothing.set_result(None)
            return nothing
        return io.submit(self._shut())

    async def abandon(self) -> None:
        """The process ends: what runs is recorded as interrupted, since nobody stopped it."""
        await self._shut(lambda: ProcessEnded("the process ended before the reply was complete"))

    async def _shut(self, why: Callable[[], FamnbError | None] = lambda: None) -> None:
        self._closed = True
        running = list(self._calls)
        for call in running:
            call.stop(why())
        for call in running:
            await call.handover.until()
        await self._close_connections()

    async def _close_connections(self) -> None:
        if self._io is not None:
            self._io.open.discard(self)
        services, self._services = self._services, {}
        for service in services.values():
            await service.transport.aclose()

    async def _run(self, call: LiveCall) -> None:
        gate = call.gate
        try:
            if self._replays is not None and await self._replays.answered(call):
                pass
            elif gate is None:
                await self._recorded(call)
            else:
                await self._in_turn(call, gate)
        except Exception as bug:
            error = self._bug(call, bug)
            error.reply = call.exchange.reply = Reply(call_id=call.exchange.id, status="failed", error=error)
        self._calls.discard(call)
        self.last = call.exchange.reply
        call.handover.finish(call.exchange.reply)
        if self._closed and not self._calls:
            await self._close_connections()

    async def _in_turn(self, call: LiveCall, gate: ConcurrencyLimiter) -> None:
        """Carry a call of a fan-out: `gate` is the fan-out's own, behind it is the one of all fan-outs."""
        fan = self._service(call.exchange.url).fan
        fan.widen(gate.most)
        if await self._admitted(call, gate):
            try:
                if await self._admitted(call, fan):
                    try:
                        await self._recorded(call)
                    finally:
                        fan.leave()
            finally:
                gate.leave()

    async def _admitted(self, call: LiveCall, gate: ConcurrencyLimiter) -> bool:
        """Wait for the call's turn; False when it was stopped before: then nothing was sent and nothing is recorded."""
        try:
            async with call.guarded(PATIENT):
                await gate.enter()
        except FamnbError as error:
            call.conclude(error)
            return False
        return True

    async def _recorded(self, call: LiveCall) -> None:
        exchange = call.exchange
        exchange.started_at = datetime.now(UTC)
        self._recording.opened(exchange)
        error: FamnbError | None = None
        with self._recording.noting(exchange):
            try:
                async with call.guarded(self.deadlines) as watch:
                    await self._tries(call, watch)
            except FamnbError as failure:
                error = failure
            except Exception as bug:
                error = self._bug(call, bug)
        error = call.conclude(error)
        if call.intake is not None:
            conceal(exchange, call.intake.folding.texts(), self._credential.found_in)
        await self._recording.closed(exchange)
        if error is not None:
            error.reply = exchange.reply

    def _bug(self, call: LiveCall, bug: Exception) -> FamnbError:
        """A failure of ours as an error without its frames, which may hold the key; the log has the place."""
        _log.error("a bug in famnb ended call %s", call.exchange.id, exc_info=bug)
        words = self._credential.masked(f"{type(bug).__name__}: {bug}")
        return FamnbError(f"a bug in famnb ended the call ({words}); the log has more")

    async def _tries(self, call: LiveCall, watch: DeadlineTimer) -> None:
        service = self._service(call.exchange.url)
        for retried in itertools.count():
            failure = await self._tried(call, watch, service)
            if failure is None:
                service.quota.refill(retried=retried > 0)
                return
            wait = self._wait_s(call, service, failure, retried)
            if wait is None:
                raise failure
            watch.resting()
            await self.sleep(wait)

    async def _tried(self, call: LiveCall, watch: DeadlineTimer, service: _Service) -> FamnbError | None:
        """Make one try; a failure is returned, since a try that follows it must not carry it as its context."""
        try:
            await self._try(call, watch, service)
        except FamnbError as failure:
            if call.gate is not None and isinstance(failure, APIStatusError) and failure.status in THROTTLED:
                service.fan.throttled(call.sent_ns or 0, call.clock())
            return failure
        if call.gate is not None:
            service.fan.succeeded()
        return None

    def _wait_s(self, call: LiveCall, service: _Service, failure: FamnbError, retried: int) -> float | None:
        """Seconds to pause before the next try; None when there is to be none."""
        if retried + 1 >= self.retries.tries:
            return None
        intake = call.intake
        spent = isinstance(failure, StreamInterrupted) and intake is not None and intake.spent
        if not worth_retrying(failure, should_retry=call.should_retry, spent=spent):
            return None
        wish = failure.retry_after if isinstance(failure, APIStatusError) else None
        if (wish or 0) > self.retries.max_wait or not service.quota.take():
            return None
        return pause(failure, retried=retried, uniform=self.uniform)

    async def _try(self, call: LiveCall, watch: DeadlineTimer, service: _Service) -> None:
        streams = call.exchange.request.streams
        watch.waiting()
        async with service.slots:
            if streams:
                watch.sent()
            else:
                watch.resting()
            service.transport.open()
            call.begin_try()
            async with service.transport.send(call.exchange.url, call.body, streams=streams) as answer:
                self._headers(call, answer)
                if not 200 <= answer.status < 300:
                    raise await self._refused(call, answer)
                json = answer.content_type.endswith("json")
                streamed = answer.content_type == "text/event-stream" or (streams and not json)
                try:
                    await taken(call, watch, answer, streamed=streamed, mask=self._credential.masked_bytes)
                except ResponseFormatError as fault:
                    raise ResponseFormatError(f"status {answer.status}, but {fault}") from None

    def _headers(self, call: LiveCall, answer: Response) -> None:
        exchange = call.exchange
        exchange.headers_ns = call.elapsed()
        exchange.http_status = answer.status
        exchange.response_headers = tuple(
            self._credential.masked_header(name, value) for name, value in answer.header_list()
        )
        headers = dict(exchange.response_headers)
        exchange.request_id = headers.get("x-request-id")
        exchange.service = headers.get("x-famnb-engine")
        call.should_retry = headers.get("x-should-retry")

    async def _refused(self, call: LiveCall, answer: Response) -> APIStatusError:
        """The error that an error status means; its body is kept."""
        body = self._credential.masked_bytes(await error_body(answer))
        call.keep_body(body)
        target = answer.headers.get("location")
        if 300 <= answer.status < 400 and target:
            return status_error(answer.status)(
                f"redirected to {self._credential.masked(target)}; no redirect is followed, since the key must go "
                "to no other address: if you trust it, give that address as base_url or alt_base_url",
                status=answer.status,
                request_id=call.exchange.request_id,
            )
        return errors.read(answer.status, dict(answer.headers), body)

    def _service(self, url: str) -> _Service:
        origin = origin_of(url)
        if origin not in self._services:
            transport = Transport(origin, credential=self._credential, deadlines=self.deadlines)
            self._services[origin] = _Service(transport, self._connections)
        return self._services[origin]
