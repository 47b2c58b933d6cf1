"""The past calls that a forecast is made of: which count, and which never do."""

import pandas as pd

from famnb.experiment.forecast import forecast, settings_digest
from famnb.experiment.services import SIMULATED
from tests.experiment.forecast_histories import cells, past


def test_the_history_is_that_of_the_same_settings_and_falls_back_step_by_step():
    plan = cells(models=["fam-2-5-pro"])
    same = settings_digest("messages", plan[0].request.body())
    steps = [past(9, model="fam-2-5-mini"), past(8, endpoint="chat"), past(7), past(6, settings=same)]
    told = []
    for until in (1, 2, 3, 4):
        line = forecast(plan, pd.concat(steps[:until]), concurrency=1).lines[0]
        told.append((line.history, line.output_tokens.n))
    assert told == [
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
