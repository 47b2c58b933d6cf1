"""From the I/O thread to whoever waits, in any thread or on any loop: events as they come, and the reply at the end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator

from famnb.events import Event
from famnb.reply import Reply

_log = logging.getLogger("famnb")


class Handover:
    """An append-only list of events and then a reply; costs the I/O thread nothing while nobody waits.

    A waiter puts its waker on a list *before* it looks a last time, and the I/O thread looks at the list *after* it
    has appended, so that no event falls between.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.reply: Reply | None = None
        """The outcome; None while the call runs."""
        self._lock = threading.Lock()
        self._on_events: list[Callable[[], object]] = []
        self._on_end: list[Callable[[], object]] = []

    def grew(self) -> None:
        """New events are on the list; on the I/O thread."""
        if self._on_events:
            with self._lock:
                wakers, self._on_events = self._on_events, []
            _all(wakers)

    def finish(self, reply: Reply) -> None:
        """The call is over; on the I/O thread."""
        with self._lock:
            self.reply = reply
            wakers, self._on_events, self._on_end = [*self._on_events, *self._on_end], [], []
        _all(wakers)

    def at_end(self, waker: Callable[[], object]) -> None:
        """Have a function called once the call is over; at once if it is."""
        with self._lock:
            if self.reply is None:
                self._on_end.append(waker)
                return
        _all([waker])

    def wait(self, timeout: float | None = None, *, seen: int | None = None) -> bool:
        """Block until the call is over, or until there are more events than `seen`; False when time runs out."""
        due = None if timeout is None else time.monotonic() + timeout
        while not self._ready(seen):
            woken = threading.Event()
            with self._enlisted(woken.set, seen):
                left = None if due is None else max(0.0, due - time.monotonic())
                if not self._ready(seen) and not woken.wait(left):
                    return self._ready(seen)
        return True

    async def until(self, *, seen: int | None = None) -> None:
        """The same without blocking the loop this runs on."""
        loop = asyncio.get_running_loop()
        while not self._ready(seen):
            woken = loop.create_future()
            with self._enlisted(functools.partial(_nudge, loop, woken), seen):
                if not self._ready(seen):
                    await woken

    def _ready(self, seen: int | None) -> bool:
        return self.reply is not None or (seen is not None and len(self.events) > seen)

    @contextlib.contextmanager
    def _enlisted(self, waker: Callable[[], object], seen: int | None) -> Iterator[None]:
        """While the body runs, the waker is called when what is waited for comes."""
        with self._lock:
            (self._on_end if seen is None else self._on_events).append(waker)
        try:
            yield
        finally:
            with self._lock:
                for wakers in (self._on_end, self._on_events):
                    if waker in wakers:
                        wakers.remove(waker)


def _nudge(loop: asyncio.AbstractEventLoop, woken: asyncio.Future[None]) -> None:
    # The waiter's loop may have been closed meanwhile; then nobody is left to wake.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_set, woken)


def _set(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


def _all(wakers: list[Callable[[], object]]) -> None:
    for waker in wakers:
        try:
            waker()
        except Exception:
            _log.exception("a callback at the end of a call failed")
