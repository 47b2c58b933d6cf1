"""A ledger of a famnb before 0.1 is refused by its name, by all that reads or writes one, and left untouched."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import famnb
from famnb import cli
from famnb.errors import LedgerError
from famnb.record import Ledger
from tests.support.exchanges import exchange


@pytest.fixture
def old_ledger(tmp_path: Path) -> Path:
    """A file with the tables and the version of those days, but not the mark of today's."""
    path = tmp_path / "old.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE calls (id TEXT PRIMARY KEY, started_us INTEGER NOT NULL);
            CREATE TABLE requests (key TEXT PRIMARY KEY, body TEXT NOT NULL);
            CREATE TABLE pieces (call_id TEXT NOT NULL, seq INTEGER NOT NULL, reads BLOB NOT NULL);
            INSERT INTO calls VALUES ('call_1', 1);
            PRAGMA user_version = 8;
        """)
    return path


@pytest.mark.parametrize(
    "use",
    [
        famnb.calls,
        lambda path: famnb.deltas(ledger=path),
        lambda path: Ledger(path).info(),
        lambda path: Ledger(path).prune(keep=0),
        lambda path: Ledger(path).export(path.with_suffix(".parquet")),
    ],
    ids=["calls", "deltas", "info", "prune", "export"],
)
def test_whatever_reads_it_raises(old_ledger: Path, use: Callable[[Path], object]):
    content = old_ledger.read_bytes()
    with pytest.raises(LedgerError, match=r"old\.sqlite is a ledger of a famnb before 0\.1.*FAMNB_LEDGER"):
        use(old_ledger)
    assert old_ledger.read_bytes() == content


@pytest.mark.parametrize("command", [["calls"], ["ledger", "info"]], ids=" ".join)
def test_the_command_line_names_it(old_ledger: Path, command: list[str], capsys: pytest.CaptureFixture[str]):
    content = old_ledger.read_bytes()
    assert cli.main([*command, "--ledger", str(old_ledger)]) == 1
    error = capsys.readouterr().err
    assert str(old_ledger) in error
    assert "before 0.1" in error
    assert old_ledger.read_bytes() == content


def test_a_call_is_answered_with_a_warning(old_ledger: Path):
    content = old_ledger.read_bytes()
    with pytest.warns(RuntimeWarning, match=r"before 0\.1"):
        Ledger(old_ledger).on_close(exchange()).result()
    assert old_ledger.read_bytes() == content
