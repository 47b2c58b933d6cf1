"""The ledger in bad weather: processes that die, files that cannot be written, and calls that go on."""

import os
import shutil
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
from famnb.record.owner import OwnerProcess, this_process
from tests.support.exchanges import exchange
from tests.support.fault_server import Action, FaultServer, chunked
from tests.support.waiting import wait_until
from tests.support.wire_payloads import delta, opening

HERE = {"PYTHONPATH": str(Path(__file__).parents[2])}


def pieces(path: Path) -> int:
    if not path.exists():
        return 0
    with sqlite3.connect(path, timeout=60) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'pieces'").fetchone():
            return 0
        return int(connection.execute("SELECT COUNT(*) FROM pieces").fetchone()[0])


ASK = """
import sys
from famnb.api import Client
from famnb.record import Ledger
client = Client(base_url=sys.argv[2], api_key="fam-key-0123456789abcdef", ledger=Ledger(sys.argv[1]))
client.ask("Hello?", endpoint="web")
"""


def test_a_killed_process_leaves_its_call(ledger: Ledger):
    script = chunked(*opening("web"), *(delta("web", text) for text in ("one ", "two ", "three")), Action.STALL)
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


def test_a_process_number_used_again_is_not_the_same_process():
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
def test_a_file_in_trouble_is_one_warning(tmp_path: Path, trouble: Callable[[Path], None]):
    (tmp_path / "sub").mkdir()
    ledger = Ledger(tmp_path / "sub" / "calls.sqlite")
    trouble(ledger.path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            call = exchange()
            ledger.on_open(call)
            ledger.on_reads(call)
            ledger.on_close(call).result(timeout=60)
            assert call.reply.call_id == call.id
        ledger.close()
        if trouble is not no_folder:
            with pytest.raises(LedgerError, match=r"calls.sqlite cannot be read .* restore it from a copy"):
                ledger.select()
            assert "cannot be read" in repr(ledger)
    (warning,) = caught
    assert "calls are not being recorded in" in str(warning.message)
    assert "FAMNB_LEDGER" in str(warning.message)


def test_a_locked_file_gets_its_calls_later(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schema, "LOCK_S", 0.05)
    ledger.on_close(exchange()).result()
    ledger.close()
    somebody = sqlite3.connect(ledger.path, isolation_level=None)
    somebody.execute("BEGIN IMMEDIATE")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            ledger.on_close(exchange()).result(timeout=60)
    somebody.execute("ROLLBACK")
    somebody.close()
    assert len(ledger) == 3
    assert ["database is locked" in str(warning.message) for warning in caught] == [True]


FULL_FOR_LONG = """
import resource, sys, warnings
from tests.support.exchanges import exchange
from famnb.record import Ledger
ledger = Ledger(sys.argv[1])
ledger.on_close(exchange()).result()
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
warnings.simplefilter("ignore")
made = [exchange(prompt=str(count)) for count in range(2000)]
for call in made:
    ledger.on_open(call)
    ledger.on_close(call).result(timeout=60)
behind = ledger.behind
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
rows = {row["id"]: row["status"] for row in ledger.select()}
print(behind, len(rows), {rows[call.id] for call in made}, ledger.behind, flush=True)
"""


@pytest.mark.full
def test_calls_of_a_full_disk_are_all_there_once_there_is_room(ledger: Ledger):
    command = [sys.executable, "-c", FULL_FOR_LONG, str(ledger.path)]
    done = subprocess.run(command, env={**os.environ, **HERE}, capture_output=True, text=True, timeout=300)
    assert done.stdout == "4000 2001 {'completed'} 0\n", done.stderr


SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Waits while the file that HANG_FLAG names is there, if `fd` is a ledger: a file system that does not answer. */
static void wait_for_disk(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return;
    path[length] = 0;
    while (strstr(path, "calls.sqlite") && access(getenv("HANG_FLAG"), F_OK) == 0) usleep(10000);
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    ssize_t (*next)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    wait_for_disk(fd);
    return next(fd, bytes, count, offset);
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) { return pwrite64(fd, bytes, count, offset); }
"""

HUNG = """
import sys, threading, time, warnings
from pathlib import Path
import pytest
from famnb import LedgerError
from famnb.record import Ledger, writer
from tests.support.exchanges import exchange
from tests.support.waiting import wait_until
flag, then = Path(sys.argv[2]), sys.argv[3]
writer.PATIENCE_S = 1.0
ledger = Ledger(sys.argv[1])
ledger.on_close(exchange()).result()
flag.touch()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    futures = []
    for count in range(100):
        made = exchange()
        ledger.on_open(made)
        futures.append(ledger.on_close(made))
        wait_until(lambda: writer.writer(ledger.path).is_stuck)
    # None waits for the disk, which does not answer before the flag is gone.
    for future in futures:
        future.result(timeout=60)
    with pytest.raises(LedgerError, match="calls.sqlite has not answered for 1 s: 200 records wait in memory"):
        ledger.select()
    assert ["the file system has not answered" in str(warning.message) for warning in caught] == [True]
if then == "answers":
    flag.unlink()
    print(len(ledger.select()), ledger.behind)
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that makes writing a ledger hang."""
    if not sys.platform.startswith("linux") or not (compiler := shutil.which("cc")):
        pytest.skip("needs a C compiler for Linux")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "hang.c").write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "hang.so", folder / "hang.c", "-ldl"], check=True)
    return folder / "hang.so"


def run_hung(shim: Path, ledger: Path, then: str) -> subprocess.CompletedProcess[str]:
    flag = ledger.with_name("hang")
    env = {**os.environ, **HERE, "LD_PRELOAD": str(shim), "HANG_FLAG": str(flag), "TMPDIR": str(ledger.parent)}
    command = [sys.executable, "-c", HUNG, str(ledger), str(flag), then]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def test_a_disk_that_hangs_keeps_no_call_waiting(shim: Path, ledger: Ledger):
    done = run_hung(shim, ledger.path, "answers")
    assert done.stdout == "101 0\n", done.stderr


@pytest.mark.full
def test_what_a_disk_that_hangs_never_took_is_kept_elsewhere(shim: Path, ledger: Ledger):
    done = run_hung(shim, ledger.path, "hangs on")
    assert "200 records of calls could not be written" in done.stderr
    (spill,) = ledger.path.parent.glob("famnb-*/unwritten.sqlite")
    assert str(spill) in done.stderr
    with Ledger(spill) as saved:
        assert [row["status"] for row in saved.select()] == ["completed"] * 100
    assert ledger.load(spill) == 100


READ_ONLY = """
import os, sys, warnings
from tests.support.exchanges import exchange
from famnb.record import Ledger
# Loads everything while this user may still read where Python is installed, also what is loaded late.
import statistics, tomllib
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


def test_a_read_only_folder_is_one_warning_and_can_be_read():
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


def test_a_call_that_cannot_be_written_down_does_not_stop_the_others(ledger: Ledger):
    broken = exchange()
    broken.attempts = object()  # type: ignore[assignment]
    with pytest.warns(RuntimeWarning, match="a call could not be recorded"):
        ledger.on_close(broken).result()
    ledger.on_close(exchange()).result()
    assert len(ledger) == 1


@pytest.mark.parametrize("also", [(), ("-wal", "-shm")], ids=["the file alone", "all its files"])
def test_a_deleted_file_gets_a_successor(ledger: Ledger, also: tuple[str, ...]):
    ledger.on_close(exchange()).result()
    for end in ("", *also):
        Path(f"{ledger.path}{end}").unlink()
    call = exchange()
    ledger.on_close(call).result()
    assert [row["id"] for row in ledger.select()] == [call.id]


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
def test_a_damaged_call_hides_no_other(ledger: Ledger, damage: str, status: str):
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
