"""What a ledger file holds and how large it is, copies of calls to another one, and the deletion of old calls."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from famnb.errors import InvalidRequest, LedgerError
from famnb.formatting import format_size
from famnb.record import schema, serialize, sql
from famnb.record.filters import parse_moment
from famnb.validation import check_integer


@dataclasses.dataclass(frozen=True, slots=True)
class LedgerInfo:
    """What a ledger holds."""

    path: Path
    version: int
    """The version of its tables; 0 where there is no file yet."""
    size_bytes: int
    """On disk, the part not yet checkpointed included."""
    payload_bytes: int
    """Of that, what came from the sockets, compressed."""
    request_bytes: int
    """Of that, request bodies."""
    calls: int
    first: datetime | None
    """When the first call started, UTC."""
    last: datetime | None
    """When the last call started, UTC."""
    by_status: Mapping[str, int]
    by_model: Mapping[str, int]
    by_endpoint: Mapping[str, int]
    running: Mapping[str, int]
    """Calls that run, by their process: `host:pid`."""

    def __str__(self) -> str:
        lines = [
            f"{self.path} (version {self.version})",
            f"size      {format_size(self.size_bytes)}; streams {format_size(self.payload_bytes)}, "
            f"requests {format_size(self.request_bytes)}",
            f"calls     {self.calls:,}",
        ]
        if self.first and self.last:
            lines.append(f"from      {self.first:%Y-%m-%d %H:%M:%S} to {self.last:%Y-%m-%d %H:%M:%S} UTC")
        for name in ("by_status", "by_model", "by_endpoint", "running"):
            if counts := getattr(self, name):
                title = name.removeprefix("by_")
                lines.append(f"{title:<9} " + ", ".join(f"{value} {count:,}" for value, count in counts.items()))
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True, slots=True)
class PruneResult:
    """What was deleted, or with `dry_run` would be."""

    calls: int
    """Calls deleted; with `payloads_only`, calls whose bytes were deleted."""
    left: int
    """Calls that stay."""
    freed_bytes: int
    """By how much the file shrank."""
    payloads_only: bool
    dry_run: bool

    def __str__(self) -> str:
        part = "the recorded bytes of " if self.payloads_only else ""
        verb = "would delete" if self.dry_run else "deleted"
        freed = "" if self.dry_run else f"; the file is {format_size(self.freed_bytes)} smaller"
        return f"{verb} {part}{self.calls:,} calls, {self.left:,} calls stay{freed}"


def info(path: Path, connection: sqlite3.Connection | None) -> LedgerInfo:
    """Return what a ledger holds, read by a connection to it; None if there is no file yet."""
    if connection is None:
        return LedgerInfo(path, 0, 0, 0, 0, 0, None, None, {}, {}, {}, {})

    def value(query: str) -> Any:
        return connection.execute(query).fetchone()[0]

    def count_by(expression: str, *, where: str = "1") -> dict[str, int]:
        query = f"SELECT {expression}, COUNT(*) FROM calls WHERE {where} GROUP BY 1 ORDER BY 2 DESC, 1"  # noqa: S608 - own text
        return {str(name): count for name, count in connection.execute(query)}

    first, last = connection.execute("SELECT MIN(started_us), MAX(started_us) FROM calls").fetchone()
    return LedgerInfo(
        path=path,
        version=schema.version(connection),
        size_bytes=_on_disk(path),
        payload_bytes=value("SELECT IFNULL(SUM(LENGTH(reads)), 0) FROM pieces"),
        request_bytes=value("SELECT IFNULL(SUM(LENGTH(CAST(body AS BLOB))), 0) FROM requests"),
        calls=value("SELECT COUNT(*) FROM calls"),
        first=None if first is None else serialize.moment(first),
        last=None if last is None else serialize.moment(last),
        by_status=count_by("status"),
        by_model=count_by("IFNULL(model, 'unnamed')"),
        by_endpoint=count_by("endpoint"),
        running=count_by("owner_host || ':' || owner_pid", where="status = 'running'"),
    )


def prune(
    path: Path, *, older_than: timedelta | datetime | None, keep: int | None, payloads_only: bool, dry_run: bool
) -> PruneResult:
    """Delete calls that are over: those before a time, or beyond the newest, or only those that are both."""
    if older_than is None and keep is None:
        raise InvalidRequest("prune: expected older_than= (an age or a moment), keep= (a number of calls), or both")
    condition, values = "status <> 'running'", list[Any]()
    if older_than is not None:
        condition += " AND started_us < ?"
        values.append(serialize.microseconds(parse_moment("older_than", older_than)))
    if keep is not None:
        condition += " AND id NOT IN (SELECT id FROM calls ORDER BY started_us DESC, id DESC LIMIT ?)"
        values.append(check_integer("keep", keep, minimum=0, expected="a number of calls of at least 0"))
    if payloads_only:
        condition += " AND EXISTS (SELECT 1 FROM pieces WHERE call_id = calls.id)"
    if not path.exists():
        return PruneResult(0, 0, 0, payloads_only, dry_run)
    try:
        with contextlib.closing(schema.open_to_write(path)) as connection:
            before = _on_disk(path)
            query = f"SELECT id FROM calls WHERE {condition}"  # noqa: S608 - values are bound
            ids = [call_id for (call_id,) in connection.execute(query, values)]
            if not dry_run:
                for chunk in sql.iter_chunks(ids):
                    _delete(connection, chunk, payloads_only=payloads_only)
                # A file that others use, or on a full disk, keeps its size until the next time.
                with contextlib.suppress(sqlite3.OperationalError):
                    # VACUUM writes the smaller file into the log; only the checkpoint makes the file itself smaller.
                    connection.execute("VACUUM")
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            count = connection.execute("SELECT COUNT(*) FROM calls").fetchone()[0]
            freed = max(before - _on_disk(path), 0)
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(f"the ledger {path} cannot be changed: {error}; free or unlock the file") from error
    would_go = len(ids) if dry_run and not payloads_only else 0
    return PruneResult(len(ids), count - would_go, freed, payloads_only, dry_run)


def copy_calls(source: Path, target: Path, condition: str, values: Sequence[Any]) -> int:
    """Add to a ledger the calls of another that are over, and that an SQL condition selects; return how many were new.

    With their requests, bytes and scores; votes, which are between calls, are added whatever the condition. A call that
    is there stays as it is.
    """
    calls = "SELECT *, status AS standing FROM source.calls WHERE status <> 'running'"
    try:
        with contextlib.closing(schema.open_to_write(target)) as connection:
            connection.execute("ATTACH ? AS source", (str(source),))
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                f"CREATE TEMP TABLE new AS SELECT id, request_key FROM ({calls}) "  # noqa: S608 - values are bound
                f"WHERE {condition} AND id NOT IN (SELECT id FROM main.calls)",
                values,
            )
            for table, selection in {
                "calls": "id IN (SELECT id FROM new)",
                "pieces": "call_id IN (SELECT id FROM new)",
                "scores": "call_id IN (SELECT id FROM new)",
                "requests": "key IN (SELECT request_key FROM new)",
                "votes": "TRUE",
            }.items():
                rows = f"SELECT * FROM source.{table} WHERE {selection}"  # noqa: S608 - own names
                connection.execute(f"INSERT OR IGNORE INTO main.{table} {rows}")
            connection.execute("COMMIT")
            (count,) = connection.execute("SELECT COUNT(*) FROM new").fetchone()
            return int(count)
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(f"the calls of {source} cannot be added to the ledger {target}: {error}") from error


def _delete(connection: sqlite3.Connection, ids: list[str], *, payloads_only: bool) -> None:
    """Delete these calls, their pieces and scores, and requests that no other call has, in one transaction."""
    marks = sql.placeholders(ids)
    # Immediate: a transaction that begins by reading could fail at its first write, without any waiting.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"DELETE FROM pieces WHERE call_id IN {marks}", ids)  # noqa: S608 - placeholders
    if not payloads_only:
        keys = f"SELECT DISTINCT request_key FROM calls WHERE id IN {marks}"  # noqa: S608 - placeholders
        # Before the calls are deleted, and the requests after them: a request may go only if no call has it any more.
        request_keys = [key for (key,) in connection.execute(keys, ids) if key is not None]
        connection.execute(f"DELETE FROM calls WHERE id IN {marks}", ids)  # noqa: S608 - placeholders
        connection.execute(f"DELETE FROM scores WHERE call_id IN {marks}", ids)  # noqa: S608 - placeholders
        unused = "DELETE FROM requests WHERE key = ? AND NOT EXISTS (SELECT 1 FROM calls WHERE request_key = ?)"
        connection.executemany(unused, [(key, key) for key in request_keys])
    connection.execute("COMMIT")


def _on_disk(path: Path) -> int:
    """Bytes of the file and of its write-ahead log."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
