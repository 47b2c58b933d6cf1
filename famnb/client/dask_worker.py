"""What runs on a Dask worker: calls, made for the process which records them.

The functions here are called through `distributed.Client.run`, on the worker's event loop, which knows at once when a
worker is lost and never makes a call twice. A task of Dask's would be made again, unasked, on another worker.

It stands beside the client, not beside `experiment/dask_executor.py` which calls it: a worker then imports neither
pandas nor scipy, which took it longer than a thousand calls.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
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

_KNOWN_FIELDS = {"id", "request", "endpoint", "url", "profile", "labels", "mask", "replayed", "reads", "reply"}
STATE_FIELDS = tuple(field.name for field in dataclasses.fields(Exchange) if field.name not in _KNOWN_FIELDS)
"""The fields of an exchange that only the process which makes the call knows."""


@dataclasses.dataclass(frozen=True, slots=True)
class CallUpdate:
    """What has come of a call."""

    state: Mapping[str, Any]
    """The fields in `STATE_FIELDS`."""
    since: int
    """How many reads come before `reads`."""
    reads: Sequence[Read]
    reply: Reply | None = None
    """The outcome, without request, reads and events, which the other side has; None while the call runs."""

    @classmethod
    def of(cls, exchange: Exchange, *, attempts: int = 0, count: int = 0) -> CallUpdate:
        """The update for somebody who has so many reads of an attempt."""
        state = {name: getattr(exchange, name) for name in STATE_FIELDS}
        # A retry begins the reads anew.
        since = count if state["attempts"] == attempts else 0
        return cls(state, since, exchange.reads[since:])

    def apply_to(self, exchange: Exchange) -> None:
        """Bring the exchange of the process that records it up to date."""
        for name, value in self.state.items():
            setattr(exchange, name, value)
        exchange.reads[self.since :] = self.reads
        if self.reply is not None:
            exchange.reply = dataclasses.replace(
                self.reply, call_id=exchange.id, request=exchange.request, reads=tuple(exchange.reads)
            )


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class RunOnWorker:
    """The client that carries a run's calls on this worker, and the calls under way."""

    client: BaseClient
    limiters: ServiceLimiters
    calls: dict[str, Stream | None] = dataclasses.field(default_factory=dict)
    """By their id in the record; None for one that was stopped before it came here."""


RUNS: dict[str, RunOnWorker] = {}
"""The runs that this worker carries calls of, by their id."""


async def open_run(
    run_id: str, settings: Mapping[str, Any], variable: str, key: Callable[[], str] | None, concurrency: int
) -> None:
    """Make a client with `settings` and the key that `key()` returns, else the environment's `variable`.

    Raises CredentialError if there is no key.
    """
    credential = read_credential(variable, key, settings)
    RUNS[run_id] = RunOnWorker(BaseClient(**settings, api_key=credential), ServiceLimiters(concurrency))


async def make_call(run_id: str, call_id: str, request: Request) -> CallUpdate:
    """Make a call of a run and return what has come of it, however it ended. Raises KeyError unless the run is open."""
    run = RUNS[run_id]
    stream = run.client.engine.start(request, limiters=run.limiters)
    if call_id in run.calls:
        stream.stop()
    run.calls[call_id] = stream
    try:
        await stream.ended()
    finally:
        del run.calls[call_id]
    exchange = stream.exchange
    error = copy.copy(exchange.reply.error)
    if error is not None:
        error.reply = None
    reply = dataclasses.replace(exchange.reply, request=None, reads=(), events=(), error=error)
    return dataclasses.replace(CallUpdate.of(exchange), reply=reply)


async def read_progress(run_id: str, known: Mapping[str, tuple[int, int]]) -> dict[str, CallUpdate]:
    """Return what is new of calls that run, by their ids; `known` has the attempt and the reads that are known."""
    running = {call_id: RUNS[run_id].calls.get(call_id) for call_id in known}
    return {
        call_id: CallUpdate.of(stream.exchange, attempts=known[call_id][0], count=known[call_id][1])
        for call_id, stream in running.items()
        if stream is not None
    }


async def stop_call(run_id: str, call_id: str) -> None:
    """Stop a call; one that has not come yet is stopped when it does."""
    stream = RUNS[run_id].calls.setdefault(call_id, None)
    if stream is not None:
        stream.stop()


async def close_run(run_id: str) -> None:
    """Stop what runs and close every connection."""
    if run := RUNS.pop(run_id, None):
        await asyncio.wrap_future(run.client.engine.shut_down())


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
