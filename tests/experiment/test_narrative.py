"""A summary in words: who wins, what is claimed, what is refused, and what is named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from famnb.experiment.summary import summary
from tests.support.experiment_frames import frame, spread


def test_a_sentence_says_by_how_much_how_sure_and_at_what_cost():
    """B is sooner by what was put in, and dearer by a factor; the statistic is named and is that of the table."""
    cost = spread(60, 0.001, 0.0001, 3)
    rows = frame(e2e_s=(spread(60, 2, 0.3), spread(60, 2, 0.3) - spread(60, 0.41, 0.1, 1)), cost_usd=(cost, cost * 2.1))
    found = summary(rows)
    speed, money = found.findings
    assert speed == (
        "Time to the end of the answer: B finishes 0.41 s sooner than A (1.62 s against 2.02 s; "
        "95% interval 0.38–0.43 s, p < 0.001, n = 60 pairs)."
    )
    assert money.startswith("Cost: B costs 2.1 times as much as A (")
    assert "ratio of costs per answer" in money
    assert found.findings == found.verdict
    row = found.pairs.set_index("metric").loc["e2e_s"]
    assert (row["first"], row["second"], row["n"], bool(row["clear"])) == ("A", "B", 60, True)
    assert row["low"] < -0.41 < row["high"]
    assert row["statistic"] == "mean of paired differences"


def test_what_the_pairs_cannot_tell_is_said_with_how_many_would():
    few, many = (
        summary(frame(n, e2e_s=(spread(n, 2, sd), spread(n, second, sd, 1))))
        for n, second, sd in ((4, 1, 0.3), (20, 2, 0.5))
    )
    assert not few.pairs["clear"].any()
    assert few.findings[0].startswith("Time to the end of the answer: 4 prompts cannot tell whether B is faster than A")
    assert few.findings[0].endswith("could show a difference of 0.20 s (n = 4 pairs).")
    (line,) = many.findings
    assert "20 prompts cannot tell whether B is faster than A: about " in line
    assert "could show a difference of 0.20 s (median of paired differences, 95% interval −" in line


def test_an_interval_without_0_that_the_exact_test_does_not_bear_out_is_said_so():
    passed, failed_four = np.ones(12), np.repeat([0.0, 1.0], [4, 8])
    found = summary(frame(12, score_x=(passed, failed_four)), primary="score_x")
    assert found.pairs.loc[0, "high"] < 0
    assert "but p = 0.12 by itself" in found.verdict[0]


def test_what_the_others_make_unclear_is_said_so():
    columns = {
        name: (spread(60, 2, 0.5, index), spread(60, 2, 0.5, index + 10))
        for index, name in enumerate(("ttft_s", "ttfa_s", "output_tokens", "cost_usd"))
    }
    late = spread(60, 2, 0.5, 8)
    rows = frame(60, e2e_s=(late, late - spread(60, 0.06, 0.25, 2)), score_x=(spread(60, 1, 1), spread(60, 1, 1, 1)))
    found = summary(rows.assign(**{name: np.concatenate(both) for name, both in columns.items()}))
    assert found.pairs.set_index("metric").loc["e2e_s", "p_value"] < 0.05
    (line,) = [line for line in found.findings if line.startswith("Time to the end")]
    assert "not enough for one of 5 comparisons" in line


def test_failed_calls_are_counted_named_and_left_out_of_times():
    rows = frame(30, e2e_s=(spread(30, 2, 0.2), spread(30, 1, 0.2, 1)))
    failed = (rows["variant"] == "B") & rows["prompt_id"].isin(["p0", "p1"])
    rows.loc[failed, ["status", "error"]] = ["failed", "RateLimitError"]
    found = summary(rows)
    assert found.table.loc["B", ["planned", "completed", "failed", "left"]].tolist() == [30, 28, 2, 0]
    assert "2 of 30 calls of B failed (RateLimitError 2)" in found.lines[0]
    assert "in no time or token count; what they cost is in the cost of the answers" in found.lines[1]
    assert dict(zip(found.pairs["metric"], found.pairs["n"], strict=True)) == {"e2e_s": 28, "success": 30}


def test_means_that_n_or_tails_do_not_carry_are_not_compared_and_said_to_be_unsure():
    few, many = (
        " ".join(summary(frame(n, e2e_s=(spread(n, 2, 0.2), spread(n, 1, 0.2, 1)), score_x=(1.0, 2.0))).notes)
        for n in (6, 60)
    )
    assert "Medians of time to the end of the answer are compared: too few values decide the means." in few
    assert "Means of score x may be off: 6 values may not include what happens less often than once in 3." in few
    assert "Medians" not in many
    assert "may be off" not in many


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "C"}, "baseline: expected one of 'A', 'B', got 'C'"),
        ({"primary": "score_exakt"}, "primary: there is no 'score_exakt' to compare .*; did you mean 'score_exact'"),
        ({"metrics": ["nothing"]}, "metrics: there is no 'nothing' to compare in these calls; choose one of "),
        ({"metrics": "e2e_s"}, r"metrics: expected a list of names such as \['e2e_s'\], got a text"),
        ({"primary": "goodput"}, "primary: there is no 'goodput' .*; goodput needs limits: slo={'ttft_s': 0.5}"),
        ({"slo": {"e2e": 5}}, "slo: there is no 'e2e' to compare in these calls; did you mean 'e2e_s'?"),
        ({"slo": {"e2e_s": -1}}, r"slo\['e2e_s'\]: expected the most that is allowed, such as .*, got -1"),
        ({"slo": {}}, "slo: expected a mapping of columns to the most that is allowed, such as .*; got {}"),
        ({"failed": "ignore"}, "failed: expected one of 'zero', 'drop', got 'ignore'"),
        ({"level": 95}, "level: expected a number between 0 and 1, such as 0.95; got 95"),
    ],
)  # fmt: skip
def test_what_an_experiment_has_not_is_refused_with_what_it_has(options, message):
    rows = frame(6, e2e_s=(1.0, 2.0), score_exact=(1.0, 0.0))
    with pytest.raises(ValueError, match=message):
        summary(rows, **options)


# The first sentence


def test_the_first_sentence_is_the_trade_off_and_what_the_pairs_cannot_tell():
    right = (np.random.default_rng(1).random((2, 12)) < 0.8).astype(float)
    cost, times = spread(12, 0.01, 0.001), spread(12, 3, 0.1)
    found = summary(
        frame(12, variants=("pro", "mini"), score_exact=right, cost_usd=(cost, cost / 5), e2e_s=(times, times - 1.1))
    )
    assert found.headline.startswith(
        "mini costs about a fifth as much as pro and typically finishes 1.10 s sooner; 12 prompts"
    )
    assert "cannot tell whether it answers as well: about " in found.headline
    assert len(found.headline.split()) < 30
    assert repr(found).splitlines()[0] == found.headline
    head, rows = found.trade_offs()
    assert head == ["metric", "pro", "mini", "difference", "result"]
    assert {row[0]: row[-1] for row in rows} == {
        "score exact (primary)": "not clear",
        "time to the end of the answer": "gained",
        "cost": "gained",
    }


def test_what_more_prompts_would_show_and_of_what_value_a_loss_is_are_in_the_first_sentence():
    """No number of prompts tells two equal variants apart: it is a difference of some size that they could show."""
    right = (np.random.default_rng(1).random((2, 40)) < 0.8).astype(float)
    assert " could show a score difference of 0.0" in summary(frame(40, score_exact=right)).headline
    costs = spread(40, 0.01, 0.002), spread(40, 0.01, 0.002, 1)
    loss = summary(frame(40, score_exact=([1.0] * 40, [0.0, 1.0] * 20), cost_usd=costs)).headline
    assert loss == "B scores 0.5 lower than A (1); whether it costs less is unclear."
    worse = summary(frame(40, score_exact=([1.0] * 39 + [0.0], [1.0, 0.0] * 20)))
    assert worse.headline == "B scores 0.475 lower than A (0.975)."


def test_each_of_several_scores_is_named():
    up, down = (np.repeat(column, 20) for column in ([0.0, 1.0], [1.0, 0.0]))
    found = summary(frame(40, score_exact=(up * 0, np.ones(40)), score_brief=(np.ones(40), down * 0)))
    assert "scores 1 higher on exact than A" in found.headline
    assert "scores 1 lower on brief" in found.headline


def test_rare_slow_calls_that_a_median_passes_over_are_in_the_first_sentence():
    """B typically takes half of A's time, and in two of forty calls twenty times as long."""
    times = spread(40, 1, 0.05, 1)
    times[:2] *= 20
    found = summary(frame(40, e2e_s=(spread(40, 2, 0.1), times)))
    assert found.headline.startswith("B typically finishes 0.99 s sooner than A (")
    assert "; 2 of 40 calls of B took over 5 times its median; " in found.headline
    assert "more than 5 times the median of their variant: A 0 of 40, B 2 of 40, up to 2" in found.notes[0]
    assert "took over" not in summary(frame(40, e2e_s=(times, times + 1))).headline


