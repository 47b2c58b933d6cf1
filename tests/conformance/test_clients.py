"""Each client of the field, unmodified, at the simulation and at a real engine behind the gateway.

    pytest -m conformance                    all of them, each installed from its registry
    pytest -m "not conformance"              those that are installed anyway

A client is kept in pytest's cache, or in the folder that CONFORMANCE_CACHE names.
"""

import functools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from famnb.service import serve
from famnb.service.engines.simulated import count_tokens
from famnb.service.model_download import get_model
from tests.conformance.clients import CLIENTS, MODELS, Client
from tests.conformance.environments import Environment
from tests.support.tiny_engine import ENGINE_KEY, run_engine, run_model

SERVICES = ("simulation", "profile", "engine", "smollm2")
"""The simulation, with a profile of the responses endpoint too; llama.cpp with a tiny model of random weights, and with
a real one, whose template has no tools."""
PROMPT = "Say in detail why the sky is blue."
"""The simulation answers it with a page that repeats it."""
SHORT_PROMPT = "Say in two sentences why the sky is blue."
"""For a real model, which would sometimes go on beyond the cap, and to some SDKs that is an error."""
CAP = 500
"""Enough tokens for all that the simulation says, and nearly always for what the engine does."""
Outcomes = Callable[[Client, str], dict[str, dict[str, Any]]]


def cases() -> list[Any]:
    """Every client with every case that it and the service have."""
    rows = []
    for service in SERVICES:
        for client in CLIENTS:
            for case in client.cases if service != "profile" or client.api == "responses" else ():
                if service == "smollm2" and "tool" in case:
                    continue
                reason = client.not_offered.get((service, case))
                marks = [
                    *([pytest.mark.conformance] if client.packages or service == "smollm2" else []),
                    pytest.mark.full,
                    *([pytest.mark.xfail(reason=reason, strict=True)] if reason else []),
                ]
                rows.append(pytest.param(client, service, case, marks=marks, id=f"{service}-{client}-{case}"))
    return rows


@pytest.fixture(scope="module")
def simulation() -> Iterator[dict[str, Any]]:
    """The simulation with `--compat`."""
    with serve(time_scale=0, compat=True) as server:
        yield {"url": server.url, "key": server.key}


@pytest.fixture(scope="module")
def profile() -> Iterator[dict[str, Any]]:
    """The simulation with `--compat --profile openresponses`."""
    with serve(time_scale=0, compat=True, profile="openresponses") as server:
        yield {"url": server.url, "key": server.key}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A real engine behind the gateway."""
    with run_engine(tmp_path_factory.mktemp("model")) as url, serve(upstream=url, upstream_key=ENGINE_KEY) as server:
        yield {"url": server.url, "key": server.key}


@pytest.fixture(scope="module")
def smollm2(cache: Path) -> Iterator[dict[str, Any]]:
    """A real model behind the gateway; its weights are kept with the clients."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FAMNB_MODELS", str(cache / "models"))
        path = get_model("smollm2")
    with run_model(path) as url, serve(upstream=url, upstream_key=ENGINE_KEY) as server:
        yield {"url": server.url, "key": server.key, "prompt": SHORT_PROMPT}


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, cache: Path) -> Outcomes:
    """What came of each case of a client at a service; the client runs once at each."""

    @functools.cache
    def find(client: Client, service: str) -> dict[str, dict[str, Any]]:
        return run_client(client, cache, request.getfixturevalue(service))

    return find


def run_client(client: Client, cache: Path, address: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what came of each case of a client; under the empty name which version it has."""
    if client.is_javascript and not shutil.which("npm"):
        pytest.skip("npm is not installed")
    environment = Environment(client, cache)
    environment.install()
    found = environment.run({"prompt": PROMPT, **address, "api": client.api, "model": MODELS[client.api], "cap": CAP})
    return {"": {"version": environment.version()}, **found}


@pytest.mark.parametrize(("client", "service", "case"), cases())
def test_a_client_is_at_home(client, service, case, outcomes, record_property):
    """It gets a text, has a tool called and its result read, or gets an object of the form it asked for."""
    found = outcomes(client, service)
    for name, value in {"client": client, "version": found[""]["version"], "service": service, "case": case}.items():
        record_property(name, str(value))
    outcome = found[case]
    assert "error" not in outcome, outcome["traceback"]
    check = check_generated if service in ("engine", "smollm2") else check_simulated
    check(outcome, case)
    if "answer" in outcome:
        assert outcome["answer"].keys() == {"sunny", "wind"}
        assert isinstance(outcome["answer"]["sunny"], bool)
        assert outcome["answer"]["wind"] in ("none", "some", "much")


def check_simulated(outcome: dict[str, Any], case: str) -> None:
    """Judge what came from the simulation, whose texts are known and whose tokens can be counted."""
    if "tools" in case:
        assert outcome["calls"] == [["get_weather", {"city": "Oslo"}]]
    if "text" in outcome:
        assert ("11 degrees" if "tools" in case else "why the sky is blue") in outcome["text"]
        assert outcome["text"].startswith("## ")
    if outcome.get("output_tokens") is not None:
        assert outcome["output_tokens"] == count_tokens(outcome["text"])
    if "finish" in outcome:
        assert outcome["finish"] in ("stop", "end_turn", "completed")
    if "models" in outcome:
        assert "fam-mini" in outcome["models"]


def check_generated(outcome: dict[str, Any], case: str) -> None:
    """Judge what came from an engine that says anything, within the cap and the forms that were asked for."""
    if "tools" in case:
        assert [name for name, _ in outcome["calls"]] == ["get_weather"]
        assert all(arguments["city"] in ("Oslo", "Rome") for _, arguments in outcome["calls"])
    if "text" in outcome:
        assert outcome["text"]
    if outcome.get("output_tokens") is not None:
        assert 0 < outcome["output_tokens"] <= CAP
    if "models" in outcome:
        assert len(outcome["models"]) > 3
