"""Running: what is left alone, what is run again, and what stopping keeps."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import threading
import time

import pytest

import famnb
from famnb.errors import InvalidRequest, LedgerError
from famnb.experiment import Run

GRID = famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages")


def experiment(client, *, prompts=3, repeats=2, name="exp", **options):
    texts = [f"Question {number}" for number in range(prompts)]
    return famnb.Experiment(texts, GRID, repeats, name=name, client=client, max_tokens=16, **options)


def statuses(exp):
    return {status: count for status, count in exp.frame()["status"].value_counts().items() if count}


def until(true):
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def refusing(server):
    """A service that answers everything with status 400."""
    with famnb.serve(time_scale=0, fault="status=400", key=server.key) as running:
        yield running


def test_a_run_answers_every_cell_once_and_the_frame_says_so(client, where):
    """One row a planned cell, in the plan's order, with what its call measured."""
    exp = experiment(client)
    assert statuses(exp) == {"planned": 12}
    report = exp.run(concurrency=4, **where)
    assert (report.planned, report.completed, report.failed, report.left, report.stopped_by) == (12, 12, 0, 0, None)
    frame = exp.frame()
    assert set(frame["status"]) <= {"completed", "incomplete"}
    assert frame["call_id"].nunique() == 12 == len(client.ledger)
    assert frame["output_tokens"].notna().all()
    assert frame["cell"].equals(exp.plan()["cell"])


def test_the_frame_has_the_same_columns_and_types_before_and_after_a_run(client):
    """So that code for it can be written before anything is paid."""
    exp = experiment(client)
    before = exp.frame()
    exp.run()
    after = exp.frame()
    kinds = {name: (str(before[name].dtype), str(after[name].dtype)) for name in after}
    assert list(before) == list(after)
    assert {name: kind for name, kind in kinds.items() if kind[0] != kind[1]} == {}
    assert before.drop(columns=["status", *exp.plan().columns]).isna().all(axis=None)


def test_running_again_pays_for_nothing_that_is_answered(client, connect, server):
    """Neither with the same object nor with a new one that has more prompts."""
    exp = experiment(client)
    exp.run()
    assert (exp.run().completed, exp.run().skipped) == (0, 12)
    report = experiment(connect(server), prompts=5).run()
    assert (report.completed, report.skipped) == (8, 12)
    assert len(client.ledger) == 20


def test_streams_that_the_service_cut_off_have_failed(connect, server):
    """What came is kept and counted, and may be billed: they are tried again only when asked."""
    with famnb.serve(time_scale=0, fault="cut=3", key=server.key) as cutting:
        run = experiment(connect(cutting), prompts=1, repeats=1).run(wait=False)
        assert str(run.wait()).startswith("exp: 0 completed, 2 failed of 2 planned")
    assert run.errors == {"StreamInterrupted": 2}
    exp = experiment(connect(server), prompts=1, repeats=1)
    assert statuses(exp) == {"interrupted": 2}
    assert list(exp.summary().table["failed"]) == [1, 1]
    assert (exp.run().skipped, exp.run().failed_before) == (2, 2)
    assert exp.run(retry_failed=True).completed == 2


def test_calls_that_a_process_left_behind_are_made_again(client):
    """Its end is no failure of theirs, whether it was killed or ended properly."""
    exp = experiment(client, prompts=1, repeats=1)
    exp.run()
    with sqlite3.connect(client.ledger.path) as file:
        for call_id, error in zip(exp.frame()["call_id"], [None, "ProcessEnded"], strict=True):
            file.execute("UPDATE calls SET status = 'interrupted', error = ? WHERE id = ?", (error, call_id))
    assert statuses(exp) == {"interrupted": 2}
    assert exp.run().completed == 2


def test_another_name_is_another_experiment(client):
    """The same cells under another name are run."""
    experiment(client).run()
    assert experiment(client, name="other").run().completed == 12


