"""The one I/O thread of the process: a daemon with its own event loop, started on first use, anew after a fork."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol, Self, TypeVar

T = TypeVar("T")
# A script should not hang at its end because a peer is dead.
CLOSE_S = 2.0
"""How many seconds the end of the process waits for connections to close."""
# Python's own 5 ms are for threads that compute. An event that comes shortly before the end of a call into C would miss
# that end, and wait for the whole of the next call: half of all events then lost their own stamp.
SWITCH_S = 0.0005
"""After how many seconds a cell that computes must give the interpreter to this thread, while calls run."""
# One looks at all objects of a notebook: everything stands still for a tenth of a second. Young garbage goes as ever.
FULL_COLLECTION_EVERY = 100
"""Only after how many younger garbage collections there is a full one, while calls run; Python's own 10 otherwise."""


class Closable(Protocol):
    """Something that must be closed on the loop before the loop stops."""

    async def abandon(self) -> None:
        """Close it because the process ends; may be called more than once."""


class _InterpreterSettings(NamedTuple):
    """The settings of the process that say how long a thread waits for the interpreter."""

    switch_s: float
    thresholds: tuple[int, int, int]
    """Of the garbage collector, by generation."""

    @classmethod
    def of_process(cls) -> Self:
        return cls(sys.getswitchinterval(), gc.get_threshold())

    def set(self) -> None:
        sys.setswitchinterval(self.switch_s)
        gc.set_threshold(*self.thresholds)


class IOThread:
    """A thread that runs an event loop for as long as the process lives."""

    def __init__(self) -> None:
        self.loop = _make_event_loop()
        self.open: set[Closable] = set()
        """What is to be closed when the process ends; touched on the loop's own thread alone."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._hurried = 0
        """How many calls want the interpreter soon."""
        self._settings = _InterpreterSettings(0.0, (0, 0, 0))
        """Those before `hurry`."""
        self._hurried_settings = self._settings
        """Those in it."""
        # A daemon: a running stream must not keep a script's process from ending; `close` runs at exit.
        self._thread = threading.Thread(target=self._run, name="famnb-io", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

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

    @contextlib.contextmanager
    def hurry(self) -> Iterator[None]:
        """While the body runs, nothing else keeps the interpreter for long; on the loop's own thread."""
        self._hurried += 1
        if self._hurried == 1:
            self._settings = _InterpreterSettings.of_process()
            switch_s, (young, middle, full) = self._settings
            # A full collection that is never to come, 0, or seldom, stays so.
            thresholds = young, middle, full and max(full, FULL_COLLECTION_EVERY)
            _InterpreterSettings(min(switch_s, SWITCH_S), thresholds).set()
            self._hurried_settings = _InterpreterSettings.of_process()
        try:
            yield
        finally:
            self._hurried -= 1
            if not self._hurried:
                self.restore_settings()

    def restore_settings(self) -> None:
        """Let the process go on as before `hurry`, unless somebody has chosen otherwise meanwhile."""
        if _InterpreterSettings.of_process() == self._hurried_settings:
            self._settings.set()

    def close(self) -> None:
        """Close what is open and stop; called when the process ends."""
        with contextlib.suppress(TimeoutError):
            self.submit(self._close()).result(CLOSE_S)
        self.call(self.loop.stop)
        self._thread.join(CLOSE_S)

    async def _close(self) -> None:
        # A copy, since what closes removes itself.
        for closable in list(self.open):
            await closable.abandon()


def _make_event_loop() -> asyncio.AbstractEventLoop:
    """A uvloop event loop, or asyncio's own where there is no uvloop."""
    # uvloop halves the cost of a live event; there is none for Windows.
    try:
        import uvloop
    except ImportError:
        # Not Windows' default, which tells nobody when a socket can be read.
        return asyncio.SelectorEventLoop()
    return uvloop.new_event_loop()


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
        _current.restore_settings()
        _before_fork.append(_current)
        _current = None


# Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
