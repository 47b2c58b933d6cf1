"""One model's name at two vendors is two models: in frames, forecasts and comparisons, and each has its own price."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import famnb
from famnb.errors import BudgetExceeded
from tests.support.fault_server import FaultServer, whole

MODEL = "one-name"
REPLY: dict[str, Any] = {
    "id": "c",
    "model": MODEL,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 999_999,
        "completion_tokens": 1,
        "total_tokens": 1_000_000,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    },
}


@pytest.fixture
def prices() -> Iterator[None]:
    """1 USD a million at any service, 3 by the router."""
    famnb.prices.set(MODEL, input=1, output=1)
    famnb.prices.set(MODEL, input=3, output=3, service="openrouter")
    yield
    famnb.prices.unset(MODEL)


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[dict[str, famnb.Client]]:
    """One client of each of two services, with one ledger."""
    servers = [FaultServer(*[whole(REPLY) for _ in range(40)]) for _ in range(2)]
    options: dict[str, Any] = {"api_key": "vendor-key-0123456789", "ledger": tmp_path / "ledger.sqlite"}
    clients = {
        name: famnb.Client(profile=name, base_url=server.url, **options)
        for name, server in zip(("gemini", "openrouter"), servers, strict=True)
    }
    yield clients
    for client in clients.values():
        client.close()
    for server in servers:
        server.close()


def test_one_model_at_two_services_has_two_costs(prices: None, clients: dict[str, famnb.Client], tmp_path: Path):
    ledger = tmp_path / "ledger.sqlite"
    replies = {
        name: client.send(client.compose("chat", "Hello", model=MODEL, stream=False))
        for name, client in clients.items()
    }
    assert {name: reply.cost.usd for name, reply in replies.items()} == {"openrouter": Decimal(3), "gemini": Decimal(1)}
    frame = famnb.calls(ledger)
    assert dict(zip(frame["profile"], frame["cost_usd"], strict=True)) == {"openrouter": 3.0, "gemini": 1.0}
    famnb.prices.set(MODEL, input=7, output=7, service="gemini")
    changed = famnb.calls(ledger, columns=["cost_usd", "profile"])
    assert dict(zip(changed["profile"], changed["cost_usd"], strict=True)) == {"openrouter": 3.0, "gemini": 7.0}
    assert set(famnb.calls(ledger, profile="gemini")["profile"]) == {"gemini"}
    spent = famnb.spend(ledger, by=["profile", "model"])
    columns = ["profile", "model", "calls", "cost_usd"]
    assert sorted(spent[columns].to_numpy().tolist()) == [["gemini", MODEL, 1, 7.0], ["openrouter", MODEL, 1, 3.0]]


def test_an_experiment_counts_each_service_s_own_price(prices: None, clients: dict[str, famnb.Client]):
    variants = famnb.grid(client=clients, endpoint="chat", model=MODEL)
    options: dict[str, Any] = {"stream": False, "max_tokens": 1_000_000, "client": clients["gemini"]}
    exp = famnb.Experiment(["Hello"], variants, name="two services", **options)
    ceilings = exp.forecast().frame["ceiling_usd"]
    assert ceilings["openrouter"] == pytest.approx(3 * ceilings["gemini"], rel=0.01)
    with pytest.raises(BudgetExceeded, match=r"not even one more call fits"):
        exp.run(budget_usd=0.5)
    assert exp.run(budget_usd=10).completed == 2
    costs = exp.frame().set_index("variant")["cost_usd"]
    assert (costs["openrouter"], costs["gemini"]) == (3.0, 1.0)


def test_a_forecast_and_a_summary_are_of_each_vendor_s_own_calls(clients: dict[str, famnb.Client]):
    for client in clients.values():
        for number in range(6):
            client.send(client.compose("chat", f"Hello {number}", model=MODEL, stream=False, max_tokens=500))
    variants = famnb.grid(client=clients, endpoint="chat", model=MODEL)
    options: dict[str, Any] = {"client": clients["gemini"], "stream": False, "max_tokens": 500}
    exp = famnb.Experiment(["One?", "Two?"], variants, name="two", **options)
    tokens = exp.forecast().frame
    assert set(tokens["n"]) == {6}
    assert exp.run().completed == 4
    summary = exp.summary()
    assert set(summary.table.index.get_level_values(0)) >= {"gemini", "openrouter"}
