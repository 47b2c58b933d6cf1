"""A worker of a Dask cluster as the driver sees it: a courier there, asked in batches; which calls it gets is not
decided here.
"""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from collections.abc import Coroutine, Mapping
from typing import Any

from famnb import __version__
from famnb.client.exchange import Exchange
from famnb.errors import CredentialError, FamnbError, InvalidRequest
from famnb.experiment.dask.remote_agent import POLL_S, Courier, Errand, News
from famnb.experiment.executor import Over
from famnb.experiment.plan import Cell

ANSWER_S = 30.0
"""How long a worker has for an answer, besides the time it may wait for news."""
CLOSE_S = 5.0
"""How long it has to end what it still does."""
AGAIN_S = 0.2
"""The pause before a worker that did not answer is asked again."""
GATHER_S = 0.002
"""How long calls are gathered that go to a worker together."""


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class Work:
    """A cell's call until it is over."""

    cell: Cell
    labels: Mapping[str, str]
    over: Over
    exchange: Exchange | None = None
    """The call as it is recorded; None before it is handed to a worker."""


class Cluster:
    """A Dask client whose loop may belong to another thread; every question has a time limit."""

    def __init__(self, dask_client: Any) -> None:
        """Raises InvalidRequest for what is no Dask client that works, and where the `scale` extra is missing."""
        self.distributed = _checked(dask_client)
        self.client = dask_client

    async def asked(self, question: Coroutine[Any, Any, Any], *, seconds: float = ANSWER_S) -> Any:
        """The answer to a question that is awaited on Dask's own loop; TimeoutError without one in time."""
        try:
            future = asyncio.run_coroutine_threadsafe(question, self.client.loop.asyncio_loop)
        except RuntimeError:
            question.close()
            raise ConnectionError("the Dask client is closed") from None
        return await asyncio.wait_for(asyncio.wrap_future(future), seconds)

    async def addresses(self) -> set[str]:
        """The workers that there are."""

        async def question() -> Any:
            return await self.client.nthreads()

        return set(await self.asked(question()))


class Worker:
    """A worker, with a courier on it."""

    def __init__(self, address: str, cluster: Cluster) -> None:
        self.address = address
        self.todo: list[Work] = []
        """Calls that are to be handed to it."""
        self.carried: dict[str, Work] = {}
        """Calls that it has, or is being handed, by their id."""
        self.stops: list[str] = []
        """Calls that it is to stop."""
        self.woken = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []
        self._cluster = cluster
        self._future: Any = None
        self._number = 0
        self._taken = 0

    @property
    def load(self) -> int:
        """Calls that it has or will get."""
        return len(self.todo) + len(self.carried)

    async def open(self, *arguments: Any) -> None:
        """Put a courier there; CredentialError where it has no key, FamnbError where it cannot carry calls."""
        # An actor rather than tasks: a task holds one of the worker's threads for as long as its call runs.
        self._future = self._cluster.client.submit(
            Courier,
            actor=True,
            workers=[self.address],
            allow_other_workers=False,
            pure=False,
            key=f"famnb-courier-{secrets.token_hex(8)}",
        )

        async def made() -> Any:
            return await self._future.exception()

        fault: Exception | None
        try:
            fault = await self._cluster.asked(made())
            if fault is None:
                await self._asked("open", *arguments)
                return
        except CredentialError as error:
            self._future.release()
            raise CredentialError(f"worker {self.address} has no key of its own: {error}") from None
        except (OSError, RuntimeError) as error:
            fault = error
        self._future.release()
        raise FamnbError(
            f"worker {self.address} cannot carry calls ({type(fault).__name__}: {fault}); it needs a thread that is "
            f"free, and famnb {__version__}, as this process has it"
        )

    async def hand_over(self, errands: list[Errand]) -> None:
        """Have calls started there, and those in `stops` stopped."""
        stops, self.stops = self.stops, []
        self._number += 1
        await self._insisting("carry", self._number, errands, stops)

    async def news(self) -> list[News]:
        """What there is to be told since the last time; none if there is none within some seconds."""
        found: list[News] = await self._insisting("told", self._taken)
        self._taken += len(found)
        return found

    async def close(self) -> None:
        """Take the courier away; calls that it still has are stopped."""
        for task in self.tasks:
            task.cancel()
        if self._future is not None:
            try:
                await self._asked("close", seconds=CLOSE_S)
            finally:
                self._future.release()

    def forget(self) -> None:
        """The worker is gone."""
        current = asyncio.current_task()
        for task in self.tasks:
            if task is not current:
                task.cancel()
        if self._future is not None:
            self._future.release()

    async def _insisting(self, method: str, *arguments: Any) -> Any:
        """Ask until there is an answer, for as long as the worker is there; the courier knows a question again."""
        while True:
            try:
                return await self._asked(method, *arguments)
            except OSError:
                if self.address not in await self._cluster.addresses():
                    raise
                await asyncio.sleep(AGAIN_S)

    async def _asked(self, method: str, *arguments: Any, seconds: float = POLL_S + ANSWER_S) -> Any:
        """Call one of the courier's methods.

        Not by Dask's own handle on an actor, which waits for ever once the worker is lost.
        """
        dask, serialized = self._cluster.client, self._cluster.distributed.protocol.to_serialize
        message = {
            "op": "actor_execute",
            "actor": self._future.key,
            "function": method,
            "args": [serialized(each) for each in arguments],
            "kwargs": {},
        }

        async def question() -> Any:
            if dask.direct_to_workers:
                operation = message.pop("op")
                return await getattr(dask.rpc(self.address), str(operation))(**message)
            return await dask.scheduler.proxy(worker=self.address, msg=message)

        answer = await self._cluster.asked(question(), seconds=seconds)
        if answer["status"] != "OK":
            raise answer["exception"]
        return answer["result"]


def _checked(dask_client: Any) -> Any:
    """The library distributed, to which the client belongs; InvalidRequest, saying what to do, for anything else."""
    try:
        import distributed
    except ImportError as error:
        raise InvalidRequest('on: calls are spread by Dask; run: pip install "famnb[scale]"') from error
    if not isinstance(dask_client, distributed.Client):
        raise InvalidRequest(f"on: expected a dask.distributed.Client, got {dask_client!r:.80}")
    if dask_client.asynchronous:
        raise InvalidRequest("on: expected a Dask client that blocks; make it without asynchronous=True")
    if dask_client.status != "running":
        raise InvalidRequest(f"on: the Dask client is {dask_client.status}; make a new one")
    return distributed
