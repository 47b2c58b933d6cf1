"""What is recorded of an engine whose truth is known, on every endpoint: over sockets, and by the short cut."""

import pandas as pd
import pytest

from tests.truth.truth_engine import TrueModel, TruthEngine, record_cells
from tests.truth.truth_experiments import HIDDEN, experiment, run_served, true_cost, true_replies, unconnected

pytestmark = pytest.mark.full

ON_ENDPOINTS = {
    "chat": {"endpoint": "chat", "model": "fam-mini"},
    "responses": {"endpoint": "responses"},
    "web": {"endpoint": "web"},
    "messages": {"endpoint": "messages"},
    "hidden": HIDDEN,
}
QUICK = TrueModel(first_token_s=0.01, token_s=0.0002, cached_share=0.5, failure_rate=0.2)
CALLS = 12 * len(ON_ENDPOINTS)


@pytest.fixture(scope="module")
def engine():
    return TruthEngine(dict.fromkeys(ON_ENDPOINTS, QUICK))


@pytest.fixture(scope="module")
def calls(engine, tmp_path_factory):
    """The frame of an experiment over sockets, with the truth of each of its calls in the columns `true_…`."""
    return with_truth(run_served(engine, tmp_path_factory.mktemp("served"), 12, ON_ENDPOINTS, concurrency=8), engine)


def with_truth(exp, engine):
    """The experiment's frame with the truth of each call."""
    replies = true_replies(exp, engine)
    frame = exp.frame()
    truths = {
        "true_breaks_off": lambda reply: reply.breaks_off,
        "true_right": lambda reply: reply.is_right,
        "true_ttft_s": lambda reply: reply.first_token_s,
        "true_e2e_s": lambda reply: reply.e2e_s,
        "true_input_tokens": lambda reply: reply.input_tokens,
        "true_output_tokens": lambda reply: reply.output_tokens,
        "true_cached_tokens": lambda reply: reply.cached_tokens,
        "true_cost_usd": true_cost,
    }
    return frame.assign(**{name: [truth(replies[key]) for key in frame["cell"]] for name, truth in truths.items()})


def test_what_breaks_off_failed_and_everything_else_is_an_answer_with_its_true_score(calls):
    failed = calls["status"].isin(["failed", "interrupted"])
    assert len(calls) == CALLS
    assert failed.equals(calls["true_breaks_off"])
    assert 0 < failed.sum() < CALLS / 2
    answered = calls[~failed]
    assert (answered["score_right"] == answered["true_right"]).all()


def test_no_time_is_shorter_than_what_the_engine_waited(calls):
    """A loaded machine makes waits longer, never shorter; the client's clock begins before the engine's."""
    answered = calls[~calls["true_breaks_off"]]
    for name in ("ttft_s", "e2e_s"):
        assert (answered[name] >= answered[f"true_{name}"] - 0.002).all()


def test_a_count_that_is_not_an_estimate_is_the_true_one_and_every_cost_lies_within_its_bounds(calls):
    """What an endpoint cannot report is marked, and its cost is an interval that holds the truth."""
    answered = calls[~calls["true_breaks_off"]]
    for count in ("input_tokens", "output_tokens", "cached_tokens"):
        known = answered[answered[f"{count}_source"].isin(["reported", "derived"])]
        assert known[count].eq(known[f"true_{count}"]).all()
        assert len(known) > 0
    tolerance = 1e-12
    assert (answered["cost_low_usd"] <= answered["true_cost_usd"] + tolerance).all()
    assert (answered["cost_high_usd"] >= answered["true_cost_usd"] - tolerance).all()
    exact = (answered["cost_low_usd"] == answered["cost_high_usd"]).groupby(answered["variant"], observed=True).all()
    # A stream of the web chat reports everything; the others leave out the cached tokens at least.
    assert exact.to_dict() == {name: name == "web" for name in ON_ENDPOINTS}


def test_a_reply_recorded_by_the_short_cut_is_the_one_that_is_served(calls, engine, tmp_path):
    """Its plan, text, counts, where they come from, cost and score: so the many experiments need no sockets."""
    with unconnected(tmp_path) as client:
        short = experiment(client, 12, ON_ENDPOINTS)
        record_cells(short, engine)
        short_calls = with_truth(short, engine)
    parts = ("prompt_id", "variant", "text_chars", "complete", "_tokens", "_source", "_usd", "_right")
    same = [name for name in calls if any(part in name for part in parts)]
    pd.testing.assert_frame_equal(short_calls[same], calls[same])
    assert short_calls["ttft_s"].equals(short_calls["true_ttft_s"].round(9).astype("Float64"))
