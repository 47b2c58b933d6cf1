"""A run's clock for tests, on which pauses take no time."""

from __future__ import annotations

import queue

from famnb.experiment.runner import RunClock

REAL_WAIT_S = 0.05
"""How long a call in flight has to end before time goes on without it."""


class SteppedTime:
    """Time that stands still until a run waits; `waits` are the seconds that it waited in vain."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waits: list[float] = []
        self.clock = RunClock(now=lambda: self.seconds, wait=self._wait)

    def _wait(self, outcomes, timeout):
        try:
            return outcomes.get(timeout=None if timeout is None else REAL_WAIT_S)
        except queue.Empty:
            self.seconds += timeout
            self.waits.append(timeout)
            raise
