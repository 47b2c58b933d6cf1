"""Runs on a Dask cluster: one ledger, nothing lost with a worker or a driver, and no key where Dask keeps things."""

import functools
import os
import pickle
import signal
import sys

import distributed
import pytest

import famnb
from famnb.client import dask_worker
from famnb.errors import CredentialError, InvalidRequest
from famnb.experiment import dask_executor
from famnb.record.price_book import ceiling
from tests.experiment.experiments import (
    GRID,
    assert_each_is_answered_once,
    count_answers,
    kill_process,
    small_experiment,
    standings_by_cell,
)
from tests.experiment.shared_run import CELLS_PER_PROMPT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.full


def kill(dask_client, *, workers):
    """SIGKILL for so many workers; others take their place."""
    pids = dask_client.run(os.getpid)
    for pid in list(pids.values())[:workers]:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(set(dask_client.nthreads()) - set(list(pids)[:workers])) == 2)


@pytest.fixture
def slow(server):
    """A service whose answers take some tenths of a second."""
    with famnb.serve(time_scale=0.1, key=server.key) as running:
        yield running


def test_every_cell_is_answered_once_by_both_workers_and_timed_there(client, dask_client):
    exp = small_experiment(client, prompts=60)
    report = exp.run(concurrency=64, on=dask_client)
    assert (report.completed, report.failed, report.lost) == (240, 0, 0)
    assert_each_is_answered_once(client.ledger, 240, interrupted=0)
    frame = exp.frame()
    assert (frame["ttfb_s"] <= frame["ttft_s"]).all()
    assert (frame["ttft_s"] <= frame["e2e_s"]).all()
    assert frame["simulated"].all()
    call = client.ledger.call(frame["call_id"][0])
    assert call.request == exp.cells[0].request
    assert call.reply.text
    assert call.reply.events


def test_nothing_is_lost_when_a_worker_is_killed(connect, slow, dask_client):
    client = connect(slow)
    exp = small_experiment(client, prompts=100)
    run = exp.run(concurrency=64, on=dask_client, wait=False)
    wait_until(lambda: run.progress.completed > 20)
    kill(dask_client, workers=1)
    report = run.wait()
    assert (report.completed, report.cancelled, report.remaining) == (400, 0, 0)
    assert 0 < report.lost <= 64
    assert_each_is_answered_once(client.ledger, 400, interrupted=report.lost)
    cut_off = client.ledger.select("status = 'interrupted'")
    assert len(cut_off) == report.lost == len(client.ledger) - 400
    assert {row["error"] for row in cut_off} == {"WorkerLost"}


def test_what_a_lost_worker_had_received_is_kept_and_counts_at_its_worst(
    connect, stalling, server, dask_client, prices
):
    client = connect(stalling)
    exp = small_experiment(client, prompts=1)
    run = exp.run(concurrency=2, budget_usd=1, on=dask_client, wait=False)
    wait_until(lambda: len(list(client.ledger.reads([row["id"] for row in client.ledger.select()]))) == 2)
    kill(dask_client, workers=2)
    wait_until(lambda: len(client.ledger.select()) == 4)
    run.stop()
    assert (run.wait().lost, run.progress.cancelled) == (2, 2)
    lost = client.ledger.select("error = 'WorkerLost'")
    assert [client.ledger.call(row["id"]).status for row in lost] == ["interrupted"] * 2
    assert all(client.ledger.call(row["id"]).reply.text for row in lost)
    counted = run.progress.counted_usd
    assert counted == 2 * sum(ceiling(cell.request).usd for cell in exp.cells[:2])
    again = small_experiment(connect(server), prompts=1)
    assert again.run(budget_usd=1, on=dask_client).counted_usd > counted


def test_a_driver_that_is_killed_leaves_interrupted_calls_and_the_next_resumes(child, dask_client, tmp_path):
    prompts, concurrency = 80, 16
    on = dask_client.scheduler.address
    ledger = famnb.Ledger(tmp_path / "ledger.sqlite")
    process, _ = child(prompts=prompts, concurrency=concurrency, on=on)
    wait_until(lambda: len(ledger) > 60)
    kill_process(process)
    done = sum(map(count_answers, standings_by_cell(ledger).values()))
    assert 0 < done < prompts * CELLS_PER_PROMPT
    _, messages = child(prompts=prompts, concurrency=concurrency, on=on)
    assert messages.recv() == prompts * CELLS_PER_PROMPT - done
    assert_each_is_answered_once(ledger, prompts * CELLS_PER_PROMPT, interrupted=concurrency)


