"""Resuming, also across processes: what is left alone, what is run again, and that no answered cell is paid again."""

import random
import sqlite3

import pytest

import famnb
from tests.experiment.experiments import (
    assert_each_is_answered_once,
    count_answers,
    kill_process,
    small_experiment,
    standings_by_cell,
    statuses,
)
from tests.experiment.shared_run import CELLS_PER_PROMPT
from tests.support.waiting import wait_until


@pytest.fixture
def refusing(server):
    """A service that answers everything with status 400."""
    with famnb.serve(time_scale=0, fault="status=400", key=server.key) as running:
        yield running


def test_running_again_pays_for_nothing_that_is_answered(client, connect, server):
    exp = small_experiment(client)
    exp.run()
    assert (exp.run().completed, exp.run().skipped) == (0, 12)
    report = small_experiment(connect(server), prompts=5).run()
    assert (report.completed, report.skipped) == (8, 12)
    assert len(client.ledger) == 20


def test_streams_that_the_service_cut_off_have_failed(connect, server):
    with famnb.serve(time_scale=0, fault="cut=3", key=server.key) as cutting:
        run = small_experiment(connect(cutting), prompts=1, repeats=1).run(wait=False)
        assert str(run.wait()).startswith("exp: 0 answered, 2 failed of 2 planned")
    assert run.progress.errors == {"StreamInterrupted": 2}
    exp = small_experiment(connect(server), prompts=1, repeats=1)
    assert statuses(exp) == {"interrupted": 2}
    assert list(exp.summary().table["failed"]) == [1, 1]
    assert (exp.run().skipped, exp.run().failed_before) == (2, 2)
    assert exp.run(retry_failed=True).completed == 2


def test_calls_that_a_process_left_behind_are_made_again(client):
    exp = small_experiment(client, prompts=1, repeats=1)
    exp.run()
    with sqlite3.connect(client.ledger.path) as file:
        for call_id, error in zip(exp.frame()["call_id"], [None, "ProcessEnded"], strict=True):
            file.execute("UPDATE calls SET status = 'interrupted', error = ? WHERE id = ?", (error, call_id))
    assert statuses(exp) == {"interrupted": 2}
    assert exp.run().completed == 2


def test_another_name_is_another_experiment(client):
    small_experiment(client).run()
    assert small_experiment(client, name="other").run().completed == 12


def test_what_failed_is_tried_again_only_when_asked(connect, server, refusing, where):
    exp = small_experiment(connect(refusing))
    assert (exp.run(**where).failed, statuses(exp)) == (12, {"failed": 12})
    assert set(exp.frame()["error"]) == {"BadRequestError"}
    exp = small_experiment(connect(server))
    left = exp.run(**where)
    assert (left.completed, left.skipped, left.failed_before) == (0, 12, 12)
    assert "12 of those left alone failed earlier. run(retry_failed=True) tries those that failed again." in str(left)
    assert exp.run(retry_failed=True, **where).completed == 12
    assert "failed" not in statuses(exp)
    assert exp.run(retry_failed=True).completed == 0


@pytest.mark.full
def test_a_second_process_is_refused_while_the_first_runs_and_then_resumes(connect, stalling, child, tmp_path):
    run = famnb.Experiment("Question", name="shared", client=connect(stalling)).run(wait=False)
    _, messages = child(prompts=5)
    assert "shared is running already, in this or another process" in messages.recv()
    run.stop()
    run.wait()
    assert child(prompts=5)[1].recv() == 5 * CELLS_PER_PROMPT
    assert not list(tmp_path.glob("*-run-*"))


PROMPTS = 100
CELLS = PROMPTS * CELLS_PER_PROMPT


def wait_for_rows(tmp_path, count):
    """Wait until so many calls have a row, whether they are over or not."""
    ledger = famnb.Ledger(tmp_path / "ledger.sqlite")
    wait_until(lambda: len(ledger) >= count, timeout=60)


@pytest.mark.full
def test_a_run_that_is_killed_twice_goes_on_and_pays_no_answered_cell_again(child, tmp_path):
    """400 calls, SIGKILL at random moments: each cell is answered exactly once; all else was in flight at a kill."""
    chance, concurrency, kills = random.Random(9), 16, 2
    before = 0
    for _ in range(kills):
        process, _ = child(prompts=PROMPTS, concurrency=concurrency)
        wait_for_rows(tmp_path, before + chance.randrange(10, 60))
        kill_process(process)
        done = sum(map(count_answers, standings_by_cell(famnb.Ledger(tmp_path / "ledger.sqlite")).values()))
        assert before <= done < CELLS
        before = done
    assert before > 0
    _, heard = child(prompts=PROMPTS, concurrency=concurrency)
    assert heard.recv() == CELLS - before
    ledger = famnb.Ledger(tmp_path / "ledger.sqlite")
    assert_each_is_answered_once(ledger, CELLS, interrupted=kills * concurrency)
