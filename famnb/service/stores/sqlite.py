"""Responses stored in an SQLite file by one thread, so that no stream waits for a disk.

request ──> queue ──> reads one by one; all waiting writes in one transaction ──> the requests continue

Tables:
    responses  a response each; `parent` is the `seq` of the response it continues, `said` the turns it added
    shelves    how many responses an owner has; an owner is the hash of an API key
    salt       the key of this file's hashes
A deleted response keeps its row, without the body, for as long as others continue it.

A service of one process locks the file for itself. Several processes of one service share a file that the first of them
has prepared, and tell each other in further tables what is true while they run (`worker` is one of them):
    generating  which worker generates a response
    buckets     what is left of an owner's allowance of requests (workers.py)
    running     how many requests of an owner a worker is answering
    samples     a worker's metrics, as JSON
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psutil

from famnb.errors import InvalidRequest
from famnb.request.neutral import PromptTurn
from famnb.service.errors import ServiceError
from famnb.service.prompt import PriorConversation
from famnb.service.stores.base import MAX_RESPONSES, StoredResponse, not_continuable_error, not_found_error
from famnb.wire import lenient_json

# Long enough for a service that is shutting down, which takes up to two seconds for its callers.
_LOCK_TIMEOUT_S = 2.0
"""How many seconds to wait for another service to release the file."""
# A number is given to another process after thousands of others at the earliest.
_SAME_TIME_S = 5.0
"""How many seconds two times of creation may differ that are the same process's."""
_APPLICATION_ID = 0x46414D53
"""The `application_id` in SQLite's file header: FAMS."""
_INTERRUPTED_ERROR = {"code": "server_error", "message": "the service ended before the response did"}
"""The `error` of a response that was running when its service died."""

T = TypeVar("T")
_log = logging.getLogger("famnb.service")


@dataclasses.dataclass(frozen=True, slots=True)
class _FileJob:
    """A function to be called with the connection."""

    work: Callable[[sqlite3.Connection], Any]
    writes: bool
    future: Future[Any]


