"""Limits: kept, broken or unknown, and nothing but a whole interval within a limit counts as kept."""

import pandas as pd
import pytest

from famnb.errors import InvalidRequest
from famnb.experiment.check import CheckResult, check_limits
from tests.support.experiment_frames import frame, spread


def check(rows: pd.DataFrame, **limits) -> CheckResult:
    options = {"max": None, "min": None, "slo": None, "failed": "zero", "level": 0.95} | limits
    return check_limits(rows, **options)


def outcomes(result: CheckResult) -> dict[str, str]:
    return dict(zip(result.table["variant"], result.table["outcome"], strict=True))


def test_a_limit_is_kept_or_broken_by_the_whole_interval():
    rows = frame(30, variants=("A", "B", "C"), e2e_s=[spread(30, seconds, 0.3, seconds) for seconds in (1, 2, 3)])
    result = check(rows, max={"e2e_s": 2.0})
    assert outcomes(result) == {"A": "pass", "B": "unknown", "C": "fail"}
    assert (result.outcome, bool(result)) == ("fail", False)
    assert [line.split(":")[0] for line in result.lines] == ["C", "B", "A"]
    assert "the limit is within the 95% interval" in result.lines[1]
    assert outcomes(check(rows, min={"e2e_s": 2.0})) == {"A": "fail", "B": "unknown", "C": "pass"}


def test_only_a_pass_is_true():
    rows = frame(30, e2e_s=(spread(30, 1, 0.1), spread(30, 1, 0.1, 1)))
    assert check(rows, max={"e2e_s": 2})
    few = check(rows[rows["prompt_id"].isin(["p0", "p1"])], max={"e2e_s": 2})
    assert (few.outcome, bool(few)) == ("unknown", False)
    assert "n = 2 is too few for a 95% interval" in few.lines[0]


def test_calls_that_are_not_made_or_have_no_price_leave_it_unknown():
    rows = frame(30, e2e_s=(1.0, 1.0), cost_usd=(0.01, 0.02), cost_low_usd=(0.01, 0.02), cost_high_usd=(0.01, 0.02))
    rows["output_tokens"] = pd.array([10] * 60, dtype="Int64")
    rows.loc[0, ["status", "e2e_s", "cost_usd", "cost_low_usd", "cost_high_usd"]] = ["planned", *[pd.NA] * 4]
    rows.loc[31, ["cost_usd", "cost_low_usd", "cost_high_usd"]] = pd.NA
    result = check(rows, max={"cost_usd": 0.1})
    assert outcomes(result) == {"A": "unknown", "B": "unknown"}
    assert "1 of 30 planned calls are not answered yet" in result.lines[0]
    assert "1 of 30 calls have no known cost" in result.lines[1]
    assert outcomes(check(rows, max={"cost_usd": 0.001})) == {"A": "fail", "B": "fail"}


def test_a_cost_that_is_an_estimate_is_judged_at_its_ends():
    ends = {"cost_usd": (0.01, 0.01), "cost_low_usd": (0.008, 0.004), "cost_high_usd": (0.012, 0.03)}
    assert outcomes(check(frame(30, e2e_s=(1, 1), **ends), max={"cost_usd": 0.02})) == {"A": "pass", "B": "unknown"}


def test_failed_calls_count_in_scores_shares_and_goodput():
    rows = frame(40, e2e_s=(1.0, 1.0), ttft_s=(0.1, 0.1), score_exact=(1.0, 1.0))
    failed = rows.index[rows["variant"] == "B"][::2]
    rows.loc[failed, ["status", "error", "e2e_s", "ttft_s", "score_exact"]] = ["failed", "ServerError", *[pd.NA] * 3]
    limits = {"score_exact": 0.8, "success": 0.8, "goodput": 0.8}
    result = check(rows, min=limits, slo={"ttft_s": 0.5})
    assert result.table.groupby("variant")["outcome"].unique().map(list).to_dict() == {"A": ["pass"], "B": ["fail"]}
    assert outcomes(check(rows, min={"score_exact": 0.8}, failed="drop")) == {"A": "pass", "B": "pass"}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({}, "check: there is no limit; give some, such as max="),
        ({"max": {"e2e": 1}}, "max: there is no 'e2e' to compare in these calls; did you mean 'e2e_s'"),
        ({"min": {"e2e_s": "1"}}, r"min\['e2e_s'\]: expected a number, got '1'"),
        ({"max": [("e2e_s", 1)]}, "max: expected limits by metric"),
        ({"min": {"goodput": 1}}, "goodput needs limits: slo="),
    ],
)
def test_what_is_no_limit_is_refused(limits, message):
    with pytest.raises(InvalidRequest, match=message):
        check(frame(6, e2e_s=(1.0, 1.0)), **limits)
