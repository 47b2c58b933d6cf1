"""Two jobs as somebody writes them in a notebook: how many lines they take, and that what they say is so."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import famnb
from tests.truth import truth_engine
from tests.truth.truth_engine import TrueModel, TruthEngine

pytestmark = pytest.mark.full

MINI_FOR_PRO = """
variants = {
    "pro": {"model": "fam-2-5-pro", "system": "pro"},
    "mini": {"model": "fam-2-5-mini", "system": "mini"},
}
right = famnb.scorers.regex("^yes", name="right")
exp = famnb.Experiment(
    questions, variants, 3, [right], name="mini for pro", client=client, endpoint="web",
    primary="score_right", margin=0.15,
)
exp.run(concurrency=16, budget_usd=5, progress=False)
result = exp.summary()
"""
SLOWER_THIS_WEEK = """
exp = famnb.Experiment(questions, variants, name="this week", client=client, endpoint="web")
exp.run(progress=False)
outcome = exp.check(against="last week", margin={"e2e_s": "10%"}).outcome
sys.exit(["pass", "fail", "unknown"].index(outcome))
"""
QUESTIONS = [f"question {number}" for number in range(40)]
ALIKE = TrueModel(first_token_s=0.01, token_s=0.001, accuracy=0.9)


def run(job: str, *, lines: int, **names: Any) -> dict[str, Any]:
    """Run the lines of a job, of which there are so many at most, and return its variables."""
    assert len(job.strip().splitlines()) <= lines
    variables = {"famnb": famnb, "sys": sys, **names}
    exec(job, variables)
    return variables


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[[dict[str, TrueModel]], famnb.Client]]:
    """Makes clients of services whose models are known, all of which record in one ledger."""
    with ExitStack() as stack:

        def make(models: dict[str, TrueModel]) -> famnb.Client:
            url = stack.enter_context(truth_engine.serve(TruthEngine(models)))
            ledger = tmp_path / "jobs.sqlite"
            return stack.enter_context(famnb.Client(base_url=url, api_key=truth_engine.KEY, ledger=ledger))

        yield make


def test_twelve_lines_tell_whether_mini_will_do_for_pro(connect, prices):
    famnb.prices.set("fam-2-5-mini", input=0.2, output=0.8, cached=0.02)
    client = connect({"pro": ALIKE, "mini": ALIKE})
    result = run(MINI_FOR_PRO, lines=12, client=client, questions=QUESTIONS)["result"]
    pairs = result.pairs.set_index("metric")
    assert pairs.loc["score_right", "standing"] in ("equivalent", "not worse")
    assert pairs.loc["cost_usd", "clear"]
    assert pairs.loc["cost_usd", "ratio_low"] < 0.2 < pairs.loc["cost_usd", "ratio_high"]
    assert "mini costs" in result.headline


@pytest.mark.parametrize(("slowdown", "statuses"), [(3, {1}), (1, {0, 2})])
def test_four_lines_end_with_the_status_that_says_whether_it_is_slower(connect, slowdown: int, statuses: set[int]):
    """Three times as slow is a failure; as fast as before is not, and one run a side may not be enough to tell."""
    variants = {"pro": {"model": "fam-2-5-pro", "system": "pro"}}
    options: dict[str, Any] = {"endpoint": "web", "client": connect({"pro": ALIKE})}
    famnb.Experiment(QUESTIONS, variants, name="last week", **options).run(progress=False)
    slower = TrueModel(first_token_s=0.01 * slowdown, token_s=0.001 * slowdown, accuracy=0.9)
    with pytest.raises(SystemExit) as ended:
        run(SLOWER_THIS_WEEK, lines=4, client=connect({"pro": slower}), questions=QUESTIONS, variants=variants)
    assert ended.value.code in statuses
