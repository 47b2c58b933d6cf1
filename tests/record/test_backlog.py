"""Records that wait for a ledger: in order, counted, in memory, then in a ledger elsewhere."""

import sqlite3
import tempfile
from pathlib import Path

import pytest

from famnb.record import schema
from famnb.record.backlog import Backlog, Record, execute, merge

PATH = Path("/somewhere/calls.sqlite")


def record(number: int, *, status: str = "completed", piece: int = 0) -> Record:
    """A call of a number, with one piece, as large as a kilobyte."""
    call = (
        "INSERT OR REPLACE INTO calls (id, started_us, status, profile, endpoint, prompt) VALUES (?, 1, ?, '', '', ?)"
    )
    reads = "INSERT OR REPLACE INTO pieces VALUES (?, ?, ?)"
    return [(call, [str(number), status, "x" * 1000]), (reads, [str(number), piece, b""])]


def write_all(waiting: Backlog, connection: sqlite3.Connection) -> None:
    """Write what waits as the ledger's writer does."""
    for spill in waiting.spills:
        merge(connection, spill)
        waiting.discard_spill()
    while records := waiting.peek(3):
        for written in records:
            execute(connection, written)
        waiting.discard(records)


def read_calls(connection: sqlite3.Connection) -> dict[int, str]:
    return {int(id_): status for id_, status in connection.execute("SELECT id, status FROM calls")}


@pytest.fixture
def warnings() -> dict[str, str]:
    return {}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def connection(tmp_path: Path) -> sqlite3.Connection:
    """The ledger, once it can be written."""
    return schema.open_to_write(tmp_path / "calls.sqlite")


def test_records_keep_their_order_in_memory_and_beyond(folder, warnings, connection):
    waiting = Backlog(PATH, warn=warnings.setdefault, memory_bytes=10_000)
    for number in range(20):
        waiting.append(record(number, status="running"))
    for number in range(20):
        waiting.append(record(number))
    first, *others = waiting.spills
    assert (len(waiting), first.stat().st_mode & 0o077, first.parent.stat().st_mode & 0o077) == (40, 0, 0)
    assert others
    assert [str(first) in message for message in warnings.values()] == [True]
    write_all(waiting, connection)
    assert (len(waiting), read_calls(connection)) == (0, dict.fromkeys(range(20), "completed"))
    assert list(folder.iterdir()) == []


def test_records_that_are_spilled_while_they_are_written_do_not_take_newer_ones_with_them(folder, warnings, connection):
    waiting = Backlog(PATH, warn=warnings.setdefault, memory_bytes=0)
    waiting.append(record(1, status="running"))
    records = waiting.peek(3)
    waiting.append(record(1))
    waiting.discard(records)
    write_all(waiting, connection)
    assert read_calls(connection) == {1: "completed"}


def test_the_pieces_of_a_call_that_ended_in_a_spill_replace_those_before(folder, warnings, connection):
    for piece in range(3):
        execute(connection, record(1, status="running", piece=piece))
    waiting = Backlog(PATH, warn=warnings.setdefault)
    waiting.append(record(1))
    waiting.save()
    write_all(waiting, connection)
    assert connection.execute("SELECT call_id, seq FROM pieces").fetchall() == [("1", 0)]


def test_a_record_that_can_be_kept_nowhere_is_lost_with_a_warning(folder: Path, warnings: dict[str, str]):
    folder.rmdir()
    waiting = Backlog(PATH, warn=warnings.setdefault, memory_bytes=10_000)
    for number in range(12):
        waiting.append(record(number))
    assert 5 < len(waiting) < 10
    assert list(warnings) == ["lost"]
    assert str(PATH) in warnings["lost"]


def test_a_record_with_an_impossible_value_leaves_nothing_and_others_alone(connection: sqlite3.Connection):
    calls, pieces = record(1)
    assert execute(connection, [calls, (pieces[0], ["1", 2**70, b""])]) is not None
    assert execute(connection, record(2)) is None
    assert read_calls(connection) == {2: "completed"}
