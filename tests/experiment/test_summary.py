"""The summary: what it counts, and what it leaves out."""

import numpy as np
import pandas as pd
import pytest

from famnb.experiment.summary import summary
from tests.support.experiment_frames import frame, spread


def test_an_interval_of_scores_keeps_to_what_scores_there_can_be():
    rows = frame(6, e2e_s=(1, 1)).assign(score_grade=1.0, score_won=[1, 0.5, 1, 1, 1, 1] * 2, score_exact=1.0)
    spans = {"score_grade": (1, 5), "score_won": (0, 1), "score_exact": (0, 1)}
    row = summary(rows, spans=spans).table.loc["A"]
    ends = {name: (row[f"score_{name}_low"], row[f"score_{name}_high"]) for name in ("grade", "won", "exact")}
    assert ends == {
        "grade": (1, 1),
        "won": (pytest.approx(0.488, abs=1e-3), 1),
        "exact": (pytest.approx(0.61, abs=1e-3), 1),
    }


def test_warm_ups_and_planned_calls_are_in_no_figure():
    rows = frame(10, e2e_s=(spread(10, 2, 0.2), spread(10, 2, 0.2, 1)))
    rows.loc[[0, 10], "warmup"] = True
    rows.loc[[1, 2], ["status", "e2e_s"]] = ["planned", pd.NA]
    found = summary(rows)
    assert found.table["planned"].tolist() == [9, 9]
    assert found.table["left"].tolist() == [2, 0]
    assert found.table["e2e_s_n"].tolist() == [7, 9]
    assert found.lines[:2] == (
        "2 warm-up calls left out.",
        "2 of 18 planned calls are not answered yet; the figures are of the others.",
    )


def test_scores_are_means_over_prompts_and_twenty_of_twenty_is_no_certainty():
    found = summary(frame(20, e2e_s=(1.0, 1.0), score_exact=(1.0, 0.0))).table
    assert found["score_exact_mean"].tolist() == [1, 0]
    assert found["score_exact_low"].tolist() == pytest.approx([0.8389, 0], abs=1e-4)
    uneven = summary(frame(2, repeats=2, e2e_s=(1.0, 1.0), score_exact=([1, 1, 0.5, 0], [0, 0, 0, 0])))
    assert uneven.table.loc["A", ["score_exact_mean", "score_exact_n"]].tolist() == [0.625, 2]


def test_percentiles_need_their_n():
    few, enough = (summary(frame(n, ttft_s=(spread(n, 1, 0.1), 1.0))).table.loc["A"] for n in (5, 20))
    assert pd.isna(few["ttft_s_p95"])
    assert pd.isna(few["ttft_s_low"])
    assert few["ttft_s_median"] > 0
    assert enough["ttft_s_p95"] > enough["ttft_s_high"]


def test_unsure_costs_keep_their_ends():
    rows = frame(
        4, cost_usd=(0.01, np.nan), cost_low_usd=(0.008, np.nan), cost_high_usd=(0.02, np.nan), e2e_s=(1.0, 1.0)
    )
    table = summary(rows).table
    assert table.loc["A", ["cost_usd", "cost_low_usd", "cost_high_usd"]].tolist() == pytest.approx([0.04, 0.032, 0.08])
    assert pd.isna(table.loc["B", "cost_usd"])
    assert table["cost_n"].tolist() == [4, 0]


def test_no_interval_reaches_what_cannot_be():
    """Few and very unequal counts made "128 (−111 to 367)"; no count, cost or time is below 0."""
    few = [3, 5, 4, 6, 2, 750]
    found = summary(frame(6, output_tokens=(few, few), cost_usd=([x * 1e-6 for x in few],) * 2, e2e_s=(few, few)))
    assert found.table[["output_tokens_low", "cost_per_call_low", "e2e_s_low"]].min(axis=None) >= 0
    assert "(0–" in found.text_columns()["output tokens"][0]
    assert "−" not in "".join(cell for cells in found.text_columns().values() for cell in cells)


def test_a_sum_with_unknown_parts_is_a_lower_bound():
    rows = frame(30, output_tokens=(100, 100), cost_usd=([0.01] + [np.nan] * 29, 0.01))
    refused = rows["prompt_id"] == "p29"
    rows.loc[refused, ["status", "error", "http_status", "cost_usd"]] = ["failed", "RateLimitError", 429, np.nan]
    found = summary(rows)
    assert found.text_columns()["cost"] == ["≥ $0.01 (28 of 29 calls without a price)", "$0.29"]
    assert found.table["unpriced"].tolist() == [28, 0]
    assert "28 of 60 calls have no price and are in no cost; famnb.prices.set gives their model one." in found.notes


def test_a_cost_known_only_within_a_factor_of_three_is_said_as_what_it_is_at_most():
    ends = {"cost_low_usd": (0.004, 0.008), "cost_high_usd": (0.02, 0.012)}
    columns = summary(frame(8, cost_usd=(0.01, 0.01), **ends)).text_columns()
    assert columns["cost"] == ["at most $0.16", "≈ $0.08 ($0.064–$0.096)"]
    assert columns["cost a call"] == ["at most $0.02", "≈ $0.01 ($0.008–$0.012)"]


def test_the_documented_columns_are_those_of_the_table():
    table = summary(frame(6, e2e_s=(1, 1), score_x=(1, 1)), slo={"e2e_s": 2}).table
    counts = "planned completed incomplete failed left cost_usd cost_low_usd cost_high_usd cost_n unpriced uncounted"
    ends = dict.fromkeys(("success", "goodput"), ("", "_low", "_high", "_n"))
    for name in ("ttft_s", "ttfa_s", "e2e_s"):
        ends[name] = ("_median", "_low", "_high", "_n", "_p95", "_p95_low", "_p95_high")
    for name in ("output_tokens", "cost_per_answer", "cost_per_call", "cost_per_right", "score_x"):
        ends[name] = ("_mean", "_low", "_high", "_n", "_least", "_most")
    expected = {*counts.split(), *(f"{name}{end}" for name, suffixes in ends.items() for end in suffixes)}
    assert set(table.columns) == expected


def test_an_experiment_without_an_answer_has_a_summary():
    rows = frame(3, e2e_s=(pd.NA, pd.NA)).assign(status="planned")
    found = summary(rows)
    assert found.table["left"].tolist() == [3, 3]
    assert found.pairs.empty
    assert "6 of 6 planned calls" in repr(found)
    assert "<table" in found._repr_html_()


def test_names_are_text_in_the_markup():
    rows = frame(8, variants=("<b>x</b>", "<script>"), e2e_s=(spread(8, 2, 0.1), spread(8, 1, 0.1)))
    markup = summary(rows)._repr_html_()
    assert "<b>x" not in markup
    assert "<script>" not in markup


def test_amounts_are_no_formulas_in_the_markup():
    costs = spread(8, 2, 0.1), spread(8, 1, 0.1)
    rows = frame(8, cost_usd=costs, cost_low_usd=costs, cost_high_usd=costs)
    markup = summary(rows)._repr_html_()
    assert markup.count("<span>$</span>") == markup.count("$") >= 8
