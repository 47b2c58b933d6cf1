"""An executor that has calls made on the workers of a Dask cluster; this process counts them and writes the ledger.

start ── the worker with the fewest calls ── row opened, sent ── updates … ── row closed ── over
                                             └ the worker is lost: row closed as interrupted, `WorkerLost`; the
                                               schedule has the cell run again
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import os
import secrets
import time
import warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from famnb import __version__
from famnb.client import dask_worker
from famnb.client.auth import VARIABLE
from famnb.client.client import BaseClient
from famnb.client.dask_worker import RemoteAgent
from famnb.client.engine import SafeRecorder
from famnb.client.exchange import Exchange, Recorder
from famnb.client.io_thread import io_thread
from famnb.client.response_reader import reply_from_reads
from famnb.errors import CredentialError, FamnbError, InvalidRequest, WorkerLost
from famnb.experiment.budget import CallOutcome
from famnb.experiment.plan import Cell
from famnb.experiment.runner import BRIEF_WAIT_S, OnDone, StopCall, outcome_of
from famnb.service.process import KEY_VARIABLE, SERVICE_URL

WATCH_S = 0.5
"""How often the cluster is asked which workers it has."""
GONE_S = 60.0
"""After this long without a worker, or without an answer from the scheduler, the run is given up."""
REST_S = 15.0
"""How long a worker that could not be used is left alone: opening it again at once would fail again. Much shorter than
`GONE_S`, so that a cluster whose only workers failed once is not given up for that."""
SETTLE_S = 1.0
"""How long a cell whose worker is lost waits before it is run again: workers often go several at a time."""
ANSWER_S = 30.0
"""How long a worker has for an answer, besides the time for which it may wait for updates."""
GATHER_CALLS_S = 0.002
"""How long calls are gathered that are sent to a worker together: a trip costs about as much as making a call."""
CLOSE_S = 10.0
"""How long `close` waits for the workers to be left as they were."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A cell's call until it is over."""

    exchange: Exchange
    on_done: OnDone


