"""What the tests of experiments share: clients of a service that does not wait, prices, and processes that run one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import famnb
from famnb.service import Server

RUN = """
import sys, famnb
url, key, ledger, prompts, concurrency = sys.argv[1:]
client = famnb.Client(base_url=url, api_key=key, ledger=ledger)
exp = famnb.Experiment(
    [f"Question {number}" for number in range(int(prompts))],
    famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages"),
    repeats=2, name="shared", client=client, max_tokens=16, stream=False,
)
print("started", flush=True)
print(exp.run(concurrency=int(concurrency), progress=False).completed, flush=True)
"""
"""One process that runs an experiment of four cells a prompt, and says how many it completed."""


@pytest.fixture(scope="session")
def stalling() -> Iterator[Server]:
    """A service whose every answer stops after three pieces and never goes on."""
    with famnb.serve(time_scale=0, fault="stall=3") as running:
        yield running


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[..., famnb.Client]]:
    """Makes clients of a service that record in this test's ledger, closed at its end."""
    clients: list[famnb.Client] = []

    def make(server: Server, **options: object) -> famnb.Client:
        clients.append(
            famnb.Client(base_url=server.url, api_key=server.key, ledger=tmp_path / "ledger.sqlite", **options)
        )
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Callable[..., famnb.Client], server: Server) -> famnb.Client:
    """A client of the service that does not wait."""
    return connect(server)


@pytest.fixture
def priced() -> Iterator[None]:
    """The two models have prices: 1 and 4, 0.2 and 1 USD per million tokens."""
    famnb.prices.set("fam-2-5-pro", input=1, output=4)
    famnb.prices.set("fam-2-5-mini", input="0.2", output=1)
    yield
    for model in ("fam-2-5-pro", "fam-2-5-mini"):
        famnb.prices.unset(model)


@pytest.fixture
def child(server: Server, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts processes that run one and the same experiment in this test's ledger."""
    started: list[subprocess.Popen[str]] = []

    def start(*, prompts: int, concurrency: int = 16) -> subprocess.Popen[str]:
        arguments = [server.url, server.key, str(tmp_path / "ledger.sqlite"), str(prompts), str(concurrency)]
        command = [sys.executable, "-c", RUN, *arguments]
        started.append(
            subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()
