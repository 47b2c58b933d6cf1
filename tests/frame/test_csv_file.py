"""Calls as CSV: what is written is read back, by famnb, by pandas and by what takes texts for formulas."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest

import famnb
from famnb.errors import FamnbError
from famnb.frame.csv_file import read_csv, write_csv
from famnb.record import Ledger
from tests.support.exchanges import exchange, spoken

TEXTS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "'=1",
    "''",
    "'quoted",
    "a\rb",
    "a\r\nb",
    'a "b", c',
    " ",
    "NA",
    "\t=1",
    "é\x1b[31m",
    r"\x1b, \xyz and \n",
    "\\\x85\u202e",
]


@pytest.fixture
def frame(tmp_path: Path) -> pd.DataFrame:
    """One call for each text."""
    ledger = Ledger(tmp_path / "calls.sqlite")
    for number, text in enumerate(TEXTS):
        counts = (3, 5) if number % 2 else None
        ledger.on_close(exchange(spoken("Hello", counts=counts), prompt=text, labels={"tag": text, "experiment": "e"}))
    return famnb.calls(ledger)


def test_calls_come_back_as_they_were(frame: pd.DataFrame, tmp_path: Path):
    """Every text, every type, and what is missing."""
    write_csv(frame, tmp_path / "calls.csv")
    found = read_csv(tmp_path / "calls.csv")
    assert list(found["prompt"]) == TEXTS
    pd.testing.assert_frame_equal(found, pd.DataFrame(frame), check_categorical=False)


def test_nothing_acts_on_a_terminal(frame: pd.DataFrame, tmp_path: Path):
    write_csv(frame, tmp_path / "calls.csv")
    text = (tmp_path / "calls.csv").read_text(encoding="utf-8")
    assert not {"\x1b", "\x85", "\u202e"} & {*text}
    assert r"é\x1b[31m" in text


def test_an_empty_text_is_not_a_missing_one(frame: pd.DataFrame, tmp_path: Path):
    prompts = ["", None, *frame["prompt"][2:]]
    write_csv(frame.assign(prompt=pd.array(prompts, dtype="string")), tmp_path / "calls.csv")
    assert read_csv(tmp_path / "calls.csv")["prompt"].isna().tolist() == [False, True] + [False] * (len(frame) - 2)


def test_no_text_begins_like_a_formula(frame: pd.DataFrame, tmp_path: Path):
    """And a line end in a text, also a CR alone, is inside of quotes: pandas and `csv` read as many rows."""
    write_csv(frame, tmp_path / "calls.csv")
    with (tmp_path / "calls.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(pd.read_csv(tmp_path / "calls.csv")) == len(TEXTS)
    assert not [cell for row in rows for cell in row.values() if cell[:1] and cell[:1] in "=+-@\t\r"]
    assert b'"a\rb"' in (tmp_path / "calls.csv").read_bytes()
    assert list(pd.read_csv(tmp_path / "calls.csv")["prompt"])[7:9] == ["a\rb", "a\r\nb"]


def test_another_file_is_refused(tmp_path: Path):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FamnbError, match="no column call_id: expected a file that famnb calls --csv wrote"):
        read_csv(tmp_path / "other.csv")
