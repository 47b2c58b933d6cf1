"""The ledger in bad weather: processes that die, files that cannot be written, and calls that go on."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from famnb.errors import LedgerError
from famnb.record import Ledger, schema
from famnb.record.process import OwnerProcess, this_process
from tests.support.exchanges import exchange
from tests.support.fault_server import Do, FaultServer, chunked
from tests.support.waiting import wait_until
from tests.support.wire_payloads import delta, opening

HERE = {"PYTHONPATH": str(Path(__file__).parents[2])}


def pieces(path: Path) -> int:
    if not path.exists():
        return 0
    with sqlite3.connect(path, timeout=10) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'pieces'").fetchone():
            return 0
        return int(connection.execute("SELECT COUNT(*) FROM pieces").fetchone()[0])


ASK = """
import sys
from famnb.client.client import BlockingClient as Client
from famnb.record import Ledger
client = Client(base_url=sys.argv[2], api_key="fam-key-0123456789abcdef", recorder=Ledger(sys.argv[1]))
client.ask("Hello?", endpoint="web")
"""


def test_a_killed_process_leaves_its_call(ledger: Ledger) -> None:
    """Killed in the middle of a stream, the call reads as interrupted, with the text that had arrived."""
    script = chunked(*opening("web"), *(delta("web", text) for text in ("one ", "two ", "three")), Do.HOLD)
    server = FaultServer(script)
    child = subprocess.Popen([sys.executable, "-c", ASK, str(ledger.path), server.url], env={**os.environ, **HERE})
    try:
        wait_until(lambda: pieces(ledger.path) > 0)
        (before,) = ledger.select()
        child.send_signal(signal.SIGKILL)
        wait_until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
        (after,) = ledger.select()
    finally:
        child.kill()
        child.wait()
        server.close()
    assert (before["standing"], after["standing"]) == ("running", "interrupted")
    assert (after["text_chars"], after["streamed"], after["complete"]) == (13, 1, 0)
    reply = ledger.call(after["id"]).reply
    assert (reply.text, reply.status, reply.complete) == ("one two three", "interrupted", False)


def test_a_process_number_used_again_is_not_the_same_process() -> None:
    """Who has the number but was born at another time is somebody else; a machine that is not ours is believed."""
    me = this_process()
    assert me.is_alive
    assert not OwnerProcess(me.pid, me.born - 100, me.host).is_alive
    assert OwnerProcess(me.pid, me.born - 100, "elsewhere").is_alive


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no database, and it is long enough to be read as one " * 99)


def folder(path: Path) -> None:
    path.mkdir()


def no_folder(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("a file where the folder should be")


@pytest.mark.parametrize("trouble", [garbage, folder, no_folder])
def test_a_file_in_trouble_is_one_warning(tmp_path: Path, trouble: Callable[[Path], None]) -> None:
    """Calls are answered all the same, each future is done, and the user is told once."""
    (tmp_path / "sub").mkdir()
    ledger = Ledger(tmp_path / "sub" / "calls.sqlite")
    trouble(ledger.path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            made = exchange()
            ledger.on_open(made)
            ledger.on_reads(made)
            ledger.on_close(made).result(timeout=10)
            assert made.reply.call_id == made.id
        ledger.close()
    (warning,) = caught
    assert "calls are not being recorded in" in str(warning.message)
    assert "FAMNB_LEDGER" in str(warning.message)


@pytest.mark.parametrize("trouble", [garbage, folder])
def test_a_file_that_cannot_be_read_says_so(tmp_path: Path, trouble: Callable[[Path], None]) -> None:
    """Reading raises, naming the file and what to do."""
    path = tmp_path / "calls.sqlite"
    trouble(path)
    with pytest.raises(LedgerError, match=r"calls.sqlite cannot be read .* restore it from a copy"):
        Ledger(path).select()
    assert "cannot be read" in repr(Ledger(path))


def test_a_locked_file_gets_its_calls_later(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody else holds the lock calls go on with one warning; once it is free, nothing is missing."""
    monkeypatch.setattr(schema, "LOCK_S", 0.05)
    ledger.on_close(exchange()).result()
    ledger.close()
    somebody = sqlite3.connect(ledger.path, isolation_level=None)
    somebody.execute("BEGIN IMMEDIATE")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            ledger.on_close(exchange()).result(timeout=10)
    somebody.execute("ROLLBACK")
    somebody.close()
    assert len(ledger) == 3
    assert ["database is locked" in str(warning.message) for warning in caught] == [True]


