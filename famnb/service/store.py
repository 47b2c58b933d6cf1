"""The responses of each API key, in an SQLite file or in memory, used by one thread: no stream waits for a disk.

    responses   a response each, with all of its conversation; its owner is the hash of an API key
A service locks its file.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import logging
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from famnb.errors import InvalidRequest
from famnb.service.errors import ServiceError
from famnb.service.prompt import PriorConversation
from famnb.wire import lenient_json

MEMORY = ":memory:"
"""The path of a store without a file."""
# Bounds the memory, or the file, of a service that runs for weeks; a conversation goes on without its oldest responses.
MAX_RESPONSES = 10_000
"""How many responses a key may have stored; beyond that its oldest is deleted."""
# Long enough for a service that is shutting down, which takes up to two seconds for its callers.
_LOCK_TIMEOUT_S = 2.0
"""How many seconds to wait for another service to release the file."""
_APPLICATION_ID = 0x46414D53
"""The `application_id` in SQLite's file header: FAMS."""
_NO_STORE = "it is not a store of responses"

T = TypeVar("T")
_log = logging.getLogger("famnb.service")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """A response as far as it came, and what is needed to continue it."""

    id: str
    status: str = "in_progress"
    body: bytes
    """The response object as JSON, as a whole reply has it."""
    conversation: PriorConversation
    """The conversation up to and including it."""


