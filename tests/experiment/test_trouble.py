"""Trouble that keeps calls from being made: it stops a run, never the plan; no cell is lost, and none is paid twice."""

import functools
import queue
import threading
import time

import pytest

import famnb
from famnb.experiment.schedule import MAX_FAILURES
from tests.experiment.experiments import GRID, small_experiment, statuses
from tests.support import wire_payloads
from tests.support.fault_server import Action, FaultServer, whole
from tests.support.waiting import wait_until

ANSWER = whole(wire_payloads.body("messages", "An answer."))
KEY = "k" * 20
QUESTIONS = [f"Question {number}" for number in range(15)]
REAL_WAIT_S = 60
"""How long a call in flight has to end."""


class SteppedTime:
    """Time that stands still while a call is in flight, and else goes on at once; `seconds` are those gone by."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.in_flight = 0
        # Held while an outcome is handed over: a call whose outcome the run has is in flight no more.
        self.lock = threading.Lock()

    def wait(self, outcomes, timeout):
        with self.lock:
            stands_still = self.in_flight or timeout is None
        try:
            return outcomes.get(timeout=REAL_WAIT_S if stands_still else 0)
        except queue.Empty:
            self.seconds += timeout or 0
            raise


class SteppedExecutor:
    """Counts the calls that an executor has in flight."""

    def __init__(self, executor, time_steps: SteppedTime) -> None:
        self.limit = executor.limit
        self.executor = executor
        self.time_steps = time_steps

    def start(self, cell, *, labels, on_done):
        def hand_over(outcome):
            with self.time_steps.lock:
                on_done(outcome)
                self.time_steps.in_flight -= 1

        with self.time_steps.lock:
            self.time_steps.in_flight += 1
        return self.executor.start(cell, labels=labels, on_done=hand_over)


class SteppedExperiment(famnb.Experiment):
    """Its runs go by `time_steps`."""

    time_steps: SteppedTime

    def make_run(self, todo, report, executor, **options):
        clock = {"now": lambda: self.time_steps.seconds, "wait": self.time_steps.wait}
        return super().make_run(todo, report, SteppedExecutor(executor, self.time_steps), **clock, **options)


def refusal(status, **headers):
    return whole({"error": {"message": "not now"}}, status=status, **headers)


@pytest.fixture
def connect_to(tmp_path):
    """Makes clients of a server at an address, each call of which is tried once unless a test says otherwise."""
    clients = []

    def make(url, *, tries=1, ledger="ledger.sqlite", **options):
        options = {"retries": famnb.Retries(tries=tries), "ledger": tmp_path / ledger, **options}
        clients.append(famnb.Client(base_url=url, api_key=KEY, **options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def time_steps():
    return SteppedTime()


def experiment(client, *, time_steps=None, prompts=15, **options):
    """Four cells a prompt, whole replies; on a clock of its own if one is given."""
    if time_steps is None:
        return small_experiment(client, prompts=prompts, stream=False, **options)
    exp = SteppedExperiment(QUESTIONS[:prompts], GRID, 2, name="exp", client=client, max_tokens=16, stream=False)
    exp.time_steps = time_steps
    return exp


def answers_by_cell(exp):
    """How many answers each planned cell has in the ledger."""
    rows = famnb.calls(exp.ledger, experiment=exp.name, status=["completed", "incomplete"])
    return rows["cell"].value_counts().reindex(exp.plan()["cell"], fill_value=0)


@pytest.mark.full
def test_an_outage_of_two_seconds_fails_nothing(connect_to):
    is_down, paid = threading.Event(), []

    def answer(_request):
        if is_down.is_set():
            return [Action.RESET]
        paid.append(1)
        if len(paid) == 40:
            is_down.set()
        return ANSWER

    first = FaultServer(choose=answer)
    exp = experiment(connect_to(first.url, tries=3), prompts=50)
    run = exp.run(concurrency=16, wait=False)
    is_down.wait()
    first.close()
    wait_until(lambda: run.progress.pause_s)
    time.sleep(2)
    is_down.clear()
    with FaultServer(choose=answer, port=int(first.url.rpartition(":")[2])):
        report = run.wait()
    assert (report.completed, report.failed, report.remaining, report.stopped_by) == (200, 0, 0, None)
    assert set(answers_by_cell(exp)) == {1}
    assert len(paid) == 200
    assert report.requeued > 0
    assert "their cells were put back" in str(report)


def test_a_wrong_key_ends_the_run_at_once_and_the_right_one_goes_on(connect_to, connect, server):
    exp = experiment(connect_to(server.url))
    report = exp.run(concurrency=4)
    assert (report.completed, report.failed, report.remaining, report.stopped_by) == (0, 0, 60, "trouble")
    assert report.reason.startswith("the simulation takes no call with this key (AuthenticationError: 401")
    assert "the key is the one in FAM_API_KEY" in str(report)
    assert report.requeued <= 4
    assert statuses(exp) == {"planned": 60}
    again = experiment(connect(server))
    assert (again.forecast().remaining, again.run().completed) == (60, 60)
    assert set(answers_by_cell(again)) == {1}


@pytest.mark.parametrize("status", [402, 403])
def test_what_a_key_may_not_ends_the_run_too(connect_to, status):
    with FaultServer(ANSWER, refusal(status)) as server:
        report = experiment(connect_to(server.url)).run(concurrency=1)
    assert (report.completed, report.remaining, report.stopped_by) == (1, 59, "trouble")
    assert str(status) in report.reason


@pytest.mark.parametrize(("status", "seconds"), [(429, 30), (429, 120), (503, 30), (529, 7200)])
def test_a_service_that_asks_to_wait_is_waited_for(connect_to, time_steps, status, seconds):
    def answer(_request):
        return ANSWER if time_steps.seconds else refusal(status, retry_after=str(seconds))

    with FaultServer(choose=answer) as server:
        exp = experiment(connect_to(server.url, tries=3), time_steps=time_steps)
        report = exp.run(concurrency=16)
    assert (report.completed, report.failed, report.remaining) == (60, 0, 0)
    assert 1 <= report.requeued <= 16
    assert time_steps.seconds == pytest.approx(seconds, abs=1)
    assert report.waited_s == pytest.approx(seconds, abs=1)
    assert set(answers_by_cell(exp)) == {1}


def test_the_wait_is_shown_and_a_stop_ends_it(connect_to):
    with FaultServer(refusal(429, retry_after="3600"), ANSWER) as server:
        exp = experiment(connect_to(server.url))
        run = exp.run(concurrency=1, wait=False)
        progress = wait_until(lambda: run.progress if run.progress.pause_s else None)
        assert 3500 < progress.pause_s <= 3600
        assert str(progress).startswith("0 of 60")
        assert "paused for 1 h 0 min: RateLimitError: 429: not now" in str(progress)
        run.stop()
        report = run.wait()
        assert (report.stopped_by, report.remaining, report.cancelled, run.progress.pause_s) == ("stop", 60, 0, 0)
        assert experiment(connect_to(server.url)).run().completed == 60


def test_a_capacity_of_four_asked_with_thirty_two_fails_nothing(connect_to):
    lock, active = threading.Lock(), [0]

    def answer(_request):
        with lock:
            if active[0] >= 4:
                return refusal(429)
            active[0] += 1
        done = threading.Event()

        def finish():
            with lock:
                active[0] -= 1
            done.set()

        threading.Timer(0.02, finish).start()
        return [done, *ANSWER]

    with FaultServer(choose=answer) as server:
        exp = experiment(connect_to(server.url, tries=3), prompts=60)
        report = exp.run(concurrency=32)
    assert (report.completed, report.failed, report.remaining) == (240, 0, 0)
    assert set(answers_by_cell(exp)) == {1}


def test_a_service_that_never_comes_back_ends_the_run_with_the_reason(connect_to, time_steps, where):
    with FaultServer(ANSWER) as server:
        pass
    exp = experiment(connect_to(server.url), time_steps=time_steps, prompts=3)
    key = {"worker_key": functools.partial(str, KEY)} if where else {}
    report = exp.run(concurrency=4, **where, **key)
    assert (report.completed, report.failed, report.remaining, report.stopped_by) == (0, 0, 12, "trouble")
    assert f"{server.url} took no call {MAX_FAILURES} times in a row (ConnectError" in str(report)
    assert "12 are left: run() again goes on with them." in str(report)
    first = report.requeued - (MAX_FAILURES - 1)
    # A busy cluster tells of the first failures one by one; by this clock the pauses between them are over at once.
    assert first >= 1 if where else first == 4
    with FaultServer(ANSWER, port=int(server.url.rpartition(":")[2])):
        assert exp.run(**where, **key).completed == 12
    assert set(answers_by_cell(exp)) == {1}


def test_what_a_call_was_kept_from_costs_nothing_of_the_budget(connect_to, time_steps, prices):
    with FaultServer(*[refusal(503)] * 5, ANSWER) as server:
        exp = experiment(connect_to(server.url), time_steps=time_steps)
        report = exp.run(concurrency=1, budget_usd=1)
        assert report.completed == 60
        assert float(report.counted_usd) == pytest.approx(exp.frame()["cost_high_usd"].sum())
        assert sum(exp.frame().attrs["refused"].values()) == 5
        assert exp.summary().notes[0].startswith("Requests that were refused or broke off, and were sent again: ")
        assert exp.run(budget_usd=1).counted_usd == report.counted_usd


def test_variants_with_clients_of_their_own_are_not_run_on_a_cluster(connect_to, client, dask_client):
    exp = famnb.Experiment(["a"], famnb.grid(client={"one": client, "two": connect_to("http://127.0.0.1:9")}), name="n")
    with pytest.raises(famnb.InvalidRequest, match="clients of their own are run by this process; run without on="):
        exp.run(on=dask_client)
    assert len(client.ledger) == 0


def test_one_service_in_trouble_holds_up_no_other(connect_to, time_steps):
    with FaultServer(ANSWER) as sound, FaultServer(refusal(503)) as broken:
        grid = famnb.grid(client={"sound": connect_to(sound.url), "broken": connect_to(broken.url)})
        exp = SteppedExperiment(["a", "b", "c"], grid, 4, name="two", max_tokens=16, stream=False)
        exp.time_steps = time_steps
        report = exp.run(concurrency=4)
    assert (report.completed, report.remaining, report.stopped_by) == (12, 12, "trouble")
    assert report.reason.startswith(f"{broken.url} took no call")
    answered = exp.frame().groupby("client")["status"].agg(lambda status: (status == "completed").sum())
    assert answered.to_dict() == {"sound": 12, "broken": 0}


def test_a_model_that_always_answers_503_holds_up_no_other(connect_to, time_steps):
    def answer(request):
        return refusal(503) if b"fam-2-5-mini" in request.body else ANSWER

    with FaultServer(choose=answer) as server:
        exp = experiment(connect_to(server.url), time_steps=time_steps, prompts=3)
        report = exp.run(concurrency=4)
    assert (report.completed, report.failed, report.remaining, report.stopped_by) == (6, 0, 6, "trouble")


def test_a_stream_that_breaks_off_and_other_errors_are_the_models_failures(connect_to, time_steps):
    with FaultServer(refusal(500), refusal(503), ANSWER, [*ANSWER[:0], ANSWER[0][:-5], Action.RESET], ANSWER) as server:
        exp = experiment(connect_to(server.url), time_steps=time_steps, prompts=1)
        report = exp.run(concurrency=1)
    assert (report.completed, report.failed, report.requeued) == (2, 2, 1)
    assert exp.run().skipped == 4
