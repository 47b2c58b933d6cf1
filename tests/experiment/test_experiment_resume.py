"""Resuming across processes: killed at any moment, or two at once, no answered cell is paid again."""

from __future__ import annotations

import collections
import random
import time

import pytest

import famnb

PROMPTS = 500
CELLS = PROMPTS * 4


def recorded(tmp_path):
    """How the calls of each cell stand."""
    rows = famnb.Ledger(tmp_path / "ledger.sqlite").select("experiment = 'shared'")
    found = collections.defaultdict(list)
    for row in rows:
        found[row["cell"]].append(row["standing"])
    return found


def answered(standings):
    return sum(standing in ("completed", "incomplete") for standing in standings)


@pytest.mark.slow
def test_a_run_that_is_killed_five_times_pays_no_answered_cell_twice(child, tmp_path):
    """2,000 calls, SIGKILL at random moments: each cell is answered exactly once; all else was in flight at a kill."""
    chance, concurrency = random.Random(9), 16
    before = 0
    for _ in range(5):
        process = child(prompts=PROMPTS, concurrency=concurrency)
        assert process.stdout.readline() == "started\n"
        time.sleep(chance.uniform(0.15, 0.5))
        process.kill()
        process.wait()
        found = recorded(tmp_path)
        done = sum(map(answered, found.values()))
        assert before <= done < CELLS
        before = done
    assert before > 0
    said, _ = child(prompts=PROMPTS, concurrency=concurrency).communicate(timeout=60)
    assert said.split() == ["started", str(CELLS - before)]
    found = recorded(tmp_path)
    assert len(found) == CELLS
    assert {answered(standings) for standings in found.values()} == {1}
    others = [each for standings in found.values() for each in standings if each not in ("completed", "incomplete")]
    assert set(others) <= {"interrupted"}
    assert len(others) <= 5 * concurrency


def test_a_second_process_is_refused_while_the_first_runs_and_then_resumes(connect, server, stalling, child, tmp_path):
    """So two can neither pay for one cell nor spend one budget; a lock that nobody holds any more stops nobody."""
    exp = famnb.Experiment("Question", name="shared", client=connect(stalling))
    run = exp.run(wait=False)
    process = child(prompts=5)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said == "started\n"
    assert "shared is running already, in this or another process" in errors
    run.stop()
    run.wait()
    assert child(prompts=5).communicate(timeout=60)[0].split() == ["started", "20"]
    assert not list(tmp_path.glob("*-run-*"))


def test_a_killed_process_leaves_no_lock_behind(child, tmp_path):
    """The next one runs at once."""
    first = child(prompts=PROMPTS)
    assert first.stdout.readline() == "started\n"
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("*-run-*")):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    first.kill()
    first.wait()
    assert child(prompts=5).wait(timeout=60) == 0
