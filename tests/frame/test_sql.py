"""`famnb.sql`: a SELECT over the documented columns, which only reads."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import famnb
from famnb.errors import InvalidRequest
from famnb.record import Ledger, ratings
from famnb.record.ratings import RecordedScore
from tests.support.exchanges import exchange, spoken


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Three calls, the last without usage, so that its counts and its cost are estimates."""
    with Ledger(tmp_path / "calls.sqlite") as ledger:
        for text, counts in (("a" * 40, (8, 3)), ("b" * 400, (8, 300)), ("c" * 80, None)):
            ledger.on_close(exchange(spoken(text, counts=counts), labels={"tag": text[0]})).result()
        yield ledger


def test_every_documented_column_has_the_value_of_the_frame(ledger: Ledger):
    rows, frame = famnb.sql("SELECT * FROM calls ORDER BY started_at", ledger), famnb.calls(ledger)
    assert set(rows) == set(frame)
    for name in frame:
        expected = [None if pd.isna(value) else value for value in frame[name]]
        assert [None if pd.isna(value) else value for value in rows[name]] == expected, name


def test_rows_are_grouped_with_values_from_outside(ledger: Ledger):
    query = "SELECT model, COUNT(*) AS n, SUM(output_tokens) AS tokens FROM calls WHERE tag <> :tag GROUP BY model"
    found = famnb.sql(query, ledger, params={"tag": "c"})
    assert found.values.tolist() == [["fam-mini", 2, 303]]
    assert found["tokens"].dtype == "Int64"


def test_requests_and_scores_are_tables_beside(ledger: Ledger):
    call_id = famnb.calls(ledger)["call_id"].iloc[0]
    ratings.save(ledger, [RecordedScore(call_id=call_id, scorer="exact#12", value=1.0)])
    query = """
        SELECT scorer, value, json_extract(body, '$.model') AS model
        FROM scores JOIN requests USING (call_id) JOIN calls USING (call_id)"""
    assert famnb.sql(query, ledger).values.tolist() == [["exact", 1.0, "fam-mini"]]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT modle FROM calls", "there is no column modle .did you mean model.*calls has model, endpoint"),
        ("SELECT * FROM orders", "there is no table orders; calls has"),
        ("DELETE FROM calls", "expected one SELECT, which only reads"),
        ("INSERT INTO main.requests VALUES ('a', 'b')", "only reads"),
        ("SELECT 1; DROP VIEW calls", "only reads"),
        ("PRAGMA user_version = 7", "only reads"),
        ("SELEC 1", "syntax error"),
    ],
)
def test_what_cannot_be_read_is_explained_and_changes_nothing(ledger: Ledger, query: str, words: str):
    with pytest.raises(InvalidRequest, match=f"(?s)sql: .*{words}"):
        famnb.sql(query, ledger)
    assert len(ledger) == 3


def test_a_ledger_that_is_not_there_yet_has_no_rows(tmp_path: Path):
    assert famnb.sql("SELECT COUNT(*) AS n FROM calls", tmp_path / "none.sqlite")["n"].tolist() == [0]


def test_what_a_request_set_is_a_column(tmp_path: Path):
    with Ledger(tmp_path / "calls.sqlite") as ledger:
        for endpoint, thinking in (("messages", 1024), ("web", None)):
            fields = {"max_tokens": 2000, "thinking": thinking, "temperature": 1}
            ledger.on_close(exchange([], endpoint=endpoint, status=None, **fields)).result()
        found = famnb.calls(ledger)[["temperature", "max_tokens", "thinking", "effort"]]
    assert found.astype(object).where(found.notna(), None).values.tolist() == [
        [1.0, 2000, 1024, None],
        [1.0, 2000, None, None],
    ]
