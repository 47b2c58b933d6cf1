"""Calls as CSV: pandas and `csv` read every row, and no text acts on a spreadsheet or a terminal."""

import csv
from pathlib import Path

import pandas as pd

import famnb
from famnb.frame.csv_file import write_csv
from famnb.record import Ledger
from tests.support.exchanges import exchange, spoken

TEXTS = {
    "=1+1": "'=1+1",
    "-1": "'-1",
    "@SUM(A1)": "'@SUM(A1)",
    "\t=1": "'\t=1",
    "'quoted": "'quoted",
    "a\rb": "a\rb",
    "a\r\nb": "a\r\nb",
    'a "b", c': 'a "b", c',
    "é\x1b[31m": r"é\x1b[31m",
    "\x85\u202e": r"\x85\u202e",
    r"C:\new": r"C:\new",
}
"""Prompts, and what a file has of each."""


def test_every_text_is_there_and_none_acts(tmp_path: Path):
    ledger = Ledger(tmp_path / "calls.sqlite")
    for text in TEXTS:
        ledger.on_close(exchange(spoken("Hello"), prompt=text, labels={"tag": text}))
    frame, path = famnb.calls(ledger), tmp_path / "calls.csv"
    write_csv(frame, path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["prompt"], row["tag"]) for row in rows] == [(text, text) for text in TEXTS.values()]
    found = pd.read_csv(path)
    assert list(found["prompt"]) == list(TEXTS.values())
    assert list(found["ttft_s"]) == list(frame["ttft_s"])
    assert found["experiment"].isna().all()
