"""Forecasts: what they say, what they refuse to know, and that an experiment makes them of its own ledger."""

import math
from decimal import Decimal

import pytest

import famnb
from famnb.experiment.forecast import forecast, read_history
from famnb.experiment.plan import plan_cells
from famnb.experiment.prompts import parse_prompts
from famnb.experiment.variants import parse_variants
from famnb.record.serialize import input_chars
from tests.experiment.forecast_histories import both, cells, past


def test_a_forecast_multiplies_what_past_calls_took(prices):
    plan = cells(models=["fam-2-5-pro"])
    calls = past(200)
    found = forecast(plan, calls, concurrency=1)
    given = sum(input_chars(cell.request) for cell in plan) * 30 / 120
    output = 10 * calls["output_tokens"].clip(upper=400).mean()
    assert found.total.input_tokens.value == pytest.approx(given)
    assert found.total.output_tokens.value == pytest.approx(output, rel=0.03)
    assert found.total.cost_usd.value == pytest.approx(given * 1e-6 + output * 4e-6, rel=0.03)
    assert found.wall_s.value == pytest.approx(10 * calls["e2e_s"].mean(), rel=0.03)
    for each in (found.total.output_tokens, found.total.cost_usd, found.wall_s):
        assert each.low < each.value < each.high
    assert found.total.cost_usd.high < float(found.total.ceiling_usd)


def test_without_history_only_the_ceiling_is_known(prices):
    plan = cells(models=["fam-2-5-pro"])
    found = forecast(plan, past(4), concurrency=4)
    line = found.lines[0]
    assert math.isnan(line.cost_usd.value)
    assert math.isnan(line.output_tokens.value)
    assert (line.cost_usd.low, line.cost_usd.high) == (0, float(line.ceiling_usd))
    assert (line.output_tokens.low, line.output_tokens.high) == (0, 4000)
    assert math.isnan(found.wall_s.value)
    assert "fewer than 5 answered calls" in repr(found)


def test_the_ceiling_is_every_byte_and_every_cap_at_its_price(prices):
    plan = cells(models=["fam-2-5-pro"])
    found = forecast(plan, past(50), concurrency=4)
    size = sum(len(cell.request.model_dump_json(exclude_unset=True).encode()) for cell in plan)
    assert found.total.ceiling_usd == (size * Decimal(1) + 10 * 400 * Decimal(4)) / 1_000_000


def test_what_has_no_price_says_so_and_how_to_set_one():
    found = forecast(cells(), both(50), concurrency=4)
    assert math.isnan(found.total.cost_usd.value)
    assert math.isnan(found.total.cost_usd.high)
    assert found.total.ceiling_usd is None
    assert found.total.output_tokens.known
    assert "No price is known for fam-2-5-" in repr(found)
    assert "famnb.prices.set('fam-2-5-" in repr(found)


def test_cells_that_are_done_are_not_counted_again(prices):
    plan = cells()
    found = forecast(plan, both(50), done={cell.key for cell in plan[:5]}, concurrency=4)
    assert (found.planned, found.remaining) == (20, 15)
    assert "15 of 20 calls remain, 5 were made before" in repr(found)
    nothing = forecast(plan, both(50), done={cell.key for cell in plan}, concurrency=4)
    assert (nothing.remaining, nothing.total.cost_usd.value, nothing.total.ceiling_usd) == (0, 0, 0)
    assert "nothing left to do" in repr(nothing)


def test_counts_that_were_estimated_are_said_to_be():
    guessed = forecast(cells(), both(20, source="estimated"), concurrency=1)
    reported = forecast(cells(), both(20), concurrency=1)
    assert "estimated from the length" in repr(guessed)
    assert "estimated" not in repr(reported)
    assert guessed.total.output_tokens.value == reported.total.output_tokens.value
    assert guessed.total.output_tokens.low == pytest.approx(reported.total.output_tokens.low / 2)
    assert guessed.total.output_tokens.high > 1.5 * reported.total.output_tokens.high


def test_the_markup_is_a_table_in_which_names_are_text():
    shared = {"endpoint": "messages", "max_tokens": 50}
    variants = parse_variants({"<img src=x>": {}}, shared=shared)
    plan = plan_cells(
        parse_prompts(["a"], template=None, keep=()), variants, repeats=1, warmup=0, seed=0, shared=shared
    )
    markup = forecast(plan, past(9, simulated=True), concurrency=1)._repr_html_()
    assert "<table" in markup
    assert "&lt;img src=x&gt;" in markup
    assert "<img" not in markup


def test_an_experiment_forecasts_from_its_own_ledger(client, prices):
    texts = [f"Question {number}" for number in range(6)]
    models = famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages")
    first = famnb.Experiment(texts, models, name="first", client=client, max_tokens=16)
    assert math.isnan(first.forecast().total.cost_usd.value)
    first.run(progress=False)
    again = famnb.Experiment(texts, models, 2, name="second", client=client, max_tokens=16)
    found = again.forecast()
    assert found.remaining == 24
    assert set(found.frame["history"]) == {"the same model, endpoint and settings, simulated"}
    assert found.frame["n"].tolist() == [6, 6]
    assert found.frame.index.tolist() == ["fam-2-5-pro", "fam-2-5-mini"]
    again.run(progress=False)
    assert found.total.cost_usd.low <= again.frame()["cost_usd"].sum() <= found.total.cost_usd.high
    assert again.forecast().remaining == 0
    assert read_history(client.ledger, ["fam-mini"]).empty