def test_the_key_is_nowhere_that_dask_keeps_things(connect, stalling, dask_client, tmp_path, capfd):
    client = famnb.Client(base_url=stalling.url, api_key="the-key-of-the-driver", ledger=tmp_path / "ledger.sqlite")
    exp = small_experiment(client)
    run = exp.run(concurrency=4, on=dask_client, wait=False)
    wait_until(lambda: len(client.ledger.select("status = 'running'")) == 4)
    dask_client.dump_cluster_state(str(tmp_path / "state"), format="yaml")
    kept = [
        (tmp_path / "state.yaml").read_text(),
        str(dask_client.get_task_stream()),
        str(dask_client.get_events()),
        str(dask_client.get_scheduler_logs()),
        str(dask_client.get_worker_logs()),
        str(dask_client.run_on_scheduler(everything)),
    ]
    run.stop()
    assert run.wait().cancelled == 4
    client.close()
    kept += map(str, capfd.readouterr())
    assert dask_client.scheduler.address in kept[0]
    for key in (stalling.key, "the-key-of-the-driver"):
        assert [number for number, text in enumerate(kept) if key in text] == []
        assert key.encode() not in pickle.dumps(client.engine.settings())


def test_a_key_pasted_into_a_prompt_is_kept_in_no_ledger(client, server, dask_client):
    famnb.Experiment([f"Is {server.key} a good key?"], GRID, name="exp", client=client, max_tokens=4).run(
        on=dask_client
    )
    client.ledger.flush()
    assert client.ledger.select()[0]["prompt"] == "Is [key] a good key?"
    assert server.key.encode() not in client.ledger.path.read_bytes()


def everything(dask_scheduler):
    """All that the scheduler holds for its tasks, as text."""
    return [(task.key, task.run_spec, task.annotations, task.metadata) for task in dask_scheduler.tasks.values()]


@pytest.fixture
def keyless(dask_client, server):
    """The cluster, whose workers find no key in their environment."""
    key = server.key
    dask_client.run(lambda: os.environ.pop("FAM_API_KEY"))
    yield dask_client
    dask_client.run(lambda: os.environ.update(FAM_API_KEY=key))


def test_a_worker_without_a_key_is_said_before_anything_is_sent(client, keyless):
    with pytest.raises(CredentialError, match=r"worker tcp://.* no key of its own: .*set FAM_API_KEY"):
        small_experiment(client).run(on=keyless)
    with pytest.raises(CredentialError, match=r"the function that was given for the key raised KeyError$"):
        small_experiment(client).run(on=keyless, worker_key=functools.partial({}.__getitem__, "secret"))
    assert len(client.ledger) == 0


def test_workers_can_fetch_their_key_with_a_function(client, keyless, server, tmp_path):
    (tmp_path / "key").write_text(server.key)
    assert small_experiment(client).run(on=keyless, worker_key=(tmp_path / "key").read_text).completed == 12


def test_a_new_worker_is_put_to_work_and_left_as_it_was(connect, slow, dask_client):
    left = set().union(*runs_by_worker(dask_client).values())  # by drivers that were killed
    run = small_experiment(connect(slow), prompts=1000).run(concurrency=16, on=dask_client, wait=False)
    dask_client.cluster.scale(3)
    wait_until(lambda: [len(set(runs) - left) for runs in runs_by_worker(dask_client).values()] == [1] * 3)
    run.stop()
    run.wait()
    assert not set().union(*runs_by_worker(dask_client).values()) - left
    dask_client.cluster.scale(2)


def runs_by_worker(dask_client):
    """Which runs each worker carries calls of."""
    return dask_client.run(lambda: list(dask_worker.RUNS))


def test_without_any_worker_for_long_the_run_ends_and_says_so(connect, stalling, monkeypatch):
    monkeypatch.setattr(dask_executor, "GONE_S", 0.5)
    key = {"FAM_API_KEY": stalling.key}
    with (
        distributed.LocalCluster(n_workers=1, dashboard_address=":0", env=key) as cluster,
        distributed.Client(cluster) as dask_client,
    ):
        client = connect(stalling)
        exp = small_experiment(client, prompts=1)
        run = exp.run(concurrency=4, on=dask_client, wait=False)
        wait_until(lambda: len(client.ledger.select("status = 'running'")) == 4)
        cluster.scale(0)
        with pytest.raises(famnb.WorkerLost, match=r"no worker for 0.5 s; run\(\) again goes on"):
            run.wait()
        with pytest.raises(InvalidRequest, match="the cluster has no worker yet"):
            exp.run(on=dask_client)
    assert [row["status"] for row in client.ledger.select()] == ["interrupted"] * 4


def test_a_run_that_dask_cannot_carry_is_refused_and_said_why(connect, server, client, dask_client, monkeypatch):
    with pytest.raises(InvalidRequest, match=r"expected a dask.distributed.Client, got 'tcp:"):
        small_experiment(client).run(on="tcp://127.0.0.1:8786")
    with pytest.raises(InvalidRequest, match="run without on="):
        small_experiment(connect(server, replay="prefer")).run(on=dask_client)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidRequest, match=r'pip install "famnb\[scale\]"'):
        small_experiment(client).run(on=dask_client)
    assert small_experiment(client).run().completed == 12