def test_refused_requests_are_in_the_first_sentence_if_they_are_many():
    rows = frame(40, e2e_s=(spread(40, 2, 0.1), spread(40, 2, 0.1, 1)))
    rows["cell"] = [f"c{number}" for number in range(80)]
    calm, stormy = (summary(rows.assign(attempts=[tries] * 10 + [1] * 70)) for tries in (1, 5))
    assert "refused" not in " ".join([calm.headline, *calm.notes])
    assert stormy.headline.endswith("; 33% of requests were refused; no score judges the answers.")
    assert "sent again: A 40 of 80, B 0 of 40; they are in no figure." in stormy.notes[0]


def test_at_most_three_reservations_stand_beside_the_first_sentence():
    rows = frame(10, e2e_s=(spread(10, 2, 0.2), spread(10, 2, 0.2, 1)), simulated=(True, True))
    rows.loc[0, "warmup"] = True
    rows.loc[1, ["status", "e2e_s"]] = ["planned", np.nan]
    rows.loc[2, ["status", "error", "e2e_s"]] = ["failed", "ServerError", np.nan]
    found = summary(rows)
    shown = [note for note in found.notes if note in repr(found)]
    assert len(found.notes) > 3
    assert shown == list(found.notes[:3])
    assert shown[0].startswith("Simulated: all calls were answered by a simulated engine")
    assert all(note in found._repr_html_() for note in found.notes[3:] if "=" not in note)