class _Worker:
    """A worker of the cluster, and the calls that it has."""

    task: asyncio.Task[None]
    """Sends its orders and reads its updates."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.unsent: list[_Call] = []
        self.carried: dict[str, _Call] = {}
        """Calls that it has, or is being sent, by their id."""
        self.stops: list[str] = []
        """Ids of calls that it is still to be told to stop."""
        self.has_orders = asyncio.Event()

    @property
    def load(self) -> int:
        """Calls that it has or will get."""
        return len(self.unsent) + len(self.carried)


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
        self._workers: dict[str, _Worker] = {}
        self._left_alone: dict[str, float] = {}
        """Addresses of workers that are being opened or could not be used, until when."""
        self._waiting: list[_Call] = []
        """Calls that came while there was no worker."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: FamnbError | None = None
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
        call = _Call(self._client.engine.make_exchange(cell.request, labels=labels), on_done)
        self._io.call(self._place, [call])
        return lambda: self._io.call(self._stop, call)

    def limit(self, cell: Cell) -> int | None:  # noqa: ARG002 - as every executor
        """See `Executor`; None, since what a service takes is known on the workers."""
        return None

    def close(self) -> None:
        """Leave the workers as they were; never raises."""
        with contextlib.suppress(Exception):
            self._io.submit(self._end()).result(CLOSE_S)

    # Workers: everything below runs on the I/O thread's event loop.

    async def _begin(self) -> None:
        """Open every worker that is there, and start to look for new ones."""
        try:
            addresses = await self._list_workers()
        except OSError as error:
            raise FamnbError(f"on: the Dask scheduler does not answer: {error or type(error).__name__}") from error
        if not addresses:
            raise InvalidRequest("on: the cluster has no worker yet: dask_client.wait_for_workers(1)")
        outcomes = await asyncio.gather(*map(self._open, addresses), return_exceptions=True)
        for fault in filter(None, outcomes):
            if isinstance(fault, CredentialError) or not self._workers:
                raise fault
            warnings.warn(f"on: {fault}", stacklevel=2)
        self._spawn(self._watch())

    async def _open(self, address: str) -> None:
        """Open an agent on a worker and begin to use it."""
        # However long this takes, it is not opened twice.
        self._left_alone[address] = math.inf
        try:
            await self._ask(address, dask_worker.open_agent, *self._open_arguments)
        except CredentialError as error:
            raise CredentialError(f"worker {address} has no key of its own: {error}") from None
        except Exception as fault:
            raise FamnbError(
                f"worker {address} cannot carry calls ({type(fault).__name__}: {fault}); it needs famnb {__version__}, "
                "as this process has it"
            ) from fault
        finally:
            self._left_alone[address] = time.monotonic() + REST_S
        worker = self._workers[address] = _Worker(address)
        worker.task = self._spawn(self._serve(worker))
        self._place_waiting()

    async def _open_newcomer(self, address: str) -> None:
        try:
            await self._open(address)
        except Exception as fault:
            warnings.warn(f"on: {fault}", stacklevel=2)

    async def _watch(self) -> None:
        """Notice workers that come and go."""
        last_seen = time.monotonic()
        while True:
            try:
                addresses = await self._list_workers()
            except Exception:
                # Whatever keeps the scheduler from answering; what counts is for how long it does not.
                addresses = set(self._workers)
            else:
                for worker in [worker for address, worker in self._workers.items() if address not in addresses]:
                    self._lose(worker)
                now = time.monotonic()
                for address in addresses - self._workers.keys():
                    if now > self._left_alone.get(address, 0.0):
                        self._spawn(self._open_newcomer(address))
                last_seen = now if self._workers else last_seen
            if time.monotonic() - last_seen > GONE_S or self._dask.status == "closed":
                self._give_up()
                return
            await asyncio.sleep(WATCH_S)

    async def _serve(self, worker: _Worker) -> None:
        """Send a worker's orders and read its updates; whatever ends either, the worker is of no more use."""
        try:
            async with asyncio.TaskGroup() as loops:
                loops.create_task(self._send_orders(worker))
                loops.create_task(self._read_updates(worker))
        except* Exception as faults:
            self._lose(worker, faults)

    async def _send_orders(self, worker: _Worker) -> None:
        while True:
            await worker.has_orders.wait()
            await asyncio.sleep(GATHER_CALLS_S)
            # Between here and the request nothing waits, so that no order falls between the event and the lists.
            worker.has_orders.clear()
            calls, worker.unsent = {call.exchange.id: call for call in worker.unsent}, []
            stops, worker.stops = worker.stops, []
            worker.carried |= calls
            for call in calls.values():
                # Its row is opened before it is sent: it may be billed from then on.
                self._recording.on_open(call.exchange)
            requests = {call_id: call.exchange.request for call_id, call in calls.items()}
            await self._ask(worker.address, dask_worker.ask_agent, RemoteAgent.send_orders, requests, stops)

    async def _read_updates(self, worker: _Worker) -> None:
        while True:
            updates = await self._ask(worker.address, dask_worker.ask_agent, RemoteAgent.read_updates)
            for call_id, update in updates.items():
                exchange = worker.carried[call_id].exchange
                update.apply_to(exchange)
                if update.reply is None:
                    self._recording.on_reads(exchange)
                else:
                    self._spawn(self._conclude(worker.carried.pop(call_id)))

    # Calls.

    def _place(self, calls: Iterable[_Call]) -> None:
        """Give each call to the worker that has the fewest; it waits while there is none."""
        for call in calls:
            if self._failure is not None:
                call.on_done(_unsent_outcome(self._failure))
            elif not self._workers:
                self._waiting.append(call)
            else:
                worker = min(self._workers.values(), key=lambda worker: worker.load)
                worker.unsent.append(call)
                worker.has_orders.set()

    def _place_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._place(waiting)

    async def _conclude(self, call: _Call, *, pause_s: float = 0.0) -> None:
        await self._recording.on_close(call.exchange)
        if pause_s:
            await asyncio.sleep(pause_s)
        call.on_done(outcome_of(call.exchange))

    def _stop(self, call: _Call) -> None:
        for worker in self._workers.values():
            if call.exchange.id in worker.carried:
                worker.stops.append(call.exchange.id)
                worker.has_orders.set()
        for queue in (self._waiting, *(worker.unsent for worker in self._workers.values())):
            if call in queue:
                queue.remove(call)
                call.on_done(_unsent_outcome())

    def _lose(self, worker: _Worker, fault: Exception | None = None) -> None:
        """Close the rows of a worker's calls, and place those elsewhere that it was not sent yet."""
        if self._workers.get(worker.address) is not worker:
            return
        del self._workers[worker.address]
        self._left_alone[worker.address] = 0.0 if fault is None else time.monotonic() + REST_S
        # Where the task itself found the worker lost, this changes nothing: it has nothing left to do.
        worker.task.cancel()
        for call in worker.carried.values():
            self._cut_off(call, worker.address)
        self._place(worker.unsent)

    def _cut_off(self, call: _Call, address: str) -> None:
        """Close a call with what had come of it."""
        exchange = call.exchange
        exchange.end_ns = exchange.reads[-1].t_ns if exchange.reads else None
        partial = reply_from_reads(
            exchange.endpoint,
            streamed=exchange.streamed,
            reads=exchange.reads,
            connect_ns=exchange.connect_ns,
            headers_ns=exchange.headers_ns,
            end_ns=exchange.end_ns,
        )
        error = WorkerLost(f"the worker {address} was lost before the call was over")
        exchange.reply = dataclasses.replace(
            partial, call_id=exchange.id, request=exchange.request, status="interrupted", complete=False, error=error
        )
        self._spawn(self._conclude(call, pause_s=SETTLE_S))

    def _give_up(self) -> None:
        self._failure = WorkerLost(f"the cluster has had no worker for {GONE_S:g} s; run() again goes on where it was")
        for worker in list(self._workers.values()):
            self._lose(worker)
        self._place_waiting()

    async def _end(self) -> None:
        addresses, self._workers = list(self._workers), {}
        for task in list(self._tasks):
            task.cancel()
        closing = (self._ask(address, dask_worker.ask_agent, RemoteAgent.close) for address in addresses)
        await asyncio.gather(*closing, return_exceptions=True)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        # An event loop keeps weak references only: without this one, a task could be collected while it waits.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Questions to the cluster: Dask's event loop belongs to another thread, and its questions have no time limit.

    async def _ask(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of `dask_worker` on a worker."""
        question = self._dask.run, function, self._run_id, *arguments
        return (await self._await_in_dask(*question, workers=[address]))[address]

    async def _list_workers(self) -> set[str]:
        return set(await self._await_in_dask(self._dask.nthreads))

    async def _await_in_dask(self, method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        async def call() -> Any:
            # On its own event loop, a method of a blocking Dask client returns an awaitable.
            return await method(*arguments, **options)

        question = call()
        try:
            future = asyncio.run_coroutine_threadsafe(question, self._dask.loop.asyncio_loop)
        except RuntimeError:
            question.close()
            raise ConnectionError("the Dask client is closed") from None
        # A worker that hangs, or a scheduler that is cut off, would be waited for without end.
        return await asyncio.wait_for(asyncio.wrap_future(future), ANSWER_S + dask_worker.POLL_S)


def _unsent_outcome(failure: FamnbError | None = None) -> CallOutcome:
    """Return the outcome of a call that no worker got; with a failure, its cell is tried again by the next run."""
    error = None if failure is None else type(failure).__name__
    return CallOutcome(status="cancelled", call_id=None, high=None, http_status=None, attempts=0, error=error)


def worker_settings(dask_client: Any, client: BaseClient) -> tuple[dict[str, Any], str]:
    """Return what makes a client like this one on a worker, and the environment variable of its key there.

    Raises InvalidRequest, saying what to do, unless workers of this Dask client can make calls as it would.
    """
    _check(dask_client)
    if client.engine.replays:
        raise InvalidRequest("on: a client that replays answers from the ledger of this process; run without on=")
    if client.engine.credential.has_more_secrets:
        raise InvalidRequest(
            "on: a secret in the headers= or query= of the client stays in this process; run without on=, or let "
            "the workers reach the service by its key alone"
        )
    is_embedded = client.base_url() == os.getenv(SERVICE_URL)
    return client.engine.settings(), KEY_VARIABLE if is_embedded else next(iter(client.profile.key_variables), VARIABLE)


def _check(dask_client: Any) -> None:
    """Raise InvalidRequest, saying what to do, unless it is a Dask client that works."""
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
