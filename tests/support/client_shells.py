"""Who calls and who records in the client's tests: both shells behind one face, a recorder that remembers."""

import asyncio
import threading
import types
from concurrent.futures import Future
from typing import Any

import pytest

from famnb.api import Client
from famnb.client.exchange import Exchange
from famnb.errors import FamnbError
from famnb.reply import Reply
from famnb.request import Request

KEY = "fam-key-0123456789abcdef"


class Caller:
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
        return asyncio.run(self._iterate(client, request))

    async def _iterate(self, client: Client, request: Request) -> list[Any]:
        async with client.stream(request) as stream:
            return [event async for event in stream]

    def failure(self, client: Client, request: Request) -> FamnbError:
        """The error that a call ends with."""
        with pytest.raises(FamnbError) as caught:
            self.send(client, request)
        return caught.value


def outcome(value: Any) -> Any:
    """What a method of a client returns, awaited if it is to be."""
    return asyncio.run(value) if asyncio.iscoroutine(value) else value


class MemoryRecorder:
    """A recorder that remembers; its rows become durable on another thread, as a ledger's do."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.exchanges: list[Exchange] = []

    def on_open(self, exchange: Exchange) -> None:
        self.steps.append("on_open")

    def on_reads(self, exchange: Exchange) -> None:
        self.steps.append("on_reads")

    def on_close(self, exchange: Exchange) -> Future[None]:
        self.steps.append("on_close")
        future: Future[None] = Future()

        def keep() -> None:
            self.exchanges.append(exchange)
            future.set_result(None)

        try:
            threading.Timer(0.02, keep).start()
        except RuntimeError:  # since Python 3.12 a process that ends starts no more threads
            keep()
        return future


def reachable(thing: object) -> list[str]:
    """The texts that attributes, items and slots of a thing lead to, as a debugger's variable view would show them."""
    texts: list[str] = []
    seen: set[int] = set()
    queue: list[Any] = [thing]
    while queue:
        value = queue.pop()
        if id(value) in seen or isinstance(value, type | types.ModuleType | types.FunctionType | types.MethodType):
            continue
        seen.add(id(value))
        if isinstance(value, str | bytes):
            texts.append(str(value))
        elif isinstance(value, dict):
            queue += [*value, *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            queue += value
        else:
            queue += getattr(value, "__dict__", {}).values()
            slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
            queue += [getattr(value, name) for name in slots if hasattr(value, name)]
    return texts
