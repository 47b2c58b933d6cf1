"""Carries calls for another process, which keeps the records: errands in, news of them out, in batches both ways.

there                     here
carry(number, errands) ─> client.start ─ … arrived, about once a second … ─ over
told(taken) <──────────── news, numbered: kept until the other side says that it has them
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import copy
import dataclasses
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from famnb.client.auth import Credential
from famnb.client.batch import Gates
from famnb.client.client import BaseClient
from famnb.client.exchange import Exchange
from famnb.client.stream import Stream
from famnb.errors import CredentialError, FamnbError
from famnb.reply import Reply
from famnb.request import Request
from famnb.timing import Read

POLL_S = 5.0
"""How long `told` waits for news."""
LINGER_S = 0.01
"""How long `told` waits for more to go with the first news."""
SILENCE_S = 30.0
"""After so long without a word from the other side nobody waits for the calls that run: they are stopped."""
TOLD = (
    "started_at",
    "attempts",
    "http_status",
    "request_id",
    "service",
    "response_headers",
    "streamed",
    "headers_ns",
    "end_ns",
)
"""What of an exchange the other side cannot know."""
ERRAND = "errand"
"""The label by which a call is known on both sides."""


@dataclasses.dataclass(frozen=True, slots=True)
class Errand:
    """A call to be made."""

    id: str
    request: Request


@dataclasses.dataclass(frozen=True, slots=True)
class News:
    """What became of an errand since the last news of it."""

    id: str
    state: Mapping[str, Any]
    """The fields in `TOLD`."""
    since: int
    """Reads that were there before those that follow."""
    reads: Sequence[Read]
    reply: Reply | None
    """The outcome, without its request, reads and events; None while the call runs."""

    def put_on(self, exchange: Exchange) -> None:
        """Bring the other side's exchange up to date."""
        for name, value in self.state.items():
            setattr(exchange, name, value)
        exchange.reads[self.since :] = self.reads
        if self.reply is not None:
            exchange.reply = dataclasses.replace(
                self.reply, call_id=exchange.id, request=exchange.request, reads=tuple(exchange.reads)
            )


class Courier:
    """Makes the calls; what it tells is asked for. Its methods are called from afar, one caller's one after another."""

    def __init__(self) -> None:
        self._client: BaseClient | None = None
        self._gates = Gates(1)
        self._running: dict[str, Stream] = {}
        self._carried = 0
        self._notes = _Notes()
        self._silence: asyncio.TimerHandle | None = None

    def open(self, settings: Mapping[str, Any], variable: str, key: Callable[[], str] | None, concurrency: int) -> None:
        """Make the client, with the key that `key()` returns or, without that, the one in the environment `variable`.

        Raises CredentialError where there is none.
        """
        self._client = BaseClient(**settings, api_key=_credential(variable, key), recorder=self._notes)
        self._gates = Gates(concurrency)

    async def carry(self, number: int, errands: Iterable[Errand], stops: Iterable[str]) -> None:
        """Start calls and stop others; a batch that comes again by its number has been seen to."""
        self._heard()
        if number <= self._carried:
            return
        self._carried = number
        if self._client is None:
            raise FamnbError("this courier has no client yet: open it first")
        for errand in errands:
            stream = self._client.start(errand.request, labels={ERRAND: errand.id}, gates=self._gates)
            self._running[errand.id] = stream
            stream.add_done_callback(self._over)
        for each in stops:
            if each in self._running:
                self._running[each].stop()

    async def told(self, taken: int) -> list[News]:
        """The news after the first `taken`, waited for; none if there is none within some seconds."""
        self._heard()
        return await self._notes.after(taken)

    async def close(self) -> None:
        """Stop what runs and close every connection."""
        if self._silence is not None:
            self._silence.cancel()
        if self._client is not None:
            await self._client.aclose()
        self._notes.wake()

    def _over(self, stream: Stream) -> None:
        exchange = stream.exchange
        self._running.pop(exchange.labels[ERRAND], None)
        self._notes.over(exchange, stream.reply)

    def _heard(self) -> None:
        """The other side lives."""
        if self._silence is not None:
            self._silence.cancel()
        self._silence = asyncio.get_running_loop().call_later(SILENCE_S, self._forsaken)

    def _forsaken(self) -> None:
        for stream in list(self._running.values()):
            stream.stop()


class _Notes:
    """The news that wait to be fetched; a recorder, so that those of a long stream come before its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: collections.deque[News] = collections.deque()
        self._gone = 0
        """News that the other side has."""
        self._noted: dict[str, tuple[int, int]] = {}
        """For calls of which there was news, the try and how many of its reads were in it."""
        self._wake: Callable[[], object] | None = None

    def opened(self, exchange: Exchange) -> None:
        """Nothing is known that the other side does not know."""

    def arrived(self, exchange: Exchange) -> None:
        """More reads came."""
        name = exchange.labels[ERRAND]
        attempt, since = self._noted.get(name, (exchange.attempts, 0))
        reads = list(exchange.reads)
        if attempt != exchange.attempts or since > len(reads):
            since = 0
        self._noted[name] = exchange.attempts, len(reads)
        self._note(News(name, _state(exchange), since, reads[since:], None))

    def closed(self, exchange: Exchange) -> Future[None]:  # noqa: ARG002 - a recorder's method
        """Nothing is to be done before the call is over; its record is the other side's business."""
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def over(self, exchange: Exchange, reply: Reply) -> None:
        """The call is over."""
        name = exchange.labels[ERRAND]
        self._noted.pop(name, None)
        self._note(News(name, _state(exchange), 0, list(exchange.reads), _bare(reply)))

    async def after(self, taken: int) -> list[News]:
        """All news but the first `taken`, which are forgotten."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        with self._lock:
            while self._gone < taken and self._kept:
                self._kept.popleft()
                self._gone += 1
            if not self._kept:
                self._wake = lambda: loop.call_soon_threadsafe(_set, woken)
        if not self._kept:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(woken, POLL_S)
        if self._kept:
            await asyncio.sleep(LINGER_S)
        with self._lock:
            return list(self._kept)

    def wake(self) -> None:
        """Whoever waits for news waits no longer."""
        with self._lock:
            wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def _note(self, news: News) -> None:
        with self._lock:
            self._kept.append(news)
        self.wake()


def _credential(variable: str, key: Callable[[], str] | None) -> Credential:
    """The service's key as this process has it; CredentialError, saying what to do, where it has none."""
    fault = None
    try:
        credential = Credential(os.getenv(variable) if key is None else key())
        credential.check()
    except CredentialError as error:
        fault = str(error).replace("FAM_API_KEY", variable)
    except Exception as error:  # its words may hold what the function had in hand
        fault = f"the function that was given for the key raised {type(error).__name__}"
    if fault is not None:
        raise CredentialError(fault)
    return credential


def _state(exchange: Exchange) -> dict[str, Any]:
    return {name: getattr(exchange, name) for name in TOLD}


def _bare(reply: Reply) -> Reply:
    """A reply without what the other side has or can do without."""
    error = copy.copy(reply.error)
    if error is not None:
        error.reply = None
    return dataclasses.replace(reply, request=None, reads=(), events=(), error=error)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
