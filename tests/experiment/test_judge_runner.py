"""The calls of judges: within their budget, paid for once, and tried again after an outage."""

import sqlite3
from pathlib import Path

import pytest

from famnb import scorers
from famnb.errors import InvalidRequest
from famnb.record.price_book import ceiling
from tests.experiment.judging import Serve, answer, longer
from tests.experiment.scripted_models import experiment
from tests.support.fault_server import whole


def test_a_judge_whose_calls_fail_gives_no_verdict_and_is_tried_the_next_time(serve: Serve):
    broken = [True]
    client, _ = serve(answer, lambda asked: whole({"error": {"message": "out"}}, 500) if broken else longer(asked))
    exp = experiment(client, ["a"], "x", "xx", scorers=[scorers.judge("fam-mini", pairwise=True)])
    report = exp.score()
    assert report.missing["judge"] == 2
    assert "calls failed" in str(report)
    assert len(exp.votes()) == 0
    broken.clear()
    assert exp.score().missing["judge"] == 0
    assert exp.frame().set_index("variant")["score_judge"].to_dict() == {"x": 0, "xx": 1}


def test_a_verdict_that_was_paid_for_is_not_paid_for_again(serve: Serve, tmp_path: Path):
    client, server = serve(answer, longer)
    exp = experiment(client, ["a", "b"], "x", "xx", scorers=[scorers.judge("fam-mini", pairwise=True)])
    exp.score()
    asked = len(server.requests)
    with sqlite3.connect(tmp_path / "judged.sqlite") as connection:
        connection.execute("DELETE FROM votes")
    assert exp.score().scored["judge"] == 4
    assert len(server.requests) == asked
    assert exp.judge_cost()["calls"] == 4


def test_judges_keep_to_their_budget_earlier_rounds_counted(serve: Serve):
    client, server = serve(answer, longer)
    judge = scorers.judge("fam-mini", pairwise=True, max_tokens=100)
    exp = experiment(client, list("abcdef"), "x", "xx", scorers=[judge])
    cells = [one.cell for one in exp.answers()]
    worst = float(ceiling(judge.comparing(cells[0].prompt, "a", "aa")).usd)
    before = len(server.requests)
    report = exp.score(budget_usd=1.3 * worst, concurrency=1)
    made, cost = len(server.requests) - before, exp.judge_cost()["cost_usd"]
    assert 1 < made < 12
    assert cost <= 1.3 * worst < cost + 1.1 * worst
    assert report.unpaid == {"judge": 12 - made}
    assert f"{12 - made} more could pass the budget" in str(report)
    assert exp.score(budget_usd=0).scored == {"judge": 0}
    assert exp.score(budget_usd=1).scored == {"judge": 12 - made}
    assert len(server.requests) - before == 12
    unpriced = scorers.judge("fam-2-5-pro", max_tokens=100)
    with pytest.raises(InvalidRequest, match="no price is known for 'fam-2-5-pro'"):
        experiment(client, ["a"], "x", "xx", scorers=[unpriced]).score(budget_usd=1)
