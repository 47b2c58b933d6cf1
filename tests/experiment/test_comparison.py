"""Paired comparisons: the prompt is the unit, what is not known is not claimed, and what decides is judged alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from famnb import stats
from famnb.experiment.summary import summary
from tests.support.experiment_frames import frame, spread
from tests.truth.truth_experiments import compare

REPORTED = spread(60, 0.001, 0.0002, 1)


def pair_of(found, metric, second="B"):
    """The row of a metric and a variant, compared with the baseline."""
    pairs = found.pairs
    return pairs[(pairs["metric"] == metric) & (pairs["second"] == second)].iloc[0]


def test_many_repeats_of_one_prompt_are_one_pair_of_which_nothing_else_is_said():
    found = summary(frame(1, repeats=50, e2e_s=(spread(50, 2, 0.1), spread(50, 1, 0.1, 1))))
    assert found.pairs["n"].tolist() == [1]
    assert "1 prompt cannot tell whether B is faster than A: 6 are the fewest that could (" in found.verdict[0]
    assert found.table["e2e_s_n"].tolist() == [50, 50]
    assert repr(found) == "Only one prompt was compared: n = 1 cannot show how the variants differ."
    assert "<table" not in found._repr_html_()


def test_equal_differences_are_judged_by_their_signs():
    """A difference without spread has no t test: ten of ten the same way are clear, all zero are the same."""
    found = summary(frame(10, output_tokens=(100, 90), cost_usd=(0.001, 0.001)))
    assert found.pairs.set_index("metric")["p_value"].tolist() == [2**-9, 1]
    tokens, cost = found.verdict
    assert tokens.startswith("Output tokens: B typically writes 10 tokens fewer than A (90 against 100, less in 100%")
    assert cost.startswith("Cost: the same in all 10 pairs (ratio of costs per answer, p = 1")
    half = summary(frame(8, cost_usd=(0.2, 0.1))).findings[0]
    assert half.startswith("Cost: B costs about half as much as A (")
    assert "the same in every pair, p = 0.0078" in half


# What is not known


def test_hidden_usage_is_compared_at_its_least_favourable_end():
    """What B's endpoint does not report was taken for 37.9 times A's cost; in truth it is 16.8, which the ends hold."""
    rows = frame(
        cost_usd=(REPORTED, 37.9 * REPORTED),
        cost_low_usd=(REPORTED, 9 * REPORTED),
        cost_high_usd=(REPORTED, 60 * REPORTED),
    )
    found = summary(rows)
    pair = pair_of(found, "cost_usd")
    assert bool(pair["estimated"])
    assert pair["low"] < 15.8 * REPORTED.mean() < pair["high"]
    assert pair["ratio_low"] <= 16.8 <= pair["ratio_high"]
    assert bool(pair["clear"])
    assert "B costs at least 9 times as much as A" in found.verdict[0]
    assert "37.9" not in repr(found)


def test_endpoints_of_one_model_do_not_differ_by_what_one_does_not_report():
    """A reports cached tokens, B cannot: taken for "no discount", B looked dearer with p = 1e-6. It may be as cheap."""
    rows = frame(
        cost_usd=(REPORTED, 1.02 * REPORTED),
        cost_low_usd=(REPORTED, 0.9 * REPORTED),
        cost_high_usd=(REPORTED, 1.02 * REPORTED),
    )
    found = summary(rows)
    pair = pair_of(found, "cost_usd")
    assert pair["p_value"] == 1
    assert not pair["clear"]
    assert found.verdict[0].startswith("Cost: 60 prompts cannot tell whether B is cheaper than A: not all tokens were")
    assert "not all tokens were reported (ratio of costs per answer, 95% interval ≈ 0.9–1.02 times" in found.verdict[0]
    assert found.headline.startswith("60 prompts cannot tell whether B is cheaper than A: not all tokens were reported")


@pytest.mark.parametrize(
    "marks",
    [
        {"output_tokens_low": (100, 60), "output_tokens_high": (100, 300)},
        {"output_tokens_source": ("reported", "estimated")},
    ],
)
def test_estimated_tokens_are_no_claim(marks):
    found = summary(frame(20, output_tokens=(100, 120), **marks))
    assert not pair_of(found, "output_tokens")["clear"]
    assert any(mark in found.text_columns()["output tokens"][1] for mark in ("≈", "at most", "≥"))


def test_a_clear_difference_of_estimates_is_claimed_and_marked():
    costs = {"cost_usd": (REPORTED, 2 * REPORTED), "cost_low_usd": (REPORTED, 1.9 * REPORTED)}
    found = summary(frame(**costs, cost_high_usd=(REPORTED, 2.1 * REPORTED)))
    assert found.verdict[0].startswith("Cost: B costs ≈ 2 times as much as A (")
    assert found.text_columns()["cost a call"][1].startswith("≈ $0.00")
    assert found.text_columns()["cost"][1].startswith("≈ $0.1")


def test_the_ratio_of_costs_is_that_of_the_bill_whatever_a_typical_call_costs():
    """A fifth in every prompt, short or long; what is cheaper in eleven of twelve and dearer in all is not cheaper."""
    cost = np.geomspace(1e-5, 1e-2, 12)
    found = summary(frame(12, cost_usd=(cost, cost / 5), e2e_s=(1.0, 1.0)), primary="cost_usd")
    assert found.verdict[0].startswith("Cost: B costs about a fifth as much as A ($0.00")
    assert "; ratio of costs per answer, the same in every pair, " in found.verdict[0]
    dear = np.where(np.arange(12) == 11, 3 * cost, cost / 5)
    verdict = summary(frame(12, cost_usd=(cost, dear)), level=0.9).verdict[0]
    assert verdict.startswith("Cost: 12 prompts cannot tell whether B is cheaper than A")
    assert summary(frame(12, cost_usd=(cost, dear))).pairs["ratio"].iloc[0] == pytest.approx(dear.sum() / cost.sum())


# What decides


def test_the_first_variant_is_the_baseline_unless_another_is_named():
    rows = frame(8, variants="ABCD", e2e_s=[spread(8, 2, 0.5, seed) for seed in range(4)])

    def pairs(**options):
        return ["".join(pair) for pair in summary(rows, **options).pairs[["first", "second"]].to_numpy()]

    assert pairs() == ["AB", "AC", "AD"]
    assert pairs(baseline="C") == ["CA", "CB", "CD"]
    assert summary(rows, baseline="C").baseline == "C"


def test_the_primary_metric_is_judged_alone_and_the_others_together():
    rows = frame(
        20,
        e2e_s=(spread(20, 2, 0.5), spread(20, 2.3, 0.5, 1)),
        ttft_s=(spread(20, 1, 0.2, 2), spread(20, 1.1, 0.2, 3)),
        output_tokens=(spread(20, 90, 9, 4), spread(20, 95, 9, 5)),
    )
    pairs = summary(rows, primary="ttft_s").pairs
    primary, others = pairs[pairs["primary"]], pairs[~pairs["primary"]]
    assert primary["metric"].tolist() == ["ttft_s"]
    assert primary["p_adjusted"].tolist() == primary["p_value"].tolist()
    assert others["p_adjusted"].tolist() == stats.holm(others["p_value"]).tolist()
    assert pairs["comparisons"].tolist() == [1, 2, 2]


def test_unnamed_the_primary_metric_follows_from_what_was_asked_and_not_from_what_came():
    """The first named; else the first score, the objective, the time to the end; and the notes say which and why."""
    scored = frame(8, e2e_s=(1.0, 2.0), score_exact=(1.0, 0.0), score_grade=(1.0, 2.0))
    plain = frame(8, e2e_s=(1.0, 2.0), ttft_s=(0.1, 0.1))
    assert summary(scored).primary == "score_exact"
    assert summary(scored, metrics=["e2e_s", "score_grade"]).primary == "e2e_s"
    assert summary(scored, primary="e2e_s").primary == "e2e_s"
    assert summary(plain).primary == "e2e_s"
    assert summary(plain, slo={"ttft_s": 1}).primary == "goodput"
    assert any(
        "primary metric is score exact (the first score), judged alone" in note for note in summary(scored).methods
    )


def test_what_is_clear_alone_is_not_claimed_as_one_of_many():
    """Four variants of one kind: by itself one pair looks clear; Holm's adjustment claims none of them."""
    rows = frame(20, variants="ABCD", e2e_s=[spread(20, 2, 0.5, seed) for seed in (5, 6, 7, 12)])
    found = summary(rows, pairs=list(itertools.combinations("ABCD", 2)))
    assert (found.pairs["p_value"] < 0.05).sum() == 1
    assert not found.pairs["clear"].any()


