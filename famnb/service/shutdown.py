"""Shutdown of the service: requests that wait for something are interrupted, so that open streams end properly."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from famnb.service.errors import ServiceError

T = TypeVar("T")


@dataclasses.dataclass(slots=True, eq=False)
class Waiter:
    """A request that may be waiting for something."""

    task: asyncio.Task[Any]
    is_waiting: bool = False
    """Set around each wait: only a request that waits is interrupted, never one that handles what it waited for."""
    is_interrupted: bool = False


class Shutdown:
    """Whether the service is shutting down; one object for all its requests."""

    def __init__(self) -> None:
        self.has_begun = False
        self._waiters: set[Waiter] = set()

    def begin(self) -> None:
        """Interrupt every request that waits, and every later attempt to wait."""
        self.has_begun = True
        for waiter in self._waiters:
            if waiter.is_waiting and not waiter.is_interrupted:
                waiter.is_interrupted = True
                waiter.task.cancel()

    async def wait_for(self, wait: Callable[[], Awaitable[T]]) -> T:
        """Return what `wait()` returns. Raises ServiceError 500 if the shutdown begins first."""
        # `wait` is a function, since a coroutine that is never awaited would be reported as forgotten.
        self.check()
        with self.interruptible() as waiter:
            waiter.is_waiting = True
            return await wait()

    def check(self) -> None:
        """Raise ServiceError 500 if the shutdown has begun."""
        if self.has_begun:
            raise _shutdown_error()

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[Waiter]:
        """Have `begin` interrupt the current task inside the `with` block while `waiter.is_waiting` is set.

        Raises ServiceError 500 where it is interrupted.
        """
        task = asyncio.current_task()
        assert task is not None
        waiter = Waiter(task)
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