def test_a_variant_that_was_asked_a_day_later_is_compared_and_nothing_claimed():
    """Identical models, one drifted meanwhile: the same frame without times would be a claim."""
    rows = frame(60, e2e_s=(spread(60, 2, 0.1), spread(60, 1.7, 0.1, 1)))
    assert summary(rows).pairs["clear"].tolist() == [True]
    minutes = np.concatenate([np.arange(60), 26 * 60 + np.arange(60)])
    later = rows.assign(started_at=pd.Timestamp("2026-03-01", tz="UTC") + pd.to_timedelta(minutes, unit="min"))
    found = summary(later)
    assert found.pairs["clear"].tolist() == [False]
    assert found.headline == "B and A were asked 26.0 h apart: nothing is claimed."
    assert found.notes[0] == "A new experiment that asks both at one time can tell whether they differ."


def test_a_model_that_changed_behind_a_variant_is_named():
    rows = frame(10, e2e_s=(spread(10, 2, 0.2), spread(10, 2, 0.2, 1)))
    rows["reply_model"] = ["m-0801"] * 15 + ["m-0915"] * 5
    assert "The model behind B changed: m-0801, then m-0915." in summary(rows).notes


# What was declared, and margins


def test_a_primary_metric_that_was_chosen_afterwards_is_judged_with_all_others():
    columns = {
        f"score_{name}": (spread(30, 1, 0.3, index), spread(30, 1.1, 0.3, index + 9))
        for index, name in enumerate("abcdef")
    }
    rows = frame(30, **columns)
    declared = summary(rows, primary="score_c", metrics=["score_c"])
    chosen = summary(rows, primary="score_c", metrics=["score_c"], exploratory=True)
    assert declared.pairs["comparisons"].tolist() == [1]
    assert chosen.pairs["comparisons"].tolist() == [6]
    assert chosen.pairs["metric"].tolist() == ["score_c"]
    assert chosen.headline.startswith("Exploratory: ")


@pytest.mark.parametrize(
    ("shift", "standing", "words"),
    [
        (0.0, "equivalent", "is as good on time to the end of the answer as A, within 0.20 s"),
        (-1.0, "not worse", "B finishes 1.00 s sooner than A"),
        (1.0, "worse", "B finishes 1.00 s later than A"),
        (0.2, "unclear", "B finishes 0.20 s later than A"),
    ],
)
def test_a_margin_says_what_is_as_good_what_is_not_worse_and_what_is(shift, standing, words):
    times = spread(60, 2, 0.3)
    found = summary(frame(60, e2e_s=(times, times + spread(60, 0, 0.1, 3) + shift)), margin="10%")
    assert found.pairs["standing"].tolist() == [standing]
    assert found.pairs["margin"].tolist() == pytest.approx([0.1 * times.mean()])
    assert words in found.headline


def test_the_pairs_that_are_needed_for_a_margin_are_planned():
    rows = frame(12, score_exact=([1.0, 0.0] * 6, [1.0, 0.0, 1.0, 1.0] * 3))
    found = summary(rows, margin=0.05)
    assert found.pairs["needed"].iloc[0] > 800
    assert "cannot tell whether B answers as well as A within 0.05: about " in found.headline


