"""Costs and tokens of which an endpoint reports only a part: how often intervals hold, and how often a claim is false.

All variants but the last two are one model, so nothing truly differs between them. Their calls are recorded as they
come from each endpoint, in one ledger, and cut into experiments of a few prompts each.
"""

import dataclasses

import pandas as pd
import pytest

from famnb import stats
from tests.support.truth_rates import LEVEL, claims_are_rare, intervals_hold
from tests.truth.truth_engine import TrueModel, TruthEngine, record_cells
from tests.truth.truth_experiments import HIDDEN, compare, cut, experiment, true_cost, unconnected

pytestmark = pytest.mark.full

EXPERIMENTS = 60
"""Fewer than elsewhere, since each of them records 72 calls."""
N = 12
"""Prompts of an experiment."""
# Calls of one prompt are nearly alike, as they are at temperature 0: then a small bias is a significant one.
ONE = TrueModel(cached_share=0.9, output_tokens=30, spread=0.03, chars_per_token=3)
# No reply of this model reports usage, so its tokens are estimated from those of no other.
UNSEEN = {**HIDDEN, "model": "fam-2-5-mini"}
MODELS = {
    "reported": ({"endpoint": "web"}, ONE),
    "hidden": (UNSEEN, ONE),
    "cache not reported": ({"endpoint": "responses"}, ONE),
    "input not reported": ({"endpoint": "messages"}, ONE),
    "hidden reasoning": (
        {**UNSEEN, "reasoning": {"effort": "high"}, "max_tokens": 2000},
        dataclasses.replace(ONE, hidden_tokens=100),
    ),
    "longer": ({"endpoint": "web"}, dataclasses.replace(ONE, output_tokens=60)),
}
SAME = ("hidden", "cache not reported", "input not reported")
CLAIMS = [("cost_usd", name) for name in SAME] + [("output_tokens", "hidden")]
"""Metrics and variants of which nothing is to be claimed."""
TRUTH = {"cost_usd": "true_usd", "output_tokens": "true_tokens"}


@pytest.fixture(scope="module")
def calls(prices, tmp_path_factory):
    """The frame of all calls, with what each truly costs in `true_usd` and takes in `true_tokens`."""
    engine = TruthEngine({name: model for name, (_, model) in MODELS.items()})
    with unconnected(tmp_path_factory.mktemp("costs")) as client:
        variants = {name: fields for name, (fields, _) in MODELS.items()}
        exp = experiment(client, EXPERIMENTS * N, variants, scorers=())
        replies = record_cells(exp, engine)
        frame = exp.frame()
    # Of its 80 columns those that a comparison reads: to select calls copies every column.
    names = ["prompt_id", "variant", "repeat", "warmup", "status", "error", "http_status", "simulated"]
    names += [name for name in frame if name.startswith(("cost_", "output_tokens"))]
    return pd.DataFrame(frame[names]).assign(
        true_usd=[true_cost(replies[key]) for key in frame["cell"]],
        true_tokens=[replies[key].output_tokens for key in frame["cell"]],
    )


@pytest.fixture(scope="module")
def pairs(calls):
    """The rows that compare each variant with the one that reports everything, of all experiments together."""
    rows = []
    for part in cut(calls, N):
        rows += [compare(part, ["cost_usd"]), compare(only(part, "reported", "hidden"), ["output_tokens"])]
    return dict(iter(pd.concat(rows).groupby(["metric", "second"])))


def only(frame, *variants):
    """The calls of some of the variants."""
    rows = frame[frame["variant"].isin(variants)]
    return rows.assign(variant=rows["variant"].cat.remove_unused_categories())


@pytest.mark.parametrize(("metric", "variant"), CLAIMS)
def test_nothing_is_claimed_of_what_does_not_differ(pairs, metric, variant):
    assert claims_are_rare(pairs[metric, variant]["clear"])


@pytest.mark.parametrize(("metric", "variant"), [*CLAIMS, ("cost_usd", "hidden reasoning"), ("cost_usd", "longer")])
def test_intervals_of_differences_hold(calls, pairs, metric, variant):
    means = calls.groupby("variant", observed=True)[TRUTH[metric]].mean()
    gap, rows = means[variant] - means["reported"], pairs[metric, variant]
    assert intervals_hold((rows["low"] <= gap) & (gap <= rows["high"]))


def test_what_is_reported_is_still_found(pairs):
    """Twice as long an answer is dearer, and that is said; one whose reasoning is hidden is marked as an estimate."""
    assert pairs["cost_usd", "longer"]["clear"].mean() > 0.9
    assert not pairs["cost_usd", "longer"]["estimated"].any()
    assert pairs["cost_usd", "hidden reasoning"]["estimated"].all()


@pytest.mark.parametrize("variant", [*SAME, "hidden reasoning"])
def test_estimates_that_are_taken_for_known_do_not_hold(calls, variant):
    """The middle of each estimate, compared as if it were the truth, fails the checks above."""
    means = calls.groupby("variant", observed=True)["true_usd"].mean()
    gap = means[variant] - means["reported"]
    middle = calls.pivot(index="prompt_id", columns="variant", values="cost_usd").astype(float)
    sides = (middle[name].to_numpy().reshape(EXPERIMENTS, N) for name in ("reported", variant))
    differences = [stats.paired(first, second) for first, second in zip(*sides, strict=True)]
    assert not intervals_hold(interval.low <= gap <= interval.high for interval in differences)
    assert variant == "hidden reasoning" or not claims_are_rare(gap.p_value < 1 - LEVEL for gap in differences)
