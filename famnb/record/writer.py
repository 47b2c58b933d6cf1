"""The one thread that writes a ledger file: jobs in, batched transactions out, trouble kept from the calls.

submit ──> queue ──> prepare (encode, compress) ──> one short transaction for all that waited ──> future done
                                                    └ file in trouble: warn once, keep the jobs, try with the next
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import os
import queue
import sqlite3
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeAlias

from famnb.errors import LedgerError
from famnb.record import schema

Statement: TypeAlias = tuple[str, Mapping[str, Any] | Sequence[Any]]
Prepare: TypeAlias = Callable[[], Sequence[Statement]]

IDLE_S = 5.0
"""After this long without work the thread ends and the file is closed; the next job starts it again."""
BATCH = 256
BACKLOG = 1000
"""Jobs kept for when a file in trouble can be written again; older ones are given up."""
IMPATIENT_S = 0.1
"""How long to wait for a lock while the file is in trouble."""

_VALUE_ERRORS = (
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.DataError,
    ValueError,
    OverflowError,
)
"""What a value that SQLite cannot take raises; everything else is trouble with the file."""


@dataclasses.dataclass(slots=True)
class _Job:
    prepare: Prepare
    future: Future[None]
    statements: Sequence[Statement] = ()


class Writer:
    """Writes one file; safe to use from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._working = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._backlog: list[_Job] = []
        self._patience_s = schema.LOCK_S
        self._warned = False

    def submit(self, prepare: Prepare) -> Future[None]:
        """Execute the statements that `prepare` returns, all or none; the future is done when they are or cannot be."""
        job = _Job(prepare, Future())
        job.future.set_running_or_notify_cancel()  # so that a cancelled waiter cannot cancel the writing
        with self._starting:
            self._queue.put(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="famnb-ledger", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is shutting down and starts no more threads
                    self._thread = None
        if self._thread is None:
            self._work(self._waiting())
        return job.future

    @property
    def behind(self) -> int:
        """Jobs that wait in memory since the file is in trouble; 0 while it is not."""
        return len(self._backlog) if self._patience_s == IMPATIENT_S else 0

    def flush(self) -> None:
        """Wait until all that was submitted is written, or could not be."""
        own = threading.current_thread() is self._thread  # which cannot wait for itself
        if not own and (self._thread is not None or self._backlog):
            self.submit(lambda: ()).result()

    def close(self) -> None:
        """Write what is left and close the file; a later job opens it again."""
        self.flush()
        with self._starting:
            thread = self._thread
            if thread is not None:
                self._queue.put(None)
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            try:
                job = self._queue.get(timeout=IDLE_S)
            except queue.Empty:
                job = None
                if self._backlog:
                    self._work([])
                    continue
            if job is not None:
                self._work([job, *self._waiting()])
                continue
            self._disconnect()
            with self._starting:
                if self._queue.empty():
                    self._thread = None
                    return

    def _waiting(self) -> list[_Job]:
        """What waits in the queue, up to a batch."""
        jobs: list[_Job] = []
        while len(jobs) < BATCH:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._queue.put(None)
                break
            jobs.append(job)
        return jobs

    def _work(self, jobs: list[_Job]) -> None:
        with self._working:
            for job in jobs:
                try:
                    job.statements = job.prepare()
                except Exception as error:  # whatever a strange reply does here, it must not end the thread
                    self._complain(f"a call could not be recorded in {self.path}: {error}")
            self._backlog = [*self._backlog, *(job for job in jobs if job.statements)][-BACKLOG:]
            if self._backlog:
                self._write()
            for job in jobs:
                job.future.set_result(None)

    def _write(self) -> None:
        """Write the backlog in one transaction; in trouble it stays."""
        try:
            connection = self._connected()
            connection.execute("BEGIN IMMEDIATE")
            for job in self._backlog:
                self._execute(connection, job)
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError, LedgerError) as error:
            self._disconnect()
            self._patience_s = IMPATIENT_S
            self._complain(
                f"calls are not being recorded in {self.path}: {error}. Calls go on; what is not yet written is kept "
                "in memory and tried again. Free or unlock the file, or choose another with FAMNB_LEDGER or ledger="
            )
        else:
            self._backlog = []
            self._patience_s = schema.LOCK_S

    def _execute(self, connection: sqlite3.Connection, job: _Job) -> None:
        """Execute one job's statements, or none of them where a value of its own is at fault."""
        connection.execute("SAVEPOINT job")
        try:
            for sql, values in job.statements:
                connection.execute(sql, values)
        except _VALUE_ERRORS as error:
            connection.execute("ROLLBACK TO job")
            self._complain(f"a call could not be recorded in {self.path}: {error}")
        connection.execute("RELEASE job")

    def _connected(self) -> sqlite3.Connection:
        """A connection to the file that has the path now; one that was deleted or moved away gets a successor."""
        if self._connection is None or _identity(self.path) != self._file:
            self._disconnect()
            self._connection = schema.open_to_write(self.path, patience_s=self._patience_s)
            self._file = _identity(self.path)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _complain(self, message: str) -> None:
        """Warn, once for this file."""
        if self._warned:
            return
        self._warned = True
        # Where warnings are errors there is no caller on this thread to raise to.
        with contextlib.suppress(RuntimeWarning):
            warnings.warn(message, RuntimeWarning, stacklevel=2)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file has this path; None if none has."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


_writers: dict[Path, Writer] = {}
_lock = threading.Lock()
_inherited: list[Writer] = []


def writer(path: Path) -> Writer:
    """The writer of a file, one for the process."""
    with _lock:
        found = _writers.get(path)
        if found is None:
            found = _writers[path] = Writer(path)
        return found


def _finish() -> None:
    for each in list(_writers.values()):
        each.close()


def _after_fork() -> None:
    """A child has its parent's writers but not their threads: it makes new ones, and must not even close the old."""
    global _lock
    _lock = threading.Lock()
    _inherited.extend(_writers.values())
    _writers.clear()


atexit.register(_finish)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
