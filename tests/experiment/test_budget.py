"""Budgets: what a call can cost at worst, and that real runs never pass their limit."""

import contextlib
import random
from decimal import Decimal

import pytest

import famnb
from famnb.errors import BudgetExceeded, InvalidRequest
from famnb.experiment.budget import counted_cost
from famnb.record.price_book import ceiling
from tests.experiment.scripted_executor import call_outcome

GRID = famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint=["messages", "web", "responses"])


@pytest.fixture(scope="module")
def delaying(server):
    """A service whose answers take times of their own, drawn anew for each."""
    with famnb.serve(time_scale=0.004, key=server.key) as running:
        yield running


def experiment(client, *, prompts=20, **options):
    chance = random.Random(1)
    texts = [f"Question {n}: " + "word " * chance.randrange(60) for n in range(prompts)]
    return famnb.Experiment(texts, GRID, 2, name="budget", client=client, **{"max_tokens": 40, **options})


@pytest.mark.parametrize("limit", ["0.004", "0.01", "0.02"])
def test_a_budget_is_never_passed_by_64_calls_at_once(connect, delaying, prices, limit, where):
    exp = experiment(connect(delaying))
    report = exp.run(concurrency=64, budget_usd=limit, **where)
    frame = exp.frame()
    spent = sum(map(Decimal, frame["cost_high_usd"].dropna().astype(str)))
    assert 0 < spent <= Decimal(limit)
    assert report.counted_usd <= Decimal(limit)
    assert report.stopped_by == "budget"
    assert 0 < report.completed < report.planned
    assert report.completed == frame["call_id"].notna().sum()


def test_a_budget_is_the_experiments_and_earlier_runs_count(client, prices):
    completed = []
    for _ in range(3):
        # A better estimate of what the first calls cost can leave room for a few more.
        with contextlib.suppress(BudgetExceeded):
            completed.append(experiment(client).run(budget_usd="0.01").completed)
    assert experiment(client).frame()["cost_high_usd"].sum() <= 0.01
    last = experiment(client).run(budget_usd=5)
    assert (last.completed + sum(completed), last.remaining) == (240, 0)


def test_a_budget_too_small_for_one_call_sends_none(client, prices):
    with pytest.raises(BudgetExceeded, match=r"it may cost \$0\.000\d+, and \$0\.00 of \$0\.0000001 are spent"):
        experiment(client).run(budget_usd="0.0000001")
    assert len(client.ledger) == 0


def test_with_a_budget_a_model_without_a_price_is_refused_before_the_first_call(client):
    with pytest.raises(InvalidRequest, match=r"no price is known for 'fam-2-5-\w+': famnb.prices.set\('fam-2-5-"):
        experiment(client).run(budget_usd=1)
    assert len(client.ledger) == 0
    assert experiment(client, prompts=1).run().spent_usd is None


def test_the_worst_case_is_a_token_for_each_byte_and_the_whole_cap():
    request = famnb.compose("chat", "Grüße", max_tokens=100)
    found = ceiling(request)
    body = '{"model":"fam-mini","messages":[{"role":"user","content":"Grüße"}],"max_tokens":100}'
    assert (found.input_tokens, found.output_tokens) == (len(body.encode()), 100)
    assert found.usd == (len(body.encode()) * Decimal("0.25") + 100) / 1_000_000


@pytest.mark.parametrize(
    ("endpoint", "fields", "cap"),
    [("chat", {}, 16_384), ("responses", {}, 512), ("web", {}, 2048), ("messages", {"max_tokens": 7}, 7)],
)
def test_a_cap_that_is_not_set_is_the_services_own(endpoint, fields, cap):
    assert ceiling(famnb.compose(endpoint, "Hi", **fields)).output_tokens == cap


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (famnb.compose("chat", "Hi", model="lab/large"), "nothing limits the answer of 'lab/large': give max_tokens"),
        (famnb.compose("responses", "Hi", previous_response_id="r"), "what an earlier response adds"),
        (famnb.compose("web", "Hi"), "no price is known for 'fam-2-5-pro'"),
    ],
)
def test_a_worst_case_that_is_not_known_says_why(request_, why):
    found = ceiling(request_)
    assert found.usd is None
    assert found.reason.startswith(why)


def test_the_dearest_tier_that_a_request_can_fall_in_decides(prices):
    famnb.prices.set("fam-2-5-pro", input=1, output=1, cache_write=3, until_context=1000)
    famnb.prices.set("fam-2-5-pro", input=2, output=5)
    short, long = (famnb.compose("web", "x" * size, max_new_tokens=10) for size in (10, 2000))
    assert ceiling(short).usd == (ceiling(short).input_tokens * 3 + Decimal(10)) / 1_000_000
    assert ceiling(long).usd == max(ceiling(long).input_tokens * 3 + 10, ceiling(long).input_tokens * 2 + 50) / Decimal(
        10**6
    )


@pytest.mark.parametrize(
    ("outcome", "counts"),
    [
        (call_outcome(high="1.5"), "1.5"),
        (call_outcome("incomplete", high="1.5"), "1.5"),
        (call_outcome(high=None), "2"),
        (call_outcome(high="1.5", replayed=True), "0"),
        (call_outcome("failed", high=None, http_status=429, error="RateLimitError"), "0"),
        (call_outcome("failed", high=None, http_status=None, error="ConnectError"), "0"),
        (call_outcome("failed", high=None, http_status=None, error="FirstEventTimeout"), "2"),
        (call_outcome("failed", high="0.5", error="StreamError"), "2"),
        (call_outcome("cancelled", high=None, http_status=None, attempts=0), "0"),
        (call_outcome("cancelled", high="0.5"), "2"),
        (call_outcome("interrupted", high=None, http_status=None, attempts=0), "2"),
        (call_outcome("running", high=None, http_status=None), "2"),
    ],
)
def test_what_may_have_cost_something_unknown_counts_at_its_worst(outcome, counts):
    assert counted_cost(outcome, Decimal(2)) == Decimal(counts)
