"""How many may pass at once: the connections of a client, and the calls of a fan-out, which adapts to the service."""

from __future__ import annotations

import asyncio
import collections
from types import TracebackType


class ConcurrencyLimiter:
    """Lets a limited number in, first come first served; used on the I/O thread alone.

    The limit grows by one for each limit's worth of successes; when the service asks for less, it becomes half of what
    is in.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        """How many may be in now; between 1 and `most`."""
        self.running = 0
        self._queue: collections.deque[asyncio.Future[None]] = collections.deque()
        self._halved_ns = 0

    async def __aenter__(self) -> None:
        await self.enter()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    async def enter(self) -> None:
        """Wait for a place."""
        if self.running < int(self.limit) and not self._queue:
            self.running += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """One is out, or gives up the place it was just given."""
        self.running -= 1
        self._admit()

    def widen(self, most: int) -> None:
        """Let up to `most` in from now on, unless the service has asked for less."""
        if most > self.most:
            self.limit = float(most) if self.limit >= self.most else self.limit
            self.most = most
            self._admit()

    def succeeded(self) -> None:
        """A call went well."""
        self.limit = min(float(self.most), self.limit + 1 / self.limit)
        self._admit()

    def throttled(self, sent_ns: int, now_ns: int) -> None:
        """The service asked for less; a request sent before the last halving says nothing new."""
        if sent_ns > self._halved_ns:
            self.limit = max(1.0, min(self.limit, self.running or self.limit) / 2)
            self._halved_ns = now_ns

    def _admit(self) -> None:
        while self._queue and self.running < int(self.limit):
            turn = self._queue.popleft()
            if not turn.done():
                self.running += 1
                turn.set_result(None)
