"""A run by itself, its calls carried by a script: order, concurrency, warm-ups, and room in the budget."""

from decimal import Decimal

import pytest

from famnb.experiment.budget import Budget
from famnb.experiment.progress import RunReport
from famnb.experiment.runner import Run
from tests.experiment.experiments import make_plan
from tests.experiment.scripted_executor import ScriptedExecutor, call_outcome


@pytest.fixture
def running():
    """Starts a run of twelve cells, more with warm-ups, over a script; each may cost 2 at worst."""
    runs = []

    def start(executor, *, concurrency=4, limit=None, warmup=0):
        cells = make_plan(["a", "b", "c"], [{}, {"top_p": 0.5}], repeats=2, warmup=warmup)
        budget = Budget(None if limit is None else Decimal(limit), lambda _: Decimal(2))
        report = RunReport(name="s", planned=len(cells))
        runs.append(Run(cells, report, executor, concurrency=concurrency, budget=budget))
        return runs[-1]

    yield start
    for run in runs:
        run.stop()


def test_cells_start_in_their_order_and_never_more_at_once_than_asked_for(running):
    script = ScriptedExecutor()
    run = running(script, concurrency=4)
    for turn in range(12):
        script.until(min(turn + 4, 12))
        script.end(script.started[turn], call_outcome())
    assert run.wait().completed == 12
    assert script.most == 4
    assert [cell.order for cell in script.started] == list(range(12))


def test_measured_calls_wait_until_the_warm_ups_are_over(running):
    script = ScriptedExecutor()
    run = running(script, concurrency=64, warmup=2)
    script.until(4)
    for cell in list(script.started)[:3]:
        script.end(cell, call_outcome())
    run.join(0.05)
    assert run.running
    assert [cell.warmup for cell in script.started] == [True] * 4
    script.end(script.started[3], call_outcome())
    script.until(16)
    assert [cell.warmup for cell in script.started] == [True] * 4 + [False] * 12


def test_a_call_starts_only_when_all_in_flight_at_their_worst_leave_room(running):
    script = ScriptedExecutor()
    run = running(script, concurrency=64, limit="6.5")
    script.until(3)
    for number, started in [(0, 3), (1, 4), (2, 4), (3, 5)]:
        script.end(script.started[number], call_outcome(high="1"))
        script.until(started)
        run.join(0.05)
        assert run.running
        assert len(script.started) == started
    script.end(script.started[4], call_outcome(high="1.5"))
    report = run.wait()
    assert (report.completed, report.stopped_by, report.counted_usd) == (5, "budget", Decimal("5.5"))
    assert report.remaining == 7


def test_a_stop_ends_what_is_in_flight_and_starts_nothing_more(running):
    script = ScriptedExecutor()
    run = running(script, concurrency=1)
    script.until(1)
    run.stop()
    report = run.wait()
    assert (report.cancelled, report.remaining, report.stopped_by, len(script.started)) == (1, 12, "stop", 1)


def test_a_cell_whose_worker_is_lost_is_run_again_twice_at_most_and_each_call_counts_at_its_worst(running):
    """The first is answered at its third try, at a cost of 2, 2 and 1; the second is given up, for a later run."""
    script = ScriptedExecutor()
    lost = call_outcome("interrupted", high=None, http_status=None, error="WorkerLost")
    run = running(script, concurrency=1, limit="11")
    for number, outcome in enumerate([lost, lost, call_outcome(), lost, lost, lost]):
        script.until(number + 1)
        script.end(script.started[number], outcome)
    report = run.wait()
    assert [cell.order for cell in script.started] == [0, 0, 0, 1, 1, 1]
    assert (report.completed, report.cancelled, report.lost, report.counted_usd) == (1, 1, 5, 11)
    assert report.stopped_by == "budget"
    assert "5 calls were lost with their workers" in str(report)


def test_a_run_that_is_stopped_runs_no_lost_cell_again(running):
    script = ScriptedExecutor(when_stopped=call_outcome("interrupted", error="WorkerLost"))
    run = running(script, concurrency=1)
    script.until(1)
    run.stop()
    report = run.wait()
    assert (report.cancelled, report.lost, report.remaining, len(script.started)) == (1, 1, 12, 1)
