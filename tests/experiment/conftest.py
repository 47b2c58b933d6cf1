"""What the tests of experiments share: clients of a service that does not wait, prices, and processes that run one."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import sharedrun

import famnb
from famnb.service import Server

CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload(["famnb.study"])


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
def child(server: Server, tmp_path: Path) -> Iterator[Callable[..., tuple[BaseProcess, Connection]]]:
    """Starts processes that run one and the same experiment in this test's ledger; each with what it says."""
    started: list[BaseProcess] = []

    def start(*, prompts: int, concurrency: int = 16) -> tuple[BaseProcess, Connection]:
        heard, say = CHILDREN.Pipe(duplex=False)
        ledger = str(tmp_path / "ledger.sqlite")
        process = CHILDREN.Process(
            target=sharedrun.run, args=(server.url, server.key, ledger, prompts, concurrency, say)
        )
        started.append(process)
        process.start()
        say.close()
        assert heard.recv() == "started"
        return process, heard

    yield start
    for process in started:
        process.kill()
        process.join()
