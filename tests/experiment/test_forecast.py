"""Forecasts: what they say and refuse to know, of which past calls they are made, how often their intervals hold."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import famnb
from famnb.endpoints import ENDPOINTS
from famnb.experiment.forecast import forecast, read_history, settings_digest
from famnb.experiment.services import SIMULATED
from famnb.profiles import DEFAULT
from famnb.record.serialize import input_chars
from tests.experiment.experiments import make_plan

SERVICE = "https://api.example.com"
"""The service that the cells are planned for, and that answered the past calls."""
FIELDS = {"endpoint": "messages", "max_tokens": 400}


def cells(prompts=10, *, models=("fam-2-5-pro", "fam-2-5-mini"), repeats=1, service=SERVICE, **fields):
    texts, shared, grid = (
        [f"Question {n}" for n in range(prompts)],
        {**FIELDS, **fields},
        famnb.grid(model=list(models)),
    )
    return make_plan(texts, grid, repeats=repeats, shared=shared, service_of=lambda *_: service)


def past(
    n,
    *,
    model="fam-2-5-pro",
    endpoint="messages",
    settings="",
    simulated=False,
    seed=0,
    source="reported",
    status="completed",
    service=SERVICE,
):
    """Calls of 30 input tokens for 120 characters, and of log-normal output and time."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "model": model,
            "endpoint": endpoint,
            "status": status,
            "simulated": pd.array([simulated] * n, dtype="boolean"),
            "e2e_s": random.lognormal(0, 0.4, n),
            "input_tokens": 30,
            "input_chars": 120,
            "output_tokens": random.lognormal(5, 0.4, n).round(),
            "input_tokens_source": "reported",
            "output_tokens_source": source,
            "settings": settings,
            "url": f"{service}{ENDPOINTS[endpoint].path}",
            "profile": DEFAULT,
        }
    )


def both(n, **options):
    return pd.concat([past(n, model=model, **options) for model in ("fam-2-5-pro", "fam-2-5-mini")])


def test_a_forecast_multiplies_what_past_calls_took(prices):
    plan = cells(models=["fam-2-5-pro"])
    calls = past(200)
    found = forecast(plan, calls, concurrency=1)
    tokens = sum(input_chars(cell.request) for cell in plan) * 30 / 120
    output = 10 * calls["output_tokens"].clip(upper=400).mean()
    assert found.total.input_tokens.value == pytest.approx(tokens)
    assert found.total.output_tokens.value == pytest.approx(output, rel=0.03)
    assert found.total.cost_usd.value == pytest.approx(tokens * 1e-6 + output * 4e-6, rel=0.03)
    assert found.wall_s.value == pytest.approx(10 * calls["e2e_s"].mean(), rel=0.03)
    for estimate in (found.total.output_tokens, found.total.cost_usd, found.wall_s):
        assert estimate.low < estimate.value < estimate.high
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
    markup = forecast(make_plan(["a"], {"<img src=x>": FIELDS}), past(9, simulated=True), concurrency=1)._repr_html_()
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


# The past calls: which count, and which never do


def test_the_history_is_that_of_the_same_settings_and_falls_back_step_by_step():
    plan = cells(models=["fam-2-5-pro"])
    same = settings_digest("messages", plan[0].request.body())
    steps = [past(9, model="fam-2-5-mini"), past(8, endpoint="chat"), past(7), past(6, settings=same)]
    histories = []
    for until in (1, 2, 3, 4):
        line = forecast(plan, pd.concat(steps[:until]), concurrency=1).lines[0]
        histories.append((line.history, line.output_tokens.n))
    assert histories == [
        ("none", 0),
        ("the same model", 8),
        ("the same model and endpoint", 7),
        ("the same model, endpoint and settings", 6),
    ]


def test_answers_cut_short_by_another_cap_foresee_nothing():
    plan = cells(models=["fam-2-5-pro"], max_tokens=400)
    same = settings_digest("messages", plan[0].request.body())
    cut = past(50, status="incomplete").assign(output_tokens=16)
    assert forecast(plan, cut, concurrency=1).lines[0].history == "none"
    assert forecast(plan, cut.assign(settings=same), concurrency=1).total.output_tokens.value == 160
    few = pd.concat([cut[:2], past(48)])
    assert forecast(plan, few, concurrency=1).lines[0].output_tokens.n == 50
    assert forecast(plan, cut.assign(output_tokens=500), concurrency=1).total.output_tokens.value == 4000


