"""Resuming across processes: killed at any moment, or two at once, no answered cell is paid again."""

from __future__ import annotations

import collections
import random
import time

import pytest

import famnb
from tests.support.shared_run import CELLS_PER_PROMPT

PROMPTS = 500
CELLS = PROMPTS * CELLS_PER_PROMPT


def recorded(tmp_path):
    """How the calls of each cell stand."""
    rows = famnb.Ledger(tmp_path / "ledger.sqlite").select("experiment = 'shared'")
    found = collections.defaultdict(list)
    for row in rows:
        found[row["cell"]].append(row["standing"])
    return found


def answered(standings):
    return sum(standing in ("completed", "incomplete") for standing in standings)


def until_recorded(tmp_path, count):
    """Wait until so many calls have a row, whether they are over or not."""
    ledger, deadline = famnb.Ledger(tmp_path / "ledger.sqlite"), time.monotonic() + 60
    while len(ledger) < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def killed(process):
    process.kill()
    process.join()


@pytest.mark.slow
def test_a_run_that_is_killed_five_times_pays_no_answered_cell_twice(child, tmp_path):
    """2,000 calls, SIGKILL at random moments: each cell is answered exactly once; all else was in flight at a kill."""
    chance, concurrency = random.Random(9), 16
    before = 0
    for _ in range(5):
        process, _ = child(prompts=PROMPTS, concurrency=concurrency)
        until_recorded(tmp_path, before + chance.randrange(20, 300))
        killed(process)
        done = sum(map(answered, recorded(tmp_path).values()))
        assert before <= done < CELLS
        before = done
    assert before > 0
    _, heard = child(prompts=PROMPTS, concurrency=concurrency)
    assert heard.recv() == CELLS - before
    found = recorded(tmp_path)
    assert len(found) == CELLS
    assert {answered(standings) for standings in found.values()} == {1}
    others = [each for standings in found.values() for each in standings if each not in ("completed", "incomplete")]
    assert set(others) <= {"interrupted"}
    assert len(others) <= 5 * concurrency


def test_a_second_process_is_refused_while_the_first_runs_and_then_resumes(connect, stalling, child, tmp_path):
    """So two can neither pay for one cell nor spend one budget; the lock is gone with the run that had it."""
    exp = famnb.Experiment("Question", name="shared", client=connect(stalling))
    run = exp.run(wait=False)
    _, heard = child(prompts=5)
    assert "shared is running already, in this or another process" in heard.recv()
    run.stop()
    run.wait()
    assert child(prompts=5)[1].recv() == 5 * CELLS_PER_PROMPT
    assert not list(tmp_path.glob("*-run-*"))


def test_a_killed_process_leaves_no_lock_behind(child, tmp_path):
    """The next one runs at once."""
    first, _ = child(prompts=PROMPTS)
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("*-run-*")):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    killed(first)
    assert child(prompts=5)[1].recv() in range(5 * CELLS_PER_PROMPT + 1)
