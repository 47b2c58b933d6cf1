"""The end of the service: requests that wait for something are told of it, so that what is open can end properly."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

from famnb.events import Event
from famnb.service.errors import ServiceError

T = TypeVar("T")


@dataclasses.dataclass(slots=True, eq=False)
class _Wait:
    """A request that may wait for something."""

    task: asyncio.Task[Any]
    on: bool = False
    """Whether it waits now: only then is it interrupted, never while it does something with what it waited for."""
    told: bool = False


class Shutdown:
    """Whether the service is ending; one for all its requests."""

    def __init__(self) -> None:
        self.over = False
        self._waits: set[_Wait] = set()

    def begin(self) -> None:
        """Refuse what any request waits for, now and from now on."""
        self.over = True
        for wait in self._waits:
            if wait.on and not wait.told:
                wait.told = True
                wait.task.cancel()

    async def until(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """The events; once the service ends, a Refusal 500 in place of the next one."""
        with self._waiting() as wait, contextlib.suppress(StopAsyncIteration):
            while not self.over:
                wait.on = True
                event = await anext(events)
                wait.on = False
                yield event
            raise _refusal()

    async def unless(self, wait_for: Callable[[], Awaitable[T]]) -> T:
        """What is waited for; raises Refusal 500 if the service ends first."""
        if self.over:
            raise _refusal()
        with self._waiting() as wait:
            wait.on = True
            return await wait_for()

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[_Wait]:
        """The request that runs now as one that can be told of the end."""
        task = asyncio.current_task()
        assert task is not None
        wait = _Wait(task)
        self._waits.add(wait)
        try:
            yield wait
        except asyncio.CancelledError:
            # A caller who leaves cancels too, and nobody is there to be told then.
            if not wait.told or task.cancelling() > 1:
                raise
            raise _refusal() from None
        finally:
            self._waits.discard(wait)
            if wait.told:
                task.uncancel()


def _refusal() -> ServiceError:
    return ServiceError(
        500, "the service is ending; repeat the request once it runs again", headers={"connection": "close"}
    )
