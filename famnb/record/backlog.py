"""Backlog: records that wait until a ledger's file can be written; in memory, then in ledgers elsewhere.

append ── memory ── written in batches
          └ past MEMORY_BYTES: all of it to a spill, a temporary ledger ── merged before what is in memory
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from famnb.record import schema

Statement: TypeAlias = tuple[str, Sequence[Any]]
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
        self._spills: list[tuple[Path, int]] = []
        """Ledgers elsewhere with the oldest records, and how many records each has."""
        self._memory: collections.deque[tuple[Record, int]] = collections.deque()
        self._used_bytes = 0

    def __len__(self) -> int:
        """How many records wait."""
        return len(self._memory) + sum(count for _, count in self._spills)

    def append(self, record: Record) -> None:
        """Add a record; if it can be kept nowhere it is lost, with a warning."""
        size = sum(sys.getsizeof(values) + sum(map(sys.getsizeof, values)) for _, values in record)
        with self._lock:
            if self._memory and self._used_bytes + size > self._memory_bytes:
                try:
                    spill = self._spill()
                except (OSError, sqlite3.Error) as error:
                    self._warn(
                        "lost",
                        f"records of calls are being LOST: {self._ledger} cannot be written, the memory for what waits "
                        f"is full, and nothing can be written elsewhere ({error}). Calls go on, unrecorded, until "
                        "there is room",
                    )
                    return
                self._warn(
                    "spilled",
                    f"{self._ledger} still cannot be written, and the memory for what waits is full: records of calls "
                    f"go to ledgers elsewhere, such as {spill}, and from there to their own once it can be written",
                )
            self._memory.append((record, size))
            self._used_bytes += size

    def peek(self, limit: int) -> list[Record]:
        """Return the oldest records in memory, at most `limit`; they stay until `discard`."""
        with self._lock:
            return [record for record, _ in itertools.islice(self._memory, limit)]

    def discard(self, records: Iterable[Record]) -> None:
        """Forget records that `peek` returned, as far as they were not spilled meanwhile."""
        with self._lock:
            for record in records:
                if self._memory and self._memory[0][0] is record:
                    self._used_bytes -= self._memory.popleft()[1]

    @property
    def spills(self) -> list[Path]:
        """The files of the spills, the oldest first: each to be passed to `merge`, then to `discard_spill`."""
        return [path for path, _ in self._spills]

    def discard_spill(self) -> None:
        """Delete the oldest spill."""
        with self._lock:
            path, _ = self._spills.pop(0)
            shutil.rmtree(path.parent, ignore_errors=True)

    def save(self) -> list[Path]:
        """Spill all records, since the process ends; return the spills. Raises OSError or sqlite3.Error."""
        with self._lock:
            if self._memory:
                self._spill()
            return self.spills

    def _spill(self) -> Path:
        """Move what is in memory to a ledger of its own among the temporary files; return its file."""
        # In a folder that only this user can look into: records hold prompts.
        path = Path(tempfile.mkdtemp(prefix="famnb-")) / "unwritten.sqlite"
        try:
            with contextlib.closing(schema.open_to_write(path)) as connection:
                connection.execute("BEGIN")
                for record, _ in self._memory:
                    execute(connection, record)
                connection.execute("COMMIT")
        except BaseException:
            # The next record is another attempt, and each would leave as much behind.
            shutil.rmtree(path.parent, ignore_errors=True)
            raise
        self._spills.append((path, len(self._memory)))
        self._memory.clear()
        self._used_bytes = 0
        return path


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
