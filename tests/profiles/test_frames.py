"""One model's name at two vendors is two models, wherever calls are counted, filtered, forecast or compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import famnb
from tests.support.fault_server import FaultServer, whole
from tests.support.wire_payloads import body

MODEL = "one-name"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def clients(ledger: Path) -> Iterator[dict[str, famnb.Client]]:
    """A client of each of two vendors, with one ledger."""
    servers = [
        FaultServer(*[whole(body("chat", text)) for _ in range(40)]) for text in ("Short.", "Much longer. " * 20)
    ]
    made = {
        name: famnb.Client(profile=name, base_url=server.url, api_key="vendor-key-0123456789", ledger=ledger)
        for name, server in zip(("gemini", "openrouter"), servers, strict=True)
    }
    yield made
    for client in made.values():
        client.close()
    for server in servers:
        server.close()


def ask(client: famnb.Client, prompt: str) -> Any:
    return client.send(client.compose("chat", prompt, model=MODEL, stream=False, max_tokens=500))


def test_calls_runs_and_spend_tell_vendors_apart(clients: dict[str, famnb.Client], ledger: Path):
    for count, client in enumerate(clients.values(), start=1):
        for number in range(count):
            ask(client, f"Hello {number}")
    assert set(famnb.calls(ledger, profile="gemini")["profile"]) == {"gemini"}
    assert len(famnb.calls(ledger, profile=["gemini", "openrouter"])) == 3
    runs = famnb.runs(ledger)
    assert runs[["profile", "model", "calls"]].to_numpy().tolist() == [["gemini", MODEL, 1], ["openrouter", MODEL, 2]]
    assert famnb.runs(ledger, profile="openrouter")["calls"].tolist() == [2]
    spent = famnb.spend(ledger, by=["profile", "model"])
    assert spent[["profile", "model", "calls"]].to_numpy().tolist() == [["gemini", MODEL, 1], ["openrouter", MODEL, 2]]


def test_a_forecast_and_a_summary_are_of_each_vendor_s_own_calls(clients: dict[str, famnb.Client]):
    """Also of a vendor whose path is not the document's."""
    for client in clients.values():
        for number in range(6):
            ask(client, f"Hello {number}")
    variants = famnb.grid(client=clients, endpoint="chat", model=MODEL)
    exp = famnb.Experiment(
        ["One?", "Two?"], variants, name="two", client=clients["gemini"], stream=False, max_tokens=500
    )
    tokens = exp.forecast().frame
    assert set(tokens["n"]) == {6}
    assert exp.run().completed == 4
    frame = exp.frame()
    assert frame.groupby("variant", observed=True)["profile"].unique().map(list).to_dict() == {
        "gemini": ["gemini"],
        "openrouter": ["openrouter"],
    }
    summary = exp.summary()
    assert set(summary.table.index.get_level_values(0)) >= {"gemini", "openrouter"}
