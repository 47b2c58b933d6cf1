"""A lock that lets one process at a time run an experiment: two could pay for a cell twice and overspend a budget."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from pathlib import Path

from famnb.errors import InvalidRequest
from famnb.record import schema


class RunLock:
    """A lock file beside the ledger for one experiment; the operating system frees it when its process ends.

    It is SQLite's own file lock, which is alike on every platform and between threads too, and is the lock that the
    ledger beside it needs anyway. filelock (4.2) was weighed: it would leave its file behind after every run, and where
    the file system has no `flock` it falls back to a marker file, which a killed process does not remove.
    """

    def __init__(self, ledger: Path, name: str) -> None:
        """Take the lock. Raises InvalidRequest if another run has it, LedgerError if the file cannot be made."""
        # A digest, because a name may hold what no file name may.
        digest = hashlib.blake2b(name.encode(), digest_size=6).hexdigest()
        self._path = ledger.with_name(f"{ledger.name}-run-{digest}")
        while True:
            # No wait: a run that is under way may take hours. Nothing is ever written to this database.
            self._connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                self._connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                self._connection.close()
                if "locked" not in str(error):
                    raise schema.unreadable(self._path, error) from error
                raise InvalidRequest(
                    f"{name} is running already, in this or another process, on {ledger}: wait for it, or stop it there"
                ) from error
            if self._path.exists():
                return
            # Its last holder deleted the file after we opened it: what we locked is no longer what others would open.
            self._connection.close()

    def release(self) -> None:
        """Let others run the experiment."""
        # Before the lock is freed, so that nobody locks a file that is about to go. Windows cannot delete an open file;
        # there it stays, empty.
        with contextlib.suppress(OSError):
            self._path.unlink()
        self._connection.close()
