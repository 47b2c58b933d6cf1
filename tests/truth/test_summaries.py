"""Whole summaries of experiments on an engine of known truth: what they find, what they leave, what words claim."""

import pytest

from famnb.experiment.summary import summary
from tests.truth.truth_engine import TrueModel, TruthEngine, record_cells
from tests.truth.truth_experiments import compare, cut, experiment, run_served, unconnected

pytestmark = pytest.mark.full

VARIANTS = {
    "today": {"endpoint": "web"},
    "better": {"endpoint": "messages"},
    "dearer": {"endpoint": "chat", "model": "fam-mini"},
    "failing": {"endpoint": "responses"},
}
TODAY = TrueModel(first_token_s=0.01, token_s=0.0001, accuracy=0.5, output_tokens=40)
ENGINE = TruthEngine(
    {
        "today": TODAY,
        "better": TrueModel(first_token_s=0.01, token_s=0.0001, accuracy=0.95, output_tokens=40),
        "dearer": TrueModel(first_token_s=0.2, token_s=0.0001, accuracy=0.5, output_tokens=400),
        "failing": TrueModel(first_token_s=0.01, token_s=0.0001, accuracy=0.5, output_tokens=40, failure_rate=0.4),
    }
)


@pytest.fixture(scope="module")
def result(prices, tmp_path_factory):
    """The summary of one experiment that was run over sockets, on every endpoint."""
    exp = run_served(ENGINE, tmp_path_factory.mktemp("served"), 40, VARIANTS, concurrency=16)
    return exp.summary(baseline="today", primary="score_right")


def test_a_run_finds_what_truly_differs(result):
    """What is better wins, what is dearer costs more and is later, what fails has the lower success rate."""
    pairs = result.pairs.set_index(["second", "metric"])
    clear = {key: row["difference"] > 0 for key, row in pairs.iterrows() if row["clear"]}
    assert clear["better", "score_right"]
    assert clear["dearer", "cost_usd"]
    assert clear["dearer", "ttft_s"]
    assert not clear["failing", "success"]
    # What fails more often stands first.
    assert [line.split(":")[0] for line in result.findings[:4]] == ["Success rate"] * 3 + ["Score right"]
    assert result.findings[3].startswith("Score right: better scores 0.")


def test_a_run_claims_nothing_that_is_not_so(result):
    """One model on three endpoints: each reports another part of its usage, and none of them costs more."""
    pairs = result.pairs.set_index(["second", "metric"])
    for variant in ("better", "failing"):
        assert not pairs.loc[(variant, "cost_usd"), "clear"]
    assert not pairs.loc[("dearer", "score_right"), "clear"]
    assert not pairs.loc[("failing", "score_right"), "difference"] > 0


def test_words_claim_what_the_table_of_pairs_has_as_clear(prices, tmp_path):
    """And nothing else; the short form that the many experiments are judged by is that table."""
    with unconnected(tmp_path) as client:
        exp = experiment(client, 5 * 12, VARIANTS)
        record_cells(exp, ENGINE)
        frame = exp.frame()
    metrics = ["score_right", "cost_usd", "success"]
    for part in cut(frame, 12):
        found = summary(part, metrics=metrics)
        short = compare(part, metrics).set_index(["metric", "second"])
        assert found.pairs.set_index(["metric", "second"])["clear"].equals(short["clear"])
        words = " ".join(found.findings)
        for _, row in found.pairs.iterrows():
            verb = {"score_right": "scores", "cost_usd": "costs", "success": "fails"}[row["metric"]]
            assert (f": {row['second']} {verb}" in words) == row["clear"]
