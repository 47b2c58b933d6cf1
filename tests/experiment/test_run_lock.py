"""The lock of a run: one process at a time, and nothing left of a process that was killed."""

import pytest

import famnb
from tests.experiment.experiments import kill_process
from tests.experiment.shared_run import CELLS_PER_PROMPT
from tests.support.waiting import wait_until

PROMPTS = 500


def test_a_second_process_is_refused_while_the_first_runs_and_then_resumes(connect, stalling, child, tmp_path):
    exp = famnb.Experiment("Question", name="shared", client=connect(stalling))
    run = exp.run(wait=False)
    _, heard = child(prompts=5)
    assert "shared is running already, in this or another process" in heard.recv()
    run.stop()
    run.wait()
    assert child(prompts=5)[1].recv() == 5 * CELLS_PER_PROMPT
    assert not list(tmp_path.glob("*-run-*"))


@pytest.mark.full
def test_a_killed_process_leaves_no_lock_behind(child, tmp_path):
    first, _ = child(prompts=PROMPTS)
    wait_until(lambda: list(tmp_path.glob("*-run-*")))
    kill_process(first)
    assert child(prompts=5)[1].recv() in range(5 * CELLS_PER_PROMPT + 1)
