"""The one I/O thread of the process: a daemon with its own event loop, started on first use, anew after a fork."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
# A script should not hang at its end because a peer is dead.
CLOSE_S = 2.0
"""How many seconds the end of the process waits for connections to close."""


class IOThread:
    """A thread that runs an event loop for as long as the process lives."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop
        # uvloop halves the cost of a live event; there is none for Windows.
        try:
            import uvloop

            self.loop = uvloop.new_event_loop()
        except ImportError:
            # Not Windows' default, which tells nobody when a socket can be read.
            self.loop = asyncio.SelectorEventLoop()
        self.at_end: set[Callable[[], Coroutine[Any, Any, None]]] = set()
        """What is called and awaited when the process ends; touched on the loop's own thread alone."""
        self._tasks: set[asyncio.Task[Any]] = set()
        # A daemon: a running stream must not keep a script's process from ending; `close` runs at exit.
        self._thread = threading.Thread(target=self._run, name="famnb-io", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    @property
    def is_alive(self) -> bool:
        """Whether it runs what it is given; no more once the process has begun to end."""
        return self._thread.is_alive()

    def call(self, function: Callable[..., object], *args: object) -> None:
        """Have a function called on the loop, from any thread."""
        self.loop.call_soon_threadsafe(function, *args)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Have a coroutine run on the loop, from any thread, without waiting for it."""
        self.call(self._start, work)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        # The loop itself keeps only weak references to its tasks.
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """The future of a coroutine run on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def close(self) -> None:
        """Close what is open and stop; called when the process ends."""
        with contextlib.suppress(TimeoutError):
            self.submit(self._close()).result(CLOSE_S)
        self.call(self.loop.stop)
        self._thread.join(CLOSE_S)

    async def _close(self) -> None:
        # A copy, since what closes removes itself.
        for close in list(self.at_end):
            await close()


_lock = threading.Lock()
_current: IOThread | None = None
_before_fork: list[IOThread] = []
"""Kept alive: collecting the parent's loop in the child would close sockets and selectors the parent still uses."""


def io_thread() -> IOThread:
    """The process's I/O thread."""
    global _current
    with _lock:
        if _current is None:
            _current = IOThread()
            atexit.register(_current.close)
        return _current


def _forget_after_fork() -> None:
    """In the child of a fork no thread runs but the forking one: forget the parent's, without touching its sockets."""
    global _current, _lock
    # A thread that is gone now may have held it.
    _lock = threading.Lock()
    if _current is not None:
        atexit.unregister(_current.close)
        _before_fork.append(_current)
        _current = None


# Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
