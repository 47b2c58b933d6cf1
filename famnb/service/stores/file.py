"""Responses kept in an SQLite file, by one thread, so that no stream waits for a disk; the tables are `tables`' part.

request ──> queue ──> reads, one by one; writes, one transaction for all that wait ──> the requests go on
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from famnb.service.prompt import Earlier
from famnb.service.refusal import Refusal
from famnb.service.stores import tables
from famnb.service.stores.store import MOST, Stored, not_continued, unknown

T = TypeVar("T")
_log = logging.getLogger("famnb.service")


@dataclasses.dataclass(frozen=True, slots=True)
class _Job:
    """Something to be done with the file."""

    work: Callable[[sqlite3.Connection], Any]
    writes: bool
    future: Future[Any]


class FileStore:
    """A store whose responses outlive the service; raises InvalidRequest when the file cannot be used."""

    def __init__(self, path: Path | str, *, most: int = MOST) -> None:
        self._most = most
        self._connection = tables.opened(Path(path).absolute())
        self._salt = tables.salt(self._connection)
        self._running: set[tuple[bytes, str]] = set()
        """What runs now; any other response that the file has as running failed without its end being written."""
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = threading.Thread(target=self._run, name="famnb-store", daemon=True)
        self._thread.start()

    async def add(self, key: str, stored: Stored, /) -> None:
        owner = self._owner(key)
        if stored.status == "in_progress":
            self._running.add((owner, stored.id))
        await self._done(lambda file: tables.add(file, owner, stored, most=self._most), writes=True)

    async def end(self, key: str, stored: Stored, /) -> None:
        owner = self._owner(key)
        try:
            await self._done(lambda file: tables.end(file, owner, stored), writes=True)
        finally:
            self._running.discard((owner, stored.id))

    async def get(self, key: str, id_: str, /) -> bytes:
        owner = self._owner(key)
        found = await self._done(lambda file: tables.get(file, owner, id_), writes=False)
        if found is None:
            raise unknown(id_)
        status, body = found
        return body if self._status(owner, id_, status) == status else tables.broken_off(body)

    async def delete(self, key: str, id_: str, /) -> None:
        owner = self._owner(key)
        if not await self._done(lambda file: tables.delete(file, owner, id_), writes=True):
            raise unknown(id_)

    async def continued(self, key: str, id_: str, /) -> Earlier:
        owner = self._owner(key)
        found = await self._done(lambda file: tables.conversation(file, owner, id_), writes=False)
        if found is None:
            raise not_continued(id_, None)
        status, earlier = found
        if not Stored(status=status).continuable:
            raise not_continued(id_, self._status(owner, id_, status))
        return earlier

    async def aclose(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(thread.join)

    def _owner(self, key: str) -> bytes:
        return tables.owner_of(key, self._salt)

    def _status(self, owner: bytes, id_: str, status: str) -> str:
        """The status of a response that the file has with this one."""
        return "failed" if status == "in_progress" and (owner, id_) not in self._running else status

    async def _done(self, work: Callable[[sqlite3.Connection], T], *, writes: bool) -> T:
        """What the work gives, once it is done and in the file; raises Refusal 500 when that cannot be."""
        job = _Job(work, writes, Future())
        job.future.set_running_or_notify_cancel()  # so that a caller who leaves cannot cancel the writing
        if self._thread is None:
            raise _refusal()
        self._queue.put(job)
        result: T = await asyncio.wrap_future(job.future)
        return result

    def _run(self) -> None:
        """Do what comes, until there is nothing more to come."""
        going_on = True
        while going_on:
            jobs = [self._queue.get()]
            while not self._queue.empty():
                jobs.append(self._queue.get())
            going_on = None not in jobs
            # A read never waits for a write of the same moment: what its caller knows to be written is written already.
            self._read([job for job in jobs if job is not None and not job.writes])
            self._write([job for job in jobs if job is not None and job.writes])
        self._connection.close()

    def _read(self, jobs: list[_Job]) -> None:
        for job in jobs:
            try:
                result = job.work(self._connection)
            except Exception as error:  # whatever it is, the thread must go on for the others
                _fail(job, error)
            else:
                job.future.set_result(result)

    def _write(self, jobs: list[_Job]) -> None:
        """Do all in one transaction; when that fails, each in its own, so that none fails for another."""
        if not jobs:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            results = [job.work(self._connection) for job in jobs]
            self._connection.execute("COMMIT")
        except Exception as error:  # as above
            with contextlib.suppress(sqlite3.Error):  # some errors have rolled it back already
                self._connection.execute("ROLLBACK")
            if len(jobs) == 1:
                _fail(jobs[0], error)
            else:
                for job in jobs:
                    self._write([job])
        else:
            for job, result in zip(jobs, results, strict=True):
                job.future.set_result(result)


def _fail(job: _Job, error: Exception) -> None:
    """Tell whoever waits, without what only the service's owner may know."""
    _log.error("the store of responses: %s", error)
    job.future.set_exception(_refusal())


def _refusal() -> Refusal:
    return Refusal(
        500,
        "the store of responses cannot be used now; repeat the request later, or with `store` false to do without it",
    )
