"""Frames from Parquet: exported files read as the ledger they came from, however many there are."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

import famnb
from famnb.client.exchange import Exchange
from famnb.errors import AuthenticationError, LedgerError
from famnb.record import Ledger, schema
from famnb.record.parquet import VERSION
from famnb.reply import Reply
from tests.support.exchanges import at, chunk, exchange, spoken

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def make_calls() -> list[Exchange]:
    """Calls an hour apart: each endpoint, with and without usage, whole, refused, cut off and unanswered."""
    refused, unanswered = exchange([], status=401), exchange([], status=None)
    refused.reply = Reply(status="failed", error=AuthenticationError("wrong key", status=401))
    made = [
        exchange(
            spoken("Hello, ", "wörld ✓", counts=(8, 3)), service="sim", labels={"experiment": "a", "variant": "x"}
        ),
        exchange(
            spoken("a" * 400), prompt="b" * 64, labels={"experiment": "a", "variant": "y", "cell": "k", "tag": "t"}
        ),
        exchange([at(200, chunk({"content": "Hel"}))], labels={"tag": "'; DROP TABLE calls"}),
        exchange(spoken("".join(map(str, range(99))), counts=(2**40, 2**33)), prompt="x" * 300),
        *(refused, unanswered, exchange([], endpoint="messages"), exchange([], endpoint="web", model="fam-2-5-pro")),
    ]
    for place, one in enumerate(made):
        one.started_at = DAY + timedelta(hours=place, microseconds=place)
    return made


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    with Ledger(tmp_path_factory.mktemp("ledger") / "calls.sqlite") as made:
        for one in make_calls():
            made.on_close(one)
        yield made


@pytest.fixture(scope="module")
def files(ledger: Ledger, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A glob of that ledger's calls in two files, those of the middle in both."""
    folder = tmp_path_factory.mktemp("it's [1] folder")
    ledger.export(folder / "all.parquet")
    table = pq.read_table(folder / "all.parquet")
    pq.write_table(table.slice(0, 5), folder / "1 early.parquet")
    pq.write_table(table.slice(3), folder / "2 late.parquet")
    (folder / "all.parquet").unlink()
    return f"{str(folder).replace('[', '[[]')}/*.parquet"


_words = {
    "model": ["fam-mini", "fam-2-5-pro", "none", ["fam-mini", "fam-2-5-pro"], []],
    "endpoint": ["chat", ["web", "messages"]],
    "experiment": ["a", "b"],
    "variant": ["x", ["x", "y"]],
    "tag": ["t", "'; DROP TABLE calls"],
    "status": ["completed", "failed", ["interrupted", "incomplete"], "running"],
    "since": [DAY + timedelta(hours=2, microseconds=2), "2026-01-01T03:00", DAY.date()],
    "until": [DAY + timedelta(hours=5, microseconds=5), "2026-01-01T03:00"],
    "limit": [0, 1, 3, 100],
    "columns": [["simulated", "cost_high_usd", "call_id"], "prompt", ["complete"]],
    "definition": ["vllm", "guidellm", "aiperf"],
}
filters = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in _words.items()})


def each_filter(test: Any) -> Any:
    """The test with the first value of every filter alone as an example."""
    for name, values in _words.items():
        test = example(chosen={name: values[0]})(test)
    return test


@each_filter
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=filters)
def test_exported_files_give_the_frame_of_their_ledger(ledger: Ledger, files: str, chosen: dict[str, Any]):
    assert_frame_equal(famnb.calls(files, **chosen), famnb.calls(ledger, **chosen))


def test_the_other_frames_read_exported_files_too(ledger: Ledger, files: str):
    assert_frame_equal(famnb.deltas(ledger=files), famnb.deltas(ledger=ledger))
    assert_frame_equal(famnb.runs(files, tag="t"), famnb.runs(ledger, tag="t"))
    assert_frame_equal(famnb.spend(files, by=["hour", "model"]), famnb.spend(ledger, by=["hour", "model"]))


def test_more_rows_than_are_read_at_once_stay_in_order(tmp_path: Path):
    ids, count = [f"{place:06}" for place in range(50_000)], 50_000
    columns = {"id": ids[::-1], "started_us": list(range(count))[::-1], "status": ["completed"] * count}
    columns |= {"endpoint": ["chat", "web"] * (count // 2), "request_body": [None] * count, "pieces": [[]] * count}
    columns |= {"scores": [[]] * count, "ttft_s": [None] * count}
    table = pa.table(columns).replace_schema_metadata({VERSION: b"1"})
    pq.write_table(table, tmp_path / "big.parquet")
    frame = famnb.calls(tmp_path / "big.parquet", columns=["call_id", "endpoint", "ttft_s"])
    assert list(frame["call_id"]) == ids
    assert list(frame["endpoint"][:2]) == ["web", "chat"]
    assert frame["ttft_s"].isna().all()


def test_a_glob_that_matches_nothing_says_so(tmp_path: Path):
    with pytest.raises(LedgerError, match=r"no file matches .*/\*\.parquet: .*famnb ledger export"):
        famnb.calls(f"{tmp_path}/*.parquet")


def test_a_folder_is_refused_with_what_to_name_in_it(tmp_path: Path):
    with pytest.raises(LedgerError, match=r"is a folder: .*/\*\.parquet"):
        famnb.calls(tmp_path)


def test_a_parquet_file_that_holds_no_ledger_is_refused(ledger: Ledger, tmp_path: Path):
    ledger.export(tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(LedgerError, match=r"b\.parquet holds no ledger"):
        famnb.calls(f"{tmp_path}/*.parquet")
    newer = pq.read_table(tmp_path / "a.parquet")
    newer = newer.replace_schema_metadata({VERSION: str(len(schema.MIGRATIONS) + 1).encode()})
    pq.write_table(newer, tmp_path / "b.parquet")
    with pytest.raises(LedgerError, match=r"b\.parquet was written by a newer famnb"):
        famnb.calls(f"{tmp_path}/*.parquet")
    (tmp_path / "b.parquet").write_text("plainly not")
    with pytest.raises(LedgerError, match="cannot be read"):
        famnb.calls(f"{tmp_path}/*.parquet")


def test_without_the_extra_the_error_names_it(files: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(LedgerError, match=r'pip install "famnb\[scale\]"'):
        famnb.calls(files)
