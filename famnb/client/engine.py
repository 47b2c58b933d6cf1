"""CallEngine, which carries a client's calls on the I/O thread: attempts, pauses, deadlines, and the record of each.

start ── (found in the ledger: played) ── (turn in `send_many`) ── record opens ── attempt ── (pause ── attempt …) ──
         record closes ── over              an attempt: free connection ── POST ── headers ── body

As functions: `start`, `_run`, (`_carry_in_turn`,) `_carry`, `_make_attempts`, `_send`, `_read`, `read_response`.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import logging
import secrets
import ssl
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import aclosing
from typing import Any, TypeVar

import httpx

from famnb import endpoints
from famnb.client.auth import Credential
from famnb.client.batch import CONCURRENCY, Batch, ServiceLimiters
from famnb.client.concurrency import ConcurrencyLimiter
from famnb.client.config import NO_DEADLINES, Addresses, Clock, Deadlines
from famnb.client.exchange import Exchange, Recorder, normalize_labels
from famnb.client.io_thread import IOThread, io_thread
from famnb.client.live_call import LiveCall, Stream
from famnb.client.redaction import conceal
from famnb.client.replay import Replays
from famnb.client.response_reader import reply_from_reads
from famnb.client.retry import THROTTLED, Retries, RetryBudget, compute_pause, is_worth_retrying
from famnb.client.transport import RequestSender, Response, StampedTransport, origin_of
from famnb.errors import (
    APIStatusError,
    AuthenticationError,
    ConnectError,
    FamnbError,
    InvalidRequest,
    ProcessEnded,
    ResponseFormatError,
    StreamInterrupted,
    status_error,
)
from famnb.profiles import NAMES
from famnb.profiles.profile import Profile
from famnb.reply import Reply
from famnb.request import Request
from famnb.timing import Arrival, Read
from famnb.wire import errors, lenient_json

# A choice: the caller waits for this, too, and without it the next call may need a new connection.
DRAIN_S = 0.25
"""How many seconds a finished stream may take to end its body, so that its connection can be used again."""
# The status is known already: a body that trickles must not delay the error that it explains.
ERROR_BODY_S = 5.0
"""How many seconds the body of an error may take; what has come by then is its body."""
# Far more than any message, and a bound on what a misbehaving proxy can put into the ledger.
ERROR_BODY_BYTES = 1_000_000
"""How many bytes of an error's body are read."""
# A crash loses what came since the last time; each time costs a row.
PROGRESS_S = 1.0
"""How often, in seconds, a running call's new reads are recorded."""
# Writing takes the interpreter's lock some twenty times. Beside a cell that keeps it for 20 ms, each is a turn that the
# reading of sockets waits for: for a third of a second, every other event lost its own stamp.
STARVED_NS = 5_000_000
"""How late one of the last reads must have been for it, in nanoseconds: such a cell delays some by less."""
STARVED_PERIODS = 5
"""Beside such a cell, new reads are recorded only every so many times."""
# A disk in trouble must not keep an answer from its caller; one in order takes a few milliseconds.
DURABLE_S = 0.05
"""How many seconds a call waits for its record to be durable."""

T = TypeVar("T")
Viewer = Callable[[Stream], contextlib.AbstractContextManager[object]]
"""Shows a stream while the body of its context manager runs."""
_log = logging.getLogger("famnb")


