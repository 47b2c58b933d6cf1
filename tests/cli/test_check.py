"""`famnb check`: a row for each endpoint, whole and streamed."""

from __future__ import annotations

import re

import pytest

import famnb
from famnb import cli
from famnb.endpoints import ENDPOINTS


def test_check_prints_eight_passing_rows_and_records_them(environment: None, capsys: pytest.CaptureFixture[str]):
    """Four endpoints, whole and streamed: each row has a time to first token, and each call is in the ledger."""
    assert cli.main(["check"]) == 0
    printed = capsys.readouterr().out
    rows = re.findall(
        r"^(chat|responses|web|messages)\s+(whole|streamed)\s+fam-\S+\s+\w+\s+\d+\.\d{3} s", printed, re.M
    )
    assert rows == [(name, mode) for name in ENDPOINTS for mode in ("whole", "streamed")]
    assert "8 of 8 calls passed" in printed
    assert len(famnb.calls()) == 8


def test_check_fails_when_a_call_fails(
    environment: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """A wrong key fails every call: the rows say why, the exit status is 1, and the key is not shown."""
    monkeypatch.setenv("FAM_API_KEY", "a-wrong-key")
    assert cli.main(["check"]) == 1
    printed = capsys.readouterr().out
    assert printed.count("AuthenticationError") == 8
    assert "0 of 8 calls passed" in printed
    assert "a-wrong-key" not in printed
