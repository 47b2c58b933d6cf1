"""The one place where a running call is ended early: by a deadline that passes or by its caller's stop.

waiting ──(a connection is free)── sent ──(first event)── streaming ──(end)
PoolTimeout                        FirstEventTimeout      IdleTimeout
└─────────────────────── TotalTimeout, or `stop` ────────────────────────┘
"""

from __future__ import annotations

import asyncio
import math
from types import TracebackType

from famnb.client.config import Deadlines
from famnb.errors import DeadlineError, FamnbError, FirstEventTimeout, IdleTimeout, PoolTimeout, TotalTimeout


class DeadlineTimer:
    """Guards the body of an `async with`; whoever ends it early decides which error comes out.

    A sign of life only moves a number; the one timer looks at it when it rings, so a chunk costs no timer.
    """

    __slots__ = (
        "_began",
        "_deadlines",
        "_ending",
        "_error",
        "_limit",
        "_loop",
        "_open",
        "_scope",
        "_since",
        "_timer",
        "_words",
    )

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._loop = asyncio.get_running_loop()
        self._scope = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        self._began = self._since = self._loop.time()
        self._limit = math.inf
        self._error: type[DeadlineError] = TotalTimeout
        self._words = ""
        self._ending: FamnbError | None = None
        self._open = False

    async def __aenter__(self) -> DeadlineTimer:
        await self._scope.__aenter__()
        self._open = True
        self._look()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self._scope.__aexit__(kind, error, trace)
        except TimeoutError:
            raise self._verdict() from None

    def waiting(self) -> None:
        """The call waits for one of the client's connections."""
        self._phase(PoolTimeout, self._deadlines.pool, "no connection of this client was free")

    def resting(self) -> None:
        """The call pauses, or it has no first event to wait for: only the total counts."""
        self._phase(TotalTimeout, math.inf, "")

    def sent(self) -> None:
        """The request of a stream is on its way."""
        self._phase(FirstEventTimeout, self._deadlines.first_event, "the first event of the stream did not come")

    def streaming(self) -> None:
        """The answer has begun: from here on it must not fall silent."""
        self._phase(IdleTimeout, self._deadlines.idle, "nothing more of the answer came")

    def alive(self) -> None:
        """A sign of life came."""
        self._since = self._loop.time()

    def stop(self, why: FamnbError) -> None:
        """End the call, which raises `why`; on the loop's own thread."""
        self._ending = why
        self._look()

    def _phase(self, error: type[DeadlineError], limit: float, words: str) -> None:
        if self._ending is not None:
            return
        self._error, self._limit, self._words = error, limit, words
        self._since = self._loop.time()
        self._look()

    def _look(self) -> None:
        """End the call if it is time, else come back when it could be."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = min(self._since + self._limit, self._began + self._deadlines.total)
        if self._ending is not None:
            due = -math.inf
        if due <= self._loop.time():
            if self._open and not self._scope.expired():
                self._scope.reschedule(self._loop.time())
        elif due < math.inf:
            self._timer = self._loop.call_at(due, self._look)

    def _verdict(self) -> FamnbError:
        if self._ending is not None:
            return self._ending
        total = self._deadlines.total
        if self._since + self._limit > self._began + total:
            return TotalTimeout(f"the call took longer than {total:g} s (deadlines: total)", seconds=total)
        name = {PoolTimeout: "pool", FirstEventTimeout: "first_event", IdleTimeout: "idle"}[self._error]
        return self._error(f"{self._words} within {self._limit:g} s (deadlines: {name})", seconds=self._limit)