class SqliteStore:
    """A store whose responses outlive the service. Raises InvalidRequest if the file cannot be used.

    With `is_shared` other processes of this service use it as well; one without it has prepared the file before.
    """

    def __init__(self, path: Path | str, *, max_responses: int = MAX_RESPONSES, is_shared: bool = False) -> None:
        self._max_responses = max_responses
        self._is_shared = is_shared
        self.worker = name_worker(os.getpid()) if is_shared else ""
        """What stands for this process in a file that is shared."""
        self._connection = _open_file(Path(path).absolute(), is_shared=is_shared)
        self._salt = _read_salt(self._connection)
        self._running: set[tuple[bytes, str]] = set()
        """Owner and id of what runs now; any other row that says `in_progress` failed without its end being written."""
        self._queue: queue.SimpleQueue[_FileJob | None] = queue.SimpleQueue()
        # A daemon: a store that nobody closed must not keep a process from ending.
        self._thread: threading.Thread | None = threading.Thread(target=self._run, name="famnb-store", daemon=True)
        self._thread.start()

    async def add(self, key: str, response: StoredResponse, /) -> None:
        owner = self.owner(key)
        is_running = response.status == "in_progress"
        if is_running:
            self._running.add((owner, response.id))

        def insert(connection: sqlite3.Connection) -> None:
            _insert_response(connection, owner, response, max_responses=self._max_responses)
            if is_running and self._is_shared:
                row = (owner, _encode_id(response.id), self.worker)
                connection.execute("INSERT INTO generating VALUES (?, ?, ?)", row)

        await self.submit(insert, writes=True)

    async def finish(self, key: str, response: StoredResponse, /) -> None:
        owner = self.owner(key)

        def update(connection: sqlite3.Connection) -> None:
            _update_response(connection, owner, response)
            if self._is_shared:
                identity = (owner, _encode_id(response.id))
                connection.execute("DELETE FROM generating WHERE owner = ? AND id = ?", identity)

        try:
            await self.submit(update, writes=True)
        finally:
            self._running.discard((owner, response.id))

    async def get(self, key: str, id_: str, /) -> bytes:
        row, has_died = await self._select(_select_response, self.owner(key), id_)
        if row is None:
            raise not_found_error(id_)
        return _fail_body(row[1]) if has_died else row[1]

    async def delete(self, key: str, id_: str, /) -> None:
        owner = self.owner(key)
        if not await self.submit(lambda connection: _delete_response(connection, owner, id_), writes=True):
            raise not_found_error(id_)

    async def get_conversation(self, key: str, id_: str, /) -> PriorConversation:
        row, has_died = await self._select(_select_conversation, self.owner(key), id_)
        if row is None:
            raise not_continuable_error(id_, None)
        status, conversation = row
        if not StoredResponse(status=status).is_continuable:
            raise not_continuable_error(id_, "failed" if has_died else status)
        return conversation

    async def aclose(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(thread.join)

    def owner(self, key: str) -> bytes:
        """Return the hash that stands for an API key in the file."""
        # With the file's own salt, so that neither the keys nor which files share one can be found out by comparing.
        return hashlib.blake2b(key.encode(), key=self._salt, digest_size=16).digest()

    async def _select(
        self, select: Callable[[sqlite3.Connection, bytes, str], tuple[str, T] | None], owner: bytes, id_: str
    ) -> tuple[tuple[str, T] | None, bool]:
        """Return the status of a response with what else is selected of it, and whether it died with its process."""
        row: tuple[str, T] | None = None
        # Twice, should another worker end it between the two reads.
        for _ in range(2):
            row = await self.submit(lambda connection: select(connection, owner, id_), writes=False)
            if row is None or row[0] != "in_progress" or (owner, id_) in self._running:
                return row, False
            if self._is_shared and await self._is_generating(owner, id_):
                return row, False
        return row, True

    async def _is_generating(self, owner: bytes, id_: str) -> bool:
        """Whether another worker generates a response, and has not died over it."""
        query = "SELECT worker FROM generating WHERE owner = ? AND id = ?"
        row = await self.submit(
            lambda connection: connection.execute(query, (owner, _encode_id(id_))).fetchone(), writes=False
        )
        return row is not None and is_worker_alive(row[0])

    async def submit(self, work: Callable[[sqlite3.Connection], T], *, writes: bool) -> T:
        """Return what `work` returns, once a write is committed. Raises ServiceError 500 if the file cannot be used."""
        job = _FileJob(work, writes, Future())
        # A running future cannot be cancelled: a caller who disconnects must not prevent the write.
        job.future.set_running_or_notify_cancel()
        if self._thread is None:
            raise _unusable_now_error()
        self._queue.put(job)
        result: T = await asyncio.wrap_future(job.future)
        return result

    def _run(self) -> None:
        """The thread's function: do jobs until the queue holds None."""
        is_open = True
        while is_open:
            jobs = [self._queue.get()]
            while not self._queue.empty():
                jobs.append(self._queue.get())
            is_open = None not in jobs
            # Reads may overtake writes: whatever a caller knows to be written is written already.
            self._read([job for job in jobs if job is not None and not job.writes])
            self._write([job for job in jobs if job is not None and job.writes])
        self._connection.close()

    def _read(self, jobs: list[_FileJob]) -> None:
        for job in jobs:
            try:
                result = job.work(self._connection)
            except Exception as error:  # any: the thread must go on for the other jobs
                _fail_job(job, error)
            else:
                job.future.set_result(result)

    def _write(self, jobs: list[_FileJob]) -> None:
        """Do all jobs in one transaction; if that fails, each in its own, so that none fails because of another."""
        if not jobs:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            results = [job.work(self._connection) for job in jobs]
            self._connection.execute("COMMIT")
        except Exception as error:  # any, as in `_read`
            with contextlib.suppress(sqlite3.Error):  # some errors have rolled back already
                self._connection.execute("ROLLBACK")
            if len(jobs) == 1:
                _fail_job(jobs[0], error)
            else:
                for job in jobs:
                    self._write([job])
        else:
            for job, result in zip(jobs, results, strict=True):
                job.future.set_result(result)


def _fail_job(job: _FileJob, error: Exception) -> None:
    """Log the error and fail the job with one that tells callers nothing about the file."""
    _log.error("the store of responses: %s", error)
    job.future.set_exception(_unusable_now_error())


def _unusable_now_error() -> ServiceError:
    return ServiceError(
        500,
        "the store of responses cannot be used now; repeat the request later, or with `store` false to do without it",
    )


Step = Callable[[sqlite3.Connection], object]


def _create_tables(connection: sqlite3.Connection) -> None:
    # The names are a file format by now: files in use have them.
    connection.execute("""
        CREATE TABLE responses (
            seq INTEGER PRIMARY KEY, owner BLOB NOT NULL, id BLOB NOT NULL, parent INTEGER,
            status TEXT NOT NULL, body BLOB, said BLOB
        )""")
    connection.execute("CREATE UNIQUE INDEX responses_by_id ON responses (owner, id)")
    # For the oldest response of an owner, when it has too many.
    connection.execute("CREATE INDEX responses_by_age ON responses (owner, seq) WHERE body IS NOT NULL")
    connection.execute("CREATE INDEX responses_by_parent ON responses (parent)")
    connection.execute("CREATE TABLE shelves (owner BLOB PRIMARY KEY, kept INTEGER NOT NULL) WITHOUT ROWID")
    connection.execute("CREATE TABLE salt (value BLOB NOT NULL)")
    connection.execute("INSERT INTO salt VALUES (randomblob(16))")


MIGRATIONS: tuple[Step, ...] = (_create_tables,)
"""Step n takes a file of version n to version n + 1; a step that was ever released is never changed."""


def _open_file(path: Path, *, is_shared: bool) -> sqlite3.Connection:
    """Return a connection to a store file, created if missing. Raises InvalidRequest if it cannot be used."""
    try:
        # SQLite would create the file readable for everybody; conversations are for its owner alone.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        # The connection is used by the store's thread, which is not the one that opens it.
        connection = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise _unusable_file_error(path, str(error)) from None
    try:
        _join(connection) if is_shared else _prepare(connection, path)
    except sqlite3.Error as error:
        connection.close()
        is_locked = "locked" in str(error)
        reason = "another service uses it, or another program" if is_locked else str(error)
        raise _unusable_file_error(path, reason) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Lock the file, bring its tables up to date, and fail the responses that a dead service left running."""
    # One service a file: only the service itself knows which of its responses run. The lock dies with its process.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    _check_file(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    # A commit is with the operating system when it returns, so no end of this process loses it, kill -9 included. A
    # power cut may lose the commits since the last checkpoint, the latest first; the file stays sound.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("BEGIN EXCLUSIVE")
    for step in MIGRATIONS[_read_version(connection) :]:
        step(connection)
    # Always written, so that a full disk and a file that is read-only show at once.
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    rows = connection.execute("SELECT owner, id, body FROM responses WHERE status = 'in_progress'").fetchall()
    for owner, id_, body in rows:
        failed = StoredResponse(id=_decode_id(id_), status="failed", body=_fail_body(body))
        _update_response(connection, owner, failed)
    for table in _SHARED_TABLES:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute("COMMIT")


_SHARED_TABLES = {
    "generating": "owner BLOB NOT NULL, id BLOB NOT NULL, worker TEXT NOT NULL, PRIMARY KEY (owner, id)",
    "buckets": "owner BLOB PRIMARY KEY, level REAL NOT NULL, since REAL NOT NULL",
    "running": "owner BLOB NOT NULL, worker TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (owner, worker)",
    "samples": "worker TEXT PRIMARY KEY, samples BLOB NOT NULL",
}
"""The columns of the tables that hold nothing of worth once the workers have ended."""


def _join(connection: sqlite3.Connection) -> None:
    """Use a file together with the other processes of this service, one of which has prepared it."""
    # In this mode a connection keeps other services from locking the file, but no process that wants to join.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    for table, columns in _SHARED_TABLES.items():
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns}) WITHOUT ROWID")
    connection.execute("COMMIT")


def _check_file(connection: sqlite3.Connection, path: Path) -> None:
    """Raise InvalidRequest for a file that is no store, or that a newer famnb wrote."""
    try:
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        is_empty = connection.execute("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        # OperationalError (the file is locked, the disk fails) is a subclass, and says nothing about the content.
        if isinstance(error, sqlite3.OperationalError):
            raise
        raise _unusable_file_error(path, "it is no store of responses") from None
    if application_id != _APPLICATION_ID and not is_empty:
        raise _unusable_file_error(path, "it is no store of responses")
    version = _read_version(connection)
    if version > len(MIGRATIONS):
        reason = f"it has version {version}, this famnb knows up to {len(MIGRATIONS)}: update famnb"
        raise _unusable_file_error(path, reason)


def _read_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _read_salt(connection: sqlite3.Connection) -> bytes:
    return bytes(connection.execute("SELECT value FROM salt").fetchone()[0])


def _unusable_file_error(path: Path, reason: str) -> InvalidRequest:
    return InvalidRequest(f"store: {path} cannot be used ({reason}); free it, or choose another file")


def _insert_response(
    connection: sqlite3.Connection, owner: bytes, response: StoredResponse, *, max_responses: int
) -> None:
    """Insert a response; beyond the limit the owner's oldest is deleted."""
    parent = None
    if response.previous_id is not None:
        row = connection.execute(
            "SELECT seq FROM responses WHERE owner = ? AND id = ?", (owner, _encode_id(response.previous_id))
        ).fetchone()
        parent = row and row[0]
    turns = _encode_turns(response, inherits=parent is not None)
    connection.execute(
        "INSERT INTO responses (owner, id, parent, status, body, said) VALUES (?, ?, ?, ?, ?, ?)",
        (owner, _encode_id(response.id), parent, response.status, response.body, turns),
    )
    (count,) = connection.execute(
        "INSERT INTO shelves VALUES (?, 1) ON CONFLICT DO UPDATE SET kept = kept + 1 RETURNING kept", (owner,)
    ).fetchone()
    if count > max_responses:
        (oldest_id,) = connection.execute(
            "SELECT id FROM responses WHERE owner = ? AND body IS NOT NULL ORDER BY seq LIMIT 1", (owner,)
        ).fetchone()
        _delete_response(connection, owner, _decode_id(oldest_id))


def _update_response(connection: sqlite3.Connection, owner: bytes, response: StoredResponse) -> None:
    """Store the end of a response that was running; one that was deleted stays deleted."""
    row = connection.execute(
        "SELECT seq, parent FROM responses WHERE owner = ? AND id = ? AND body IS NOT NULL",
        (owner, _encode_id(response.id)),
    ).fetchone()
    if row is None:
        return
    seq, parent = row
    turns = _encode_turns(response, inherits=parent is not None)
    # A response that cannot be continued needs no parent, whose row may then go.
    connection.execute(
        "UPDATE responses SET parent = ?, status = ?, body = ?, said = ? WHERE seq = ?",
        (parent if turns else None, response.status, response.body, turns, seq),
    )
    if not turns:
        _remove_unused_rows(connection, parent)


def _select_response(connection: sqlite3.Connection, owner: bytes, id_: str) -> tuple[str, bytes] | None:
    """Return the status and the body of a response; None if there is none."""
    row = connection.execute(
        "SELECT status, body FROM responses WHERE owner = ? AND id = ? AND body IS NOT NULL", (owner, _encode_id(id_))
    ).fetchone()
    return row and (row[0], row[1])


def _delete_response(connection: sqlite3.Connection, owner: bytes, id_: str) -> bool:
    """Delete a response; returns whether there was one."""
    rows = connection.execute(
        "UPDATE responses SET body = NULL WHERE owner = ? AND id = ? AND body IS NOT NULL RETURNING seq",
        (owner, _encode_id(id_)),
    ).fetchall()
    for (seq,) in rows:
        connection.execute("UPDATE shelves SET kept = kept - 1 WHERE owner = ?", (owner,))
        _remove_unused_rows(connection, seq)
    return bool(rows)


def _select_conversation(
    connection: sqlite3.Connection, owner: bytes, id_: str
) -> tuple[str, PriorConversation] | None:
    """Return the status of a response and the conversation up to and including it; None if there is none."""
    rows = connection.execute(
        """
        WITH RECURSIVE chain (depth, parent, status, said) AS (
            SELECT 0, parent, status, said FROM responses WHERE owner = ? AND id = ? AND body IS NOT NULL
            UNION ALL
            SELECT depth + 1, responses.parent, responses.status, responses.said
            FROM responses JOIN chain ON responses.seq = chain.parent
        )
        SELECT status, said FROM chain ORDER BY depth DESC""",
        (owner, _encode_id(id_)),
    ).fetchall()
    if not rows:
        return None
    turns: list[PromptTurn] = []
    system = ""
    for _, data in rows:
        # The last row's system text counts: each response was generated under its own.
        system, added = (
            msgspec.convert(lenient_json.decode(data), tuple[str, tuple[PromptTurn, ...]]) if data else ("", ())
        )
        turns += added
    return rows[-1][0], PriorConversation(tuple(turns), system)


def _encode_turns(response: StoredResponse, *, inherits: bool) -> bytes | None:
    """Return the system text and the turns for the column `said`; None for a response that cannot be continued.

    The turns are those that the response added. Unless it `inherits` the others from its parent's row, since that was
    deleted meanwhile, they are the whole conversation.
    """
    if not response.is_continuable:
        return None
    turns = response.turns if inherits else response.conversation.turns
    return lenient_json.encode([response.system, msgspec.to_builtins(turns)])


def _fail_body(body: bytes) -> bytes:
    """Return the response object of a response that was running when its service died."""
    return lenient_json.encode({**lenient_json.decode(body), "status": "failed", "error": _INTERRUPTED_ERROR})


def _remove_unused_rows(connection: sqlite3.Connection, seq: int | None) -> None:
    """Remove a deleted response's row if nothing continues it, then its parent's likewise, and so on."""
    while seq is not None:
        rows = connection.execute(
            """
            DELETE FROM responses WHERE seq = ?1 AND body IS NULL
            AND NOT EXISTS (SELECT 1 FROM responses WHERE parent = ?1) RETURNING parent""",
            (seq,),
        ).fetchall()
        seq = rows[0][0] if rows else None


def name_worker(pid: int) -> str:
    """Return what stands for a running process in the file: its number, and when it was created."""
    return f"{pid} {psutil.Process(pid).create_time()}"


def is_worker_alive(worker: str) -> bool:
    """Whether a process that the file names is still running, rather than another with the same number."""
    pid, created = worker.split()
    try:
        process = psutil.Process(int(pid))
        # By the wall clock of the process that asks, which may have been set meanwhile.
        is_same = abs(process.create_time() - float(created)) < _SAME_TIME_S
        return is_same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _encode_id(id_: str) -> bytes:
    """Return an id as stored: a caller's may hold lone surrogates, which SQLite refuses as text."""
    return id_.encode("utf-8", "surrogatepass")


def _decode_id(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
