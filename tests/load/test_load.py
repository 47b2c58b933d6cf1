"""A load on a queue of known law, on real sockets: what is measured, what ends early, what is refused."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import distributed
import pandas as pd
import pytest

import famnb
from famnb.errors import BudgetExceeded, InvalidRequest
from famnb.load.measure import measure_step
from famnb.load.step import Step
from famnb.service import Server
from tests.support.experiment_fixtures import prices
from tests.support.queue_server import serve_queue, share_within

__all__ = ["prices"]

SERVERS, MEAN_S = 4, 0.05
"""Of the queue: it answers 80 calls a second at most."""


@pytest.fixture(scope="module")
def queue() -> Iterator[str]:
    with serve_queue(SERVERS, MEAN_S) as url:
        yield url


@pytest.fixture
def client(queue: str, tmp_path: Path) -> Iterator[famnb.Client]:
    ledger = tmp_path / "ledger.sqlite"
    with famnb.Client(base_url=queue, api_key="k", profile="open", ledger=ledger, connections=1000) as client:
        yield client


@pytest.fixture
def make_load(client: famnb.Client) -> Callable[..., famnb.Load]:
    def make(**options: object) -> famnb.Load:
        return famnb.Load("Say yes.", **{"duration": 2, "client": client, "model": "m", **options})

    return make


@pytest.mark.full
def test_an_open_load_measures_what_the_law_of_the_queue_says(make_load: Callable[..., famnb.Load]):
    """At half its capacity, the share of calls within 150 ms is that of an M/M/4 queue, within its own interval."""
    load = make_load(rate=40, duration=8, slo={"e2e_s": 0.15}, share=0.8)
    report = load.run()
    (step,) = report.steps
    assert step.share is not None
    # Own lateness on a busy machine only takes from it.
    assert step.share.low - 0.02 <= share_within(0.15, 40, SERVERS, MEAN_S)
    assert step.failed == 0
    frame = load.frame()
    assert len(frame) == len(famnb.calls(load.client, experiment=load.name))
    assert (frame["latency_s"] >= frame["e2e_s"]).all()
    assert (frame["late_s"] >= 0).all()
    assert step.n == int((~frame["warmup"]).sum())


@pytest.mark.full
def test_a_closed_load_looks_better_than_what_users_meet(make_load: Callable[..., famnb.Load]):
    """Beyond the capacity, those who wait for their turn outside are not counted by a closed load."""
    closed = make_load(rate=8, arrivals="closed").run().steps[0]
    load = make_load(rate=160, duration=8)
    opened = load.run().steps[0]
    assert closed.verdict == "measured"
    assert closed.answered_per_s < 90
    # On a machine with much else to do this process may be the one that is late.
    assert opened.verdict in ("growing", "invalid")
    answered = load.frame().query("status == 'completed'")
    assert answered["latency_s"].median() > closed.latency_s[0]


@pytest.mark.full
def test_a_step_does_not_wait_behind_the_calls_that_the_one_before_it_left(make_load: Callable[..., famnb.Load]):
    """The queue goes on with calls that were stopped; some hundreds of them take it seconds."""
    load = make_load(rate=[120, 20], duration=10, warmup=0)
    overloaded, after = load.run().steps
    if not overloaded.failed:
        pytest.skip("other work on this machine kept the load from outgrowing the service")
    assert after.latency_s[0] < 0.5


def test_a_step_that_is_measured_is_not_repeated_and_one_that_was_cut_off_is(make_load: Callable[..., famnb.Load]):
    load = make_load(rate=[10, 20], duration=1)
    listeners = load.client.ledger.listeners

    def interrupt(call_id: str) -> None:
        if load.client.ledger.call(call_id).labels["variant"] == "20/s":
            listeners.remove(interrupt)
            signal.raise_signal(signal.SIGINT)

    listeners.append(interrupt)
    with pytest.raises(famnb.Interrupted, match=r"20/s: \d+ calls were started"):
        load.run()
    cut_off = load.frame().groupby("step", observed=True).size()
    report = load.run()
    assert report.skipped == 1
    assert "1 step had been measured before" in str(report)
    counts = load.frame().groupby("step", observed=True).size()
    assert counts["10/s"] == cut_off["10/s"]
    assert load.frame().set_index("step").loc["20/s", "status"].eq("completed").all()


@pytest.mark.usefixtures("prices")
def test_what_a_load_may_cost_is_held(server: Server, tmp_path: Path):
    with famnb.Client(base_url=server.url, api_key=server.key, ledger=tmp_path / "l.sqlite") as client:
        options = {"rate": 40, "duration": 2, "client": client, "model": "fam-2-5-pro", "max_tokens": 16}
        load = famnb.Load("Hi.", endpoint="responses", **options)
        report = load.run(budget_usd="0.001")
        assert 0 < len(load.frame()) < 79
        assert float(load.frame()["cost_high_usd"].sum()) <= 0.001
        assert "simulated" in str(report)
        with pytest.raises(BudgetExceeded, match="not even one call fits"):
            famnb.Load("Ho.", endpoint="responses", **options).run(budget_usd=0)


def test_a_trace_keeps_its_times_and_lengths(make_load: Callable[..., famnb.Load]):
    trace = pd.DataFrame({"timestamp": [3, 3.2, 3.5], "input_tokens": [4, 40, 8], "output_tokens": [1, 2, 3]})
    load = make_load(trace=trace)
    load.run()
    frame = load.frame()
    assert frame["due_s"].tolist() == pytest.approx([0, 0.2, 0.5])
    bodies = [load.client.ledger.call(call_id).request for call_id in frame["call_id"]]
    assert [len(request.turns()[-1].text.split()) for request in bodies if request is not None] == [4, 40, 8]


def prompts_of(load: famnb.Load) -> list[list[str]]:
    """The texts of each call's conversation, in the order in which they were due."""
    calls = load.frame().sort_values("due_s")["call_id"]
    requests = [load.client.ledger.call(call_id).request for call_id in calls]
    return [[turn.text for turn in request.turns()] for request in requests if request is not None]


