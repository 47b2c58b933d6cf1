"""The bill of a month: what it was, what its rest will be and would have been, and a vendor's invoice beside it."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import famnb
from famnb.billing import HISTORY_DAYS, predict_sum
from famnb.errors import InvalidRequest
from famnb.record import Ledger
from tests.plot.plot_figures import figure_text
from tests.support.exchanges import exchange, spoken

NOW = datetime(2026, 11, 11, 12, tzinfo=UTC)
CALL_USD = (100_000 * 0.25 + 50_000 * 1.0) / 1e6
"""One call of `record`: 100,000 tokens read at 0.25 USD per million, 50,000 written at 1."""


def record(ledger: Ledger, days: range, *, calls: int = 2, tokens: tuple[int, int] = (100_000, 50_000), **more) -> None:
    for day in days:
        for _ in range(calls):
            moment = datetime(2026, 11, day, 9, tzinfo=UTC)
            ledger.on_close(exchange(spoken("Hi", counts=tokens), started_at=moment, **more))
    ledger.flush()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Ten days of two calls, and one on the eleventh, of which half is over."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    record(ledger, range(1, 11))
    record(ledger, range(11, 12), calls=1)
    return ledger


def test_a_month_is_what_it_was_and_what_its_rest_will_be(ledger):
    """Equal days leave no doubt: 19.5 more of them at two calls each."""
    bill = famnb.bill(ledger, "2026-11", now=NOW)
    assert bill.spent.value == pytest.approx(21 * CALL_USD)
    assert (bill.rest.value, bill.rest.low, bill.rest.n) == pytest.approx((39 * CALL_USD, 39 * CALL_USD, 10))
    assert bill.expected.value == pytest.approx(60 * CALL_USD)
    assert "November 2026: $1.58" in repr(bill)
    assert "$4.50" in repr(bill)
    assert "Student's 95% prediction interval of a sum of days, from 10 complete days" in repr(bill)
    assert bill.table[["model", "endpoint", "calls"]].to_numpy().tolist() == [["fam-mini", "chat", 21]]
    assert "$4.50" in figure_text(bill.plot())


def test_a_month_to_come_is_forecast_and_one_that_is_over_is_not(ledger):
    december, october = (famnb.bill(ledger, month, now=NOW) for month in ("2026-12", "2026-10"))
    assert december.expected.value == pytest.approx(31 * 2 * CALL_USD)
    assert "$4.65" in figure_text(december.plot())
    assert "0.5 times the bill" in repr(december.what_if(batch=0.5))
    assert (october.expected.value, october.rest.value) == (0, 0)
    assert "Method" not in repr(october)


def test_few_days_are_refused_in_words(tmp_path):
    ledger = Ledger(tmp_path / "few.sqlite")
    record(ledger, range(10, 12))
    bill = famnb.bill(ledger, now=NOW)
    assert math.isnan(bill.expected.value)
    assert "not forecast: 1 complete day with calls known, 3 are the fewest" in repr(bill)
    assert "$0.3" in repr(bill)


def test_what_if_prices_the_same_calls_otherwise(ledger):
    famnb.prices.set("half", input="0.125", output="0.5")
    famnb.prices.set("fam-mini", input="0.25", output=1, cached="0.05")
    famnb.prices.set("fam-mini", input="0.1", output="0.4", tier="batch")
    try:
        bill = famnb.bill(ledger, "2026-11", now=NOW)
        assert bill.what_if(model="half").spent.value == pytest.approx(bill.spent.value / 2)
        assert bill.what_if(model={"other": "half"}).spent.value == pytest.approx(bill.spent.value)
        assert bill.what_if(batch=0.5).expected.value == pytest.approx(bill.expected.value / 2)
        assert bill.what_if(batch=True).spent.value == pytest.approx(bill.spent.value * 0.4)
        cached = 21 * (80_000 * 0.05 + 20_000 * 0.25 + 50_000) / 1e6
        assert bill.what_if(cached=0.8).spent.value == pytest.approx(cached)
        assert bill.what_if(cached=80_000).spent.value == pytest.approx(cached)
        december = famnb.bill(ledger, "2026-12", now=NOW).what_if(model="half")
        assert december.expected.value == pytest.approx(31 * CALL_USD)
        words = repr(bill.what_if(model="half"))
        assert "$2.25" in words
        assert "instead of $4.50" in words
        assert "0.5 times the bill; a typical call 0.5 times" in words
    finally:
        for model in ("half", "fam-mini"):
            famnb.prices.unset(model)


def test_fewer_repeats_are_fewer_calls(tmp_path):
    ledger = Ledger(tmp_path / "repeats.sqlite")
    for repeat in range(3):
        record(ledger, range(5, 9), calls=1, labels={"experiment": "x", "repeat": str(repeat)})
    record(ledger, range(5, 6), calls=1)
    bill = famnb.bill(ledger, "2026-11", now=NOW)
    assert [len(b.calls) for b in (bill, bill.what_if(repeats=1))] == [13, 5]


def test_a_bill_is_cheaper_only_if_its_sum_is(tmp_path):
    """Nine of ten calls are cheaper at B's prices, and the one that writes much is dearer by more."""
    ledger = Ledger(tmp_path / "sums.sqlite")
    record(ledger, range(2, 6), calls=9, tokens=(10_000, 100))
    record(ledger, range(2, 6), calls=1, tokens=(10_000, 100_000))
    famnb.prices.set("b", input="0.1", output=3)
    try:
        words = repr(famnb.bill(ledger, "2026-11", now=NOW).what_if(model="b"))
    finally:
        famnb.prices.unset("b")
    assert "2.48 times the bill; a typical call 0.5 times" in words


