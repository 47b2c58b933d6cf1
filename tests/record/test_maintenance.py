"""The upkeep of the ledger: what it says of itself, what leaves it, and what a copy brings back."""

import contextlib
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from famnb import cli
from famnb.errors import InvalidRequest, LedgerError
from famnb.record import Ledger, schema
from tests.support.exchanges import exchange

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def fill(ledger: Ledger, count: int, **fields: Any) -> list[str]:
    """Calls a day apart, each with its own prompt; their ids."""
    calls = [exchange(prompt=f"{index}", started_at=DAY + timedelta(days=index), **fields) for index in range(count)]
    for call in calls:
        ledger.on_close(call)
    ledger.flush()
    return [call.id for call in calls]


def content(ledger: Ledger) -> dict[str, list[tuple[Any, ...]]]:
    """Every cell of every table."""
    ledger.flush()
    with sqlite3.connect(ledger.path) as connection:
        tables = ("calls", "requests", "pieces")
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables}


def test_info_counts_what_is_there(ledger: Ledger):
    fill(ledger, 3)
    fill(ledger, 2, endpoint="web")
    running = exchange()
    ledger.on_open(running)
    info = ledger.info()
    assert (info.calls, info.version, info.first) == (6, len(schema.MIGRATIONS), DAY)
    assert (info.by_status, info.by_endpoint) == ({"completed": 5, "running": 1}, {"chat": 4, "web": 2})
    assert info.by_model == {"fam-mini": 4, "fam-2-5-pro": 2}
    assert list(info.running.values()) == [1]
    assert info.size_bytes > info.payload_bytes > 0 < info.request_bytes
    assert "completed 5, running 1" in str(info)


def test_a_ledger_that_is_not_there_yet_has_nothing_to_say_and_nothing_to_lose(ledger: Ledger):
    assert ledger.info().calls == ledger.prune(keep=0).calls == len(ledger) == len(ledger.select()) == 0
    assert ledger, "so that `if ledger` asks whether there is one"
    assert not ledger.path.exists()


@pytest.mark.parametrize(
    ("limits", "stay"),
    [
        ({"keep": 2}, [3, 4]),
        ({"older_than": DAY + timedelta(days=1)}, [1, 2, 3, 4]),
        ({"older_than": DAY + timedelta(days=4), "keep": 3}, [2, 3, 4]),
        ({"older_than": timedelta(days=0)}, []),
        ({"keep": 9}, [0, 1, 2, 3, 4]),
    ],
)
def test_prune_deletes_what_both_limits_say(ledger: Ledger, limits: dict[str, Any], stay: list[int]):
    ids = fill(ledger, 5)
    assert ledger.prune(**limits, dry_run=True).calls == 5 - len(stay)
    assert len(ledger) == 5
    pruned = ledger.prune(**limits)
    assert (pruned.calls, pruned.left) == (5 - len(stay), len(stay))
    assert [row["id"] for row in ledger.select()] == [ids[index] for index in stay]
    assert {table: len(rows) for table, rows in content(ledger).items()} == dict.fromkeys(
        ("calls", "requests", "pieces"), len(stay)
    )


def test_prune_spares_shared_requests_and_running_calls(ledger: Ledger):
    old, new = exchange(prompt="same", started_at=DAY), exchange(prompt="same")
    running = exchange(prompt="runs", started_at=DAY)
    ledger.on_open(running)
    ledger.on_reads(running)
    ledger.on_close(old)
    ledger.on_close(new)
    assert ledger.prune(older_than=timedelta(days=1)).calls == 1
    assert ledger.call(new.id).request == old.request
    ledger.on_close(running)
    assert ledger.call(running.id).reply == running.reply


def test_prune_of_payloads_keeps_the_metrics(ledger: Ledger):
    fill(ledger, 3)
    before = content(ledger)
    assert ledger.prune(keep=1, payloads_only=True).calls == 2
    after = content(ledger)
    assert (after["calls"], after["requests"], len(after["pieces"])) == (before["calls"], before["requests"], 1)
    assert ledger.prune(keep=1, payloads_only=True).calls == 0


def test_pruning_makes_the_file_smaller(ledger: Ledger):
    for index in range(50):
        ledger.on_close(exchange(prompt=f"{index}" * 10_000))
    pruned = ledger.prune(keep=1)
    assert pruned.freed_bytes > 400_000
    assert ledger.info().size_bytes < 200_000


def test_prune_without_a_limit_is_refused(ledger: Ledger):
    with pytest.raises(ValueError, match="older_than="):
        ledger.prune()
    for keep in (-1, "3", 1.5, True):
        with pytest.raises(ValueError, match="keep: expected a number of calls of at least 0"):
            ledger.prune(keep=keep)  # type: ignore[arg-type]  # a slip that no type checker saw
    with pytest.raises(ValueError, match=r"older_than: expected a date or time such as .*got '90d'"):
        ledger.prune(older_than="90d")  # type: ignore[arg-type]  # likewise


def test_an_export_is_a_ledger_with_the_same_content(ledger: Ledger, tmp_path: Path):
    fill(ledger, 3, labels={"experiment": "e", "variant": "v", "cell": "c"})
    ledger.on_close(exchange([], status=500, prompt="nul \0, separator \u2028"))
    assert ledger.export(tmp_path / "all.sqlite") == 4
    with Ledger(tmp_path / "all.sqlite") as copy:
        assert content(copy) == content(ledger)
        assert ledger.export(copy.path, until="2000-01-01") == 0
        assert copy.load(ledger.path) == 0


def test_an_import_adds_only_what_is_missing_and_over(ledger: Ledger, tmp_path: Path):
    fill(ledger, 3)
    ledger.on_open(exchange())
    with Ledger(tmp_path / "new.sqlite") as new:
        fill(new, 2)
        assert [new.load(ledger.path) for _ in range(2)] == [3, 0]
        assert len(new) == 5
        assert {row["standing"] for row in new.select()} == {"completed"}


def test_another_file_is_refused(ledger: Ledger, tmp_path: Path):
    with contextlib.closing(sqlite3.connect(tmp_path / "x.sqlite")) as other:
        other.execute("CREATE TABLE t (a)")
    (tmp_path / "x.txt").write_text("text")
    for name, words in (("x.sqlite", "no ledger of famnb"), ("x.txt", "holds no calls")):
        with pytest.raises(LedgerError, match=words):
            ledger.load(tmp_path / name)
    assert not ledger.path.exists()
    fill(ledger, 1)
    with pytest.raises(LedgerError, match="no ledger of famnb"):
        ledger.export(tmp_path / "x.sqlite")
    with pytest.raises(InvalidRequest, match=r"to_parquet"):
        ledger.export(tmp_path / "x.parquet")


def test_the_ledger_commands(ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    fill(ledger, 4)
    here, file = ["--ledger", str(ledger.path)], str(tmp_path / "all.sqlite")
    assert cli.main(["ledger", "export", file, *here]) == 0
    assert cli.main(["ledger", "prune", "--older-than", "0.5h", "--keep", "1", *here]) == 0
    assert cli.main(["ledger", "import", file, *here]) == 0
    assert cli.main(["ledger", "info", *here]) == 0
    printed = capsys.readouterr().out
    for words in ("4 new calls in", "deleted 3 calls, 1 calls stay", "3 new calls", "calls     4\n"):
        assert words in printed
    assert cli.main(["ledger", "prune", *here]) == 2
    assert "--older-than AGE, --keep N" in capsys.readouterr().err
