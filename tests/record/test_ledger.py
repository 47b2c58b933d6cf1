"""The ledger in good weather: what is written, when, and how it comes back."""

import contextlib
import dataclasses
import multiprocessing
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from famnb import calls
from famnb.errors import AuthenticationError, ConnectError, IdleTimeout, InvalidArgument, LedgerError
from famnb.record import Ledger, schema
from famnb.record.sql import CHUNK
from famnb.reply import Reply
from famnb.timing import Timing
from tests.support.exchanges import at, chunk, exchange, spoken


def test_a_call_comes_back_as_it_went(ledger: Ledger):
    original = exchange(spoken("Hello, ", "world", counts=(7, 3)), labels={"experiment": "first", "seed": "1"})
    ledger.on_open(original)
    ledger.on_close(original).result()
    call = ledger.call(original.id)
    assert call.request == original.request
    assert call.reply == original.reply
    assert call.reply.timing == call.timing == original.reply.timing
    assert call.reply.cost == original.reply.cost
    assert call.reads == tuple(original.reads)
    assert call.labels == {"experiment": "first", "seed": "1"}
    assert call.started_at == original.started_at
    assert (call.endpoint, call.status, call.error) == (original.endpoint, "completed", None)


def test_a_call_is_there_from_its_start(ledger: Ledger):
    original = exchange()
    ledger.on_open(original)
    ledger.on_reads(original)
    call = ledger.call(original.id)
    assert (call.status, call.reply.status, call.reply.text) == ("running", "running", "Hello, world")


def test_what_arrives_is_appended(ledger: Ledger):
    call = exchange()
    reads, call.reads = call.reads, []
    ledger.on_open(call)
    for read in reads:
        call.reads.append(read)
        ledger.on_reads(call)
    assert ledger.call(call.id).reads == tuple(reads)
    with sqlite3.connect(ledger.path) as connection:
        assert connection.execute("SELECT COUNT(*) FROM pieces").fetchone() == (len(reads),)


def test_a_retry_forgets_what_the_first_try_brought(ledger: Ledger):
    call = exchange([at(5, chunk({"role": "assistant"})), at(6, chunk({"content": "old"}))])
    ledger.on_open(call)
    ledger.on_reads(call)
    call.attempts, call.reads = 2, spoken("new")
    ledger.on_reads(call)
    assert ledger.call(call.id).reply.text == "new"


def test_an_error_comes_back_as_itself(ledger: Ledger):
    refused = exchange([], status=401)
    error = AuthenticationError("wrong key", status=401, type="invalid_request_error", code="invalid_api_key")
    refused.reply = Reply(status="failed", error=error)
    silent = exchange(spoken("Hel")[:2])
    silent.reply = dataclasses.replace(silent.reply, status="failed", error=IdleTimeout("silence", seconds=60.0))
    ledger.on_close(refused)
    ledger.on_close(silent)
    back = ledger.call(refused.id).error
    assert (type(back), str(back), back.code) == (AuthenticationError, "401: wrong key", "invalid_api_key")
    kept = ledger.call(silent.id).reply
    assert (kept.text, kept.status, kept.complete, kept.error.seconds) == ("Hel", "failed", False, 60.0)
    assert kept.cost is not None
    assert refused.reply.cost is None


def test_equal_requests_are_stored_once(ledger: Ledger):
    for prompt in ("same", "same", "other"):
        ledger.on_close(exchange(prompt=prompt))
    ledger.flush()
    with sqlite3.connect(ledger.path) as connection:
        assert connection.execute("SELECT COUNT(*) FROM requests").fetchone() == (2,)


def test_an_unknown_call_is_a_key_error(ledger: Ledger):
    with pytest.raises(KeyError, match=r"no call 'call_0' .* famnb.calls\(\) lists what is there"):
        ledger.call("call_0")


def test_the_file_is_for_its_owner_alone(ledger: Ledger):
    ledger.on_close(exchange()).result()
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_where_a_ledger_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("FAMNB_LEDGER", str(tmp_path / "chosen.sqlite"))
    assert Ledger().path == tmp_path / "chosen.sqlite"
    assert Ledger(tmp_path / "mine.sqlite").path == tmp_path / "mine.sqlite"
    monkeypatch.delenv("FAMNB_LEDGER")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Ledger().path.name == "ledger.sqlite"
    assert Ledger().path.parent.name == "famnb"
    with pytest.raises(LedgerError, match="a ledger is a file"):
        Ledger(":memory:")
    with pytest.raises(InvalidArgument, match="ledger: expected a path, got False; every call is recorded"):
        Ledger(False)  # type: ignore[arg-type]  # what a user may write