def test_a_model_that_fails_on_what_is_hard_does_not_score_higher():
    """Both are right in 60 of 100 prompts; B cuts 19 streams, all of what it would have got wrong."""
    hard = np.arange(100) >= 60
    rows = frame(100, score_exact=(np.where(hard, 0.0, 1.0), np.where(hard, 0.0, 1.0)))
    cut = (rows["variant"] == "B") & rows["prompt_id"].isin([f"p{number}" for number in range(81, 100)])
    rows.loc[cut, ["status", "error", "score_exact"]] = ["interrupted", "StreamInterrupted", np.nan]
    zero, drop = summary(rows), summary(rows, failed="drop")
    assert zero.table["score_exact_mean"].tolist() == [0.6, 0.6]
    assert drop.table["score_exact_mean"].round(3).tolist() == [0.6, 0.741]
    assert not pair_of(zero, "score_exact")["clear"]
    assert pair_of(zero, "success")["difference"] == pytest.approx(-0.19)
    assert "Success rate: B fails 19 points more often than A (81% against 100%" in zero.verdict[0]
    assert any('count as the lowest score there can be, 0 of yes and no (failed="drop"' in note for note in zero.notes)


def test_a_failed_call_scores_only_where_its_prompt_is_scored():
    """`exact` has nothing to say of a prompt without `expected`; a grade from 1 to 5 is 1 at least."""
    rows = frame(4, score_exact=([1.0, 1.0, np.nan, np.nan],) * 2, score_grade=(4.0, 4.0))
    rows.loc[rows["variant"] == "B", ["status", "error"]] = ["failed", "ServerError"]
    rows.loc[rows["variant"] == "B", ["score_exact", "score_grade"]] = np.nan
    table = summary(rows, spans={"score_grade": (1, 5)}).table
    assert table.loc["B", ["score_exact_mean", "score_exact_n", "score_grade_mean"]].tolist() == [0, 2, 1]