FULL = """
import resource, sys, warnings
from tests.support.exchanges import exchange
from famnb.record import Ledger
ledger = Ledger(sys.argv[1])
ledger.on_close(exchange()).result()
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for count in range(20):
        made = exchange(prompt=str(count) * 5000)
        ledger.on_open(made)
        ledger.on_close(made).result()
print(len(caught), type(made.reply.cost).__name__, flush=True)
"""


def test_a_full_disk_is_one_warning(ledger: Ledger) -> None:
    """No more can be written: 20 calls are answered with one warning, and what was there before can be read."""
    command = [sys.executable, "-c", FULL, str(ledger.path)]
    done = subprocess.run(command, env={**os.environ, **HERE}, capture_output=True, text=True, timeout=60)
    assert done.stdout == "1 Cost\n", done.stderr
    assert len(ledger) >= 1


READ_ONLY = """
import os, sys, warnings
from tests.support.exchanges import exchange
from famnb.record import Ledger
# Loads everything while this user may still read where Python is installed.
exchange()
if os.geteuid() == 0:
    os.setuid(65534)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    ledger = Ledger(sys.argv[1])
    for _ in range(3):
        ledger.on_close(exchange()).result()
    print(len(caught), len(ledger), flush=True)
"""


def test_a_read_only_folder_is_one_warning_and_can_be_read() -> None:
    """Nothing may be written there: calls are answered, what the ledger holds is read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.sqlite"
        with Ledger(path) as ledger:
            ledger.on_close(exchange()).result()
        path.chmod(0o444)
        path.parent.chmod(0o555)
        command = [sys.executable, "-c", READ_ONLY, str(path)]
        # The other user may not look into this user's folders for prices either.
        env = {**os.environ, **HERE, "FAMNB_PRICES": str(path.with_name("prices.toml"))}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
        path.parent.chmod(0o755)
    assert done.stdout == "1 1\n", done.stderr


def test_a_call_that_cannot_be_written_down_does_not_stop_the_others(ledger: Ledger) -> None:
    """One row at fault is one warning; the next row is written."""
    broken = exchange()
    broken.attempts = object()  # type: ignore[assignment]
    with pytest.warns(RuntimeWarning, match="a call could not be recorded"):
        ledger.on_close(broken).result()
    ledger.on_close(exchange()).result()
    assert len(ledger) == 1


@pytest.mark.parametrize("also", [(), ("-wal", "-shm")], ids=["the file alone", "all its files"])
def test_a_deleted_file_gets_a_successor(ledger: Ledger, also: tuple[str, ...]) -> None:
    """Who deletes the ledger to begin anew loses what was in it, and no call made afterwards."""
    ledger.on_close(exchange()).result()
    for end in ("", *also):
        Path(f"{ledger.path}{end}").unlink()
    made = exchange()
    ledger.on_close(made).result()
    assert [row["id"] for row in ledger.select()] == [made.id]


@pytest.mark.parametrize("status", ["completed", "running"])
@pytest.mark.parametrize(
    "damage",
    [
        "pieces SET reads = x'00ff'",
        "requests SET body = '{\"model\"'",
        "calls SET endpoint = 'other'",
    ],
    ids=["bytes", "request", "endpoint"],
)
def test_a_damaged_call_hides_no_other(ledger: Ledger, damage: str, status: str) -> None:
    """Neither one that is over nor one that a dead process left: a warning, and the rest is read as ever."""
    broken, sound = exchange(prompt="broken"), exchange(prompt="sound")
    ledger.on_close(broken).result()
    with sqlite3.connect(ledger.path) as connection:
        connection.execute(f"UPDATE {damage}")
        connection.execute("UPDATE calls SET status = ?, owner_pid = 0", (status,))
    ledger.on_close(sound).result()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [row["id"] for row in ledger.select()] == [broken.id, sound.id]
        assert dict(ledger.reads([broken.id, sound.id]))[sound.id] == tuple(sound.reads)
        assert ledger.call(sound.id).reply == sound.reply
    assert all(f"of {broken.id} cannot be read" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("what", ["the bytes that came", "the request"])
def test_what_is_damaged_is_said(ledger: Ledger, what: str) -> None:
    """A call of which a part cannot be read shows the rest, with a warning that names it."""
    made = exchange()
    ledger.on_close(made).result()
    with sqlite3.connect(ledger.path) as connection:
        column = "pieces SET reads = x'00'" if what == "the bytes that came" else "requests SET body = 'no JSON'"
        connection.execute(f"UPDATE {column}")
    with pytest.warns(RuntimeWarning, match=f"the ledger is damaged: {what} of {made.id} cannot be read"):
        reply = ledger.call(made.id).reply
    assert (reply.status, reply.call_id) == ("completed", made.id)
