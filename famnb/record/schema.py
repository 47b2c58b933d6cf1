"""The ledger's tables: how they came to be as they are, step by step, and the connections to them.

calls     one row a call: what was asked in short, how it went, every metric
requests  the bodies, each once however often it was sent
pieces    what came from the socket and when, compressed; one piece a call once it is over
scores    what a scorer made of a call
votes     which of two planned cells somebody found better
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from famnb.errors import LedgerError

LOCK_S = 5.0
"""How long to wait for another process to finish its transaction."""

Step = Callable[[sqlite3.Connection], None]


def _first(connection: sqlite3.Connection) -> None:
    """Calls, requests and pieces."""
    connection.execute("""
        CREATE TABLE calls (
            id TEXT PRIMARY KEY, started_us INTEGER NOT NULL, status TEXT NOT NULL,
            owner_pid INTEGER, owner_born REAL, owner_host TEXT,
            endpoint TEXT NOT NULL, model TEXT, url TEXT, request_key TEXT, prompt TEXT, input_chars INTEGER,
            experiment TEXT, tag TEXT, labels TEXT,
            attempts INTEGER, http_status INTEGER, request_id TEXT, service TEXT, response_headers TEXT,
            streamed INTEGER, headers_ns INTEGER, end_ns INTEGER,
            reply_id TEXT, finish_reason TEXT, stop_reason TEXT, complete INTEGER,
            text_chars INTEGER, thinking_chars INTEGER, output_chars INTEGER, warnings TEXT,
            error TEXT, error_message TEXT, error_details TEXT,
            ttfb_s REAL, ttft_s REAL, ttfa_s REAL, think_s REAL, thinking_latency_ms INTEGER, e2e_s REAL,
            icl_p50_s REAL, icl_p95_s REAL, icl_max_s REAL, tpot_s REAL, output_tps REAL,
            input_tokens INTEGER, input_tokens_source TEXT,
            output_tokens INTEGER, output_tokens_source TEXT,
            reasoning_tokens INTEGER, reasoning_tokens_source TEXT,
            cached_tokens INTEGER, cached_tokens_source TEXT,
            cache_write_tokens INTEGER, cache_write_tokens_source TEXT,
            total_tokens INTEGER, total_tokens_source TEXT,
            cost_usd TEXT, cost_low_usd TEXT, cost_high_usd TEXT
        )""")
    connection.execute("CREATE INDEX calls_by_time ON calls (started_us)")
    connection.execute("CREATE INDEX calls_by_request ON calls (request_key)")
    connection.execute("CREATE INDEX calls_by_model ON calls (model, started_us)")
    connection.execute("CREATE INDEX calls_open ON calls (id) WHERE status = 'running'")
    connection.execute("CREATE TABLE requests (key TEXT PRIMARY KEY, body TEXT NOT NULL)")
    connection.execute("CREATE TABLE pieces (call_id TEXT NOT NULL, seq INTEGER NOT NULL, reads BLOB NOT NULL)")
    connection.execute("CREATE UNIQUE INDEX pieces_in_order ON pieces (call_id, seq)")


def _hidden_cap(connection: sqlite3.Connection) -> None:
    """How much reasoning a reply may hide."""
    connection.execute("ALTER TABLE calls ADD COLUMN hidden_cap INTEGER")


def _planned(connection: sqlite3.Connection) -> None:
    """Which variant and which planned cell a call belongs to, from its labels."""
    connection.execute("ALTER TABLE calls ADD COLUMN variant TEXT")
    connection.execute("ALTER TABLE calls ADD COLUMN cell TEXT")
    connection.execute("""
        UPDATE calls SET variant = json_extract(labels, '$.variant'), cell = json_extract(labels, '$.cell')
        WHERE json_valid(labels)""")
    connection.execute("CREATE INDEX calls_by_cell ON calls (experiment, cell)")


def _marks(connection: sqlite3.Connection) -> None:
    """Scores of calls, and votes between planned cells."""
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


MIGRATIONS: tuple[Step, ...] = (_first, _hidden_cap, _planned, _marks)
"""Step n takes a file of version n to version n + 1; a step that was ever released is never changed."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a file up to date, one step after the other, all in one transaction."""
    if version(connection) >= len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in MIGRATIONS[version(connection) :]:
            step(connection)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def version(connection: sqlite3.Connection) -> int:
    """The version of the file's tables; 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check(connection: sqlite3.Connection) -> None:
    """Refuse a file that a newer famnb wrote, and a database of another program, which is not ours to change."""
    connection.execute("BEGIN")  # one moment of the file: somebody may be making its tables just now
    try:
        found = version(connection)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    file = connection.execute("PRAGMA database_list").fetchone()[2]
    if found > len(MIGRATIONS):
        raise LedgerError(
            f"the ledger {file} has version {found}, this famnb knows up to {len(MIGRATIONS)}: "
            "update famnb, or choose another file with FAMNB_LEDGER or ledger="
        )
    if tables and (found == 0 or not tables >= {"calls", "requests", "pieces"}):
        raise LedgerError(
            f"{file} is a database, but no ledger, and left as it is: choose another file with FAMNB_LEDGER or ledger="
        )


def open_to_write(path: Path, *, patience_s: float = LOCK_S) -> sqlite3.Connection:
    """A connection that may write, the tables up to date; a new file is for its owner's eyes alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, timeout=patience_s, isolation_level=None, check_same_thread=False)
    try:
        _write_ahead(connection, patience_s)
        connection.execute("PRAGMA synchronous = NORMAL")
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection, patience_s: float) -> None:
    """Switch to WAL; SQLite does not wait for others who switch the same new file just now, so this does."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            check(connection)  # first of all, for this changes the file
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def open_to_read(path: Path) -> sqlite3.Connection:
    """A connection that only reads; also for a file in a folder that may not be written."""
    address = path.absolute().as_uri()
    last: sqlite3.Error | None = None
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        connection = None
        try:
            connection = sqlite3.connect(f"{address}?{mode}", uri=True, timeout=LOCK_S, isolation_level=None)
            check(connection)
        except (sqlite3.Error, LedgerError) as error:
            if connection is not None:
                connection.close()
            if isinstance(error, LedgerError):
                raise
            last = error
        else:
            connection.row_factory = sqlite3.Row
            return connection
    raise unreadable(path, last) from last


def unreadable(path: Path, error: Exception | None) -> LedgerError:
    """What to say of a file that cannot be read."""
    return LedgerError(
        f"the ledger {path} cannot be read ({error}): restore it from a copy, move it away to begin a new one, "
        "or choose another file with FAMNB_LEDGER or ledger="
    )
