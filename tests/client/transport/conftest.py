"""What the transport's tests share: certificates, and httpx's own client over it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from famnb.client.transport import StampedTransport
from tests.client.transport.certificates import Certificate, make_certificate


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A certificate for localhost; making one takes a moment."""
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def over() -> Callable[..., Any]:
    """Makes an httpx client over a StampedTransport with these options; both end with the block."""

    @asynccontextmanager
    async def open_client(**options: Any) -> AsyncIterator[tuple[httpx.AsyncClient, StampedTransport]]:
        transport = StampedTransport(**options)
        async with httpx.AsyncClient(transport=transport) as client:
            yield client, transport
        assert transport.connections == 0

    return open_client
