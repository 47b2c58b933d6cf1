"""The one thread that writes a ledger file: jobs in, batched transactions out; its errors never reach a call.

submit ──> queue ──> prepare (encode, compress) ──> one short transaction for all that waited ──> future done
                                                    └ the file cannot be written: warn once, keep the jobs,
                                                      try again with the next
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

# An idle kernel should hold neither a thread nor a file; not at once, since the next call often follows soon.
IDLE_S = 5.0
"""Seconds without work after which the thread ends and the file is closed; the next job starts it again."""
# A commit costs as much as many rows, and other processes that write wait for the whole of it.
BATCH = 256
"""Jobs in one transaction."""
# Memory must not fill as the disk did.
BACKLOG = 1000
"""Jobs kept until the file can be written again; older ones are lost."""
# Every `flush`, and so every read of the ledger, would wait the usual time again.
RETRY_LOCK_S = 0.1
"""Seconds to wait for a lock after a failure."""

_VALUE_ERRORS = (
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.DataError,
    ValueError,
    OverflowError,
)
"""Raised for a value that SQLite cannot take: the job is at fault, not the file, and trying again would not help."""


@dataclasses.dataclass(slots=True)
class _WriteJob:
    """Statements to execute together, and the future that is done when they are."""

    prepare: Prepare
    future: Future[None]
    statements: Sequence[Statement] = ()


class LedgerWriter:
    """Writes one ledger file; safe to use from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._queue: queue.SimpleQueue[_WriteJob | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._working = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        self._backlog: list[_WriteJob] = []
        self._lock_timeout_s = schema.LOCK_S
        self._warned = False

    def submit(self, prepare: Prepare) -> Future[None]:
        """Execute the statements that `prepare` returns, all or none of them; the future is done then, also if none.

        `prepare` runs on the writer's thread, so that encoding and compressing do not delay the caller.
        """
        job = _WriteJob(prepare, Future())
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
            self._process(self._take_queued())
        return job.future

    @property
    def behind(self) -> int:
        """Jobs that wait in memory since the file cannot be written; 0 while it can."""
        return len(self._backlog) if self._lock_timeout_s == RETRY_LOCK_S else 0

    def flush(self) -> None:
        """Wait until all that was submitted is written, or could not be."""
        is_writer_thread = threading.current_thread() is self._thread  # which cannot wait for itself
        if not is_writer_thread and (self._thread is not None or self._backlog):
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
        """Process jobs until there were none for IDLE_S, or `close` asks to end."""
        while True:
            try:
                job = self._queue.get(timeout=IDLE_S)
            except queue.Empty:
                job = None
                if self._backlog:
                    self._process([])
                    continue
            if job is not None:
                self._process([job, *self._take_queued()])
                continue
            self._disconnect()
            # Under the lock of `submit`, so that no job comes between the look at the queue and the thread's end.
            with self._starting:
                if self._queue.empty():
                    self._thread = None
                    return

    def _take_queued(self) -> list[_WriteJob]:
        """Take what waits in the queue, up to a batch."""
        jobs: list[_WriteJob] = []
        while len(jobs) < BATCH:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is None:  # the request to close; it is for `_run`, after these jobs
                self._queue.put(None)
                break
            jobs.append(job)
        return jobs

    def _process(self, jobs: list[_WriteJob]) -> None:
        """Prepare and write jobs together with those left from before; their futures are done, whatever happens."""
        with self._working:
            for job in jobs:
                try:
                    job.statements = job.prepare()
                except Exception as error:  # whatever a strange reply does here, it must not end the thread
                    self._warn_once(f"a call could not be recorded in {self.path}: {error}")
            self._backlog = [*self._backlog, *(job for job in jobs if job.statements)][-BACKLOG:]
            if self._backlog:
                self._write()
            for job in jobs:
                job.future.set_result(None)

    def _write(self) -> None:
        """Write the backlog in one transaction; if the file cannot be written, it stays."""
        try:
            connection = self._connect()
            # Immediate: a transaction that begins by reading could fail at its first write, without any waiting.
            connection.execute("BEGIN IMMEDIATE")
            for job in self._backlog:
                self._execute(connection, job)
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError, LedgerError) as error:
            # A new connection next time: closing rolls the transaction back, and the file may be another one by then.
            self._disconnect()
            self._lock_timeout_s = RETRY_LOCK_S
            self._warn_once(
                f"calls are not being recorded in {self.path}: {error}. Calls go on; what is not yet written is kept "
                "in memory and tried again. Free or unlock the file, or choose another with FAMNB_LEDGER or ledger="
            )
        else:
            self._backlog = []
            self._lock_timeout_s = schema.LOCK_S

    def _execute(self, connection: sqlite3.Connection, job: _WriteJob) -> None:
        """Execute one job's statements; none of them if one of its values is at fault. Other jobs are not affected."""
        # A savepoint, since a rollback would lose the other jobs of the transaction.
        connection.execute("SAVEPOINT job")
        try:
            for sql, values in job.statements:
                connection.execute(sql, values)
        except _VALUE_ERRORS as error:
            # Undoes the statements but keeps the savepoint, which is released below either way.
            connection.execute("ROLLBACK TO job")
            self._warn_once(f"a call could not be recorded in {self.path}: {error}")
        connection.execute("RELEASE job")

    def _connect(self) -> sqlite3.Connection:
        """A connection to the file that is at the path now: if the old one was deleted or moved away, to a new one."""
        if self._connection is None or _file_identity(self.path) != self._file_id:
            self._disconnect()
            self._connection = schema.open_to_write(self.path, lock_timeout_s=self._lock_timeout_s)
            self._file_id = _file_identity(self.path)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _warn_once(self, message: str) -> None:
        """Warn, once for this file: a full disk would else warn with every call."""
        if self._warned:
            return
        self._warned = True
        # Where warnings are errors there is no caller on this thread to raise to.
        with contextlib.suppress(RuntimeWarning):
            warnings.warn(message, RuntimeWarning, stacklevel=2)


def _file_identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at a path; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


_writers: dict[Path, LedgerWriter] = {}
_lock = threading.Lock()
_inherited: list[LedgerWriter] = []
"""A parent's writers in a forked child, kept so that they are not collected: that would close their connections, and
closing a file in the child drops the parent's locks on it (sqlite.org/howtocorrupt.html, on forks)."""


def writer(path: Path) -> LedgerWriter:
    """Return the writer of a file, one for the process."""
    with _lock:
        ledger_writer = _writers.get(path)
        if ledger_writer is None:
            ledger_writer = _writers[path] = LedgerWriter(path)
        return ledger_writer


def _close_all() -> None:
    for ledger_writer in list(_writers.values()):
        ledger_writer.close()


def _forget_writers() -> None:
    """Make a forked child use new writers: it has its parent's, but not their threads."""
    global _lock
    _lock = threading.Lock()
    _inherited.extend(_writers.values())
    _writers.clear()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_writers)