def test_what_failed_is_tried_again_only_when_asked(connect, server, refusing, where):
    """A failure stays, is counted and left alone; asked for, it is run again and the answer wins."""
    exp = experiment(connect(refusing))
    assert (exp.run(**where).failed, statuses(exp)) == (12, {"failed": 12})
    assert set(exp.frame()["error"]) == {"BadRequestError"}
    exp = experiment(connect(server))
    left = exp.run(**where)
    assert (left.completed, left.skipped, left.failed_before) == (0, 12, 12)
    assert "12 of those left alone failed earlier. run(retry_failed=True) tries those that failed again." in str(left)
    assert exp.run(retry_failed=True, **where).completed == 12
    assert "failed" not in statuses(exp)
    assert exp.run(retry_failed=True).completed == 0


@pytest.mark.parametrize("how", ["experiment", "run"])
def test_stopping_keeps_what_had_come_and_running_again_goes_on(connect, server, stalling, how, where):
    """Calls in flight are stopped and recorded as cancelled, with their text; then all cells are answered."""
    exp = experiment(connect(stalling))
    run = exp.run(concurrency=3, wait=False, **where)
    assert isinstance(run, Run)
    until(lambda: statuses(exp).get("running") == run.progress.running == 3)
    (exp if how == "experiment" else run).stop()
    report = run.wait()
    assert (report.cancelled, report.completed, report.left, report.stopped_by) == (3, 0, 12, "stop")
    assert statuses(exp) == {"cancelled": 3, "planned": 9}
    exp = experiment(connect(server))
    assert exp.run(**where).completed == 12
    assert set(statuses(exp)) <= {"completed", "incomplete"}


def test_an_interrupt_keeps_everything_and_is_raised(connect, server, stalling, capsys, where):
    """Ctrl-C ends the cell of the notebook; it says how far the run came, and running again goes on."""
    exp = experiment(connect(stalling))

    def interrupt():
        until(lambda: statuses(exp).get("running") == 4)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt, match=r"exp: 0 completed, 4 stopped of 12 planned.*12 are left"):
        exp.run(concurrency=4, **where)
    assert exp._run.report.stopped_by == "interrupt"
    assert statuses(exp) == {"cancelled": 4, "planned": 8}
    assert experiment(connect(server)).run().completed == 12


def test_progress_can_be_read_while_it_runs(connect, stalling):
    """A frozen picture: nothing done, no cost, no guess of the time left before a call has ended."""
    exp = experiment(connect(stalling))
    run = exp.run(concurrency=2, wait=False)
    until(lambda: run.progress.running == 2)
    now = run.progress
    assert (now.total, now.before, now.done, now.running) == (12, 0, 0, 2)
    assert (now.spent_usd, now.eta_s, now.over) == (None, None, False)
    with pytest.raises(InvalidRequest, match="exp is running already"):
        exp.run()
    run.stop()
    run.wait()
    assert (run.progress.over, run.progress.eta_s, run.running) == (True, 0, False)


def test_a_bar_shows_the_money_spent_and_what_was_there_before(client, priced, capsys):
    """It begins at the cells that are answered, and ends at the plan's size."""
    experiment(client, prompts=1).run(progress=True)
    assert "4/4" in capsys.readouterr().err
    experiment(client).run(progress=True)
    shown = capsys.readouterr().err
    assert "12/12" in shown
    assert "$0.00" in shown


def test_a_report_reads_as_sentences(client, priced):
    """As text and as HTML."""
    report = experiment(client, name="<a>").run(budget_usd=1)
    assert str(report).startswith("<a>: 12 completed of 12 planned in ")
    assert "of the budget of $1.00 are counted." in str(report)
    assert "&lt;a&gt;: 12 completed" in report._repr_html_()


