"""What the service's tests share: a caller of the service, and each endpoint in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from servicecalls import Caller

from famnb.endpoints import ENDPOINTS
from famnb.service import Server


@pytest.fixture(scope="session")
def api(server: Server) -> Iterator[Caller]:
    """A caller of the shared service."""
    with Caller(server) as caller:
        yield caller


@pytest.fixture(params=list(ENDPOINTS))
def endpoint(request: pytest.FixtureRequest) -> str:
    """Each of the four endpoints in turn."""
    return str(request.param)


@pytest.fixture
def calling() -> Iterator[Callable[[Server], Caller]]:
    """Makes callers of further services, closed at the end of the test."""
    made: list[Caller] = []

    def make(server: Server) -> Caller:
        made.append(Caller(server))
        return made[-1]

    yield make
    for caller in made:
        caller.close()
