"""What the client's tests share: servers that misbehave on purpose, and one way to call both shells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from famnb.client.client import BlockingClient
from famnb.client.config import Clock
from tests.support.client_shells import KEY, Caller, MemoryRecorder
from tests.support.fault_server import FaultServer, Script


@pytest.fixture
def serve() -> Iterator[Callable[..., FaultServer]]:
    """Starts servers that play scripts; they end with the test."""
    servers: list[FaultServer] = []

    def start(*scripts: Script, **options: Any) -> FaultServer:
        servers.append(FaultServer(*scripts, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def connect() -> Iterator[Callable[..., BlockingClient]]:
    """Makes clients of a server, closed with the test, that note pauses on `client.pauses` instead of sleeping."""
    clients: list[BlockingClient] = []

    def make(server: FaultServer | str, **options: Any) -> BlockingClient:
        url = server if isinstance(server, str) else server.url
        pauses: list[float] = []

        async def note(seconds: float) -> None:
            pauses.append(seconds)

        client = BlockingClient(base_url=url, api_key=KEY, **{"clock": Clock(sleep=note), **options})
        client.pauses = pauses
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture(params=["sync", "async"])
def caller(request: pytest.FixtureRequest) -> Caller:
    return Caller(request.param)


@pytest.fixture
def recorder() -> MemoryRecorder:
    return MemoryRecorder()


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls wait longer for their records than users' do: a loaded machine may take more than that for one."""
    monkeypatch.setattr("famnb.client.engine.DURABLE_S", 10.0)
