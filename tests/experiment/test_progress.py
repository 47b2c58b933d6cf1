"""Progress and report of a run: what they say while it runs and once it is over."""

import pytest

import famnb
from famnb.errors import InvalidRequest
from tests.experiment.experiments import small_experiment
from tests.support.waiting import wait_until


def test_progress_can_be_read_while_it_runs(connect, stalling):
    exp = small_experiment(connect(stalling))
    run = exp.run(concurrency=2, wait=False)
    wait_until(lambda: run.progress.running == 2)
    now = run.progress
    assert (now.planned, now.skipped, now.done, now.running) == (12, 0, 0, 2)
    assert (now.spent_usd, now.eta_s, now.is_over) == (None, None, False)
    with pytest.raises(InvalidRequest, match="exp is running already"):
        exp.run()
    run.stop()
    run.wait()
    assert (run.progress.is_over, run.progress.eta_s, run.running) == (True, 0, False)


def test_a_bar_shows_the_money_spent_and_what_was_there_before(client, prices, capsys):
    small_experiment(client, prompts=1).run(progress=True)
    assert "4/4" in capsys.readouterr().err
    small_experiment(client).run(progress=True)
    shown = capsys.readouterr().err
    assert "12/12" in shown
    assert "$0.00" in shown


def test_a_report_reads_as_sentences(client, prices):
    report = small_experiment(client, name="<a>").run(budget_usd=1)
    assert str(report).startswith("<a>: 12 answered of 12 planned in ")
    assert "of the budget of $1.00 are counted." in str(report)
    assert "&lt;a&gt;: 12 answered" in report._repr_html_()


def test_what_was_spent_is_marked_where_token_counts_are_estimates(client):
    prompt = ["Write 20 words about tides."]
    for streams, spent in ((False, "; spent $"), (True, "; spent at most $")):
        variants = famnb.grid(endpoint="chat", model="fam-mini", stream=streams)
        report = famnb.Experiment(prompt, variants, name=f"{streams}", client=client, max_tokens=90).run()
        assert spent in str(report)
