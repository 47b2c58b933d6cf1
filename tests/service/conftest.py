"""What the service's tests share: a caller of the service, and each endpoint in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from famnb.endpoints import ENDPOINTS
from famnb.service import Server
from tests.support.fault_server import FaultServer
from tests.support.service_requests import BaseClient
from tests.support.upstream_servers import answering, gateway


@pytest.fixture(scope="session")
def api(server: Server) -> Iterator[BaseClient]:
    """A caller of the shared service."""
    with BaseClient(server) as caller:
        yield caller


@pytest.fixture(params=list(ENDPOINTS))
def endpoint(request: pytest.FixtureRequest) -> str:
    """Each of the four endpoints in turn."""
    return str(request.param)


@pytest.fixture
def calling() -> Iterator[Callable[[Server], BaseClient]]:
    """Makes callers of further services, closed at the end of the test."""
    made: list[BaseClient] = []

    def make(server: Server) -> BaseClient:
        made.append(BaseClient(server))
        return made[-1]

    yield make
    for caller in made:
        caller.close()


@pytest.fixture(scope="session")
def fronted() -> Iterator[tuple[BaseClient, FaultServer]]:
    """A service in front of a scripted server, shared by the tests that need nothing special of either."""
    with FaultServer(choose=answering) as server, gateway(server) as caller:
        yield caller, server


@pytest.fixture
def upstream(fronted: tuple[BaseClient, FaultServer]) -> Iterator[FaultServer]:
    """The scripted server, which answers soundly unless a test says otherwise."""
    server = fronted[1]
    server.requests.clear()
    yield server
    server.choose = answering


@pytest.fixture
def through(fronted: tuple[BaseClient, FaultServer]) -> BaseClient:
    """A caller of the service in front of it."""
    return fronted[0]
