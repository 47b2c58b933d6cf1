"""ConcurrencyLimiter: how many calls of `send_many` may run at once, adapted to what the service can take."""

from __future__ import annotations

import asyncio
import collections


class ConcurrencyLimiter:
    """Lets a limited number of calls run, first come first served; used on the I/O thread alone.

    The limit grows by one for each limit's worth of successes; when the service asks for less, it becomes half of what
    is running: additive increase, multiplicative decrease, as TCP finds the capacity of a line.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.limit = float(maximum)
        """How many may run now; between 1 and `maximum`."""
        self.running = 0
        """How many run now."""
        self._queue: collections.deque[asyncio.Future[None]] = collections.deque()
        self._halved_ns = 0
        """When the limit was last halved."""

    async def enter(self) -> None:
        """Wait for a turn."""
        # Nobody overtakes the queue, even if the limit has just grown.
        if self.running < int(self.limit) and not self._queue:
            self.running += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            # The turn had come just before the waiter was cancelled: it goes to the next.
            if not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """End a turn, or give up one that has just come."""
        self.running -= 1
        self._admit()

    def widen(self, maximum: int) -> None:
        """Let up to `maximum` run from now on, unless the service has asked for less."""
        if maximum > self.maximum:
            self.limit = float(maximum) if self.limit >= self.maximum else self.limit
            self.maximum = maximum
            self._admit()

    def on_success(self) -> None:
        """A call went well."""
        # A limit's worth of these adds up to 1.
        self.limit = min(float(self.maximum), self.limit + 1 / self.limit)
        self._admit()

    def on_throttled(self, sent_ns: int, now_ns: int) -> None:
        """The service asked for less; a request sent before the last halving says nothing new."""
        # Else one burst of refusals, all sent under the old limit, would halve it once for each.
        if sent_ns > self._halved_ns:
            # Half of what runs, not of the limit: a limit that was never reached says nothing of the service.
            self.limit = max(1.0, min(self.limit, self.running or self.limit) / 2)
            self._halved_ns = now_ns

    def _admit(self) -> None:
        while self._queue and self.running < int(self.limit):
            turn = self._queue.popleft()
            # A waiter that was cancelled leaves its turn in the queue, done.
            if not turn.done():
                self.running += 1
                turn.set_result(None)
