"""What the service's tests share: a caller of the service, and each endpoint in turn."""

from collections.abc import Iterator

import pytest

from famnb.endpoints import ENDPOINTS
from famnb.service import Server
from tests.support.fault_server import FaultServer
from tests.support.service_requests import ServiceClient
from tests.support.upstream_servers import answer_hello, start_gateway


@pytest.fixture(scope="session")
def api(server: Server) -> Iterator[ServiceClient]:
    """A caller of the shared service."""
    with ServiceClient(server) as caller:
        yield caller


@pytest.fixture(params=list(ENDPOINTS))
def endpoint(request: pytest.FixtureRequest) -> str:
    """Each endpoint in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def gateway_and_upstream() -> Iterator[tuple[ServiceClient, FaultServer]]:
    """A service in front of a scripted server, shared by the tests that need nothing special of either."""
    with FaultServer(choose=answer_hello) as server, start_gateway(server) as caller:
        yield caller, server


@pytest.fixture
def upstream(gateway_and_upstream: tuple[ServiceClient, FaultServer]) -> Iterator[FaultServer]:
    """The scripted server, which answers soundly unless a test says otherwise."""
    server = gateway_and_upstream[1]
    server.requests.clear()
    yield server
    server.choose = answer_hello


@pytest.fixture
def gateway(gateway_and_upstream: tuple[ServiceClient, FaultServer]) -> ServiceClient:
    """A caller of the service in front of it."""
    return gateway_and_upstream[0]
