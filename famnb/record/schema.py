"""The ledger's tables, the migrations that made them, and connections to a file.

calls      one row a call: the request in short, the outcome, every metric
requests   request bodies, each once however often it was sent
pieces     what came from the socket and when, compressed; one piece a call once it is over
scores     scores of calls, one row a call and scorer
votes      votes between two planned cells, one row a voter and pair
prompts    saved prompts, one row a name and version
looks      looks at the growing data of an experiment, one row an amount of data
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from famnb.errors import LedgerError
from famnb.events import COUNTS

# A transaction of the ledger takes milliseconds; a slow disk, or VACUUM, takes longer.
LOCK_S = 5.0
"""How long to wait for another process to finish its transaction, in seconds."""

Migration = Callable[[sqlite3.Connection], None]


FILE_HEAD = b"SQLite format 3\0"
"""How every SQLite file begins."""
APPLICATION_ID = 0x46414D4E
"""The `application_id` in SQLite's file header: FAMN."""
TABLES = ("calls", "requests", "pieces", "scores", "votes", "prompts", "looks")
"""What rows are written to."""


# What queries select and group by first, then figures, and long texts last: SQLite reads a row from its beginning.
CALL_COLUMNS: Mapping[str, str] = {
    "id": "TEXT PRIMARY KEY",
    "started_us": "INTEGER NOT NULL",
    "status": "TEXT NOT NULL",
    "profile": "TEXT DEFAULT 'fam'",
    **dict.fromkeys(("endpoint", "model", "service", "experiment", "variant", "prompt_id", "tag"), "TEXT"),
    **dict.fromkeys(("repeat", "warmup", "streamed", "complete", "attempts", "http_status"), "INTEGER"),
    **dict.fromkeys(("error", "finish_reason", "stop_reason", "clock"), "TEXT"),
    **dict.fromkeys(("ttfb_s", "ttft_s", "ttfa_s", "think_s"), "REAL"),
    "thinking_latency_ms": "INTEGER",
    **dict.fromkeys(("e2e_s", "icl_p50_s", "icl_p95_s", "icl_max_s"), "REAL"),
    "icl_n": "INTEGER",
    **dict.fromkeys(("tpot_s", "output_tps", "ttft_low_s", "e2e_low_s"), "REAL"),
    **dict.fromkeys(("exact_share", "late_p50_ms", "late_max_ms", "connect_s", "wait_s"), "REAL"),
    **dict.fromkeys((*COUNTS, "input_chars", "text_chars", "thinking_chars", "output_chars", "hidden_cap"), "INTEGER"),
    **dict.fromkeys((f"{count}_source" for count in COUNTS), "TEXT"),
    **dict.fromkeys(("cost_usd", "cost_low_usd", "cost_high_usd", "reported_cost_usd"), "REAL"),
    **dict.fromkeys(("temperature", "top_p"), "REAL"),
    **dict.fromkeys(("max_tokens", "thinking"), "INTEGER"),
    **dict.fromkeys(("effort", "verbosity", "reply_model", "billing"), "TEXT"),
    **dict.fromkeys(("headers_ns", "end_ns", "owner_pid"), "INTEGER"),
    "owner_born": "REAL",
    **dict.fromkeys(("owner_host", "cell", "request_key", "request_id", "reply_id", "prompt_hash", "url"), "TEXT"),
    **dict.fromkeys(("prompt", "prompt_tags", "error_message", "error_details", "warnings"), "TEXT"),
    **dict.fromkeys(("note", "labels", "response_headers"), "TEXT"),
}
"""The columns of calls, with the SQL types."""


def _create_tables(connection: sqlite3.Connection) -> None:
    columns = ", ".join(f"{name} {sql_type}" for name, sql_type in CALL_COLUMNS.items())
    connection.execute(f"CREATE TABLE calls ({columns})")
    connection.execute("CREATE INDEX calls_by_time ON calls (started_us)")
    connection.execute("CREATE INDEX calls_by_request ON calls (request_key)")
    connection.execute("CREATE INDEX calls_by_model ON calls (model, started_us)")
    connection.execute("CREATE INDEX calls_by_cell ON calls (experiment, cell)")
    connection.execute("CREATE INDEX calls_open ON calls (id) WHERE status = 'running'")
    connection.execute("CREATE TABLE requests (key TEXT PRIMARY KEY, body TEXT NOT NULL)")
    connection.execute("CREATE TABLE pieces (call_id TEXT NOT NULL, seq INTEGER NOT NULL, reads BLOB NOT NULL)")
    connection.execute("CREATE UNIQUE INDEX pieces_in_order ON pieces (call_id, seq)")
    connection.execute("""
        CREATE TABLE scores (
            call_id TEXT NOT NULL, scorer TEXT NOT NULL, value REAL, detail TEXT, judge_call_id TEXT,
            at_us INTEGER NOT NULL, PRIMARY KEY (call_id, scorer)
        ) WITHOUT ROWID""")
    connection.execute("""
        CREATE TABLE votes (
            experiment TEXT NOT NULL, voter TEXT NOT NULL, left_cell TEXT NOT NULL, right_cell TEXT NOT NULL,
            winner TEXT NOT NULL, detail TEXT, judge_call_id TEXT, seed INTEGER, at_us INTEGER NOT NULL,
            PRIMARY KEY (experiment, voter, left_cell, right_cell)
        ) WITHOUT ROWID""")
    connection.execute("""
        CREATE TABLE prompts (
            name TEXT NOT NULL, version INTEGER NOT NULL, text TEXT NOT NULL, note TEXT NOT NULL,
            at_us INTEGER NOT NULL, PRIMARY KEY (name, version)
        ) WITHOUT ROWID""")
    connection.execute("""
        CREATE TABLE looks (
            experiment TEXT NOT NULL, size INTEGER NOT NULL, planned INTEGER NOT NULL, at_us INTEGER NOT NULL,
            PRIMARY KEY (experiment, size)
        ) WITHOUT ROWID""")


