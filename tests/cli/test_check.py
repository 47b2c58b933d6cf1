"""`famnb check`: a row for each endpoint, whole and streamed."""

import re

import pytest

import famnb
from famnb import cli
from famnb.endpoints import ENDPOINTS


def test_check_prints_two_passing_rows_an_endpoint_and_records_them(
    environment: None, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["check"]) == 0
    printed = capsys.readouterr().out
    rows = re.findall(r"^(\w+)\s+(whole|streamed)\s+fam-\S+\s+\w+\s+\d+\.\d{3} s", printed, re.M)
    assert rows == [(name, mode) for name in ENDPOINTS for mode in ("whole", "streamed")]
    assert f"{len(rows)} of {len(rows)} calls passed" in printed
    assert len(famnb.calls()) == len(rows)


def test_check_fails_when_a_call_fails(environment, monkeypatch, capsys):
    monkeypatch.setenv("FAM_API_KEY", "a-wrong-key")
    assert cli.main(["check"]) == 1
    printed = capsys.readouterr().out
    assert printed.count("AuthenticationError") == 2 * len(ENDPOINTS)
    assert f"0 of {2 * len(ENDPOINTS)} calls passed" in printed
    assert "a-wrong-key" not in printed