def test_settings_leave_out_what_the_user_asks_and_nothing_else():
    """Two questions under one system text are the same settings; another system text or cap is not."""
    ask = [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "one"}]
    other = [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "two"}]
    long = [{"role": "system", "content": "Be long"}, {"role": "user", "content": "one"}]
    key = settings_digest("chat", {"model": "fam-mini", "messages": ask})
    assert settings_digest("chat", {"model": "fam-mini", "messages": other}) == key
    assert settings_digest("chat", {"model": "fam-mini", "messages": long}) != key
    assert settings_digest("chat", {"model": "fam-mini", "messages": ask, "max_tokens": 5}) != key
    assert settings_digest("responses", {"model": "fam-mini", "messages": ask}) != key


def test_only_calls_of_the_planned_service_foresee_it():
    here, elsewhere = past(20), past(25, service="https://other.example.com")
    simulated = past(30, simulated=True, service="http://127.0.0.1:5000")
    history = pd.concat([here, elsewhere, simulated])
    real = forecast(cells(models=["fam-2-5-pro"]), history, concurrency=1)
    rehearsal = forecast(cells(models=["fam-2-5-pro"], service=SIMULATED), history, concurrency=1)
    assert (real.lines[0].output_tokens.n, rehearsal.lines[0].output_tokens.n) == (20, 30)
    assert ("Simulated:" in repr(real), "Simulated:" in repr(rehearsal)) == (False, True)


def test_a_simulation_that_goes_by_its_address_foresees_itself_until_something_real_answers_there():
    simulated, real = past(9, simulated=True), past(6)
    plan = cells(models=["fam-2-5-pro"])
    assert forecast(plan, simulated, concurrency=1).lines[0].history == "the same model and endpoint, simulated"
    found = forecast(plan, pd.concat([simulated, real]), concurrency=1).lines[0]
    assert (found.history, found.output_tokens.n) == ("the same model and endpoint", 6)


# The runs that are drawn


@pytest.mark.full
def test_more_calls_at_once_take_less_time():
    plan, calls = cells(models=["fam-2-5-pro"]), past(100)
    times = [forecast(plan, calls, concurrency=many).wall_s.value for many in (1, 4, 10, 64)]
    assert times[0] > 2 * times[1] > 2 * times[2]
    assert times[2] == times[3] >= calls["e2e_s"].mean()


@pytest.mark.full
def test_the_expected_value_is_never_outside_its_interval():
    """One call in a hundred is long: the mean of a single call is more than 95 of 100 come to."""
    calls = past(100).assign(output_tokens=[30] * 99 + [400])
    found = forecast(cells(1, models=["fam-2-5-pro"]), calls, concurrency=1).total.output_tokens
    assert 29 < found.low < 30 < found.value <= found.high


@pytest.mark.full
@pytest.mark.parametrize("n", [8, 40])
def test_intervals_hold_the_truth_at_their_rate(n, prices):
    """Of 50 plans forecast from n past calls each, the true sum of 30 calls is inside as often as is said."""
    plan = cells(30, models=["fam-2-5-pro"], max_tokens=4000)
    truth, runs = np.random.default_rng(1), 50
    inside = {"output": 0, "cost": 0, "wall": 0}
    tokens = sum(input_chars(cell.request) for cell in plan) * 30 / 120
    for run in range(runs):
        found = forecast(plan, past(n, seed=run), concurrency=1, seed=run)
        output, took = truth.lognormal(5, 0.4, 30).round().sum(), truth.lognormal(0, 0.4, 30).sum()
        cost = tokens * 1e-6 + output * 4e-6
        for name, estimate, true in (
            ("output", found.total.output_tokens, output),
            ("cost", found.total.cost_usd, cost),
            ("wall", found.wall_s, took),
        ):
            inside[name] += estimate.low <= true <= estimate.high
    # 95 %, less three standard errors of a count; few calls cannot show how skewed their kind is.
    least = runs * 0.95 - 3 * math.sqrt(runs * 0.95 * 0.05) - (3 if n < 10 else 0)
    assert min(inside.values()) >= least, inside
