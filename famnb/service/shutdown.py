"""Shutdown of the service: requests that wait for something are interrupted, so that open streams end properly."""

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
class _Waiter:
    """A request that may be waiting for something."""

    task: asyncio.Task[Any]
    is_waiting: bool = False
    """Only a request that waits is interrupted, never one that handles what it waited for."""
    is_interrupted: bool = False


class Shutdown:
    """Whether the service is shutting down; one object for all its requests."""

    def __init__(self) -> None:
        self.has_begun = False
        self._waiters: set[_Waiter] = set()

    def begin(self) -> None:
        """Interrupt every request that waits, and every later attempt to wait."""
        self.has_begun = True
        for waiter in self._waiters:
            if waiter.is_waiting and not waiter.is_interrupted:
                waiter.is_interrupted = True
                waiter.task.cancel()

    async def interrupt_events(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Yield the events; once the shutdown begins, raise ServiceError 500 in place of the next one."""
        with self._register() as waiter, contextlib.suppress(StopAsyncIteration):
            while not self.has_begun:
                waiter.is_waiting = True
                event = await anext(events)
                waiter.is_waiting = False
                yield event
            raise _shutdown_error()

    async def wait_for(self, wait: Callable[[], Awaitable[T]]) -> T:
        """Return what `wait()` returns. Raises ServiceError 500 if the shutdown begins first."""
        # `wait` is a function, since a coroutine that is never awaited would be reported as forgotten.
        if self.has_begun:
            raise _shutdown_error()
        with self._register() as waiter:
            waiter.is_waiting = True
            return await wait()

    @contextlib.contextmanager
    def _register(self) -> Iterator[_Waiter]:
        """Make the current task one that `begin` can interrupt, inside the `with` block."""
        task = asyncio.current_task()
        assert task is not None
        waiter = _Waiter(task)
        self._waiters.add(waiter)
        try:
            yield waiter
        except asyncio.CancelledError:
            # A caller who disconnects cancels the task as well; then nobody is left to read an error.
            if not waiter.is_interrupted or task.cancelling() > 1:
                raise
            raise _shutdown_error() from None
        finally:
            self._waiters.discard(waiter)
            if waiter.is_interrupted:
                # This cancellation has been handled; asyncio.timeout and TaskGroup count those that have not.
                task.uncancel()


def _shutdown_error() -> ServiceError:
    return ServiceError(
        500, "the service is ending; repeat the request once it runs again", headers={"connection": "close"}
    )