def test_success_and_goodput_have_intervals_and_differences():
    rows = frame(40, ttft_s=(0.1, [0.1] * 30 + [0.9] * 10), e2e_s=(1.0, 1.0))
    rows.loc[(rows["variant"] == "B") & (rows["prompt_id"].isin(["p36", "p37", "p38", "p39"])), "status"] = "failed"
    found = summary(rows, slo={"ttft_s": 0.5, "e2e_s": 5})
    row = found.table.loc["B"]
    assert (row["success"], row["goodput"]) == (0.9, 0.75)
    assert row["goodput_low"] < 0.75 < row["goodput_high"] < 1
    pair = pair_of(found, "goodput")
    assert (pair["difference"], pair["statistic"], bool(pair["clear"])) == (-0.25, "difference of shares", True)
    assert found.verdict[0].startswith("Goodput: B has a goodput 25 points lower than A (75% against 100%")


@pytest.mark.full
def test_the_pairs_that_are_said_to_be_needed_show_the_difference_by_the_same_rule():
    """Planned from 20 pairs for one of four comparisons that are judged together, it is claimed in 80 % of runs."""

    def row_of(n, seed, gap):
        columns = {
            name: (spread(n, 10, 3, [seed, 0, index]), spread(n, 10 + gap * (name == "e2e_s"), 3, [seed, 1, index]))
            for index, name in enumerate(("e2e_s", "ttft_s", "ttfa_s", "output_tokens", "cost_usd"))
        }
        # The pairs of a summary without its other tables and its words, which take most of the time.
        pairs = compare(frame(n, **columns), sorted(columns, key=lambda name: name != "ttft_s"))
        return pairs.set_index("metric").loc["e2e_s"]

    plans = [row_of(20, seed, gap=0) for seed in range(20)]
    claimed = [
        row_of(int(plan["needed"]), 1000 + seed, gap=plan["notable"])["clear"]
        for seed, plan in enumerate(plans)
        if not plan["clear"]
    ]
    assert np.mean(claimed) > 0.65


def test_rare_spikes_do_not_multiply_the_prompts_that_a_median_takes():
    """One call in twenty takes twenty times as long: the spread of means knows of nothing else, that of medians not."""
    rng = np.random.default_rng(1)
    times = rng.lognormal(0, 0.3, (2, 40))
    spikes = times * np.where(rng.random((2, 40)) < 0.05, 20, 1)
    without, with_spikes = (summary(frame(40, e2e_s=both)).pairs.iloc[0] for both in (times, spikes))
    assert with_spikes["statistic"] == "median of paired differences"
    assert with_spikes["needed"] < 2 * without["needed"]


def test_few_prompts_do_not_ask_for_more_than_yes_and_no_ever_take():
    few = frame(6, score_exact=([1.0, 1.0, 1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]))
    row = summary(few).pairs.iloc[0]
    assert row["notable"] == pytest.approx(0.07)
    assert row["needed"] == stats.sample_size(sd=0.5**0.5, difference=0.07)
