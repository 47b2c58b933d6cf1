"""The upkeep of a ledger file: what it holds, and how old calls leave it; its tables are `schema`'s business."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from famnb.errors import LedgerError
from famnb.formatting import format_size
from famnb.record import schema, serialize
from famnb.validation import check_integer

BATCH = 1000
"""Calls deleted in one transaction, so that others who write wait only shortly."""


class File(Protocol):
    """What is needed of a ledger here."""

    path: Path

    def settle(self) -> None:
        """Finish the rows of calls whose process died."""

    def reading(self) -> AbstractContextManager[sqlite3.Connection | None]:
        """A connection that only reads; None where there is no file yet."""


@dataclasses.dataclass(frozen=True, slots=True)
class Info:
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
        groups = {
            "status": self.by_status,
            "model": self.by_model,
            "endpoint": self.by_endpoint,
            "running": self.running,
        }
        for name, counts in groups.items():
            if counts:
                lines.append(f"{name:<9} " + ", ".join(f"{word} {count:,}" for word, count in counts.items()))
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True, slots=True)
class Pruned:
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
        what = "the recorded bytes of " if self.payloads_only else ""
        verb = "would delete" if self.dry_run else "deleted"
        freed = "" if self.dry_run else f"; the file is {format_size(self.freed_bytes)} smaller"
        return f"{verb} {what}{self.calls:,} calls, {self.left:,} calls stay{freed}"


def info(ledger: File) -> Info:
    """What a ledger holds."""
    ledger.settle()
    with ledger.reading() as connection:
        if connection is None:
            return Info(ledger.path, 0, 0, 0, 0, 0, None, None, {}, {}, {}, {})

        def one(sql: str) -> Any:
            return connection.execute(sql).fetchone()[0]

        def counted(word: str, *, only: str = "1") -> dict[str, int]:
            sql = f"SELECT {word}, COUNT(*) FROM calls WHERE {only} GROUP BY 1 ORDER BY 2 DESC, 1"  # noqa: S608 - own text
            return {str(name): count for name, count in connection.execute(sql)}

        return Info(
            path=ledger.path,
            version=schema.version(connection),
            size_bytes=_on_disk(ledger.path),
            payload_bytes=one("SELECT IFNULL(SUM(LENGTH(reads)), 0) FROM pieces"),
            request_bytes=one("SELECT IFNULL(SUM(LENGTH(CAST(body AS BLOB))), 0) FROM requests"),
            calls=one("SELECT COUNT(*) FROM calls"),
            first=_moment(one("SELECT MIN(started_us) FROM calls")),
            last=_moment(one("SELECT MAX(started_us) FROM calls")),
            by_status=counted("status"),
            by_model=counted("IFNULL(model, 'unnamed')"),
            by_endpoint=counted("endpoint"),
            running=counted("owner_host || ':' || owner_pid", only="status = 'running'"),
        )


def prune(
    ledger: File,
    *,
    older_than: timedelta | datetime | None,
    keep: int | None,
    payloads_only: bool,
    dry_run: bool,
) -> Pruned:
    """Delete calls that are over: those before a time, or beyond the newest, or both."""
    condition, values = _chosen(older_than, keep)
    if payloads_only:
        condition += " AND EXISTS (SELECT 1 FROM pieces WHERE call_id = calls.id)"
    ledger.settle()
    if not ledger.path.exists():
        return Pruned(0, 0, 0, payloads_only, dry_run)
    with _writing(ledger.path) as connection:
        before = _on_disk(ledger.path)
        chosen = f"SELECT id FROM calls WHERE {condition}"  # noqa: S608 - values are bound
        ids = [call_id for (call_id,) in connection.execute(chosen, values)]
        if not dry_run:
            for start in range(0, len(ids), BATCH):
                _delete(connection, ids[start : start + BATCH], payloads_only=payloads_only)
            _shrink(connection)
        left = connection.execute("SELECT COUNT(*) FROM calls").fetchone()[0]
        gone = len(ids) if dry_run and not payloads_only else 0
        return Pruned(len(ids), left - gone, max(before - _on_disk(ledger.path), 0), payloads_only, dry_run)


def _chosen(older_than: timedelta | datetime | None, keep: int | None) -> tuple[str, list[Any]]:
    """The calls to delete, as an SQL condition and its values."""
    if older_than is None and keep is None:
        raise ValueError("prune: say which calls may go: older_than= an age or a moment, keep= a number of calls")
    if keep is not None:
        keep = check_integer("keep", keep, minimum=0, expected="a number of calls of at least 0")
    conditions, values = ["status <> 'running'"], list[Any]()
    if older_than is not None:
        conditions.append("started_us < ?")
        values.append(serialize.microseconds(_before(older_than)))
    if keep is not None:
        conditions.append("id NOT IN (SELECT id FROM calls ORDER BY started_us DESC, id DESC LIMIT ?)")
        values.append(keep)
    return " AND ".join(conditions), values


def _before(older_than: timedelta | datetime) -> datetime:
    """The moment before which calls may go; raises ValueError for what is none."""
    match older_than:
        case timedelta():
            try:
                return datetime.now(UTC) - older_than
            except OverflowError:
                return datetime.min.replace(tzinfo=UTC)
        case datetime():
            return older_than if older_than.tzinfo else older_than.replace(tzinfo=UTC)
        case _:
            raise ValueError(f"older_than: expected a timedelta or a datetime, got {older_than!r}")


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of its own that may write; trouble with the file is a LedgerError."""
    try:
        with contextlib.closing(schema.open_to_write(path)) as connection:
            yield connection
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(f"the ledger {path} cannot be changed: {error}; free or unlock the file") from error


def _delete(connection: sqlite3.Connection, ids: list[str], *, payloads_only: bool) -> None:
    """Delete these calls and what only they need; one that is recorded anew meanwhile is not spared."""
    marks = ",".join("?" * len(ids))
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"DELETE FROM pieces WHERE call_id IN ({marks})", ids)  # noqa: S608 - marks
    if not payloads_only:
        keys = f"SELECT DISTINCT request_key FROM calls WHERE id IN ({marks})"  # noqa: S608 - marks
        found = [key for (key,) in connection.execute(keys, ids) if key is not None]
        connection.execute(f"DELETE FROM calls WHERE id IN ({marks})", ids)  # noqa: S608 - marks
        connection.execute(f"DELETE FROM scores WHERE call_id IN ({marks})", ids)  # noqa: S608 - marks
        unused = "DELETE FROM requests WHERE key = ? AND NOT EXISTS (SELECT 1 FROM calls WHERE request_key = ?)"
        connection.executemany(unused, [(key, key) for key in found])
    connection.execute("COMMIT")


def _shrink(connection: sqlite3.Connection) -> None:
    """Give free space back; a file that others use, or a full disk, keeps its size until the next time."""
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _on_disk(path: Path) -> int:
    """Bytes of the file and of its write-ahead log."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _moment(us: int | None) -> datetime | None:
    return None if us is None else serialize.EPOCH + timedelta(microseconds=us)
