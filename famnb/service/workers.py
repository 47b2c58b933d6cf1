"""Several processes that answer as one service: uvicorn's supervisor, and what they share through the store's file.

supervisor ── starts, restarts and ends ── workers ── each: ServiceApp, one connection to the file

The file holds responses, what is left of each key's allowance, how many of its requests run, and every worker's counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable

import uvicorn
from uvicorn.supervisors import Multiprocess

from famnb.errors import ConnectError
from famnb.service.auth import Bucket, RateLimits
from famnb.service.errors import ServiceError
from famnb.service.metrics import Metrics, Samples, without_gauges
from famnb.service.stores.sqlite import SqliteStore, is_worker_alive
from famnb.wire import lenient_json

_START_TIMEOUT_S = 60.0
"""How many seconds a worker may take to start."""
_PUBLISH_S = 1.0
"""How old the counts of the other workers may be, in seconds."""


class Supervisor(Multiprocess):
    """Starts the workers, says so once all of them answer, and starts another where one dies."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], announce: Callable[[], None]) -> None:
        super().__init__(config, sockets)
        self._announce = announce
        self.has_started = False

    def init_processes(self) -> None:
        """Start the workers and wait for them. Raises ConnectError if one does not start."""
        super().init_processes()
        for process in self.processes:
            if not process.wait_until_ready(_START_TIMEOUT_S, self.should_exit):
                if self.should_exit.is_set() or self.signal_queue:
                    return
                for started in self.processes:
                    started.kill()
                raise ConnectError("a worker of the service did not start; its own message is above")
        self._announce()


class SharedRateLimiter:
    """The limiter of a service of several processes. `clock` returns the same seconds in each of them."""

    def __init__(self, limits: RateLimits, store: SqliteStore, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._store = store
        self._clock = clock

    @contextlib.asynccontextmanager
    async def admit(self, key: str, /) -> AsyncIterator[None]:
        owner, worker = self._store.owner(key), self._store.worker
        now = self._clock()
        refusal = await self._store.submit(lambda connection: self._admit(connection, owner, now), writes=True)
        if refusal is not None:
            raise refusal
        try:
            yield
        finally:
            await self._store.submit(lambda connection: _add_running(connection, owner, worker, -1), writes=True)

    def _admit(self, connection: sqlite3.Connection, owner: bytes, now: float) -> ServiceError | None:
        """Count one request as running; returns the error for one that is beyond a limit, which changes nothing."""
        bucket: Bucket | None = connection.execute(
            "SELECT level, since FROM buckets WHERE owner = ?", (owner,)
        ).fetchone()
        try:
            self._limits.check_running(_count_running(connection, owner))
            bucket = self._limits.take(bucket, now)
        except ServiceError as error:
            return error
        if bucket is not None:
            connection.execute("REPLACE INTO buckets VALUES (?, ?, ?)", (owner, *bucket))
        _add_running(connection, owner, self._store.worker, 1)
        return None


def _count_running(connection: sqlite3.Connection, owner: bytes) -> int:
    rows = connection.execute("SELECT worker, count FROM running WHERE owner = ? AND count > 0", (owner,)).fetchall()
    # What a worker answered when it died is answered no more.
    return sum(count for worker, count in rows if is_worker_alive(worker))


def _add_running(connection: sqlite3.Connection, owner: bytes, worker: str, change: int) -> None:
    connection.execute(
        "INSERT INTO running VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET count = count + ?3", (owner, worker, change)
    )


class SharedMetrics(Metrics):
    """The counts of one worker, which it writes into the file every second, and those of the others."""

    def __init__(self, store: SqliteStore) -> None:
        super().__init__()
        self._store = store

    async def publish_regularly(self) -> None:
        """Write this worker's counts, as they change, until cancelled."""
        published: Samples = {}
        while True:
            await asyncio.sleep(_PUBLISH_S)
            if self.samples != published:
                published = dict(self.samples)
                await self.publish()

    async def publish(self) -> None:
        """Write this worker's counts."""
        row = (self._store.worker, lenient_json.encode(self.samples))
        # A disk that is full must not end the counting; the next second may be better.
        with contextlib.suppress(ServiceError):
            await self._store.submit(
                lambda connection: connection.execute("REPLACE INTO samples VALUES (?, ?)", row), writes=True
            )

    async def collect(self) -> list[Samples]:
        rows = await self._store.submit(
            lambda connection: connection.execute("SELECT worker, samples FROM samples").fetchall(), writes=False
        )
        others = {worker: lenient_json.decode(samples) for worker, samples in rows if worker != self._store.worker}
        return [
            self.samples,
            *(samples if is_worker_alive(worker) else without_gauges(samples) for worker, samples in others.items()),
        ]


def end_with_supervisor() -> None:
    """Have this worker end in order once its supervisor has died, which could not tell it to."""
    supervisor = multiprocessing.parent_process()
    if supervisor is None:
        return

    def wait() -> None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="famnb-supervisor", daemon=True).start()
