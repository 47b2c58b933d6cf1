"""What the client's tests share: servers that misbehave on purpose, and one way to call both shells."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from faultserver import FaultServer, Script

from famnb.client import Client, Exchange
from famnb.errors import FamnbError
from famnb.reply import Reply
from famnb.request import Request

KEY = "fam-key-0123456789abcdef"


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
def connect() -> Iterator[Callable[..., Client]]:
    """Makes clients of a server, closed with the test, that note pauses on `client.pauses` instead of sleeping."""
    clients: list[Client] = []

    def make(server: FaultServer | str, **options: Any) -> Client:
        url = server if isinstance(server, str) else server.url
        client = Client(base_url=url, api_key=KEY, **options)
        client.pauses = []

        async def note(seconds: float) -> None:
            client.pauses.append(seconds)

        client._engine.sleep = note
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


class Way:
    """One of the ways to make a call, so that a test can hold for all of them."""

    def __init__(self, name: str) -> None:
        self.name = name

    def send(self, client: Client, request: Request) -> Reply:
        """The reply to a request; raises the call's error."""
        if self.name == "sync":
            return client.send(request)
        return asyncio.run(client.asend(request))

    def iterate(self, client: Client, request: Request) -> list[Any]:
        """The events of a stream, iterated; raises the call's error."""
        if self.name == "sync":
            with client.stream(request) as stream:
                return list(stream)
        return asyncio.run(self._iterated(client, request))

    async def _iterated(self, client: Client, request: Request) -> list[Any]:
        async with client.stream(request) as stream:
            return [event async for event in stream]

    def failure(self, client: Client, request: Request) -> FamnbError:
        """The error that a call ends with."""
        with pytest.raises(FamnbError) as caught:
            self.send(client, request)
        return caught.value


@pytest.fixture(params=["sync", "async"])
def way(request: pytest.FixtureRequest) -> Way:
    return Way(request.param)


class Notebook:
    """A recorder that remembers; its rows become durable on another thread, as a ledger's do."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.kept: list[Exchange] = []

    def opened(self, exchange: Exchange) -> None:
        self.steps.append("opened")

    def arrived(self, exchange: Exchange) -> None:
        self.steps.append("arrived")

    def closed(self, exchange: Exchange) -> Future[None]:
        self.steps.append("closed")
        future: Future[None] = Future()

        def keep() -> None:
            self.kept.append(exchange)
            future.set_result(None)

        threading.Timer(0.02, keep).start()
        return future


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()
