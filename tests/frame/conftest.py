"""An empty ledger."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from famnb.record import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "calls.sqlite") as ledger:
        yield ledger
