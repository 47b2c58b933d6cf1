"""Backlog: records that wait until a ledger's file can be written; in memory, then in a ledger elsewhere.

in memory, up to MEMORY_BYTES ── then in the spill, a ledger in another folder
└ written in batches             └ once memory is empty: merged at once, while new records wait in memory again
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import platformdirs

from famnb.record import schema

Statement: TypeAlias = tuple[str, Mapping[str, Any] | Sequence[Any]]
Record: TypeAlias = Sequence[Statement]
"""Statements that are executed together or not at all."""
Warn: TypeAlias = Callable[[str, str], None]
"""Tells the user something, once for each topic: (topic, message)."""

MEMORY_BYTES = 200_000_000
"""How much memory records may take before further ones go to a ledger elsewhere."""
_VALUE_ERRORS = (
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.DataError,
    ValueError,
    OverflowError,
)
"""Raised for a value that SQLite cannot take: the record is at fault, not the file, and trying again would not help."""


def execute(connection: sqlite3.Connection, record: Record) -> Exception | None:
    """Execute a record's statements; none of them if one of its values is at fault, which is returned."""
    # A savepoint, since a rollback would lose the other records of a transaction.
    connection.execute("SAVEPOINT record")
    error = None
    try:
        for sql, values in record:
            connection.execute(sql, values)
    except _VALUE_ERRORS as value_error:
        # Undoes the statements but keeps the savepoint, which is released below either way.
        connection.execute("ROLLBACK TO record")
        error = value_error
    connection.execute("RELEASE record")
    return error


class Backlog:
    """Records that wait for one ledger's file, the oldest first; safe to use from any thread."""

    def __init__(self, ledger: Path, *, warn: Warn, memory_bytes: int | None = None) -> None:
        self._ledger = ledger
        self._warn = warn
        self._memory_bytes = MEMORY_BYTES if memory_bytes is None else memory_bytes
        self._lock = threading.Lock()
        self._memory: collections.deque[tuple[Record, int]] = collections.deque()
        self._used_bytes = 0
        self._spill: _Spill | None = None
        """Where records go that are newer than those in memory."""
        self._full_spill: _Spill | None = None
        """The spill that is to be merged; its records are older than those in memory."""

    def __len__(self) -> int:
        """How many records wait."""
        return len(self._memory) + sum(spill.count for spill in (self._spill, self._full_spill) if spill)

    def append(self, record: Record) -> None:
        """Add a record; if it can be kept nowhere it is lost, with a warning."""
        size = sum(
            sys.getsizeof(values) + sum(map(sys.getsizeof, values.values() if isinstance(values, Mapping) else values))
            for _, values in record
        )
        with self._lock:
            # Behind those that were spilled: a call's records must be written in their order.
            if self._spill is None and self._used_bytes + size <= self._memory_bytes:
                self._memory.append((record, size))
                self._used_bytes += size
                return
            try:
                self._append_to_spill(record)
            except (OSError, sqlite3.Error) as error:
                self._warn(
                    "lost",
                    f"records of calls are being LOST: {self._ledger} cannot be written, the memory for what waits is "
                    f"full, and nothing can be written elsewhere ({error}). Calls go on, unrecorded, until there is "
                    "room",
                )

    def peek(self, limit: int) -> list[Record]:
        """Return the oldest records in memory, at most `limit`; they stay until `discard`."""
        with self._lock:
            return [record for record, _ in itertools.islice(self._memory, limit)]

    def discard(self, count: int) -> None:
        """Forget the oldest records."""
        with self._lock:
            for _ in range(min(count, len(self._memory))):
                self._used_bytes -= self._memory.popleft()[1]

    def take_spill(self) -> Path | None:
        """Return the file of the spill if its turn has come: to be passed to `merge`, then forgotten."""
        with self._lock:
            if self._full_spill is None and self._spill is not None and not self._memory:
                self._full_spill, self._spill = self._spill, None
                self._full_spill.connection.close()
            return None if self._full_spill is None else self._full_spill.path

    def discard_spill(self) -> None:
        """Delete the spill that `take_spill` returned."""
        with self._lock:
            if self._full_spill is not None:
                shutil.rmtree(self._full_spill.path.parent, ignore_errors=True)
                self._full_spill = None

    def save(self) -> Path:
        """Write all records to a ledger elsewhere, since the process ends; return its file. Raises OSError."""
        with self._lock:
            path, connection = self._open_ledger()
            with contextlib.closing(connection):
                if self._full_spill is not None:
                    merge(connection, self._full_spill.path)
                connection.execute("BEGIN")
                for record, _ in self._memory:
                    execute(connection, record)
                connection.execute("COMMIT")
                if self._spill is not None:
                    merge(connection, self._spill.path)
            return path

    def _append_to_spill(self, record: Record) -> None:
        if self._spill is None:
            self._spill = _Spill(*self._open_ledger())
            self._warn(
                f"spilled to {self._spill.path}",
                f"{self._ledger} still cannot be written, and the memory for what waits is full: further records of "
                f"calls go to the ledger {self._spill.path}, and from there to their own once it can be written",
            )
        connection = self._spill.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            execute(connection, record)
            connection.execute("COMMIT")
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back already
                connection.execute("ROLLBACK")
            raise
        self._spill.count += 1

    def _open_ledger(self) -> tuple[Path, sqlite3.Connection]:
        """Make a ledger in the first folder that takes one. Raises OSError."""
        reasons = []
        for folder in spill_folders():
            try:
                folder.mkdir(parents=True, exist_ok=True)
                # A folder of its own, which only this user can look into: records hold prompts.
                path = Path(tempfile.mkdtemp(prefix="famnb-", dir=folder)) / "unwritten.sqlite"
                return path, schema.open_to_write(path)
            except (OSError, sqlite3.Error) as error:
                reasons.append(f"{folder}: {error}")
        raise OSError("; ".join(reasons))


@dataclasses.dataclass(slots=True)
class _Spill:
    """A ledger elsewhere, and how many records were written to it."""

    path: Path
    connection: sqlite3.Connection
    count: int = 0


def spill_folders() -> list[Path]:
    """Return the folders for records that find no room in memory, the first choice first."""
    return [Path(tempfile.gettempdir()), Path(platformdirs.user_state_dir("famnb"))]


def merge(connection: sqlite3.Connection, spill: Path) -> None:
    """Write all rows of a spill, which are newer, in place of a ledger's own. Raises sqlite3.Error."""
    connection.execute("ATTACH ? AS spill", (str(spill),))
    try:
        connection.execute("BEGIN IMMEDIATE")
        # The pieces of a call that is over are whole, in place of all that came before.
        over = "SELECT id FROM spill.calls WHERE status <> 'running'"
        connection.execute(f"DELETE FROM main.pieces WHERE call_id IN ({over})")  # noqa: S608 - own text
        for table in schema.TABLES:
            connection.execute(f"INSERT OR REPLACE INTO main.{table} SELECT * FROM spill.{table}")  # noqa: S608 - own names
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back already
            connection.execute("ROLLBACK")
        raise
    finally:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("DETACH spill")
