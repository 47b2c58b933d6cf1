"""Which service a call belongs to: simulations are one, others go by their address."""

import json

import pytest

import famnb
from famnb.endpoints import ENDPOINTS
from famnb.errors import InvalidRequest
from famnb.experiment.services import (
    SIMULATED,
    call_address,
    key_at,
    name_services,
    normalize_address,
    service_of,
    split_key,
)
from tests.experiment.experiments import small_experiment, statuses
from tests.support import wire_payloads
from tests.support.fault_server import FaultServer, whole

ANSWER = whole(wire_payloads.body("messages", "An answer."))
REAL = "https://api.example.com"
KEY = "k" * 20


@pytest.fixture
def elsewhere(tmp_path):
    """Makes clients of services that are not simulations, in this test's ledger; each service answers everything."""
    servers, clients = [], []

    def make(**options):
        servers.append(FaultServer(choose=answer))
        clients.append(
            famnb.Client(base_url=servers[-1].url, api_key=KEY, ledger=tmp_path / "ledger.sqlite", **options)
        )
        return clients[-1]

    yield make
    for resource in (*clients, *servers):
        resource.close()


def answer(request):
    """Each model has its own."""
    return whole(wire_payloads.body("messages", f"An answer of {json.loads(request.body)['model']}."))


def experiment(client, **options):
    return small_experiment(client, stream=False, **options)


