"""One run of an experiment at a time on a machine, so that two can neither pay for a cell twice nor share a budget."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from pathlib import Path

from famnb.errors import InvalidRequest
from famnb.record import schema


class RunLock:
    """A lock beside the ledger for one experiment; it goes with its process, however that ends."""

    def __init__(self, ledger: Path, name: str) -> None:
        """Take it; InvalidRequest where another run has it, LedgerError where there can be none."""
        mark = hashlib.blake2b(name.encode(), digest_size=6).hexdigest()
        self._path = ledger.with_name(f"{ledger.name}-run-{mark}")
        while True:
            # SQLite's lock, since it works alike on every platform and between threads; nothing is ever written.
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
            self._connection.close()  # its last holder deleted it between our opening and locking it

    def release(self) -> None:
        """Let others run it."""
        with contextlib.suppress(OSError):  # where a file that is open cannot be deleted it stays, empty
            self._path.unlink()
        self._connection.close()