def test_a_recorded_call_answers_at_no_cost_and_is_found_in_the_frame(client, connect, server, priced):
    """Under another name and with `replay`: nothing is sent, nothing counts, and every cell has its measurements."""
    experiment(client).run()
    exp = experiment(connect(server, replay="only"), name="again")
    report = exp.run(budget_usd="0.01")
    assert (report.completed, report.spent_usd, report.counted_usd) == (12, None, 0)
    assert exp.run().skipped == 12
    assert len(client.ledger) == 12
    assert set(exp.frame()["call_id"]) == {row["id"] for row in client.ledger.select()}


def test_a_ledger_that_cannot_be_written_is_said_before_anything_is_paid(server, tmp_path):
    """What is not recorded would be paid again."""
    (tmp_path / "folder").mkdir()
    with famnb.Client(base_url=server.url, api_key=server.key, ledger=tmp_path / "folder") as client:
        with pytest.raises(LedgerError, match="cannot be read"):
            experiment(client).run()
        assert client.last is None


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """Holds the ledger's lock until it is told to `COMMIT`; writers wait for it a twentieth of a second."""
    monkeypatch.setattr("famnb.record.schema.LOCK_S", 0.05)
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)) as other:
        yield lambda sql="BEGIN IMMEDIATE": other.execute(sql)


@pytest.mark.filterwarnings("ignore:calls are not being recorded")
def test_no_call_starts_while_none_can_be_recorded(client, locked, monkeypatch):
    """Those in flight end, the run gives up, and no other begins until their records are in: nothing is paid twice."""
    monkeypatch.setattr("famnb.experiment.runner.PATIENCE_S", 0.5)
    experiment(client).run()
    exp = experiment(client, prompts=20)
    locked()
    run = exp.run(concurrency=4, wait=False)
    with pytest.raises(LedgerError, match=r"exp was stopped since its ledger cannot be written: \d+ records wait"):
        run.wait()
    assert 0 < run.progress.completed < 68
    with pytest.raises(LedgerError, match="records of earlier calls wait in memory"):
        exp.run()
    locked("COMMIT")
    assert exp.run().completed == 68 - run.progress.completed
    assert len(client.ledger) == 80


@pytest.mark.filterwarnings("ignore:calls are not being recorded")
def test_a_ledger_that_can_be_written_again_is_written_on(client, locked):
    """A lock that somebody holds for a while ends no run."""
    experiment(client).run()
    exp = experiment(client, prompts=20)
    locked()
    run = exp.run(concurrency=4, wait=False)
    until(lambda: exp.ledger.behind)
    assert not run.over(0.2)
    locked("COMMIT")
    assert (run.wait().completed, len(exp.ledger)) == (68, 80)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"concurrency": 0}, "concurrency: expected an integer of at least 1"),
        ({"rate": 0}, "rate: expected a number of calls a second above 0, got 0"),
        ({"rate": float("nan")}, "rate: expected"),
        ({"rate": "5"}, "rate: expected a number of calls a second above 0, got '5'"),
        ({"budget_usd": -1}, "budget_usd: expected an amount in USD of 0 or more, got -1"),
        ({"budget_usd": "much"}, "budget_usd: expected"),
    ],
)
def test_a_senseless_setting_is_refused_before_the_first_call(client, priced, wrong, said):
    """And leaves no run behind."""
    with pytest.raises(InvalidRequest, match=said):
        experiment(client).run(**wrong)
    assert len(client.ledger) == 0


def test_more_at_once_than_the_client_has_connections_is_said(connect, server):
    """Calls that wait for a connection would time out; it runs with as many as there are."""
    exp = experiment(connect(server, connections=2))
    with pytest.warns(UserWarning, match="concurrency: 64, but the client uses 2 connections at most"):
        assert exp.run(concurrency=64).completed == 12


def test_a_run_that_breaks_raises_what_broke_it(connect, server):
    """A client that was closed meanwhile ends the run with its own words."""
    client = connect(server)
    exp = experiment(client)
    client.close()
    with pytest.raises(famnb.FamnbError, match="this client is closed"):
        exp.run()
