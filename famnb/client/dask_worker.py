"""What runs on a Dask worker: an agent that makes calls for the process which records them, and reports in batches.

The functions here are called through `distributed.Client.run`, on the worker's event loop. Tasks were measured beside
it (distributed 2026.8, two workers): a task for each call holds one of the worker's threads until it secedes, and cost
four to nine times the processor time, most of it in the scheduler.

the recording process               the worker
ask_agent(run, send_orders, …) ──> client.start, stream.stop
ask_agent(run, read_updates) ────> waits until a call is over, or for a second
                          <─────── updates: calls that are over, and the new reads of those that run

The agent remembers what it has reported, and the recording process acknowledges nothing: where an answer does not come,
it takes the worker for lost, with all its calls.

It stands beside the client, not beside `experiment/dask_executor.py` which talks to it: a worker then imports neither
pandas nor scipy, which took it longer than a thousand calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from famnb.client.auth import Credential
from famnb.client.batch import ServiceLimiters
from famnb.client.client import BaseClient
from famnb.client.exchange import Exchange
from famnb.client.live_call import Stream
from famnb.errors import CredentialError
from famnb.profiles import check_profile
from famnb.reply import Reply
from famnb.request import Request
from famnb.timing import Read

POLL_S = 1.0
"""How long `read_updates` waits, and how often the reads of calls that still run are reported: as often as a call made
in the recording process notes them, so that a crash loses no more here than there."""
GATHER_ENDS_S = 0.01
"""How long it waits for further calls to end once one has: many short calls then share one answer."""
SILENCE_S = 30.0
"""After this long without a question the recording process is taken for dead, and its calls are stopped: nobody would
record what they cost."""
STATE_FIELDS = (
    "started_at",
    "attempts",
    "broken_tries",
    "http_status",
    "request_id",
    "service",
    "response_headers",
    "streamed",
    "connect_ns",
    "headers_ns",
    "wait_ns",
    "end_ns",
)
"""The fields of an exchange that only the process which makes the call knows."""


@dataclasses.dataclass(frozen=True, slots=True)
class CallUpdate:
    """What has come of a call since its last update."""

    state: Mapping[str, Any]
    """The fields in `STATE_FIELDS`."""
    since: int
    """How many reads come before `reads`."""
    reads: Sequence[Read]
    reply: Reply | None
    """The outcome, without request, reads and events, which the other side has; None while the call runs."""

    def apply_to(self, exchange: Exchange) -> None:
        """Bring the recording process's exchange up to date."""
        for name, value in self.state.items():
            setattr(exchange, name, value)
        exchange.reads[self.since :] = self.reads
        if self.reply is not None:
            exchange.reply = dataclasses.replace(
                self.reply, call_id=exchange.id, request=exchange.request, reads=tuple(exchange.reads)
            )


class _ReportedCall:
    """A call of this worker, and how much of it was reported."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._attempt = self._reads = 0

    def next_update(self) -> CallUpdate:
        """Describe the call as it stands, without the reads that were reported before."""
        # Before its state is read, since the call goes on on another thread: once it is over, nothing changes any more.
        is_over = not self.stream.running
        exchange = self.stream.exchange
        state = {name: getattr(exchange, name) for name in STATE_FIELDS}
        # A retry begins the reads anew.
        since = self._reads if state["attempts"] == self._attempt and self._reads <= len(exchange.reads) else 0
        reads = exchange.reads[since:]
        self._attempt, self._reads = state["attempts"], since + len(reads)
        return CallUpdate(state, since, reads, _strip(exchange.reply) if is_over else None)


class RemoteAgent:
    """Makes the calls of one run on this worker; used on the worker's event loop alone."""

    def __init__(self, run_id: str, client: BaseClient, *, concurrency: int) -> None:
        self._run_id = run_id
        self._client = client
        self._limits = ServiceLimiters(concurrency)
        self._loop = asyncio.get_running_loop()
        self._calls: dict[str, _ReportedCall] = {}
        """Calls whose end is not reported yet, by their id."""
        self._any_over = asyncio.Event()
        self._progress_due = self._loop.time() + POLL_S
        self._silence = self._loop.call_later(SILENCE_S, self._on_silence)

    async def send_orders(self, requests: Mapping[str, Request], stops: Sequence[str]) -> None:
        """Start calls, each by its id, and stop those named by their id: what had come is in their last update."""
        for call_id, request in requests.items():
            stream = self._client.engine.start(request, limiters=self._limits)
            self._calls[call_id] = _ReportedCall(stream)
            # The callback runs on the client's I/O thread; everything of this object belongs to the event loop.
            stream.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._any_over.set))
        for call_id in stops:
            if call_id in self._calls:
                self._calls[call_id].stream.stop()

    async def read_updates(self) -> dict[str, CallUpdate]:
        """Wait, at most `POLL_S`, for calls to end; return their updates and, once in `POLL_S`, those of all others."""
        if not self._any_over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._any_over.wait(), POLL_S)
                await asyncio.sleep(GATHER_ENDS_S)
        # Cleared before the calls are looked at: one that ends meanwhile sets it again.
        self._any_over.clear()
        is_due = self._loop.time() >= self._progress_due
        if is_due:
            self._progress_due = self._loop.time() + POLL_S
        subjects = {call_id: call for call_id, call in self._calls.items() if is_due or not call.stream.running}
        updates = {call_id: call.next_update() for call_id, call in subjects.items()}
        for call_id, update in updates.items():
            if update.reply is not None:
                del self._calls[call_id]
        return updates

    def restart_silence(self) -> None:
        """Note that the recording process lives."""
        self._silence.cancel()
        self._silence = self._loop.call_later(SILENCE_S, self._on_silence)

    async def close(self) -> None:
        """Stop what runs and close every connection."""
        AGENTS.pop(self._run_id, None)
        self._silence.cancel()
        await asyncio.wrap_future(self._client.engine.shut_down())
        # Wakes a `read_updates` that still waits.
        self._any_over.set()

    def _on_silence(self) -> None:
        # Kept on the object, since an event loop keeps only weak references to its tasks.
        self._closing = self._loop.create_task(self.close())


AGENTS: dict[str, RemoteAgent] = {}
"""The agents in this worker process, by the id of their run."""


async def open_agent(
    run_id: str, settings: Mapping[str, Any], variable: str, key: Callable[[], str] | None, concurrency: int
) -> None:
    """Make an agent whose client has `settings` and the key that `key()` returns, else the environment's `variable`.

    Raises CredentialError if there is no key.
    """
    credential = read_credential(variable, key, settings)
    client = BaseClient(**settings, api_key=credential)
    AGENTS[run_id] = RemoteAgent(run_id, client, concurrency=concurrency)


async def ask_agent(run_id: str, method: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
    """Call a method of RemoteAgent on the agent that a run has on this worker. Raises KeyError if it has none."""
    agent = AGENTS[run_id]
    agent.restart_silence()
    return await method(agent, *arguments)


def read_credential(variable: str, key: Callable[[], str] | None, settings: Mapping[str, Any]) -> Credential:
    """Return the key of this process; raises CredentialError, which says what to do, if it has none."""
    profile, fault = check_profile(settings["profile"]), None
    try:
        credential = Credential(
            os.getenv(variable) if key is None else key(),
            header=profile.key_header,
            variable=variable if profile.needs_key else "",
            headers=settings["headers"],
            query=settings["query"],
        )
        credential.check()
    except CredentialError as error:
        fault = str(error)
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
