"""For pytest: a service and a client that records, and assertions about experiments.

pytest_plugins = ["famnb.testing"]            # in conftest.py

def test_the_answers_are_no_worse(famnb_client):
    exp = famnb.Experiment("questions.csv", [{"model": "fam-mini"}], scorers=[exact()], name="ci", client=famnb_client)
    exp.run(budget_usd=1)
    assert_no_regression(exp, "baseline.json", margin={"score_exact": 0.05})
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from famnb.api import Client
from famnb.experiment.check import iterate_rows
from famnb.experiment.experiment import BaseExperiment
from famnb.service import Server, serve


@pytest.fixture(scope="session")
def famnb_service() -> Iterator[Server]:
    """The local service, with simulated answers that do not wait."""
    with serve(time_scale=0) as server:
        yield server


@pytest.fixture
def famnb_client(famnb_service: Server, tmp_path: Path) -> Iterator[Client]:
    """A client of that service, whose calls are in a ledger of this test."""
    ledger = tmp_path / "famnb-ledger.sqlite"
    with Client(base_url=famnb_service.url, api_key=famnb_service.key, ledger=ledger) as client:
        yield client


def assert_no_regression(
    experiment: BaseExperiment,
    baseline: str | os.PathLike[str],
    margin: Mapping[str, float | str] | None = None,
    *,
    level: float = 0.95,
) -> None:
    """Fail unless an experiment is no worse than its baseline, by the margin of each metric, or 10 %.

    `baseline` is a file of `save_baseline`, or the name of an earlier experiment in the ledger. What cannot be told
    fails too: more prompts or repeats tell it.
    """
    __tracebackhide__ = True
    result = experiment.check(against=os.fspath(baseline), margin=margin, level=level)
    rows = list(iterate_rows(result.table))
    lines = [f"{outcome}: {variant}: {why}" for variant, _, outcome, why in rows if outcome != "pass"]
    if lines or not rows:
        pytest.fail("\n".join(lines or ["nothing could be compared"]), pytrace=False)
