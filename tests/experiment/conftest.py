"""What the tests of experiments share: clients of a service that does not wait, prices, and processes that run one."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest

import famnb
from famnb.service import Server
from tests.experiment import shared_run
from tests.experiment.scripted_models import Serve, service
from tests.support.experiment_fixtures import client, connect, prices
from tests.support.fault_server import FaultServer

__all__ = ["client", "connect", "prices"]

CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload(["tests.experiment.shared_run", "famnb.experiment_api"])


@pytest.fixture(scope="session")
def stalling(server: Server) -> Iterator[Server]:
    """A service whose every answer stops after three pieces and never goes on."""
    with famnb.serve(time_scale=0, fault="stall=3", key=server.key) as running:
        yield running


@pytest.fixture(scope="module")
def dask_client(server: Server) -> Iterator[Any]:
    """A client of a cluster of two worker processes with one thread each, which know the service's key."""
    key = {"FAM_API_KEY": server.key}
    # A cluster asks so long after it lost a worker whether that is back, and otherwise closes its place for good, even
    # where it had come back and was lost once more: after 15 s unless told, and these tests kill a worker often.
    patience = {"distributed.deploy.lost-worker-timeout": "1h"}
    with (
        dask.config.set(patience),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", env=key) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(params=["here", pytest.param("on Dask", marks=pytest.mark.full)])
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The argument of `run` that says who carries the calls: this process, or a cluster's workers."""
    return {} if request.param == "here" else {"on": request.getfixturevalue("dask_client")}


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


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a service of written answers and verdicts, and a client of it that records."""
    with ExitStack() as stack:

        def start(*written: Any) -> tuple[famnb.Client, FaultServer]:
            server = stack.enter_context(service(*written))
            client = famnb.Client(
                base_url=server.url,
                api_key="k" * 20,
                ledger=tmp_path / "judged.sqlite",
                retries=famnb.Retries(tries=1),
            )
            return stack.enter_context(client), server

        yield start