MIGRATIONS: tuple[Migration, ...] = (_create_tables,)
"""The n-th takes a file of version n to version n + 1; a new file has today's tables from the first."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a file up to date in one transaction, so that no version in between is ever seen or left behind."""
    if version(connection) >= len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # The version is read again: another process may have migrated while this one waited for the lock.
        for migration in MIGRATIONS[version(connection) :]:
            migration(connection)
        # In the transaction too, so that tables and version never disagree; a PRAGMA takes no bound values.
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def version(connection: sqlite3.Connection) -> int:
    """Return the version of the file's tables; 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check(connection: sqlite3.Connection) -> None:
    """Raise LedgerError for a file that a newer famnb wrote, and for a database that is not a ledger since 0.1."""
    connection.execute("BEGIN")  # one moment of the file: somebody may be making its tables just now
    try:
        file_version = version(connection)
        application_id = connection.execute("PRAGMA application_id").fetchone()[0]
        is_new = connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    file = connection.execute("PRAGMA database_list").fetchone()[2]
    if application_id != APPLICATION_ID and not is_new:
        raise LedgerError(
            f"{file} is a database, but no ledger of famnb 0.1 or later, and left as it is: move it away, or choose "
            "another file with FAMNB_LEDGER or ledger="
        )
    if file_version > len(MIGRATIONS):
        raise LedgerError(
            f"the ledger {file} has version {file_version}, this famnb knows up to {len(MIGRATIONS)}: "
            "update famnb, or choose another file with FAMNB_LEDGER or ledger="
        )


def open_to_write(path: Path, *, lock_timeout_s: float = LOCK_S) -> sqlite3.Connection:
    """Return a connection that may write, to tables of today's version; a new file can be read by its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # SQLite would make it readable by all, and it holds prompts.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    # No isolation level: else the sqlite3 module begins transactions itself, and not immediate ones. The writer makes
    # its connection on one thread and may close it on another at exit, one at a time, so the thread is not checked.
    connection = sqlite3.connect(path, timeout=lock_timeout_s, isolation_level=None, check_same_thread=False)
    deadline = time.monotonic() + lock_timeout_s
    with contextlib.ExitStack() as stack:
        stack.callback(connection.close)
        while True:
            try:
                check(connection)  # first, since the switch changes the file, which may be another program's
                # With a write-ahead log nobody who reads waits for who writes. SQLite's own timeout does not cover
                # another process that switches the same new file just now, and nothing tells when that is done.
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        # With WAL, a power cut may lose the last transactions but never damages the file; FULL would wait for the disk
        # in every transaction, which is what the ledger must not do to a call.
        connection.execute("PRAGMA synchronous = NORMAL")
        migrate(connection)
        stack.pop_all()
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection that only reads tables of today's version, of a read-only folder too. Raises LedgerError."""
    last_error: sqlite3.Error | None = None
    # A reader of a WAL file makes its `-shm` file, so a folder that may not be written needs `immutable`; that one is
    # second, since it does not see what is in the log and has not been moved to the file.
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        with contextlib.ExitStack() as stack:
            try:
                address = f"{path.absolute().as_uri()}?{mode}"
                connection = sqlite3.connect(address, uri=True, timeout=LOCK_S, isolation_level=None)
                stack.callback(connection.close)
                check(connection)
                is_current = version(connection) == len(MIGRATIONS)
            except sqlite3.Error as error:
                last_error = error
                continue
            if is_current:
                connection.row_factory = sqlite3.Row
                stack.pop_all()
                return connection
        try:
            open_to_write(path).close()
        except (sqlite3.Error, OSError) as error:
            text = f"the ledger {path} has an old version and cannot be changed ({error}): copy it, and open the copy"
            raise LedgerError(text) from error
        return open_to_read(path)
    raise unreadable(path, last_error) from last_error


def unreadable(path: Path, error: Exception | None) -> LedgerError:
    """Return the error for a file that cannot be read."""
    return LedgerError(
        f"the ledger {path} cannot be read ({error}): restore it from a copy, move it away to begin a new one, "
        "or choose another file with FAMNB_LEDGER or ledger="
    )