@pytest.mark.parametrize(
    ("address", "normal"),
    [
        ("HTTPS://API.Example.com:443/", "https://api.example.com"),
        ("http://[::1]:80/openai", "http://[::1]/openai"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
    ],
)
def test_an_address_has_one_spelling(address, normal):
    assert normalize_address(address) == normal


def test_a_key_says_what_is_asked_and_of_which_service():
    assert key_at("0f" * 16, SIMULATED) == "0f" * 16
    assert split_key(key_at("0f" * 16, REAL)) == ("0f" * 16, REAL)
    assert split_key("0f" * 16) == ("0f" * 16, SIMULATED)


def test_simulations_are_one_service_and_others_go_by_their_address(client, elsewhere, server):
    real, other = elsewhere(), elsewhere()
    assert service_of(client, "chat") == SIMULATED == service_of(None, "chat")
    assert service_of(real, "chat") == real.base_url("chat") != service_of(other, "chat")
    with famnb.serve(time_scale=0) as second, famnb.Client(base_url=second.url, api_key=second.key) as rival:
        name_of = name_services({"old": client, "new": rival, "real": real, "real too": real})
        assert [name_of(name, "web") for name in ("old", "new")] == ["simulated#old", "simulated#new"]
        assert {name_of(name, "web") for name in ("real", "real too")} == {real.base_url("web")}


def test_the_port_of_a_simulation_that_has_ended_is_anybodys(tmp_path):
    with famnb.serve(time_scale=0) as ended, famnb.Client(base_url=ended.url, api_key=ended.key) as first:
        assert service_of(first, "messages") == SIMULATED
    assert service_of(first, "messages") == SIMULATED
    ledger = tmp_path / "ledger.sqlite"
    with (
        FaultServer(choose=answer, port=int(ended.url.rpartition(":")[2])) as taken,
        famnb.Client(base_url=taken.url, api_key=KEY, ledger=ledger) as second,
    ):
        assert service_of(second, "messages") == taken.url
        exp = experiment(second)
        exp.run(progress=False)
        assert set(exp.frame()["status"]) == {"completed"}


def test_a_gateway_is_what_it_is_a_gateway_to(client):
    with famnb.serve(upstream=f"{REAL}/") as gateway, famnb.Client(base_url=gateway.url, api_key=KEY) as through:
        assert service_of(through, "messages") == REAL
        assert call_address(f"{gateway.url}/v1/messages", ENDPOINTS["messages"]) == REAL


def test_a_rehearsal_on_the_simulation_leaves_everything_to_the_real_service(client, elsewhere, prices):
    experiment(client).run(budget_usd=1)
    real = elsewhere()
    exp = experiment(real)
    assert (exp.forecast().remaining, statuses(exp)) == (12, {"planned": 12})
    assert exp.forecast().total.history == "none"
    report = exp.run(budget_usd=1)
    frame = exp.frame()
    assert (report.completed, report.skipped, report.simulated, report.other_service) == (12, 0, False, 12)
    assert "12 cells had an answer from another service, which does not count here." in str(report)
    assert not frame["simulated"].any()
    assert set(frame["url"]) == {f"{real.base_url('messages')}/v1/messages"}
    assert float(report.counted_usd) == pytest.approx(frame["cost_high_usd"].sum())
    assert experiment(client).run().skipped == 12
    assert len(famnb.calls(client.ledger)) == 24


def test_what_another_real_service_answered_does_not_count_either_but_was_paid(elsewhere, prices):
    first = experiment(elsewhere()).run(budget_usd=1)
    second = experiment(elsewhere()).run(budget_usd=1)
    assert (second.completed, second.counted_usd) == (12, 2 * first.counted_usd)


def test_a_simulation_that_somebody_else_started_counts_until_something_real_answers_there(tmp_path):
    """It goes by its address."""
    simulated = whole(wire_payloads.body("messages", "Made up."), x_famnb_engine="sim")
    with (
        FaultServer(simulated) as server,
        famnb.Client(base_url=server.url, api_key=KEY, ledger=tmp_path / "ledger.sqlite") as client,
    ):
        assert (experiment(client).run().completed, experiment(client).run().skipped) == (12, 12)
        assert experiment(client).frame()["simulated"].all()
        server.scripts = [ANSWER]
        more = experiment(client, prompts=4)
        assert (more.run().completed, more.run().completed) == (4, 12)
        assert not more.frame()["simulated"].any()


def test_one_model_at_two_services_is_compared_by_the_clients_names(elsewhere, client):
    old, new = elsewhere(), elsewhere()
    grid = famnb.grid(client={"old": old, "new": new}, model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages")
    assert [variant.label for variant in grid] == [
        "old, fam-2-5-pro",
        "old, fam-2-5-mini",
        "new, fam-2-5-pro",
        "new, fam-2-5-mini",
    ]
    exp = famnb.Experiment(["a", "b"], grid, name="two", max_tokens=16, stream=False)
    assert exp.plan()["client"].value_counts().to_dict() == {"old": 4, "new": 4}
    assert exp.run().completed == 8
    frame = exp.frame()
    addresses = {name: set(rows["url"]) for name, rows in frame.groupby("client")}
    assert addresses == {
        name: {f"{service.base_url('messages')}/v1/messages"} for name, service in (("old", old), ("new", new))
    }
    assert exp.run().skipped == 8
    assert exp.forecast().remaining == 0
    assert len(exp.summary().table) == 4


@pytest.mark.full
def test_two_simulations_are_told_apart_by_their_names(client, connect):
    for round_number in range(2):
        with famnb.serve(time_scale=0, seed=1) as first, famnb.serve(time_scale=0, seed=2) as second:
            variants = [{"label": "one", "client": connect(first)}, {"label": "two", "client": connect(second)}]
            exp = famnb.Experiment(["a"], variants, name="sims", client=client, max_tokens=16)
            assert exp.run().completed == (2, 0)[round_number]
    assert [set(exp.frame()["simulated"]), set(exp.frame()["client"])] == [{True}, {"one", "two"}]


def test_clients_that_record_in_two_ledgers_are_refused(elsewhere, tmp_path):
    other = famnb.Client(base_url=REAL, api_key=KEY, ledger=tmp_path / "other.sqlite")
    with pytest.raises(InvalidRequest, match=r"one ledger, but these in .*ledger.sqlite, .*other.sqlite"):
        famnb.Experiment(["a"], famnb.grid(client={"a": elsewhere(), "b": other}), name="n")
    with pytest.raises(InvalidRequest, match=r"client: expected a famnb.Client, or .*; got 'https://x'"):
        famnb.grid(client={"a": "https://x"})


def test_planning_without_a_client_starts_no_service(monkeypatch):
    monkeypatch.setattr("famnb.service.serve", None)
    exp = famnb.Experiment(["a"], name="n")
    assert split_key(exp.plan()["cell"][0])[1] == SIMULATED