class ResponseStore:
    """The stored responses; conversations continue by `previous_response_id`, and may branch.

    What `add`, `finish` and `delete` change is with the operating system once they return, so that no end of this
    process loses it. Every method raises ServiceError 500 if the file cannot be used. The constructor raises
    InvalidRequest for a file that is not a store, or that another service uses.
    """

    def __init__(self, path: Path | str = MEMORY, *, max_responses: int = MAX_RESPONSES) -> None:
        self._max_responses = max_responses
        self._connection = _open(path if path == MEMORY else Path(path).absolute())
        self._running: set[tuple[bytes, str]] = set()
        """Owner and id of what runs now; any other row with `in_progress` failed without its end being written."""
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="famnb-store")

    async def add(self, key: str, response: StoredResponse, /) -> None:
        """Store a new response, finished or still running."""
        owner = _hash(key)
        if response.status == "in_progress":
            self._running.add((owner, response.id))

        def add(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO responses (owner, id, status, body, conversation) VALUES (?, ?, ?, ?, ?)",
                (owner, response.id, *_encode_content(response)),
            )
            connection.execute(
                """
                DELETE FROM responses WHERE owner = ?1 AND seq <=
                (SELECT seq FROM responses WHERE owner = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)""",
                (owner, self._max_responses),
            )

        await self._run(add)

    async def finish(self, key: str, response: StoredResponse, /) -> None:
        """Store the end of a response that was added while it ran; one deleted meanwhile stays deleted."""
        owner = _hash(key)
        sql = "UPDATE responses SET status = ?, body = ?, conversation = ? WHERE owner = ? AND id = ?"
        values = (*_encode_content(response), owner, response.id)
        try:
            await self._run(lambda connection: connection.execute(sql, values))
        finally:
            self._running.discard((owner, response.id))

    async def get(self, key: str, id_: str, /) -> bytes:
        """Return the response object as JSON. Raises ServiceError 404."""
        owner = _hash(key)
        row = await self._select("status, body", owner, id_)
        if row is None:
            raise _not_found_error(id_)
        status, body = row
        if not self._has_died(owner, id_, status):
            return bytes(body)
        error = {"code": "server_error", "message": "the service ended before the response did"}
        return lenient_json.encode({**lenient_json.decode(body), "status": "failed", "error": error})

    async def delete(self, key: str, id_: str, /) -> None:
        """Delete a response; those that continue it stay as they are. Raises ServiceError 404."""
        values = (_hash(key), id_)
        sql = "DELETE FROM responses WHERE owner = ? AND id = ?"
        if not await self._run(lambda connection: connection.execute(sql, values).rowcount):
            raise _not_found_error(id_)

    async def get_conversation(self, key: str, id_: str, /) -> PriorConversation:
        """Return the conversation up to and including a response. Raises ServiceError 400 if it cannot be continued."""
        owner = _hash(key)
        row = await self._select("status, conversation", owner, id_)
        if row is None:
            raise _not_continuable_error(id_, "is not stored for this key")
        status, conversation = row
        # Not while it runs, nor after it failed or was cancelled.
        if status not in ("completed", "incomplete"):
            status = "failed" if self._has_died(owner, id_, status) else status
            raise _not_continuable_error(id_, f"cannot be continued: it is {status}")
        return msgspec.convert(lenient_json.decode(conversation), PriorConversation)

    async def aclose(self) -> None:
        """Finish pending changes and close the store."""
        await asyncio.to_thread(self._executor.shutdown)
        self._connection.close()

    def _has_died(self, owner: bytes, id_: str, status: str) -> bool:
        """Whether a response runs according to the file, though this service does not generate it."""
        return status == "in_progress" and (owner, id_) not in self._running

    async def _select(self, columns: str, owner: bytes, id_: str) -> Any:
        """Return these columns of a response; None if there is none."""
        sql = f"SELECT {columns} FROM responses WHERE owner = ? AND id = ?"  # noqa: S608 - own text
        return await self._run(lambda connection: connection.execute(sql, (owner, id_)).fetchone())

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` returns, in one transaction, once that is committed."""

        def commit() -> T:
            with self._connection:
                return work(self._connection)

        try:
            # Shielded: a caller who disconnects must not prevent the write.
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._executor, commit))
        except (sqlite3.Error, RuntimeError) as error:  # RuntimeError once the store is closed
            _log.error("the store of responses: %s", error)
            # Callers learn nothing about the file.
            message = "the store of responses cannot be used now; repeat the request later, or with `store` false"
            raise ServiceError(500, message) from None


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def _not_found_error(id_: str) -> ServiceError:
    # The id is the caller's own, of any length.
    return ServiceError(404, f"no response {id_[:80]!r} is stored for this key", code="response_not_found")


def _not_continuable_error(id_: str, reason: str) -> ServiceError:
    return ServiceError(
        400,
        f"previous_response_id: the response {id_[:80]!r} {reason}; name a finished one, or send the whole input",
        code="previous_response_not_found",
        param="previous_response_id",
    )


_TABLES = """
CREATE TABLE responses (
    seq INTEGER PRIMARY KEY, owner BLOB NOT NULL, id TEXT NOT NULL,
    status TEXT NOT NULL, body BLOB NOT NULL, conversation BLOB NOT NULL
);
CREATE UNIQUE INDEX responses_by_id ON responses (owner, id);
CREATE INDEX responses_by_age ON responses (owner, seq);
"""
_VERSION = 2
"""The `user_version` in SQLite's file header."""


def _open(path: Path | str) -> sqlite3.Connection:
    """Return a connection to a store, created if missing. Raises InvalidRequest if it cannot be used."""
    with contextlib.ExitStack() as stack:
        try:
            if path != MEMORY:
                # SQLite would create the file readable for everybody; conversations are for its owner alone.
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            # The connection is used by the store's thread, which is not the one that opens it.
            connection = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S, check_same_thread=False)
            stack.callback(connection.close)
            _prepare(connection)
        except (OSError, sqlite3.Error) as error:
            reasons = {
                sqlite3.SQLITE_BUSY: "another service uses it, or another program",
                sqlite3.SQLITE_NOTADB: _NO_STORE,
            }
            reason = reasons.get(getattr(error, "sqlite_errorcode", 0), str(error))
            raise InvalidRequest(f"store: {path} cannot be used ({reason}); free it, or choose another file") from None
        stack.pop_all()
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Lock the file, and create its tables in an empty one. Raises sqlite3.Error if it is not a store."""
    # One service a file: only the service itself knows which of its responses run. The lock dies with its process.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    (file_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    is_empty = not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if not is_empty and file_id != _APPLICATION_ID:
        raise sqlite3.DatabaseError(_NO_STORE)
    if not is_empty and version != _VERSION:
        raise sqlite3.DatabaseError(f"it has version {version}, this famnb knows {_VERSION}")
    connection.execute("PRAGMA journal_mode = WAL")
    # A commit is with the operating system when it returns. A power cut may lose the commits since the last checkpoint,
    # the latest first; the file stays sound.
    connection.execute("PRAGMA synchronous = NORMAL")
    # Always written, so that a full disk and a file that is read-only show at once.
    tables = _TABLES if is_empty else ""
    pragmas = f"PRAGMA user_version = {_VERSION}; PRAGMA application_id = {_APPLICATION_ID};"
    connection.executescript(f"BEGIN EXCLUSIVE; {tables} {pragmas} COMMIT;")


def _encode_content(response: StoredResponse) -> tuple[str, bytes, bytes]:
    """Return what a row has of a response besides its owner and id."""
    conversation = lenient_json.encode(msgspec.to_builtins(response.conversation))
    return response.status, response.body, conversation