async def read_response(
    call: LiveCall, response: Response, *, streamed: bool, mask: Callable[[bytes], bytes] = bytes
) -> None:
    """Read a body to its end, or to the end of what it means; raises unless that is a complete reply."""
    reader, notify = call.start_reading(streamed=streamed, mask=mask), call.buffer.notify
    timer, sent_ns = call.timer, call.sent_ns or 0
    # A whole reply has no first event to wait for: its headers were its first sign of life.
    has_begun = not streamed
    if has_begun:
        timer.expect("idle")
    activity = 0

    def feed(chunk: bytes, arrival: Arrival) -> bool:
        """Read a piece, on the spot; return whether nothing of meaning can follow."""
        nonlocal activity, has_begun
        if reader.feed(chunk, arrival.t_ns - sent_ns, arrival.late_ns, blurred=arrival.blurred, merged=arrival.merged):
            notify()
            if not has_begun:
                has_begun = True
                timer.expect("idle")
            if reader.is_finished:
                return True
        if has_begun and (latest := reader.activity) != activity:
            activity = latest
            timer.note_activity()
        return False

    await response.deliver(feed)
    if reader.is_finished:
        # A connection whose body was not read to its end cannot be used again.
        with contextlib.suppress(StreamInterrupted, TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await response.deliver(lambda _chunk, _arrival: None)
    reader.end(call.elapsed_ns())


async def read_error_body(response: Response) -> bytes:
    """The body of an error, as far as it comes within ERROR_BODY_S and ERROR_BODY_BYTES."""
    body = bytearray()
    with contextlib.suppress(StreamInterrupted, TimeoutError):
        async with asyncio.timeout(ERROR_BODY_S), aclosing(response.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > ERROR_BODY_BYTES:
                    break
    return bytes(body)


def new_call_id() -> str:
    """Return a fresh id for a call; ids sort by the time they were made, to the millisecond."""
    # 11 hexadecimal digits, 44 bits, of milliseconds last beyond the year 2500; 8 random bytes tell calls apart.
    return f"call_{time.time_ns() // 1_000_000:011x}{secrets.token_hex(8)}"


def check_request(request: object) -> None:
    """Raise InvalidRequest, which says what makes one, if it is not a request."""
    if not isinstance(request, Request):
        *names, last = (endpoint.request.__name__ for endpoint in endpoints.ENDPOINTS.values())
        raise InvalidRequest(
            f"request: expected a {', '.join(names)} or {last} (famnb.compose() makes one from a prompt), "
            f"got {request!r:.80}"
        )


class SafeRecorder:
    """Calls a recorder so that nothing it does can break a call; its first failure is a warning, later ones silent."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self._has_warned = False

    def on_open(self, exchange: Exchange) -> None:
        """The call starts."""
        self._try(lambda recorder: recorder.on_open(exchange))

    def on_reads(self, exchange: Exchange) -> None:
        """More of the call's reads came."""
        self._try(lambda recorder: recorder.on_reads(exchange))

    @contextlib.contextmanager
    def record_progress(self, exchange: Exchange) -> Iterator[None]:
        """While the body runs, new reads are recorded about once a second."""
        loop = asyncio.get_running_loop()
        count = periods = 0
        timer: asyncio.TimerHandle

        def record() -> None:
            nonlocal count, periods, timer
            reads = exchange.reads
            periods += 1
            is_starved = any((read.late_ns or 0) >= STARVED_NS for read in reads[-8:])
            if len(reads) != count and (periods >= STARVED_PERIODS or not is_starved):
                count, periods = len(reads), 0
                self.on_reads(exchange)
            timer = loop.call_later(PROGRESS_S, record)

        timer = loop.call_later(PROGRESS_S, record)
        try:
            yield
        finally:
            timer.cancel()

    async def on_close(self, exchange: Exchange) -> None:
        """The call is over; returns when its record is durable, or when it will not be."""
        recording = self._try(lambda recorder: recorder.on_close(exchange))
        if recording is not None:
            future = asyncio.wrap_future(recording)
            future.add_done_callback(self._check)
            await asyncio.wait({future}, timeout=DURABLE_S)

    def _check(self, recording: asyncio.Future[None]) -> None:
        """Warn if a record could not be kept."""
        if not recording.cancelled() and (failure := recording.exception()):
            self._warn(failure)

    def _try(self, step: Callable[[Recorder], T]) -> T | None:
        try:
            return None if self._recorder is None else step(self._recorder)
        except Exception as failure:  # whatever a recorder raises, the call goes on
            self._warn(failure)
            return None

    def _warn(self, failure: BaseException) -> None:
        if not self._has_warned:
            self._has_warned = True
            # Where warnings are errors, this one would break the call.
            with contextlib.suppress(Warning):
                message = f"calls are answered but not recorded: {type(failure).__name__}: {failure}"
                warnings.warn(message, stacklevel=2)


def _path(endpoint: str) -> str:
    """The part of an endpoint's path that is neither version nor vendor's."""
    return endpoints.ENDPOINTS[endpoint].path.removeprefix("/v1")


class _Service:
    """What all calls to one origin share."""

    def __init__(self, sender: RequestSender, connections: int) -> None:
        self.sender = sender
        self.free = asyncio.Semaphore(connections)
        """Lets as many calls have a connection as there may be, first come first served."""
        self.retry_budget = RetryBudget()
        self.batch_limiter = ConcurrencyLimiter(1)
        """Shared by all `send_many`, so that the next one begins with what the last one learned of the service."""


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class CallEngine:
    """Carries the calls of one client; what the other parts of famnb use of it."""

    profile: Profile
    addresses: Addresses
    credential: Credential
    """The key, and what else goes with every request and may be secret."""
    recorder: dataclasses.InitVar[Recorder | None]
    retries: Retries
    deadlines: Deadlines
    connections: int
    """How many connections to one service may be in use at once."""
    clock: Clock
    replays: Replays | None = None
    """What answers some calls from recorded ones."""
    transport: httpx.AsyncBaseTransport | None = None
    """Carries the calls; None for one of its own, whose connections `tls` verifies."""
    tls: ssl.SSLContext | None = None
    viewer: Viewer | None = None
    """Shows a stream while `ask` waits for it; may be set at any time."""
    last: Reply | None = None
    """The outcome of the call that ended last."""

    def __post_init__(self, recorder: Recorder | None) -> None:
        self._urls = {name: self.addresses.url(endpoint) for name, endpoint in self.profile.endpoints.items()}
        self._recorder = SafeRecorder(recorder)
        self._transport: httpx.AsyncBaseTransport | None = None
        self._lock = threading.Lock()
        self._io: IOThread | None = None
        self._services: dict[str, _Service] = {}
        """What calls share, by the origin of their service."""
        self._services_before_fork: list[dict[str, _Service]] = []
        self._calls: set[LiveCall] = set()
        self._closed = False

    def settings(self) -> dict[str, Any]:
        """The arguments that make a client like this one in another process; without secrets, ledger and replays."""
        serves_alt = any(endpoint.alt for endpoint in self.profile.endpoints.values())
        return {
            "base_url": self.addresses.base_url,
            **({"alt_base_url": self.addresses.alt_base_url} if serves_alt else {}),
            "retries": self.retries,
            "deadlines": self.deadlines,
            "connections": self.connections,
            # One that was registered here is not known elsewhere.
            "profile": self.profile.name if self.profile.name in NAMES else self.profile,
            "headers": self.credential.open_headers,
            "query": self.credential.open_query,
        }

    def fetch(self, work: Callable[[], Awaitable[T]]) -> Future[T]:
        """Have `fetch_models` or `fetch_reply` run on the I/O thread; they are no calls, and not recorded as such."""
        with self._lock:
            return self._open_io().submit(self._fetch(work))

    async def _fetch(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        except FamnbError as error:
            failure = error
        except Exception as bug:
            failure = self._bug_error("the request", bug)
        # Without the transport's frames, which hold the key.
        raise failure.with_traceback(None)

    async def fetch_models(self) -> list[str]:
        """Return the ids of the models that the service lists. Raises ConnectError, or the error of the service."""
        body = lenient_json.decode(await self._get(next(iter(self._urls)), "/models"))
        models = body.get("data") or body.get("models") if isinstance(body, dict) else body
        if not isinstance(models, list):
            raise ResponseFormatError("the service's list of models is not one")
        return [str(model.get("id") or model.get("name")) for model in models if isinstance(model, dict)]

    async def fetch_reply(self, exchange: Exchange, *, wait: bool) -> Reply:
        """Return a background reply once it has ended, or as it is now; recorded if it has ended.

        Waits for at most the `total` of the deadlines. Raises as `fetch_models`, and the reply's own error.
        """
        name, pause_s, waited_s = exchange.endpoint.name, 1.0, 0.0
        while True:
            body = await self._get(name, f"{_path(name)}/{exchange.reply.id}")
            end_ns = int((self.clock.now() - exchange.started_at).total_seconds() * 1e9)
            # When it was finished is not known, only that it was by now.
            reads = [Read(end_ns, (body,), blurred=True)]
            reply = reply_from_reads(exchange.endpoint, streamed=False, reads=reads, headers_ns=None, end_ns=end_ns)
            if reply.status != "running" or not wait or waited_s >= self.deadlines.total:
                break
            await self.clock.sleep(pause_s)
            pause_s, waited_s = min(1.5 * pause_s, 10.0), waited_s + pause_s
        fetched = dataclasses.replace(
            exchange, streamed=False, headers_ns=None, end_ns=end_ns, reads=reads, reply=exchange.identify(reply)
        )
        if reply.status != "running":
            await self._recorder.on_close(fetched)
        if (error := fetched.reply.error) is not None:
            error.reply = fetched.reply
            raise error
        return fetched.reply

    async def _get(self, endpoint: str, path: str) -> bytes:
        """Return what the service has at a path below an endpoint's version."""
        self._open_io()
        url = self._urls[endpoint].removesuffix(_path(endpoint)) + path
        limit_s, body = self.deadlines.finite("idle"), None
        with contextlib.suppress(TimeoutError):
            async with (
                asyncio.timeout(limit_s),
                self._service(url).sender.send(url, None) as response,
                aclosing(response.chunks()) as chunks,
            ):
                body = self.credential.mask_bytes(b"".join([chunk async for chunk in chunks]))
        if body is None:
            raise ConnectError(f"{url} did not answer within {limit_s:g} s")
        if not 200 <= response.status < 300:
            raise errors.read(response.status, response.headers, body)
        return body

    def batch_limit(self, endpoint: str) -> int | None:
        """How many calls of a batch an endpoint's service takes at once; None unless it has asked for less."""
        service = self._services.get(origin_of(self._urls[endpoint]))
        if service is None or service.batch_limiter.limit >= service.batch_limiter.maximum:
            return None
        return int(service.batch_limiter.limit)

    def show(self, stream: Stream) -> contextlib.AbstractContextManager[object]:
        """While the body runs, the viewer shows a stream, if there is a viewer."""
        return contextlib.nullcontext() if self.viewer is None else self.viewer(stream)

    def make_exchange(self, request: Request, *, labels: Mapping[str, str] | None = None) -> Exchange:
        """The record of a call that is about to be made: its address, its labels, and how its secrets are masked.

        Raises InvalidRequest if `request` is not a request of one of its endpoints.
        """
        check_request(request)
        name, declared = request.endpoint, self.profile.endpoints
        target = declared.get(name) or endpoints.endpoint(name, declared)
        # One of another profile, such as the document's, is read as this one's, which checks it.
        if type(request) is not target.request:
            request = target.request.from_body(request.body()).with_losses(request.losses)
        return Exchange(
            id=new_call_id(),
            started_at=self.clock.now(),
            request=request,
            endpoint=target,
            profile=self.profile.name,
            url=self._urls[name],
            labels=normalize_labels(labels) if labels else {},
            mask=self.credential.mask,
        )

    def start(
        self,
        request: Request,
        *,
        labels: Mapping[str, str] | None = None,
        limiters: ServiceLimiters | None = None,
        retries: Retries | None = None,
    ) -> Stream:
        """Send a request as it is, whole or streamed, and return at once with a handle on the call.

        With `limiters`, those of a batch, the call waits for its turn, longer while its service is throttling.
        `retries` are the client's unless given. Raises InvalidRequest if `request` is not a request.
        """
        return self._start(self.make_exchange(request, labels=labels), limiters, retries)

    def _start(self, exchange: Exchange, limiters: ServiceLimiters | None, retries: Retries | None) -> Stream:
        call = LiveCall(
            exchange=exchange,
            # Encoded on the caller's thread: the I/O thread is what all timings depend on.
            body=exchange.request.body_json(),
            limiter=None if limiters is None else limiters[origin_of(exchange.url)],
            retries=retries or self.retries,
            now_ns=self.clock.monotonic_ns,
        )
        with self._lock:
            io = self._open_io()
            self._calls.add(call)
        io.start(self._run(call))
        return Stream(call, io)

    def _open_io(self) -> IOThread:
        """The I/O thread, which closes this client's connections when the process ends."""
        if self._closed:
            raise FamnbError("this client is closed; make a new one")
        io = io_thread()
        if io is not self._io:
            # After a fork the parent's connections belong to the parent: kept, so that none is closed, never used.
            self._services_before_fork.append(self._services)
            self._io, self._services, self._calls = io, {}, set()
            self._transport = None
            io.call(io.at_end.add, self.abandon)
        return io

    def start_batch(
        self,
        requests: Iterable[Request],
        concurrency: int = CONCURRENCY,
        labels: Mapping[str, str] | None = None,
        *,
        progress: bool | None = None,
    ) -> Batch:
        """Start the calls of a `send_many`, of which `concurrency` run at a time at each service."""
        limiters = ServiceLimiters(concurrency)
        # All of them before the first is sent: a mistake in the last one should cost nothing.
        exchanges = [self.make_exchange(request, labels=labels) for request in requests]
        return Batch([self._start(exchange, limiters, None) for exchange in exchanges], progress=progress)

    def retire(self) -> None:
        """Close once no call is running; from any thread, also from the garbage collector's."""
        self._closed = True
        if self._io is not None and not self._calls:
            self._io.start(self._close_connections())

    def shut_down(self) -> Future[None]:
        """Stop what is running, wait until it is recorded, and close every connection; on any other thread."""
        self._closed = True
        io = self._io
        # No call was ever started, or only by the parent of a fork; or the process ends, and all is closed already.
        if io is None or io is not io_thread() or not io.is_alive:
            nothing_to_do: Future[None] = Future()
            nothing_to_do.set_result(None)
            return nothing_to_do
        return io.submit(self._shut_down())

    async def abandon(self) -> None:
        """The process ends: what runs is recorded as interrupted, since nobody stopped it."""
        await self._shut_down(lambda: ProcessEnded("the process ended before the reply was complete"))

    async def _shut_down(self, make_reason: Callable[[], FamnbError | None] = lambda: None) -> None:
        self._closed = True
        running = list(self._calls)
        for call in running:
            call.timer.stop(make_reason())
        for call in running:
            await asyncio.wrap_future(call.buffer.outcome)
        await self._close_connections()

    async def _close_connections(self) -> None:
        if self._io is not None:
            self._io.at_end.discard(self.abandon)
        self._services = {}
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def _run(self, call: LiveCall) -> None:
        try:
            if self.replays is not None and await self.replays.answer(call):
                pass
            elif call.limiter is None:
                await self._carry(call)
            else:
                await self._carry_in_turn(call, call.limiter)
        # A bug outside the attempts, in the replay or the record: without this the caller would wait for ever.
        except Exception as bug:
            error = self._bug_error(f"call {call.exchange.id}", bug)
            error.reply = call.exchange.reply = Reply(call_id=call.exchange.id, status="failed", error=error)
        # Before `finish`, which wakes the caller: it must not find its finished call among the running ones.
        self._calls.discard(call)
        self.last = call.exchange.reply
        call.buffer.finish(call.exchange.reply)
        if self._closed and not self._calls:
            await self._close_connections()

    async def _carry_in_turn(self, call: LiveCall, limiter: ConcurrencyLimiter) -> None:
        """Carry a call of `send_many`: behind that one's own limiter is the one that all of them share."""
        shared = self._service(call.exchange.url).batch_limiter
        shared.widen(limiter.maximum)
        with contextlib.ExitStack() as turns:
            try:
                async with call.timer.limit(NO_DEADLINES):
                    for waited in (limiter, shared):
                        await waited.enter()
                        turns.callback(waited.leave)
            except FamnbError as error:
                # Stopped before its turn: neither sent nor recorded.
                call.conclude(error)
                return
            await self._carry(call)

    async def _carry(self, call: LiveCall) -> None:
        """Make a call's attempts and record it."""
        exchange = call.exchange
        exchange.started_at, call.begun_ns = self.clock.now(), call.now_ns()
        self._recorder.on_open(exchange)
        error: FamnbError | None = None
        with self._recorder.record_progress(exchange):
            try:
                async with call.timer.limit(self.deadlines):
                    await self._make_attempts(call)
            except FamnbError as failure:
                error = failure
            except Exception as bug:
                error = self._bug_error(f"call {exchange.id}", bug)
        error = call.conclude(error)
        if call.reader is not None:
            conceal(exchange, call.reader.builder.texts(), self.credential.find)
        await self._recorder.on_close(exchange)
        if error is not None:
            error.reply = exchange.reply

    def _bug_error(self, work: str, bug: Exception) -> FamnbError:
        """A failure of ours as an error without its frames, which may hold the key; the log has the place."""
        _log.error("a bug in famnb ended %s", work, exc_info=bug)
        message = self.credential.mask(f"{type(bug).__name__}: {bug}")
        return FamnbError(f"a bug in famnb ended {work} ({message}); the log has more")

    async def _make_attempts(self, call: LiveCall) -> None:
        service = self._service(call.exchange.url)
        for retried in itertools.count():
            try:
                await self._send(call, service)
            except FamnbError as error:
                # Handled below: a failure of the next attempt must not carry this one as its context.
                failure = error
            else:
                if call.limiter is not None:
                    service.batch_limiter.on_success()
                service.retry_budget.refill(retried=retried > 0)
                return
            if call.limiter is not None and isinstance(failure, APIStatusError) and failure.status in THROTTLED:
                service.batch_limiter.on_throttled(call.sent_ns or 0, call.now_ns())
            reader = call.reader
            is_consumed = isinstance(failure, StreamInterrupted) and reader is not None and reader.is_consumed
            retry_after = failure.retry_after if isinstance(failure, APIStatusError) else None
            if (
                retried + 1 >= call.retries.tries
                or not is_worth_retrying(failure, should_retry=call.should_retry, is_consumed=is_consumed)
                or (retry_after or 0) > call.retries.max_wait
                # The budget comes last: what is asked of it is spent.
                or not service.retry_budget.take()
            ):
                raise failure
            call.timer.expect("total")
            await self.clock.sleep(compute_pause(failure, retried=retried, uniform=self.clock.uniform))

    async def _send(self, call: LiveCall, service: _Service) -> None:
        """Send the request once and read the response; raises unless that is a complete reply."""
        call.timer.expect("pool")
        async with service.free:
            streams = call.exchange.request.streams
            # A whole reply has no first event to wait for.
            call.timer.expect("first_event" if streams else "total")
            call.start_attempt()
            async with service.sender.send(
                call.exchange.url,
                call.body,
                streams=streams,
                features=self.profile.feature_headers(call.body) if self.profile.features else {},
                on_sent=call.mark_sent,
            ) as response:
                await self._read(call, response)

    async def _read(self, call: LiveCall, response: Response) -> None:
        """Read a response whose headers have come; raises unless it is a complete reply."""
        exchange = call.exchange
        exchange.headers_ns = max(0, response.arrival.t_ns - (call.sent_ns or 0))
        exchange.http_status = response.status
        exchange.response_headers = tuple(
            self.credential.mask_header(name, value) for name, value in response.headers.multi_items()
        )
        headers = dict(exchange.response_headers)
        exchange.request_id = headers.get("x-request-id") or headers.get("request-id")
        exchange.service = headers.get("x-famnb-engine")
        call.should_retry = headers.get("x-should-retry")
        if not 200 <= response.status < 300:
            raise await self._read_error(call, response)
        is_json = response.content_type.endswith("json")
        # A service may answer `stream: true` with one JSON body; any other type is taken for a stream.
        streamed = response.content_type == "text/event-stream" or (exchange.request.streams and not is_json)
        try:
            await read_response(call, response, streamed=streamed, mask=self.credential.mask_bytes)
        except ResponseFormatError as fault:
            raise ResponseFormatError(f"status {response.status}, but {fault}") from None

    async def _read_error(self, call: LiveCall, response: Response) -> APIStatusError:
        """The error that an error status means; its body is kept."""
        body = self.credential.mask_bytes(await read_error_body(response))
        # Kept as what came, though it is not a reply.
        reader = call.start_reading(streamed=False)
        if body:
            reader.reads.append(Read(call.elapsed_ns(), (body,)))
        target = response.headers.get("location")
        if 300 <= response.status < 400 and target:
            return status_error(response.status)(
                f"redirected to {self.credential.mask(target)}; no redirect is followed, since the key must go "
                "to no other address: if you trust it, give that address as base_url or alt_base_url",
                status=response.status,
                request_id=call.exchange.request_id,
            )
        error = errors.read(response.status, dict(response.headers), body)
        if isinstance(error, AuthenticationError):
            error.key_variable = self.credential.variable or None
        return error

    def _service(self, url: str) -> _Service:
        origin = origin_of(url)
        if origin not in self._services:
            # Here, on the I/O thread, whose event loop it belongs to.
            self._transport = (
                self._transport or self.transport or StampedTransport(tls=self.tls, now_ns=self.clock.monotonic_ns)
            )
            sender = RequestSender(
                origin=origin,
                transport=self._transport,
                credential=self.credential,
                deadlines=self.deadlines,
                headers=self.profile.headers,
                query=self.profile.query,
                now_ns=self.clock.monotonic_ns,
            )
            self._services[origin] = _Service(sender, self.connections)
        return self._services[origin]