def test_a_ledger_says_what_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    with Ledger(tmp_path / "a.sqlite") as ledger:
        ledger.on_close(exchange()).result()
        assert repr(ledger) == "<Ledger ~/a.sqlite, 1 calls>"


def _record(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.on_close(exchange())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_writes_for_itself(ledger: Ledger):
    ledger.on_close(exchange()).result()
    child = multiprocessing.get_context("fork").Process(target=_record, args=(ledger.path,), daemon=True)
    child.start()
    child.join(60)
    ledger.on_close(exchange()).result()
    assert (child.exitcode, len(ledger)) == (0, 3)


def test_a_ledger_of_an_older_version_keeps_its_calls(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    call = exchange()
    ledger.on_close(call)
    ledger.close()
    later = (*schema.MIGRATIONS, lambda connection: connection.execute("CREATE TABLE notes (text TEXT)"))
    monkeypatch.setattr(schema, "MIGRATIONS", later)
    assert ledger.call(call.id).reply == call.reply
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection:
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (0,)
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


def test_many_calls_are_read_at_once_as_each_alone(ledger: Ledger):
    calls = [exchange(prompt=f"{index}") for index in range(CHUNK + 2)]
    for item in calls:
        ledger.on_close(item)
    wanted = [calls[-1].id, "call_missing", *(item.id for item in calls[:-1])]
    found = list(ledger.each(wanted))
    assert [call.call_id for call in found] == [wanted[0], *wanted[2:]]
    alone = ledger.call(wanted[0])
    assert (found[0].row, found[0].request, found[0].reply) == (alone.row, alone.request, alone.reply)


@pytest.mark.parametrize(
    ("words", "statements"),
    [
        *(
            ("is a database, but no ledger", [f"CREATE TABLE {table} (id TEXT)", f"PRAGMA user_version = {version}"])
            for table, version in (("orders", 0), ("calls", 0), ("orders", 1), ("calls", 2))
        ),
        (
            f"has version 99, this famnb knows up to {len(schema.MIGRATIONS)}: update",
            ["CREATE TABLE x (y)", f"PRAGMA application_id = {schema.APPLICATION_ID}", "PRAGMA user_version = 99"],
        ),
    ],
)
def test_a_file_of_another_program_or_from_the_future_is_left_alone(tmp_path, words, statements):
    path = tmp_path / "theirs.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=words):
        Ledger(path).select()
    with pytest.warns(RuntimeWarning, match=words):
        Ledger(path).on_close(exchange()).result()
    with pytest.raises(LedgerError, match=words):
        Ledger(path).prune(keep=0)
    assert path.read_bytes() == before


def test_reads_of_one_block_open_the_file_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    first, second = exchange(), exchange()
    ledger.on_close(first).result()
    opened = []
    monkeypatch.setattr(
        schema, "open_to_read", lambda path, open_=schema.open_to_read: opened.append(path) or open_(path)
    )
    with ledger.sharing():
        assert len(calls(ledger)) == 1
        ledger.on_close(second).result()
        assert [call.call_id for call in ledger.each([second.id])] == [second.id]
        assert len(ledger) == 2
    assert len(opened) == 1
    with ledger.sharing(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(len, ledger).result() == 2
    assert len(opened) == 3


@pytest.mark.parametrize("strange", ["\ud83d alone", "nul \0 inside", "\u2028", "🦊" * 300])
def test_strange_text_is_kept(ledger: Ledger, strange: str):
    call = exchange(spoken(strange.encode("utf-8", "replace").decode()))
    call.reply = dataclasses.replace(call.reply, status="failed", error=AuthenticationError(strange, status=401))
    ledger.on_close(call).result()
    assert ledger.call(call.id).reply.text == call.reply.text


def test_a_count_too_large_to_be_one_is_missing(ledger: Ledger):
    call = exchange(spoken("Hi", counts=(2**70, 1)))
    ledger.on_close(call).result()
    assert ledger.select()[0]["input_tokens"] is None


@pytest.mark.parametrize("status", [None, 500], ids=["nobody answered", "a server error"])
def test_a_call_without_a_reply_keeps_its_timing_and_its_bytes(ledger: Ledger, status: int | None):
    body = [at(150, {"error": {"message": "no"}})] if status else []
    call = exchange(body, status=status, streamed=False)
    timing = Timing(ttfb_s=0.1, e2e_s=0.15)
    call.reply = Reply(status="failed", timing=timing, reads=tuple(body), error=ConnectError("no"))
    ledger.on_close(call).result()
    reply = ledger.call(call.id).reply
    assert (reply.timing, reply.raw, reply.blocks) == (timing, call.reply.raw, ())
