"""An executor that has calls made on the workers of a Dask cluster; this process counts them and writes the ledger.

start ── the worker with the fewest calls ── row opened ── made there ── row closed ── over
                                             └ the worker is lost: row closed as interrupted, `WorkerLost`; the
                                               schedule has the cell run again
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import secrets
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from famnb import __version__
from famnb.client import dask_worker
from famnb.client.auth import VARIABLE
from famnb.client.client import BaseClient
from famnb.client.engine import SafeRecorder
from famnb.client.exchange import Exchange, Recorder
from famnb.client.io_thread import io_thread
from famnb.client.response_reader import reply_from_reads
from famnb.errors import CredentialError, FamnbError, InvalidRequest, WorkerLost
from famnb.experiment.budget import CallOutcome
from famnb.experiment.plan import Cell
from famnb.experiment.runner import BRIEF_WAIT_S, OnDone, StopCall, outcome_of
from famnb.service.process import KEY_VARIABLE, SERVICE_URL

WATCH_S = 1.0
"""Seconds between two looks at which workers the cluster has, and at what has come of their calls: as often as a call
made in this process notes that, so that a crash loses no more on either side."""
GONE_S = 60.0
"""After this long without a worker, or without an answer from the scheduler, the run is given up."""
SETTLE_S = 1.0
"""How long a cell whose worker is lost waits before it is run again: workers often go several at a time."""
ANSWER_S = 30.0
"""How long the cluster has to say which workers it has, and a worker to open a run."""
CLOSE_S = 10.0
"""How long `close` waits for the workers to be left as they were."""
# Dask opens a connection to its scheduler for each, and 512 at most.
MAX_CALLS = 400
"""Calls in flight on all workers together."""


class DaskExecutor:
    """Has calls made on every worker that the cluster has at the time; see `Executor`."""

    def __init__(
        self,
        dask_client: Any,
        *,
        client: BaseClient,
        recorder: Recorder,
        concurrency: int,
        key: Callable[[], str] | None = None,
    ) -> None:
        """Make the workers ready to make calls as `client` would; each has its own key.

        Raises InvalidRequest if `dask_client` is not a Dask client or the `scale` extra is missing, CredentialError if
        a worker has no key, FamnbError if no worker can make calls.
        """
        settings, variable = worker_settings(dask_client, client)
        self._dask = dask_client
        self._client = client
        self._recording = SafeRecorder(recorder)
        self._run_id = secrets.token_hex(8)
        retries = client.engine.retries.with_max_wait(BRIEF_WAIT_S)
        settings = {**settings, "connections": concurrency, "retries": retries}
        self._open_arguments = (settings, variable, key, concurrency)
        self._loads: dict[str, int] = {}
        """How many calls each worker has that can be used, by its address."""
        self._calls: dict[str, tuple[str, Exchange]] = {}
        """The calls that are not over, by their id, each with the worker that makes it; "" while it waits for one."""
        self._failure: FamnbError | None = None
        self._watching: set[asyncio.Task[None]] = set()
        """The task that watches the cluster, once it has begun."""
        self._io = io_thread()
        try:
            self._io.submit(self._begin()).result()
        except BaseException:
            self.close()
            raise

    def start(self, cell: Cell, *, labels: Mapping[str, str], on_done: OnDone) -> StopCall:
        """See `Executor`; raises FamnbError once there has been no worker for `GONE_S`."""
        if self._failure is not None:
            raise self._failure
        exchange = self._client.engine.make_exchange(cell.request, labels=labels)
        self._calls[exchange.id] = "", exchange
        self._io.start(self._carry(exchange, on_done))
        return lambda: self._io.start(self._stop(exchange.id))

    def limit(self, cell: Cell) -> int | None:  # noqa: ARG002 - as every executor
        """See `Executor`; what a service takes is known on the workers."""
        return MAX_CALLS

    def close(self) -> None:
        """Leave the workers as they were; never raises."""
        with contextlib.suppress(Exception):
            self._io.submit(self._end()).result(CLOSE_S)

    # Everything below runs on the I/O thread's event loop.

    async def _begin(self) -> None:
        """Open every worker that is there, and start to look for new ones."""
        try:
            faults = await self._open_newcomers()
        except OSError as error:
            raise FamnbError(f"on: the Dask scheduler does not answer: {error or type(error).__name__}") from error
        if not (faults or self._loads):
            raise InvalidRequest("on: the cluster has no worker yet: dask_client.wait_for_workers(1)")
        for fault in faults:
            if isinstance(fault, CredentialError) or not self._loads:
                raise fault
            warnings.warn(f"on: {fault}", stacklevel=2)
        self._watching.add(asyncio.create_task(self._watch()))

    async def _open_newcomers(self) -> list[FamnbError]:
        """Open the workers that have come, forget those that have gone, and return why some cannot be used."""
        present = set(await asyncio.wait_for(self._ask(self._dask.nthreads), ANSWER_S))
        for address in self._loads.keys() - present:
            del self._loads[address]
        newcomers = present - self._loads.keys()
        opening = (self._run_on(address, dask_worker.open_run, *self._open_arguments) for address in newcomers)
        limited = (asyncio.wait_for(answer, ANSWER_S) for answer in opening)
        outcomes = await asyncio.gather(*limited, return_exceptions=True)
        faults: list[FamnbError] = []
        for address, outcome in zip(newcomers, outcomes, strict=True):
            match outcome:
                case CredentialError():
                    faults.append(CredentialError(f"worker {address} has no key of its own: {outcome}"))
                case Exception():
                    reason = f"{type(outcome).__name__}: {outcome}"
                    needed = f"it needs famnb {__version__}, as this process has it"
                    faults.append(FamnbError(f"worker {address} cannot carry calls ({reason}); {needed}"))
                case _:
                    self._loads[address] = 0
        return faults

    async def _watch(self) -> None:
        """Notice workers that come and go; give up once there has been none for long."""
        last_seen = time.monotonic()
        while time.monotonic() - last_seen < GONE_S and self._dask.status != "closed":
            await asyncio.sleep(WATCH_S)
            # Whatever keeps the scheduler from answering; what counts is for how long it does not.
            with contextlib.suppress(Exception):
                for fault in await self._open_newcomers():
                    warnings.warn(f"on: {fault}", stacklevel=2)
                last_seen = time.monotonic() if self._loads else last_seen
            await asyncio.gather(*map(self._record_progress, list(self._loads)), return_exceptions=True)
        self._loads.clear()
        self._failure = WorkerLost(f"the cluster has had no worker for {GONE_S:g} s; run() again goes on where it was")

    async def _record_progress(self, address: str) -> None:
        """Record what has come of the calls of one worker."""
        exchanges = {call_id: exchange for call_id, (at, exchange) in self._calls.items() if at == address}
        known = {call_id: (exchange.attempts, len(exchange.reads)) for call_id, exchange in exchanges.items()}
        answer = self._run_on(address, dask_worker.read_progress, known)
        for call_id, update in (await asyncio.wait_for(answer, ANSWER_S)).items():
            # The call may have ended meanwhile.
            if call_id in self._calls:
                update.apply_to(exchanges[call_id])
                self._recording.on_reads(exchanges[call_id])

    async def _carry(self, exchange: Exchange, on_done: OnDone) -> None:
        """Have a call made by the worker that has the fewest, once there is one."""
        while not self._loads and exchange.id in self._calls and self._failure is None:
            await asyncio.wait(self._watching, timeout=WATCH_S)
        if not self._loads or exchange.id not in self._calls:
            self._calls.pop(exchange.id, None)
            error = None if self._failure is None else type(self._failure).__name__
            on_done(CallOutcome(status="cancelled", call_id=None, high=None, http_status=None, attempts=0, error=error))
            return
        address = min(self._loads, key=self._loads.__getitem__)
        self._loads[address] += 1
        self._calls[exchange.id] = address, exchange
        # Before it is sent: it may be billed from then on.
        self._recording.on_open(exchange)
        making = asyncio.ensure_future(self._run_on(address, dask_worker.make_call, exchange.id, exchange.request))
        # A worker that hangs is there until Dask finds that it does not answer.
        while not making.done() and address in self._loads:
            await asyncio.wait({making}, timeout=WATCH_S)
        making.cancel()
        try:
            (await making).apply_to(exchange)
            if address in self._loads:
                self._loads[address] -= 1
        except (Exception, asyncio.CancelledError):
            # Whatever it was, what has become of the call is not known.
            self._loads.pop(address, None)
            self._cut_off(exchange, WorkerLost(f"the worker {address} was lost before the call was over"))
            await asyncio.sleep(SETTLE_S)
        del self._calls[exchange.id]
        await self._recording.on_close(exchange)
        on_done(outcome_of(exchange))

    def _cut_off(self, exchange: Exchange, error: WorkerLost) -> None:
        """End a call with what had come of it."""
        exchange.end_ns = exchange.reads[-1].t_ns if exchange.reads else None
        partial = reply_from_reads(
            exchange.endpoint,
            streamed=exchange.streamed,
            reads=exchange.reads,
            connect_ns=exchange.connect_ns,
            headers_ns=exchange.headers_ns,
            end_ns=exchange.end_ns,
        )
        exchange.reply = dataclasses.replace(
            partial, call_id=exchange.id, request=exchange.request, status="interrupted", complete=False, error=error
        )

    async def _stop(self, call_id: str) -> None:
        address, _ = self._calls.get(call_id, ("", None))
        if address:
            with contextlib.suppress(Exception):  # it is lost, then, and so is the call
                await self._run_on(address, dask_worker.stop_call, call_id)
        else:
            self._calls.pop(call_id, None)

    async def _end(self) -> None:
        for task in self._watching:
            task.cancel()
        closing = (self._run_on(address, dask_worker.close_run) for address in self._loads)
        await asyncio.gather(*closing, return_exceptions=True)

    # Dask's event loop belongs to another thread.

    async def _run_on(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of `dask_worker` on a worker."""
        return (await self._ask(self._dask.run, function, self._run_id, *arguments, workers=[address]))[address]

    async def _ask(self, method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        async def call() -> Any:
            # On its own event loop, a method of a blocking Dask client returns an awaitable.
            return await method(*arguments, **options)

        question = call()
        try:
            future = asyncio.run_coroutine_threadsafe(question, self._dask.loop.asyncio_loop)
        except RuntimeError:
            question.close()
            raise ConnectionError("the Dask client is closed") from None
        return await asyncio.wrap_future(future)


def worker_settings(dask_client: Any, client: BaseClient) -> tuple[dict[str, Any], str]:
    """Return what makes a client like this one on a worker, and the environment variable of its key there.

    Raises InvalidRequest, saying what to do, unless workers of this Dask client can make calls as it would.
    """
    try:
        import distributed  # an optional extra, imported at its one door
    except ImportError as error:
        raise InvalidRequest('on: calls are spread by Dask; run: pip install "famnb[scale]"') from error
    if not isinstance(dask_client, distributed.Client):
        raise InvalidRequest(f"on: expected a dask.distributed.Client, got {dask_client!r:.80}")
    if dask_client.asynchronous:
        raise InvalidRequest("on: expected a Dask client that blocks; make it without asynchronous=True")
    if dask_client.status != "running":
        raise InvalidRequest(f"on: the Dask client is {dask_client.status}; make a new one")
    if client.engine.replays:
        raise InvalidRequest("on: a client that replays answers from the ledger of this process; run without on=")
    if client.engine.credential.has_more_secrets:
        raise InvalidRequest(
            "on: a secret in the headers= or query= of the client stays in this process; run without on=, or let "
            "the workers reach the service by its key alone"
        )
    is_embedded = client.base_url() == os.getenv(SERVICE_URL)
    return client.engine.settings(), KEY_VARIABLE if is_embedded else next(iter(client.profile.key_variables), VARIABLE)
