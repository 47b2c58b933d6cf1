"""Four processes that write one ledger, killed at random moments: what was acknowledged is there."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from famnb.record import Ledger

WRITE = """
import sys
from tests.support.exchanges import exchange
from famnb.record import Ledger
ledger = Ledger(sys.argv[1])
while True:
    left_open = exchange(prompt="left open")
    ledger.opened(left_open)
    ledger.arrived(left_open)
    for _ in range(5):
        made = exchange()
        ledger.opened(made)
        ledger.closed(made).result()
        print(made.id, flush=True)
"""


@pytest.mark.slow
def test_four_killed_writers_lose_nothing_they_acknowledged(ledger: Ledger, tmp_path: Path) -> None:
    """20 rounds of SIGKILL: the file opens and is sound, acknowledged calls are complete, open ones `interrupted`."""
    chance = random.Random(20)
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    acknowledged: set[str] = set()
    for turn in range(20):
        files = [tmp_path / f"{turn}-{number}.txt" for number in range(4)]
        children = []
        for file in files:
            with file.open("wb") as out:
                command = [sys.executable, "-c", WRITE, str(ledger.path)]
                children.append(subprocess.Popen(command, env=here, stdout=out))
        deadline = time.monotonic() + 30
        while not all(file.stat().st_size for file in files):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for child in children:
            time.sleep(chance.uniform(0, 0.05))
            child.send_signal(signal.SIGKILL)
        for child in children:
            child.wait()
        # A last line without its end was cut by the kill, and nobody has read it.
        acknowledged |= {line for file in files for line in file.read_text().split("\n")[:-1]}
        found = {row["id"]: row for row in ledger.select()}
        assert acknowledged <= found.keys()
        assert {found[call_id]["standing"] for call_id in acknowledged} == {"completed"}
        others = {row["standing"] for call_id, row in found.items() if call_id not in acknowledged}
        assert "interrupted" in others <= {"interrupted", "completed"}
    assert len(acknowledged) >= 80
    assert all(len(reads) == 4 for _, reads in ledger.reads(sorted(acknowledged)))
    with sqlite3.connect(ledger.path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
