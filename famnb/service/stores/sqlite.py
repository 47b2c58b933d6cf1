"""The tables of a store file and what is read from and written to them; when, and by which thread, is left to `file`.

responses  a response each; said, parent ── the conversation: its own turns, and the response that it continues
shelves    how many responses an owner, the hash of a key, has
salt       what makes the hashes of this file its own
A response that was forgotten stays without its body for as long as others continue it.

MERGED: Responses kept in an SQLite file, by one thread, so that no stream waits for a disk; the tables are `tables`'
part.

request ──> queue ──> reads, one by one; writes, one transaction for all that wait ──> the requests go on
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

from famnb.errors import InvalidRequest
from famnb.request.neutral import PromptTurn
from famnb.service.errors import ServiceError
from famnb.service.prompt import PriorConversation
from famnb.service.stores.base import MOST, StoredResponse, not_continuable_error, unknown
from famnb.wire import lenient_json

PATIENCE_S = 2.0
"""How long to wait for another service to let go of the file: long enough for one that is ending."""
APPLICATION = 0x46414D53
"""What SQLite's header says of the file: FAMS."""
BROKEN_OFF = {"code": "server_error", "message": "the service ended before the response did"}

Step = Callable[[sqlite3.Connection], object]


def _first(connection: sqlite3.Connection) -> None:
    """Responses, shelves and salt."""
    connection.execute("""
        CREATE TABLE responses (
            seq INTEGER PRIMARY KEY, owner BLOB NOT NULL, id BLOB NOT NULL, parent INTEGER,
            status TEXT NOT NULL, body BLOB, said BLOB
        )""")
    connection.execute("CREATE UNIQUE INDEX responses_by_id ON responses (owner, id)")
    connection.execute("CREATE INDEX responses_by_age ON responses (owner, seq) WHERE body IS NOT NULL")
    connection.execute("CREATE INDEX responses_by_parent ON responses (parent)")
    connection.execute("CREATE TABLE shelves (owner BLOB PRIMARY KEY, kept INTEGER NOT NULL) WITHOUT ROWID")
    connection.execute("CREATE TABLE salt (value BLOB NOT NULL)")
    connection.execute("INSERT INTO salt VALUES (randomblob(16))")


MIGRATIONS: tuple[Step, ...] = (_first,)
"""Step n takes a file of version n to version n + 1; a step that was ever released is never changed."""


