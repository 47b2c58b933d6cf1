"""What the client's tests share: servers that misbehave on purpose, and one way to call both shells."""

import contextlib
import functools
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from famnb.api import AsyncClient, Client
from famnb.client.client import BaseClient
from famnb.client.config import Clock
from famnb.service import Server
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
def client(server: Server) -> Iterator[Client]:
    """A client of the local service."""
    with Client(base_url=server.url, api_key=server.key) as client:
        yield client


@pytest.fixture
def connect() -> Iterator[Callable[..., Any]]:
    """Makes clients of a server, closed with the test, that note pauses on `client.pauses` instead of sleeping."""
    clients: list[BaseClient] = []

    def make(server: FaultServer | str, *, kind: type[BaseClient] = Client, **options: Any) -> BaseClient:
        url = server if isinstance(server, str) else server.url
        pauses: list[float] = []

        async def note(seconds: float) -> None:
            pauses.append(seconds)

        client = kind(base_url=url, api_key=KEY, **{"clock": Clock(sleep=note), **options})
        client.pauses = pauses
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.engine.shut_down().result()


@pytest.fixture
def deaf_url() -> Iterator[str]:
    """The address of a listener whose queue is full, so that it takes no more connections."""
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0)).getsockname()
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)
        yield f"http://127.0.0.1:{address[1]}"


@pytest.fixture(params=[Client, AsyncClient])
def connect_either(request: pytest.FixtureRequest, connect: Callable[..., Any]) -> Callable[..., Any]:
    """`connect` for blocking clients, then for those whose methods are awaited."""
    return functools.partial(connect, kind=request.param)


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
