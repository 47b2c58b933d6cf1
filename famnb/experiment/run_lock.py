"""A lock that lets one process at a time run an experiment: two could pay for a cell twice and overspend a budget."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from famnb.errors import InvalidRequest
from famnb.record import schema


@contextlib.contextmanager
def lock_run(ledger: Path, name: str) -> Iterator[None]:
    """Hold the lock of one experiment, a file beside the ledger; the operating system frees it when its process ends.

    It is SQLite's own file lock, which is alike on every platform and between threads too, and is the lock that the
    ledger beside it needs anyway. filelock (4.2) was weighed: it would leave its file behind after every run, and where
    the file system has no `flock` it falls back to a marker file, which a killed process does not remove. Raises
    InvalidRequest if another run has the lock, LedgerError if the file cannot be made.
    """
    # A digest, because a name may hold what no file name may.
    digest = hashlib.blake2b(name.encode(), digest_size=6).hexdigest()
    path = ledger.with_name(f"{ledger.name}-run-{digest}")
    while True:
        # No wait: a run that is under way may take hours. Nothing is ever written to this database.
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            connection.close()
            if "locked" not in str(error):
                raise schema.unreadable(path, error) from error
            raise InvalidRequest(
                f"{name} is running already, in this or another process, on {ledger}: wait for it, or stop it there"
            ) from error
        if path.exists():
            break
        # Its last holder deleted the file after we opened it: what we locked is no longer what others would open.
        connection.close()
    with contextlib.closing(connection):
        try:
            yield
        finally:
            # Before the lock is freed, so that nobody locks a file that is about to go. Windows cannot delete an open
            # file; there it stays, empty.
            with contextlib.suppress(OSError):
                path.unlink()