def opened(path: Path) -> sqlite3.Connection:
    """The only connection to a store file, made if there is none; raises InvalidRequest when it cannot be used."""
    try:
        # A new file is for its owner's eyes alone.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(path, str(error)) from None
    try:
        _prepare(connection, path)
    except sqlite3.Error as error:
        connection.close()
        locked = "locked" in str(error)
        raise _unusable(path, "another service uses it, or another program" if locked else str(error)) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Take possession of the file, and bring its tables and what a dead service left in them up to date."""
    # One service a file: which responses still run is known to the one that runs them. The lock dies with its process.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    _check(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    # A commit is with the operating system when it returns, so no end of this process loses it, kill -9 included. A
    # power cut may lose the commits since the last checkpoint, the latest first; the file stays sound.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("BEGIN EXCLUSIVE")
    for step in MIGRATIONS[_version(connection) :]:
        step(connection)
    # Always written, so that a full disk and a file that is read-only show at once.
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    running = connection.execute("SELECT owner, id, body FROM responses WHERE status = 'in_progress'").fetchall()
    for owner, id_, body in running:
        end(connection, owner, StoredResponse(id=_text(id_), status="failed", body=broken_off(body)))
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no store, and what a newer famnb wrote."""
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        empty = connection.execute("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        raise _unusable(path, "it is no store of responses") from None
    if application != APPLICATION and not empty:
        raise _unusable(path, "it is no store of responses")
    if _version(connection) > len(MIGRATIONS):
        known = f"it has version {_version(connection)}, this famnb knows up to {len(MIGRATIONS)}"
        raise _unusable(path, f"{known}: update famnb")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _unusable(path: Path, reason: str) -> InvalidRequest:
    return InvalidRequest(f"store: {path} cannot be used ({reason}); free it, or choose another file")


def salt(connection: sqlite3.Connection) -> bytes:
    """What the hashes of this file's keys are made with."""
    return bytes(connection.execute("SELECT value FROM salt").fetchone()[0])


def owner_of(key: str, salt: bytes) -> bytes:
    """What stands for a key in the file."""
    return hashlib.blake2b(key.encode(), key=salt, digest_size=16).digest()


def broken_off(body: bytes) -> bytes:
    """The response object of one that was running when its service died."""
    return lenient_json.encode({**lenient_json.decode(body), "status": "failed", "error": BROKEN_OFF})


def add(connection: sqlite3.Connection, owner: bytes, stored: StoredResponse, *, most: int) -> None:
    """Insert a response; the owner's oldest makes room where there are too many."""
    parent = None
    if stored.previous is not None:
        found = connection.execute(
            "SELECT seq FROM responses WHERE owner = ? AND id = ?", (owner, _blob(stored.previous))
        ).fetchone()
        parent = found and found[0]
    connection.execute(
        "INSERT INTO responses (owner, id, parent, status, body, said) VALUES (?, ?, ?, ?, ?, ?)",
        (owner, _blob(stored.id), parent, stored.status, stored.body, _said(stored, inherits=parent is not None)),
    )
    (kept,) = connection.execute(
        "INSERT INTO shelves VALUES (?, 1) ON CONFLICT DO UPDATE SET kept = kept + 1 RETURNING kept", (owner,)
    ).fetchone()
    if kept > most:
        (oldest,) = connection.execute(
            "SELECT id FROM responses WHERE owner = ? AND body IS NOT NULL ORDER BY seq LIMIT 1", (owner,)
        ).fetchone()
        delete(connection, owner, _text(oldest))


def end(connection: sqlite3.Connection, owner: bytes, stored: StoredResponse) -> None:
    """Update a response that was running; one that is gone stays so."""
    found = connection.execute(
        "SELECT seq, parent FROM responses WHERE owner = ? AND id = ? AND body IS NOT NULL", (owner, _blob(stored.id))
    ).fetchone()
    if found is None:
        return
    seq, parent = found
    said = _said(stored, inherits=parent is not None)
    connection.execute(
        "UPDATE responses SET parent = ?, status = ?, body = ?, said = ? WHERE seq = ?",
        (parent if said else None, stored.status, stored.body, said, seq),
    )
    if not said:
        _tidy(connection, parent)


def get(connection: sqlite3.Connection, owner: bytes, id_: str) -> tuple[str, bytes] | None:
    """The status and the body of a response; None if there is none."""
    found = connection.execute(
        "SELECT status, body FROM responses WHERE owner = ? AND id = ? AND body IS NOT NULL", (owner, _blob(id_))
    ).fetchone()
    return found and (found[0], found[1])


def delete(connection: sqlite3.Connection, owner: bytes, id_: str) -> bool:
    """Forget a response; whether there was one."""
    found = connection.execute(
        "UPDATE responses SET body = NULL WHERE owner = ? AND id = ? AND body IS NOT NULL RETURNING seq",
        (owner, _blob(id_)),
    ).fetchall()
    for (seq,) in found:
        connection.execute("UPDATE shelves SET kept = kept - 1 WHERE owner = ?", (owner,))
        _tidy(connection, seq)
    return bool(found)


def conversation(connection: sqlite3.Connection, owner: bytes, id_: str) -> tuple[str, PriorConversation] | None:
    """The status of a response and the conversation up to and including it; None if there is none."""
    rows = connection.execute(
        """
        WITH RECURSIVE chain (depth, parent, status, said) AS (
            SELECT 0, parent, status, said FROM responses WHERE owner = ? AND id = ? AND body IS NOT NULL
            UNION ALL
            SELECT depth + 1, responses.parent, responses.status, responses.said
            FROM responses JOIN chain ON responses.seq = chain.parent
        )
        SELECT status, said FROM chain ORDER BY depth DESC""",
        (owner, _blob(id_)),
    ).fetchall()
    if not rows:
        return None
    turns: list[PromptTurn] = []
    system = ""
    for _, said in rows:
        system, own = (
            msgspec.convert(lenient_json.decode(said), tuple[str, tuple[PromptTurn, ...]]) if said else ("", ())
        )
        turns += own
    return rows[-1][0], PriorConversation(tuple(turns), system)


def _said(stored: StoredResponse, *, inherits: bool) -> bytes | None:
    """What a response adds to the conversation, encoded; None when it cannot be continued.

    Where the one that it continues was deleted meanwhile, it has the whole conversation itself.
    """
    if not stored.is_continuable:
        return None
    turns = stored.said if inherits else stored.conversation.turns
    return lenient_json.encode([stored.system, msgspec.to_builtins(turns)])


def _tidy(connection: sqlite3.Connection, seq: int | None) -> None:
    """Remove a forgotten response that nothing continues any more, and those before it that were kept for it alone."""
    while seq is not None:
        found = connection.execute(
            """
            DELETE FROM responses WHERE seq = ?1 AND body IS NULL
            AND NOT EXISTS (SELECT 1 FROM responses WHERE parent = ?1) RETURNING parent""",
            (seq,),
        ).fetchall()
        seq = found[0][0] if found else None


def _blob(id_: str) -> bytes:
    """An id as it is stored: whatever a caller sends as one must not be a value that SQLite refuses."""
    return id_.encode("utf-8", "surrogatepass")


def _text(id_: bytes) -> str:
    return id_.decode("utf-8", "surrogatepass")


T = TypeVar("T")
_log = logging.getLogger("famnb.service")


@dataclasses.dataclass(frozen=True, slots=True)
class _FileJob:
    """Something to be done with the file."""

    work: Callable[[sqlite3.Connection], Any]
    writes: bool
    future: Future[Any]


class SqliteStore:
    """A store whose responses outlive the service; raises InvalidRequest when the file cannot be used."""

    def __init__(self, path: Path | str, *, most: int = MOST) -> None:
        self._most = most
        self._connection = opened(Path(path).absolute())
        self._salt = salt(self._connection)
        self._running: set[tuple[bytes, str]] = set()
        """What runs now; any other response that the file has as running failed without its end being written."""
        self._queue: queue.SimpleQueue[_FileJob | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = threading.Thread(target=self._run, name="famnb-store", daemon=True)
        self._thread.start()

    async def add(self, key: str, stored: StoredResponse, /) -> None:
        owner = self._owner(key)
        if stored.status == "in_progress":
            self._running.add((owner, stored.id))
        await self._done(lambda file: add(file, owner, stored, most=self._most), writes=True)

    async def end(self, key: str, stored: StoredResponse, /) -> None:
        owner = self._owner(key)
        try:
            await self._done(lambda file: end(file, owner, stored), writes=True)
        finally:
            self._running.discard((owner, stored.id))

    async def get(self, key: str, id_: str, /) -> bytes:
        owner = self._owner(key)
        found = await self._done(lambda file: get(file, owner, id_), writes=False)
        if found is None:
            raise unknown(id_)
        status, body = found
        return body if self._status(owner, id_, status) == status else broken_off(body)

    async def delete(self, key: str, id_: str, /) -> None:
        owner = self._owner(key)
        if not await self._done(lambda file: delete(file, owner, id_), writes=True):
            raise unknown(id_)

    async def get_conversation(self, key: str, id_: str, /) -> PriorConversation:
        owner = self._owner(key)
        found = await self._done(lambda file: conversation(file, owner, id_), writes=False)
        if found is None:
            raise not_continuable_error(id_, None)
        status, earlier = found
        if not StoredResponse(status=status).is_continuable:
            raise not_continuable_error(id_, self._status(owner, id_, status))
        return earlier

    async def aclose(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(thread.join)

    def _owner(self, key: str) -> bytes:
        return owner_of(key, self._salt)

    def _status(self, owner: bytes, id_: str, status: str) -> str:
        """The status of a response that the file has with this one."""
        return "failed" if status == "in_progress" and (owner, id_) not in self._running else status

    async def _done(self, work: Callable[[sqlite3.Connection], T], *, writes: bool) -> T:
        """What the work gives, once it is done and in the file; raises Refusal 500 when that cannot be."""
        job = _FileJob(work, writes, Future())
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

    def _read(self, jobs: list[_FileJob]) -> None:
        for job in jobs:
            try:
                result = job.work(self._connection)
            except Exception as error:  # whatever it is, the thread must go on for the others
                _fail(job, error)
            else:
                job.future.set_result(result)

    def _write(self, jobs: list[_FileJob]) -> None:
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


def _fail(job: _FileJob, error: Exception) -> None:
    """Tell whoever waits, without what only the service's owner may know."""
    _log.error("the store of responses: %s", error)
    job.future.set_exception(_refusal())


def _refusal() -> ServiceError:
    return ServiceError(
        500,
        "the store of responses cannot be used now; repeat the request later, or with `store` false to do without it",
    )
