"""Carries calls on the workers of a Dask cluster, while this process alone decides, counts and writes the ledger.

start ── the worker with the fewest calls ── row opened, handed over ── news … ── row closed ── over
                                             └ the worker is lost: row closed as interrupted, `WorkerLost`; the
                                               schedule has the cell run again
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import os
import time
import warnings
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from famnb.client.auth import VARIABLE
from famnb.client.client import BaseClient
from famnb.client.engine import Recording
from famnb.client.exchange import Exchange, Recorder
from famnb.client.io_thread import io_thread
from famnb.client.response_reader import replayed
from famnb.errors import CredentialError, FamnbError, InvalidRequest, WorkerLost
from famnb.experiment.budget import Outcome
from famnb.experiment.dask.remote_agent import Errand, News
from famnb.experiment.dask.worker import GATHER_S, Cluster, Work, Worker
from famnb.experiment.executor import Over, Stop, outcome_of
from famnb.experiment.plan import Cell
from famnb.service.process import KEY_VARIABLE, SERVICE_URL

WATCH_S = 0.5
"""How often the cluster is asked which workers it has."""
GONE_S = 60.0
"""After so long without a worker, or without an answer from the scheduler, the run is given up."""
REST_S = 60.0
"""How long a worker that could not be used is let alone."""
SETTLE_S = 1.0
"""How long a cell whose worker is lost waits until it is run again: others may go with it and are noticed by then."""
CLOSE_S = 10.0
"""How long its end waits for the workers to be left as they were."""


class OnDask:
    """Carries calls on every worker that the cluster has at the time; the ledger is written here."""

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

        Raises InvalidRequest for what is no Dask client and where the `scale` extra is missing, CredentialError where a
        worker has no key, FamnbError where no worker can carry calls.
        """
        self._cluster = Cluster(dask_client)
        if client.replays:
            raise InvalidRequest("on: a client that replays answers from the ledger of this process; run without on=")
        self._client = client
        self._recording = Recording(recorder)
        embedded = client.base_url("chat") == os.getenv(SERVICE_URL)
        variable = KEY_VARIABLE if embedded else VARIABLE
        self._ready = ({**client.settings(), "connections": concurrency}, variable, key, concurrency)
        self._workers: dict[str, Worker] = {}
        self._refused: dict[str, float] = {}
        """Workers that are being opened or could not be used, until when."""
        self._waiting: collections.deque[Work] = collections.deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: FamnbError | None = None
        self._io = io_thread()
        try:
            self._io.submit(self._begin()).result()
        except BaseException:
            self.close()
            raise

    def start(self, cell: Cell, *, labels: Mapping[str, str], over: Over) -> Stop:
        """See `Executor`; raises FamnbError once there has been no worker for long."""
        if self._failure is not None:
            raise self._failure
        work = Work(cell=cell, labels=labels, over=over)
        self._io.call(self._place, work)
        return lambda: self._io.call(self._stop, work)

    def close(self) -> None:
        """Leave the workers as they were; never raises."""
        with contextlib.suppress(Exception):
            self._io.submit(self._end()).result(CLOSE_S)

    async def _begin(self) -> None:
        """Open every worker that is there; from then on, new ones are found."""
        try:
            there = await self._cluster.addresses()
        except OSError as error:
            raise FamnbError(f"on: the Dask scheduler does not answer: {error or type(error).__name__}") from error
        if not there:
            raise InvalidRequest("on: the cluster has no worker yet: dask_client.wait_for_workers(1)")
        opened = await asyncio.gather(*map(self._open, there), return_exceptions=True)
        for fault in filter(None, opened):
            if isinstance(fault, CredentialError) or not self._workers:
                raise fault
            warnings.warn(f"on: {fault}", stacklevel=2)
        self._spawn(self._watch())

    async def _open(self, address: str) -> None:
        worker = Worker(address, self._cluster)
        self._refused[address] = time.monotonic() + REST_S
        await worker.open(*self._ready)
        self._workers[address] = worker
        worker.tasks = [self._spawn(self._held(worker, does(worker))) for does in (self._feed, self._hear)]
        while self._waiting:
            self._place(self._waiting.popleft())

    async def _newcomer(self, address: str) -> None:
        try:
            await self._open(address)
        except Exception as fault:
            warnings.warn(f"on: {fault}", stacklevel=2)

    async def _watch(self) -> None:
        """Notice workers that come and go."""
        seen = time.monotonic()
        while True:
            try:
                there = await self._cluster.addresses()
            except Exception:  # whatever keeps the scheduler from answering: what counts is for how long it does not
                there = set(self._workers)
            else:
                for worker in [each for address, each in self._workers.items() if address not in there]:
                    self._lose(worker)
                now = time.monotonic()
                for address in there - self._workers.keys():
                    if now > self._refused.get(address, 0.0):
                        self._spawn(self._newcomer(address))
                seen = now if self._workers else seen
            if time.monotonic() - seen > GONE_S or self._cluster.client.status == "closed":
                self._give_up()
                return
            await asyncio.sleep(WATCH_S)

    async def _held(self, worker: Worker, work: Coroutine[Any, Any, None]) -> None:
        """Do the work; whatever ends it, the worker is of no more use."""
        try:
            await work
        except Exception as fault:
            self._lose(worker, fault)

    async def _feed(self, worker: Worker) -> None:
        while True:
            await worker.woken.wait()
            await asyncio.sleep(GATHER_S)
            worker.woken.clear()
            todo, worker.todo = worker.todo, []
            await worker.hand_over([self._errand(worker, work) for work in todo])

    def _errand(self, worker: Worker, work: Work) -> Errand:
        """A call on its way: from here on it has a row."""
        exchange = work.exchange = self._client.exchange(work.cell.request, labels=work.labels)
        self._recording.opened(exchange)
        worker.carried[exchange.id] = work
        return Errand(exchange.id, exchange.request)

    async def _hear(self, worker: Worker) -> None:
        while True:
            for news in await worker.news():
                self._take(worker, news)

    def _take(self, worker: Worker, news: News) -> None:
        work = worker.carried.get(news.id)
        if work is None or work.exchange is None:
            return
        news.put_on(work.exchange)
        if news.reply is None:
            self._recording.arrived(work.exchange)
        else:
            del worker.carried[news.id]
            self._spawn(self._conclude(work, work.exchange))

    async def _conclude(self, work: Work, exchange: Exchange, *, pause_s: float = 0.0) -> None:
        await self._recording.closed(exchange)
        if pause_s:
            await asyncio.sleep(pause_s)
        work.over(outcome_of(exchange))

    def _place(self, work: Work) -> None:
        """Give a call to the worker that has the fewest."""
        if self._failure is not None:
            work.over(_never_sent(self._failure))
            return
        if not self._workers:
            self._waiting.append(work)
            return
        worker = min(self._workers.values(), key=lambda each: each.load)
        worker.todo.append(work)
        worker.woken.set()

    def _stop(self, work: Work) -> None:
        for worker in self._workers.values():
            if work.exchange is not None and work.exchange.id in worker.carried:
                worker.stops.append(work.exchange.id)
                worker.woken.set()
                return
            if work in worker.todo:
                worker.todo.remove(work)
                work.over(_never_sent())
                return
        if work in self._waiting:
            self._waiting.remove(work)
            work.over(_never_sent())

    def _lose(self, worker: Worker, fault: Exception | None = None) -> None:
        """Close the rows of the calls that a worker had, and place those elsewhere that it was not handed yet."""
        if self._workers.get(worker.address) is not worker:
            return
        del self._workers[worker.address]
        self._refused[worker.address] = 0.0 if fault is None else time.monotonic() + REST_S
        worker.forget()
        for work in worker.carried.values():
            self._cut_off(work, worker.address)
        for work in worker.todo:
            self._place(work)

    def _cut_off(self, work: Work, address: str) -> None:
        """Close a call with what had come of it."""
        exchange = work.exchange
        assert exchange is not None, "a call that was handed over has an exchange"
        exchange.end_ns = exchange.reads[-1].t_ns if exchange.reads else None
        seen = replayed(
            exchange.endpoint,
            streamed=exchange.streamed,
            reads=exchange.reads,
            headers_ns=exchange.headers_ns,
            end_ns=exchange.end_ns,
        )
        error = WorkerLost(f"the worker {address} was lost before the call was over")
        exchange.reply = dataclasses.replace(
            seen, call_id=exchange.id, request=exchange.request, status="interrupted", complete=False, error=error
        )
        self._spawn(self._conclude(work, exchange, pause_s=SETTLE_S))

    def _give_up(self) -> None:
        self._failure = WorkerLost(f"the cluster has had no worker for {GONE_S:g} s; run() again goes on where it was")
        for worker in list(self._workers.values()):
            self._lose(worker)
        while self._waiting:
            self._waiting.popleft().over(_never_sent(self._failure))

    async def _end(self) -> None:
        workers, self._workers = list(self._workers.values()), {}
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*(worker.close() for worker in workers), return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _never_sent(failure: FamnbError | None = None) -> Outcome:
    """The outcome of a call that no worker got; with the failure for which there is none, its cell is tried again."""
    error = None if failure is None else type(failure).__name__
    return Outcome(status="cancelled", call_id=None, high=None, http_status=None, attempts=0, error=error)
