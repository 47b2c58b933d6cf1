"""What the tests of experiments share: clients of a service that does not wait, prices, and processes that run one."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import distributed
import pytest

import famnb
from famnb.service import Server
from tests.support import shared_run

CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload(["famnb.study"])


@pytest.fixture(scope="session")
def stalling(server: Server) -> Iterator[Server]:
    """A service whose every answer stops after three pieces and never goes on."""
    with famnb.serve(time_scale=0, fault="stall=3", key=server.key) as running:
        yield running


@pytest.fixture(scope="module")
def dask_client(server: Server) -> Iterator[Any]:
    """A client of a cluster of two worker processes with one thread each, which know the service's key."""
    key = {"FAM_API_KEY": server.key}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", env=key) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(params=["here", "on Dask"])
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The argument of `run` that says who carries the calls: this process, or a cluster's workers."""
    return {} if request.param == "here" else {"on": request.getfixturevalue("dask_client")}


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

    def start(*, prompts: int, concurrency: int = 16, on: str | None = None) -> tuple[BaseProcess, Connection]:
        heard, say = CHILDREN.Pipe(duplex=False)
        ledger = str(tmp_path / "ledger.sqlite")
        process = CHILDREN.Process(
            target=shared_run.run, args=(server.url, server.key, ledger, prompts, concurrency, on, say)
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
