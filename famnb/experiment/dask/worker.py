"""What runs on a Dask worker: an agent that makes calls for the process which records them, and reports in batches.

The functions here are called through `distributed.Client.run`, on the worker's event loop. Tasks were measured beside
it (distributed 2026.8, two workers): a task for each call holds one of the worker's threads until it secedes, and cost
four to nine times the processor time, most of it in the scheduler.

the recording process             the worker
send_orders(run, calls, stops) ─> client.start, stream.stop
read_updates(run, received) ────> waits until a call is over, or for a second
                         <─────── updates: calls that are over, and the new reads of those that run
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from famnb.client.auth import Credential
from famnb.client.batch import ServiceLimiters
from famnb.client.client import BaseClient
from famnb.client.exchange import Exchange
from famnb.client.live_call import Stream
from famnb.errors import CredentialError
from famnb.reply import Reply
from famnb.request import Request
from famnb.timing import Read

POLL_S = 1.0
"""How long `read_updates` waits, and how often the reads of calls that still run are reported: as often as a call made
in the recording process notes them, so that a crash loses no more here than there."""
GATHER_S = 0.01
"""How long it waits for further calls to end once one has: many short calls then share one answer."""
SILENCE_S = 30.0
"""After this long without a question the recording process is taken for dead, and its calls are stopped: nobody would
record what they cost."""
STATE_FIELDS = (
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
"""The fields of an exchange that only the process which makes the call knows."""

Received: TypeAlias = Mapping[str, tuple[int, int]]
"""By call id: the attempt, and the number of its reads, that the recording process has."""


@dataclasses.dataclass(frozen=True, slots=True)
class RemoteCall:
    """A call to be made on a worker."""

    id: str
    request: Request


@dataclasses.dataclass(frozen=True, slots=True)
class CallUpdate:
    """What has come of a call since the recording process last heard of it."""

    id: str
    state: Mapping[str, Any]
    """The fields in `STATE_FIELDS`."""
    since: int
    """How many reads come before `reads`."""
    reads: Sequence[Read]
    reply: Reply | None
    """The outcome, without request, reads and events, which the other side has; None while the call runs."""

    @classmethod
    def from_stream(cls, call_id: str, stream: Stream, received: tuple[int, int], *, is_over: bool) -> CallUpdate:
        """Describe a call as it stands, without the reads that were `received`."""
        exchange = stream.exchange
        attempt, since = received
        if attempt != exchange.attempts or since > len(exchange.reads):
            since = 0  # a retry began the reads anew
        state = {name: getattr(exchange, name) for name in STATE_FIELDS}
        return cls(call_id, state, since, exchange.reads[since:], _strip(exchange.reply) if is_over else None)

    def apply_to(self, exchange: Exchange) -> None:
        """Bring the recording process's exchange up to date."""
        for name, value in self.state.items():
            setattr(exchange, name, value)
        exchange.reads[self.since :] = self.reads
        if self.reply is not None:
            exchange.reply = dataclasses.replace(
                self.reply, call_id=exchange.id, request=exchange.request, reads=tuple(exchange.reads)
            )


class RemoteAgent:
    """Makes the calls of one run on this worker; used on the worker's event loop alone."""

    def __init__(self, run_id: str, client: BaseClient, *, concurrency: int) -> None:
        self._run_id = run_id
        self._client = client
        self._limits = ServiceLimiters(concurrency)
        self._loop = asyncio.get_running_loop()
        self._streams: dict[str, Stream] = {}
        """Calls whose end is not reported yet."""
        self._over: set[str] = set()
        self._any_over = asyncio.Event()
        self._progress_due = self._loop.time() + POLL_S
        self._silence = self._loop.call_later(SILENCE_S, self._on_silence)

    def start(self, call: RemoteCall) -> None:
        """Start a call."""
        stream = self._streams[call.id] = self._client.start(call.request, limiters=self._limits)
        # The callback runs on the client's I/O thread; everything of this object belongs to the event loop.
        stream.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._on_end, call.id))

    def stop(self, call_id: str) -> None:
        """Stop a call, if it still runs; what had come of it is in its last update."""
        if call_id in self._streams:
            self._streams[call_id].stop()

    async def read_updates(self, received: Received) -> list[CallUpdate]:
        """Return updates of the calls that are over and, once in `POLL_S`, of those that run; waits for some."""
        if not self._over:
            self._any_over.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._any_over.wait(), POLL_S)
                await asyncio.sleep(GATHER_S)
        over, self._over = self._over, set()
        subjects = set(over)
        if self._loop.time() >= self._progress_due:
            self._progress_due = self._loop.time() + POLL_S
            subjects |= self._streams.keys()
        return [
            CallUpdate.from_stream(
                call_id,
                self._streams.pop(call_id) if call_id in over else self._streams[call_id],
                received.get(call_id, (0, 0)),
                is_over=call_id in over,
            )
            for call_id in subjects
        ]

    def restart_silence(self) -> None:
        """Note that the recording process lives."""
        self._silence.cancel()
        self._silence = self._loop.call_later(SILENCE_S, self._on_silence)

    async def close(self) -> None:
        """Stop what runs and close every connection."""
        self._silence.cancel()
        await self._client.aclose()
        self._any_over.set()

    def _on_end(self, call_id: str) -> None:
        self._over.add(call_id)
        self._any_over.set()

    def _on_silence(self) -> None:
        self._closing = self._loop.create_task(close_agent(self._run_id))


AGENTS: dict[str, RemoteAgent] = {}
"""The agents in this worker process, by the id of their run."""


async def open_agent(
    run_id: str, settings: Mapping[str, Any], variable: str, key: Callable[[], str] | None, concurrency: int
) -> None:
    """Make an agent whose client has `settings` and the key that `key()` returns, else the environment's `variable`.

    Raises CredentialError if there is no key.
    """
    client = BaseClient(**settings, api_key=_read_credential(variable, key))
    AGENTS[run_id] = RemoteAgent(run_id, client, concurrency=concurrency)


async def send_orders(run_id: str, calls: list[RemoteCall], stops: list[str]) -> None:
    """Start calls of a run on this worker, and stop those named by their id."""
    agent = AGENTS[run_id]
    agent.restart_silence()
    for call in calls:
        agent.start(call)
    for call_id in stops:
        agent.stop(call_id)


async def read_updates(run_id: str, received: Received) -> list[CallUpdate]:
    """Wait for updates of a run's calls on this worker; empty if there are none within `POLL_S`."""
    agent = AGENTS[run_id]
    agent.restart_silence()
    return await agent.read_updates(received)


async def close_agent(run_id: str) -> None:
    """Stop a run's calls on this worker and close its client."""
    agent = AGENTS.pop(run_id, None)
    if agent is not None:
        await agent.close()


def _read_credential(variable: str, key: Callable[[], str] | None) -> Credential:
    """Return the key of this process; raises CredentialError, which says what to do, if it has none."""
    fault = None
    try:
        credential = Credential(os.getenv(variable) if key is None else key())
        credential.check()
    except CredentialError as error:
        fault = str(error).replace("FAM_API_KEY", variable)
    except Exception as error:
        # The message is left out, since it may quote what the function had in hand.
        fault = f"the function that was given for the key raised {type(error).__name__}"
    if fault is not None:
        # Raised here, not above: no frame or context of the exception that Dask pickles then holds a key.
        raise CredentialError(fault)
    return credential


def _strip(reply: Reply) -> Reply:
    """Return a reply without what the recording process has or can do without."""
    error = copy.copy(reply.error)
    if error is not None:
        error.reply = None
    return dataclasses.replace(reply, request=None, reads=(), events=(), error=error)
