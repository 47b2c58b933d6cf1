"""`famnb check`: a row for each endpoint, whole and streamed."""

import re

import pytest

import famnb
from famnb import cli
from famnb.endpoints import ENDPOINTS


def test_check_prints_eight_passing_rows_and_records_them(environment: None, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["check"]) == 0
    printed = capsys.readouterr().out
    rows = re.findall(
        r"^(chat|responses|web|messages)\s+(whole|streamed)\s+fam-\S+\s+\w+\s+\d+\.\d{3} s", printed, re.M
    )
    assert rows == [(name, mode) for name in ENDPOINTS for mode in ("whole", "streamed")]
    assert "8 of 8 calls passed" in printed
    assert len(famnb.calls()) == 8


def test_check_fails_when_a_call_fails(environment, monkeypatch, capsys):
    monkeypatch.setenv("FAM_API_KEY", "a-wrong-key")
    assert cli.main(["check"]) == 1
    printed = capsys.readouterr().out
    assert printed.count("AuthenticationError") == 8
    assert "0 of 8 calls passed" in printed
    assert "a-wrong-key" not in printed
