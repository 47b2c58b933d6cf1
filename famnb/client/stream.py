"""The caller's handle on a running call: its events as they come, its reply, and `stop`, from any thread or loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from types import TracebackType
from typing import Any

from famnb.client.exchange import Exchange
from famnb.client.io_thread import IOThread
from famnb.client.live_call import LiveCall
from famnb.errors import Interrupted
from famnb.events import Event
from famnb.reply import Reply
from famnb.request import structured_output

GRACE_S = 15.0
"""How long leaving a `with` block, or an interrupt, waits for a stopped call to be recorded."""


class Stream:
    """A call under way. Iterate it for typed events, sync or async; ask it for its `reply` at any time.

    Iteration and `result` raise the call's error, with what had come on its `.reply`, already recorded. A call that was
    stopped has no error: iteration ends, and `result` is the partial reply with status `cancelled`.
    """

    def __init__(self, call: LiveCall, io: IOThread) -> None:
        self._call = call
        self._io = io
        self._handover = call.handover

    @property
    def exchange(self) -> Exchange:
        """The call as it is recorded."""
        return self._call.exchange

    @property
    def events(self) -> list[Event]:
        """The typed events so far: a list that only grows, to be read and indexed from any thread."""
        return self._handover.events

    @property
    def running(self) -> bool:
        """Whether the call is still under way."""
        return self._handover.reply is None

    @property
    def reply(self) -> Reply:
        """The reply as far as it has come, then the outcome."""
        return self._handover.reply or self._call.snapshot()

    @property
    def partial(self) -> Any:
        """The JSON value of the answer as far as it has come, unchecked; None while there is none."""
        return structured_output.growing(self.reply.text)

    def stop(self) -> None:
        """End the call; it keeps what had come. Safe from any thread, more than once, and when it is over."""
        self._io.call(self._call.stop)

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the call is over and recorded, at most `timeout` seconds; whether it is."""
        return self._waited(timeout)

    async def ended(self) -> None:
        """Wait, on any event loop and without blocking it, until the call is over and recorded."""
        await self._handover.until()

    def result(self) -> Reply:
        """The outcome, waited for; raises the call's error."""
        self._waited()
        return self._outcome()

    def add_done_callback(self, callback: Callable[[Stream], object]) -> None:
        """Have `callback(stream)` called once the call is over, on the I/O thread: it must not block."""
        self._handover.at_end(lambda: callback(self))

    def __iter__(self) -> Iterator[Event]:
        seen, events = 0, self.events
        while self._waited(seen=seen):
            # In this order: once the call is over, the list grows no more.
            if not self.running and seen == len(events):
                break
            while seen < len(events):
                yield events[seen]
                seen += 1
        self._outcome()

    async def __aiter__(self) -> AsyncIterator[Event]:
        seen, events = 0, self.events
        while True:
            await self._handover.until(seen=seen)
            if not self.running and seen == len(events):
                break
            while seen < len(events):
                yield events[seen]
                seen += 1
        self._outcome()

    def __await__(self) -> Generator[object, None, Reply]:
        yield from self.ended().__await__()
        return self._outcome()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.running:
            self.stop()
            self._handover.wait(GRACE_S)

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.running:
            self.stop()
            await self.ended()

    def __repr__(self) -> str:
        return f"<Stream {self.reply!r}>"

    def _waited(self, timeout: float | None = None, *, seen: int | None = None) -> bool:
        """Wait; an interrupt of the kernel stops the call, keeps what had come, and says so."""
        try:
            return self._handover.wait(timeout, seen=seen)
        except KeyboardInterrupt:
            self.stop()
            self._handover.wait(GRACE_S)
        reply = self.reply
        interrupted = Interrupted(f"{len(reply.text):,} characters of the answer had come; `client.last` has them")
        interrupted.reply = reply
        raise interrupted

    def _outcome(self) -> Reply:
        reply = self.reply
        if reply.error is None:
            return reply
        # Without the I/O thread's frames, which say nothing to a caller.
        raise reply.error.with_traceback(None)