def test_of_three_variants_each_says_what_it_gains_and_loses():
    columns = {"score_exact": (np.ones(60), np.repeat([0.0, 1.0], [30, 30]), np.repeat([0.0, 1.0], [3, 57]))}
    columns["e2e_s"] = (spread(60, 2, 0.1), spread(60, 2, 0.1, 1), spread(60, 1, 0.1, 2))
    found = summary(frame(60, variants=("base", "b", "c, terse"), **columns))
    assert found.headline == (
        'b scores 0.5 lower than base, its time unclear; "c, terse" finishes 1.00 s sooner; '
        '60 prompts cannot tell whether "c, terse" answers as well as base.'
    )


def test_of_three_variants_what_is_as_good_within_its_margin_is_not_unclear():
    columns = {"score_exact": (np.ones(60), np.repeat([0.0, 1.0], [2, 58]), np.repeat([0.0, 1.0], [20, 40]))}
    columns["e2e_s"] = (spread(60, 2, 0.1), spread(60, 1, 0.1, 1), spread(60, 1.5, 0.1, 2))
    found = summary(frame(60, variants=("base", "b", "c"), **columns), margin=0.2)
    assert found.headline.startswith("b finishes 1.01 s sooner than base; its answers are as good, within 0.2; c ")
    assert "unclear" not in found.headline


def test_without_a_score_the_first_sentence_says_so():
    found = summary(frame(60, e2e_s=(spread(60, 2, 0.1), spread(60, 1, 0.1, 1))))
    assert found.headline.endswith("; no score judges the answers.")


def test_calls_without_reported_tokens_are_in_the_first_sentence_if_another_metric_decides():
    rows = frame(40, e2e_s=(spread(40, 2, 0.1), spread(40, 1, 0.1, 1)))
    rows["output_tokens_source"] = np.where(rows["variant"] == "B", "estimated", "reported")
    named = "; B reported no token counts, so its cost is unknown; no score judges the answers."
    assert summary(rows).headline.endswith(named)
    rows.loc[rows["variant"] == "B", ["status", "error", "e2e_s"]] = ["failed", "StreamInterrupted", np.nan]
    assert "tokens" not in summary(rows).headline, "nobody expects them of a stream that broke off"
    rows = frame(40, e2e_s=(spread(40, 2, 0.1), spread(40, 1, 0.1, 1))).assign(output_tokens_source="estimated")
    assert "; 80 of 80 calls did not report their tokens, so costs are uncertain" in summary(rows).headline
    rows["output_tokens_source"] = "reported"
    assert "tokens" not in summary(rows).headline


def test_of_many_variants_the_first_sentence_says_which_are_better_and_each_has_one_of_its_own():
    times = [spread(20, mean, 0.3, seed) for seed, mean in enumerate((2, 1, 2, 3, 2))]
    found = summary(frame(20, variants="ABCDE", e2e_s=times, ttft_s=times[::-1]))
    assert [line.split(": ")[1].split()[0] for line in found.verdict] == ["B", "20", "D", "20"]
    assert "B typically finishes 0.89 s sooner than A (1.05 s against 1.95 s" in found.verdict[0]
    assert len(found.findings) == 8
    short, long = (
        summary(frame(20, variants=names, e2e_s=times)).headline
        for names in ("ABCDE", [f"fam-2-5, {name}, temperature 0.7" for name in "ABCDE"])
    )
    assert short.startswith("B typically finishes 0.89 s sooner than A; D typically finishes 0.9")
    assert short.endswith("later; 20 prompts cannot tell whether C or E is faster than A.")
    assert long.startswith(
        'Of 4 variants, 1 is better and 1 worse than "fam-2-5, A, temperature 0.7" on time to the end of the answer; '
    )
    assert max(len(short.split()), len(long.split())) < 30


def test_what_fails_more_often_is_said_so_first():
    rows = frame(40, e2e_s=(spread(40, 1, 0.1), spread(40, 1.3, 0.1, 1)))
    failed = (rows["variant"] == "B") & rows["prompt_id"].isin([f"p{number}" for number in range(12)])
    rows.loc[failed, ["status", "error", "e2e_s"]] = ["failed", "ServerError", np.nan]
    headline = summary(rows.assign(score_exact=1.0)).headline
    assert headline.startswith("B fails in 30% of calls (A: 0%), scores 0.3 lower (failures included)")
    assert summary(rows).trade_offs()[1][0][0] == "success rate"
