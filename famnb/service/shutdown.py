"""Shutdown of the service: requests that wait for something are interrupted, so that open streams end properly."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from famnb.service.errors import ServiceError


class Shutdown:
    """Whether the service is shutting down; one object for all its requests."""

    def __init__(self) -> None:
        self.has_begun = False
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self) -> None:
        """Interrupt every request inside an `interruptible` block, and every later one that enters one."""
        self.has_begun = True
        for task in self._tasks:
            task.cancel()

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Raise ServiceError 500 where the `with` block waits when the shutdown begins, or at once if it has begun.

        A generator that is suspended inside its block is not interrupted: its caller is, who handles what it yielded.
        """
        error = ServiceError(
            500, "the service is ending; repeat the request once it runs again", headers={"connection": "close"}
        )
        task = asyncio.current_task()
        assert task is not None
        try:
            if self.has_begun:
                raise error
            self._tasks.add(task)
            yield
        except asyncio.CancelledError:
            # A caller who disconnects cancels the task as well; then nobody is left to read an error.
            if not self.has_begun or task.cancelling() > 1:
                raise
            # It has been handled; asyncio.timeout and TaskGroup count those that have not.
            task.uncancel()
            raise error from None
        finally:
            self._tasks.discard(task)
