"""A user's environment, and a ledger with calls."""

from pathlib import Path

import pytest

import famnb
from tests.support.exchanges import exchange


@pytest.fixture
def environment(server: famnb.service.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a user whose service is the running one."""
    monkeypatch.setenv("FAM_API_KEY", server.key)
    monkeypatch.setenv("FAM_BASE_URL", server.url)


@pytest.fixture
def ledger_path(tmp_path: Path) -> Path:
    """A ledger with two calls."""
    with famnb.Ledger(tmp_path / "two.sqlite") as ledger:
        for _ in range(2):
            ledger.on_close(exchange()).result()
    return ledger.path
