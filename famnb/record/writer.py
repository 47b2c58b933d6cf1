"""The one thread that writes a ledger file: jobs in, batched transactions out; its errors never reach a call.

submit ── queue ── prepare (encode, compress) ── backlog ── one short transaction for all that waited ── future done
                   └ by whoever submits while    └ the file cannot be written: warn once, keep the records,
                     the thread waits for the disk try again every RETRY_S, and when the ledger is read
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import Future
from pathlib import Path
from typing import TypeAlias

from famnb.errors import LedgerError
from famnb.record import schema
from famnb.record.backlog import MEMORY_BYTES, Backlog, Record, execute, merge

Prepare: TypeAlias = Callable[[], Record]

# An idle kernel should hold neither a thread nor a file; not at once, since the next call often follows soon.
IDLE_S = 5.0
"""Seconds without work after which the thread ends and the file is closed; the next job starts it again."""
# A commit costs as much as many rows, and other processes that write wait for the whole of it.
MAX_BATCH = 256
"""Records in one transaction."""
# Every `flush`, and so every read of the ledger, would wait the usual time again.
RETRY_LOCK_S = 0.1
"""Seconds to wait for a lock after a failure."""
# A failure costs a transaction that is rolled back; with every call it would slow the calls.
RETRY_S = 2.0
"""Seconds from a failure to the next attempt, unless somebody asks for one."""
STUCK_S = 0.25
"""Seconds after which a transaction is taken for stuck: jobs are prepared where they are submitted then."""
# Longer than a lock is waited for, which is trouble of another kind.
PATIENCE_S = 10.0
"""Seconds of a transaction after which the user is warned, and which `flush`, so a reader and the end of the process,
waits for a disk that does not answer."""


@dataclasses.dataclass(slots=True)
class _WriteJob:
    """Statements to execute together, and the future that is done when they are."""

    prepare: Prepare
    urgent: bool
    """Whether its caller wants an attempt now, and to wait for it."""
    then: Callable[[], object] | None
    is_prepared: bool = False
    """Whether its record is in the backlog."""
    future: Future[None] = dataclasses.field(default_factory=Future)


class LedgerWriter:
    """Writes one ledger file; safe to use from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._warned_topics: set[str] = set()
        self._backlog = Backlog(path, warn=self._warn_once)
        """Records that are not written yet."""
        self._changed = threading.Condition()
        """Guards and announces the jobs, the threads and `_closing`."""
        self._jobs: list[_WriteJob] = []
        """Those whose futures are not done."""
        self._preparing = threading.Lock()
        """Held while records are made and kept, so that two threads keep the order."""
        self._thread: threading.Thread | None = None
        self._closing = False
        self._connection: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        self._busy_since: float | None = None
        """When the transaction began that runs; None if none does."""
        self._failed_at: float | None = None
        """When the file could not be written last; None if it could."""

    def submit(
        self, prepare: Prepare, *, urgent: bool = False, then: Callable[[], object] | None = None
    ) -> Future[None]:
        """Execute the statements that `prepare` returns, all or none of them; the future is done then, also if none.

        `prepare` runs on the writer's thread, so that encoding and compressing do not delay the caller; it must not
        touch the file, which `then` may: it is called once the statements are written, and not at all in trouble. While
        the file cannot be written the future is done as soon as the statements are kept, unless the job is `urgent`.
        """
        job = _WriteJob(prepare, urgent, then)
        job.future.set_running_or_notify_cancel()  # so that a cancelled waiter cannot cancel the writing
        with self._changed:
            self._jobs.append(job)
            self._changed.notify_all()
            if self._thread is None:
                # A daemon: a disk that does not answer must not keep the process from ending.
                thread = threading.Thread(target=self._run, name="famnb-ledger", daemon=True)
                with contextlib.suppress(RuntimeError):  # the interpreter shuts down, and starts no more threads
                    thread.start()
                    self._thread = thread
        if self._thread is None:
            self._work()
        elif self.is_stuck:
            # So nobody waits for the disk, and what waits is counted as memory.
            self._prepare()
            self._finish([job for job in self._jobs if job.is_prepared and not job.urgent])
            if self._busy_s() > PATIENCE_S:
                self._warn_of_trouble(f"the file system has not answered for {PATIENCE_S:g} s")
        return job.future

    @property
    def is_stuck(self) -> bool:
        """Whether the file system has not answered for a while."""
        return self._busy_s() > STUCK_S

    @property
    def behind(self) -> int:
        """Records that wait since the file cannot be written; 0 while it can."""
        if self._failed_at is None and not self.is_stuck:
            return 0
        return len(self._backlog) + sum(not job.is_prepared for job in self._jobs)

    def flush(self) -> None:
        """Wait until all so far is written, or could not be. LedgerError if PATIENCE_S pass without an answer."""
        is_writer_thread = threading.current_thread() is self._thread  # which cannot wait for itself
        if is_writer_thread or (self._thread is None and not self._backlog):
            return
        future = self.submit(lambda: (), urgent=True)
        while futures.wait([future], PATIENCE_S).not_done:
            if self._busy_s() >= PATIENCE_S:
                self._warn_of_trouble(f"the file system has not answered for {PATIENCE_S:g} s")
                raise LedgerError(
                    f"the file system of the ledger {self.path} has not answered for {PATIENCE_S:g} s: "
                    f"{self.behind:,} records wait in memory, calls go on. Bring it back, or choose another file with "
                    "FAMNB_LEDGER or ledger="
                )

    def close(self) -> None:
        """Write what is left and close the file; a later job opens it again. Raises LedgerError as `flush` does."""
        self.flush()
        with self._changed:
            thread = self._thread
            self._closing = thread is not None
            self._changed.notify_all()
        if thread is not None:
            thread.join(PATIENCE_S)

    def save_backlog(self) -> None:
        """Put what could not be written into a ledger elsewhere, since the process ends, and warn where it is."""
        self._prepare()
        if not self._backlog:
            return
        count = len(self._backlog)
        try:
            files = ", ".join(map(str, self._backlog.save()))
        except (OSError, sqlite3.Error) as error:
            message = f"are LOST: {self.path} cannot be written, nor is there another place ({error})"
        else:
            message = f"could not be written to {self.path}; they are in a ledger of their own, {files}"
        self._warn_once("end", f"{count:,} records of calls {message}")

    def _run(self) -> None:
        """Work off jobs until there were none for IDLE_S, or `close` asks to end."""
        while self._await_work():
            self._work()

    def _await_work(self) -> bool:
        """Wait for jobs, or for the time to try again; return False, the file closed, when there was nothing to do."""
        with self._changed:
            while not self._jobs and not self._is_attempt_due():
                has_failed = self._failed_at is not None
                is_idle = not self._closing and not self._changed.wait(RETRY_S if has_failed else IDLE_S)
                if self._closing or (is_idle and not has_failed):
                    break
            else:
                return True
        with self._note_use():
            self._disconnect()
        # Again under the lock of `submit`, so that no job comes between the look at the queue and the thread's end.
        with self._changed:
            if self._jobs:
                return True
            self._thread, self._closing = None, False
            return False

    def _is_attempt_due(self) -> bool:
        return bool(self._backlog) and (self._failed_at is None or time.monotonic() - self._failed_at >= RETRY_S)

    def _work(self) -> None:
        """Prepare what is in the queue, and write all that waits; the futures are done, whatever happens."""
        self._prepare()
        jobs = [job for job in self._jobs if job.is_prepared]
        if self._backlog and (any(job.urgent for job in jobs) or self._is_attempt_due()):
            self._write()
        for job in jobs:
            if job.then is not None and self._failed_at is None:
                with self._note_use():
                    job.then()
        self._finish(jobs)

    def _finish(self, jobs: list[_WriteJob]) -> None:
        """Set the futures of jobs, which another thread may have done, too."""
        with self._changed:
            for job in jobs:
                if not job.future.done():
                    job.future.set_result(None)
            self._jobs = [job for job in self._jobs if not job.future.done()]

    def _prepare(self) -> None:
        """Make the records of new jobs."""
        with self._preparing:
            for job in [job for job in self._jobs if not job.is_prepared]:
                try:
                    record = job.prepare()
                except Exception as error:  # whatever a strange reply does here, it must not end the thread
                    self._warn_once("value", f"a call could not be recorded in {self.path}: {error}")
                else:
                    if record:
                        self._backlog.append(record)
                job.is_prepared = True

    def _write(self) -> None:
        """Write the backlog, a transaction for each batch; if the file cannot be written, the rest stays."""
        lock_timeout_s = schema.LOCK_S if self._failed_at is None else RETRY_LOCK_S
        try:
            while self._backlog:
                with self._note_use():
                    connection = self._connect(lock_timeout_s)
                    if spills := self._backlog.spills:
                        merge(connection, spills[0])
                        self._backlog.discard_spill()
                        continue
                    records = self._backlog.peek(MAX_BATCH)
                    # Immediate: a transaction that begins by reading could fail at its first write, without waiting.
                    connection.execute("BEGIN IMMEDIATE")
                    for record in records:
                        if error := execute(connection, record):
                            self._warn_once("value", f"a call could not be recorded in {self.path}: {error}")
                    connection.execute("COMMIT")
                    self._backlog.discard(records)
        except (sqlite3.Error, OSError, LedgerError) as trouble:
            self._failed_at = time.monotonic()
            # A new connection next time: closing rolls the transaction back, and the file may be another one by then.
            with self._note_use():
                self._disconnect()
            self._warn_of_trouble(str(trouble))
        else:
            self._failed_at = None
            # The user is warned of trouble that comes again, but once of values that SQLite cannot take.
            self._warned_topics &= {"value"}

    def _busy_s(self) -> float:
        """For how many seconds the file has been in use without an answer."""
        busy_since = self._busy_since
        return 0 if busy_since is None else time.monotonic() - busy_since

    @contextlib.contextmanager
    def _note_use(self) -> Iterator[None]:
        """Note since when the file is in use, while the body runs."""
        self._busy_since = time.monotonic()
        try:
            yield
        finally:
            self._busy_since = None

    def _connect(self, lock_timeout_s: float) -> sqlite3.Connection:
        """A connection to the file that is at the path now: if the old one was deleted or moved away, to a new one."""
        if self._connection is None or _file_identity(self.path) != self._file_id:
            self._disconnect()
            self._connection = schema.open_to_write(self.path, lock_timeout_s=lock_timeout_s)
            self._file_id = _file_identity(self.path)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _warn_of_trouble(self, reason: str) -> None:
        self._warn_once(
            "trouble",
            f"calls are not being recorded in {self.path}: {reason}. Calls go on; what is not yet written is kept, in "
            f"memory up to {MEMORY_BYTES // 1_000_000} MB and then in a ledger elsewhere, and tried again. Free or "
            "unlock the file, or choose another with FAMNB_LEDGER or ledger=",
        )

    def _warn_once(self, topic: str, message: str) -> None:
        """Warn, once for each topic: a full disk would else warn with every call."""
        if topic in self._warned_topics:
            return
        self._warned_topics.add(topic)
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
_writers_lock = threading.Lock()
_inherited: list[LedgerWriter] = []
"""A parent's writers in a forked child, kept so that they are not collected: that would close their connections, and
closing a file in the child drops the parent's locks on it (sqlite.org/howtocorrupt.html, on forks)."""


def writer(path: Path) -> LedgerWriter:
    """Return the writer of a file, one for the process."""
    with _writers_lock:
        ledger_writer = _writers.get(path)
        if ledger_writer is None:
            ledger_writer = _writers[path] = LedgerWriter(path)
        return ledger_writer


def written_files() -> list[Path]:
    """Return the ledgers that this process has recorded calls in."""
    with _writers_lock:
        return list(_writers)


def _close_all() -> None:
    for ledger_writer in list(_writers.values()):
        with contextlib.suppress(LedgerError):  # `save_backlog` warns of what that means
            ledger_writer.close()
        ledger_writer.save_backlog()


def _forget_writers() -> None:
    """Make a forked child use new writers: it has its parent's, but not their threads."""
    global _writers_lock
    _writers_lock = threading.Lock()
    _inherited.extend(_writers.values())
    _writers.clear()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_writers)