def test_prompts_and_answers_have_the_lengths_asked_for(make_load: Callable[..., famnb.Load]):
    load = make_load(rate=20, arrivals="constant", duration=1, input_tokens=[4, 40], output_tokens=7)
    load.run()
    texts = [text for (text,) in prompts_of(load)]
    assert {len(text.split()) for text in texts} == {4, 40}
    assert len(set(texts)) == 20, "no prompt cache has seen one of them before"
    request = load.client.ledger.call(load.frame()["call_id"].iloc[0]).request
    assert request is not None
    assert request.body()[request.cap] == 7


def test_later_turns_of_a_talk_repeat_the_earlier_ones(make_load: Callable[..., famnb.Load]):
    """Ten talks take turns: the eleventh call goes on with the first talk, the 31st begins a new one."""
    load = make_load(rate=32, arrivals="constant", duration=1, turns=3, input_tokens=4, output_tokens=5)
    load.run()
    talks = prompts_of(load)
    assert [len(talk) for talk in talks] == [*[1] * 10, *[3] * 10, *[5] * 10, 1, 1]
    assert talks[10][:1] == talks[0]
    assert talks[20][:3] == talks[10]
    assert [len(text.split()) for text in talks[20]] == [4, 5, 4, 5, 4]


@pytest.fixture(scope="module")
def dask_client() -> Iterator[Any]:
    """A client of a cluster of two worker processes."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def workers_key() -> str:
    return "k"


@pytest.mark.full
@pytest.mark.parametrize(("options", "calls"), [({"rate": 40, "arrivals": "constant"}, 80), ({"rate": 40}, None)])
def test_workers_start_one_plan_together(dask_client: Any, make_load, options: dict[str, Any], calls: int | None):
    load = make_load(**options)
    report = load.run(on=dask_client, key=workers_key)
    frame = load.frame().sort_values("due_s")
    here = make_load(**options, name="here")
    here.run()
    assert frame["due_s"].tolist() == pytest.approx(here.frame()["due_s"].sort_values().tolist())
    assert frame["status"].eq("completed").all()
    assert calls is None or len(frame) == calls
    assert report.steps[0].n == int((~frame["warmup"]).sum())
    assert load.run(on=dask_client, key=workers_key).skipped == 1


@pytest.mark.full
def test_a_closed_load_is_shared_among_workers(dask_client: Any, make_load):
    load = make_load(rate=3, arrivals="closed", duration=1)
    load.run(on=dask_client, key=workers_key)
    frame = load.frame().sort_values("due_s")
    ends, starts = frame["end_s"].to_numpy(dtype=float), frame["due_s"].to_numpy(dtype=float)
    assert max(int(((starts <= at) & (ends > at)).sum()) for at in starts) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate": 0}, "rate: expected numbers above 0"),
        ({"rate": 1, "arrivals": "steady"}, "arrivals: expected one of poisson, constant, closed"),
        ({"rate": 1, "warmup": 2}, "warmup: expected less than the duration of 2 s"),
        ({"rate": 1, "share": 95}, "share: expected a number between 0 and 1"),
        ({"rate": 1, "turns": 0}, "turns: expected an integer of at least 1"),
        ({"trace": [1, 2], "output_tokens": 5}, "a trace has lengths of its own"),
        ({"rate": 1.5, "arrivals": "closed"}, "rate: expected an integer"),
    ],
)
def test_what_makes_no_load_is_refused(make_load: Callable[..., famnb.Load], options: dict[str, object], words: str):
    with pytest.raises(InvalidRequest, match=words):
        make_load(**options)


def test_a_load_without_a_rate_or_a_fitting_objective_says_what_to_give(make_load: Callable[..., famnb.Load]):
    with pytest.raises(InvalidRequest, match=r"rate=\[1, 2, 4\]"):
        make_load().run()
    with pytest.raises(InvalidRequest, match="find_peak needs an objective"):
        make_load(rate=1).find_peak()
    with pytest.raises(InvalidRequest, match=r"ttft_s is known of streams alone.*take e2e_s"):
        make_load(rate=1, slo={"ttft_s": 0.5}, stream=False).run()


def test_a_search_without_a_load_that_keeps_the_objective_says_so(make_load: Callable[..., famnb.Load]):
    peak = make_load(rate=1, arrivals="closed", duration=1).find_peak(slo={"e2e_s": 1e-6})
    assert str(peak) == "No load was found that keeps e2e_s ≤ 1e-06 in 95% of calls: the lowest step missed it."
    assert [step.verdict for step in peak.steps] == ["missed"]


def calls_of_a_step(late_s: float, latency_s: float) -> pd.DataFrame:
    due = pd.Series([index / 10 for index in range(100)], dtype="Float64")
    rows = {"due_s": due, "late_s": late_s, "latency_s": latency_s, "end_s": due + latency_s, "first_s": latency_s}
    return pd.DataFrame({**rows, "status": "completed", "met": True})


def test_calls_that_were_stopped_have_no_part_in_the_latencies():
    step = Step("10/s", 10, due=pd.Series(range(100)).to_numpy() / 10, duration_s=10, warmup_s=0, drain_s=10)
    calls = calls_of_a_step(0, 0.2)
    calls.loc[50:, ["status", "latency_s"]] = ["cancelled", 9.0]
    assert measure_step(step, calls, has_slo=True, wanted=0.9, end="drain").latency_s == (0.2, 0.2)


@pytest.mark.parametrize("latency_s", [0.2, 8])
def test_no_more_calls_keep_the_objective_than_are_answered(latency_s: float):
    """Both are rates over one span: an answer that came after it is in neither."""
    step = Step("10/s", 10, due=pd.Series(range(100)).to_numpy() / 10, duration_s=10, warmup_s=0, drain_s=10)
    calls = calls_of_a_step(0, latency_s)
    found = measure_step(step, calls, has_slo=True, wanted=0.9)
    assert found.answered_per_s == found.goodput_per_s == pytest.approx(10 - latency_s, abs=0.2)
    figure = famnb.plot.load(calls.assign(step="10/s", offered=10.0), figsize=(6.4, 6))
    drawn = {line.get_label(): line.get_ydata()[0] for axes in figure.axes for line in axes.lines}
    assert drawn["kept the objective"] == drawn["answered"] == pytest.approx(10 - latency_s, abs=0.2)


def test_a_step_of_a_client_that_was_late_says_nothing_of_the_service():
    """A tenth of what was measured may be this process's own; beyond it the step is invalid."""
    step = Step("10/s", 10, due=pd.Series(range(100)).to_numpy() / 10, duration_s=10, warmup_s=0, drain_s=10)
    verdicts = {
        (late_s, end): measure_step(step, calls_of_a_step(late_s, 0.2), has_slo=True, wanted=0.9, end=end)
        for late_s in (0.001, 0.1)
        for end in ("", "growing")
    }
    assert [result.verdict for result in verdicts.values()] == ["met", "growing", "invalid", "invalid"]
    assert "this process started calls late, which is 50% of their latency" in verdicts[0.1, "growing"].note


def test_the_figure_of_a_load_names_its_steps(make_load: Callable[..., famnb.Load]):
    load = make_load(rate=[10, 20], duration=1, slo={"e2e_s": 0.5})
    load.run()
    caption = famnb.plot.load(load.frame()).caption
    assert "10/s (n=" in caption
    assert "kept it" in caption
    assert "20/s: at most " in caption
    assert "no call" in famnb.plot.load(load.frame().iloc[:0]).caption