def test_an_invoice_stands_beside_the_record(ledger, tmp_path):
    """A day that the vendor bills twice, and a model that is not recorded, are differences."""
    path = tmp_path / "invoice.csv"
    lines = [f"2026-11-{day:02},fam-mini,{2 * CALL_USD * (2 if day == 3 else 1)}" for day in range(1, 11)]
    path.write_text(
        "\n".join(["Date,Model,Amount", *lines, f"2026-11-11,fam-mini,{CALL_USD}", "2026-11-02,other,$9.00"])
    )
    bill = famnb.bill(ledger, "2026-11", now=NOW, invoice=path)
    differing = bill.invoice[~bill.invoice["agrees"]]
    assert differing[["model", "difference_usd"]].to_numpy().tolist() == [
        ["other", 9.0],
        ["fam-mini", pytest.approx(2 * CALL_USD)],
    ]
    assert "2 of 12 lines differ" in repr(bill)
    with pytest.raises(InvalidRequest, match="expected a column of costs"):
        bill.check(pd.DataFrame({"model": ["m"]}))


def test_what_has_no_price_leaves_the_bill_open(tmp_path):
    ledger = Ledger(tmp_path / "open.sqlite")
    record(ledger, range(2, 6), model="lab/large")
    bill = famnb.bill(ledger, "2026-11", now=NOW)
    assert bill.spent.high == math.inf
    assert "8 of 8 calls without a price" in repr(bill)


@pytest.mark.parametrize("options", [{"month": "November"}, {"month": "2026-13"}, {"tz": "Mars"}])
def test_a_wrong_month_or_zone_is_refused(ledger, options):
    with pytest.raises(InvalidRequest, match=r"month: expected|tz: expected"):
        famnb.bill(ledger, **options)


@pytest.mark.parametrize("n", [4, 10, HISTORY_DAYS])
def test_the_rest_of_the_month_holds_the_truth(n):
    """Of 400 months of skewed days, dearer ones on working days, the interval holds the sum of the other days."""
    rng, hits = np.random.default_rng(n), 0
    days = pd.date_range("2026-11-02", periods=n + 20)
    for _ in range(400):
        sums = rng.gamma(4, np.where(days.day_of_week < 5, 1.0, 0.8 if n < 14 else 0.3))
        history = pd.DataFrame(dict.fromkeys(("low", "value", "high"), sums[:n]), index=days[:n])
        found = predict_sum(history, pd.Series(1.0, index=days[n:]))
        hits += found.low <= sums[n:].sum() <= found.high
    assert hits / 400 > 0.9
