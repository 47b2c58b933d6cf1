"""Experiments: what a run answers, what stopping keeps, and what is refused before anything is paid."""

import contextlib
import os
import signal
import sqlite3
import threading

import pytest

import famnb
from famnb.errors import InvalidRequest, LedgerError
from famnb.experiment.runner import Run
from tests.experiment.experiments import small_experiment, statuses
from tests.support.waiting import wait_until


def test_a_run_answers_every_cell_once_and_the_frame_says_so(client, where):
    exp = small_experiment(client)
    assert statuses(exp) == {"planned": 12}
    report = exp.run(concurrency=4, **where)
    assert (report.planned, report.completed, report.failed, report.remaining, report.stopped_by) == (
        12,
        12,
        0,
        0,
        None,
    )
    frame = exp.frame()
    assert set(frame["status"]) <= {"completed", "incomplete"}
    assert frame["call_id"].nunique() == 12 == len(client.ledger)
    assert frame["output_tokens"].notna().all()
    assert frame["cell"].equals(exp.plan()["cell"])


def test_the_frame_has_the_same_columns_and_types_before_and_after_a_run(client):
    exp = small_experiment(client)
    before = exp.frame()
    exp.run()
    after = exp.frame()
    kinds = {name: (str(before[name].dtype), str(after[name].dtype)) for name in after}
    assert list(before) == list(after)
    assert {name: kind for name, kind in kinds.items() if kind[0] != kind[1]} == {}
    assert before.drop(columns=["status", *exp.plan().columns]).isna().all(axis=None)


@pytest.mark.parametrize("how", ["experiment", "run"])
def test_stopping_keeps_what_had_come_and_running_again_goes_on(connect, server, stalling, how, where):
    exp = small_experiment(connect(stalling))
    run = exp.run(concurrency=3, wait=False, **where)
    assert isinstance(run, Run)
    wait_until(lambda: statuses(exp).get("running") == run.progress.running == 3)
    (exp if how == "experiment" else run).stop()
    report = run.wait()
    assert (report.cancelled, report.completed, report.remaining, report.stopped_by) == (3, 0, 12, "stop")
    assert statuses(exp) == {"cancelled": 3, "planned": 9}
    exp = small_experiment(connect(server))
    assert exp.run(**where).completed == 12
    assert set(statuses(exp)) <= {"completed", "incomplete"}


def test_an_interrupt_keeps_everything_and_is_raised(connect, server, stalling, capsys, where):
    exp = small_experiment(connect(stalling))

    def interrupt():
        wait_until(lambda: statuses(exp).get("running") == 4)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt, match=r"exp: 0 answered, 4 stopped of 12 planned.*12 are left"):
        exp.run(concurrency=4, **where)
    assert statuses(exp) == {"cancelled": 4, "planned": 8}
    assert small_experiment(connect(server)).run().completed == 12


def test_a_recorded_call_answers_at_no_cost_and_is_found_in_the_frame(client, connect, server, prices):
    small_experiment(client).run()
    exp = small_experiment(connect(server, replay="only"), name="again")
    report = exp.run(budget_usd="0.01")
    assert (report.completed, report.spent_usd, report.counted_usd) == (12, None, 0)
    assert exp.run().skipped == 12
    assert len(client.ledger) == 12
    assert set(exp.frame()["call_id"]) == {row["id"] for row in client.ledger.select()}


def test_a_ledger_that_cannot_be_written_is_said_before_anything_is_paid(server, tmp_path):
    (tmp_path / "folder").mkdir()
    with famnb.Client(base_url=server.url, api_key=server.key, ledger=tmp_path / "folder") as client:
        with pytest.raises(LedgerError, match="cannot be read"):
            small_experiment(client).run()
        assert client.last is None


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """Holds the ledger's lock until it is told to `COMMIT`; writers wait for it a twentieth of a second."""
    monkeypatch.setattr("famnb.record.schema.LOCK_S", 0.05)
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)) as other:
        yield lambda sql="BEGIN IMMEDIATE": other.execute(sql)


@pytest.mark.filterwarnings("ignore:calls are not being recorded")
def test_calls_go_on_while_the_ledger_is_locked_and_none_is_lost(client, locked):
    small_experiment(client).run()
    exp = small_experiment(client, prompts=20)
    # Else the lock may come before the records of the first run.
    client.ledger.flush()
    locked()
    assert exp.run(concurrency=4).completed == 68
    with pytest.raises(LedgerError, match="records of earlier calls wait in memory"):
        exp.run()
    locked("COMMIT")
    assert (exp.run().completed, len(client.ledger)) == (0, 80)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"concurrency": 0}, "concurrency: expected an integer of at least 1"),
        ({"budget_usd": -1}, "budget_usd: expected an amount in USD of 0 or more, got -1"),
        ({"budget_usd": "much"}, "budget_usd: expected"),
    ],
)
def test_a_senseless_setting_is_refused_before_the_first_call(client, prices, wrong, message):
    with pytest.raises(InvalidRequest, match=message):
        small_experiment(client).run(**wrong)
    assert len(client.ledger) == 0


def test_more_at_once_than_the_client_has_connections_is_said(connect, server):
    exp = small_experiment(connect(server, connections=2))
    with pytest.warns(UserWarning, match="concurrency: 64, but the client uses 2 connections at most"):
        assert exp.run(concurrency=64).completed == 12


def test_a_run_that_breaks_raises_what_broke_it(connect, server):
    client = connect(server)
    exp = small_experiment(client)
    client.close()
    with pytest.raises(famnb.FamnbError, match="this client is closed"):
        exp.run()


def test_an_experiments_frame_shows_variant_prompt_and_scores(client):
    rows = [
        {"id": "sum", "prompt": "2 + 2?", "expected": "4", "topic": "number"},
        {"id": "sky", "prompt": "Which colour has the sky?", "expected": "blue", "topic": "nature"},
    ]
    variants = famnb.grid(temperature=[0.0, 0.5])
    exp = famnb.Experiment(rows, variants, 2, [famnb.scorers.exact()], name="shown", client=client, keep="topic")
    planned = exp.frame()
    assert set(planned["status"]) == {"planned"}
    exp.run(progress=False)
    frame, recorded = exp.frame(), famnb.calls(client, experiment="shown")
    head, *_ = repr(frame).splitlines()
    assert {"variant", "prompt_id"} <= set(head.split())
    assert "score_exact" in repr(frame)
    assert {"order", "temperature", "wait_s", "topic"} <= set(planned.columns)
    by_topic = recorded.groupby("topic")["repeat"].agg(["count", "max"])
    assert by_topic.to_dict("index") == {"nature": {"count": 4, "max": 1}, "number": {"count": 4, "max": 1}}
    assert (recorded["wait_s"] >= recorded["e2e_s"]).all()
