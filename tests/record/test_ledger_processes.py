"""Four processes that write one ledger, killed at random moments: what was acknowledged is there."""

import multiprocessing
import random
import sqlite3
import time
from pathlib import Path

from famnb.record import Ledger
from tests.support.exchanges import exchange
from tests.support.waiting import wait_until

# Processes forked from one that has everything imported begin to write at once: of 80 that import it each for
# themselves, the imports took most of a minute.
CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload([__name__])


def write_calls(ledger_path: str, ids_path: str) -> None:
    """Record calls for ever, each id written to a file once the ledger has acknowledged its call."""
    ledger = Ledger(ledger_path)
    with Path(ids_path).open("w") as ids:
        while True:
            left_open = exchange(prompt="left open")
            ledger.on_open(left_open)
            ledger.on_reads(left_open)
            for _ in range(5):
                call = exchange()
                ledger.on_open(call)
                ledger.on_close(call).result()
                print(call.id, file=ids, flush=True)


def test_four_killed_writers_lose_nothing_they_acknowledged(ledger: Ledger, tmp_path: Path):
    chance = random.Random(20)
    acknowledged: set[str] = set()
    for turn in range(2):
        files = [tmp_path / f"{turn}-{number}.txt" for number in range(4)]
        children = [CHILDREN.Process(target=write_calls, args=(str(ledger.path), str(file))) for file in files]
        for child in children:
            child.start()
        wait_until(lambda files=files: all(file.exists() and file.stat().st_size for file in files), timeout=60)
        for child in children:
            time.sleep(chance.uniform(0, 0.05))
            child.kill()
        for child in children:
            child.join()
        # A last line without its end was cut by the kill, and nobody has read it.
        acknowledged |= {line for file in files for line in file.read_text().split("\n")[:-1]}
        found = {row["id"]: row for row in ledger.select()}
        assert acknowledged <= found.keys()
        assert {found[call_id]["standing"] for call_id in acknowledged} == {"completed"}
        others = {row["standing"] for call_id, row in found.items() if call_id not in acknowledged}
        assert "interrupted" in others <= {"interrupted", "completed"}
    assert len(acknowledged) >= 8
    assert all(len(reads) == 4 for _, reads in ledger.reads(sorted(acknowledged)))
    with sqlite3.connect(ledger.path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
