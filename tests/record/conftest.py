"""What the ledger's tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from famnb.record import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A new ledger in a folder of its own."""
    with Ledger(tmp_path / "calls.sqlite") as ledger:
        yield ledger
