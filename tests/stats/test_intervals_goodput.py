"""Which calls meet objectives: limits, failures, and what is not known."""

import math
from typing import Any

import pandas as pd
import pytest

from famnb import stats

CALLS = pd.DataFrame(
    {
        "ttft_s": [0.4, 0.6, 0.5, None, None, 0.1],
        "e2e_s": [4.0, 4.0, 6.0, 4.0, 6.0, 1.0],
        "status": ["completed"] * 5 + ["failed"],
    },
    index=list("uvwxyz"),
)


def test_a_call_meets_all_limits_or_misses() -> None:
    """A failed one misses however quick it was; of one without a first token only what it is over is known."""
    met = stats.meets_slo(CALLS, {"ttft_s": 0.5, "e2e_s": 5}, failed=CALLS["status"] == "failed")
    assert met[met.notna()].to_dict() == {"u": True, "v": False, "w": False, "y": False, "z": False}


def test_a_limit_is_met_by_what_equals_it() -> None:
    met = stats.meets_slo(CALLS, {"ttft_s": 0.5}, failed=[False] * 6)
    assert met["w"]
    assert stats.share(met).n == 4


def test_goodput_counts_what_is_known() -> None:
    met = stats.meets_slo(CALLS, {"ttft_s": 0.5, "e2e_s": 5}, failed=CALLS["status"] == "failed")
    found = stats.share(met, clusters=list("pppqqq"))
    assert (found.n, found.clusters) == (5, 2)
    assert found.value == pytest.approx((1 / 3 + 0) / 2)


@pytest.mark.parametrize(
    ("slo", "error", "words"),
    [
        ({}, ValueError, "expected limits"),
        ({"ttft_s": "0.5"}, ValueError, "a number as the limit of ttft_s"),
        ({"ttft_s": math.nan}, ValueError, "a number as the limit of ttft_s"),
        ({"ttft": 0.5}, KeyError, "there is no column 'ttft'"),
    ],
)
def test_an_objective_that_is_none_is_refused(slo: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        stats.meets_slo(CALLS, slo, failed=CALLS["status"] == "failed")
