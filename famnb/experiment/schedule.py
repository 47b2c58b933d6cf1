"""The cells that wait for a service, and whether it takes calls now: rules without a thread or a clock of their own.

            ┌───────────────── a call is taken ─────────────────┐
open ── no call is taken ── paused ── one call to try ── not taken, with nothing else running
            └ its cell is queued again    ▲              ├─ less than MAX_FAILURES times in a row
                                          └──────────────┘
                                                         └─ else given up
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections import Counter
from collections.abc import Callable

from famnb.client.auth import VARIABLE
from famnb.client.retry import THROTTLED
from famnb.experiment.budget import CallOutcome
from famnb.experiment.plan import Cell
from famnb.experiment.services import address_of
from famnb.formatting import shorten

MAX_FAILURES = 6
"""After so many failures in a row, no call taken in between, a service is given up.

The pauses between them come to 15 s, to 31 s where the service throttles: longer than a restart of a service takes,
short enough that somebody who gave a wrong address need not wait for long.
"""
PAUSE_S = 0.5
"""The first pause where a service cannot be reached; it doubles with each failure."""
THROTTLED_PAUSE_S = 1.0
"""The same where it asks for fewer calls."""
MAX_MESSAGE_CHARS = 300
"""Characters of an error's message that are shown."""


@dataclasses.dataclass(slots=True, eq=False)
class ServiceQueue:
    """The cells that wait for one service, in their order, and the trouble there is with it."""

    service: str
    running: int = 0
    """Calls in flight."""
    failures: int = 0
    """Times in a row that it took no call, all calls that fail at once counted as one."""
    paused_until: float = -math.inf
    """When the next call may start, by the run's clock."""
    trouble: str = ""
    """Why the latest call was not taken."""
    is_given_up: bool = False
    _waiting: list[tuple[int, int, Cell]] = dataclasses.field(default_factory=list)
    _times_requeued: Counter[str] = dataclasses.field(default_factory=Counter)

    def add(self, cell: Cell) -> None:
        """Have a cell wait for its turn, behind those that were requeued less often, else in the plan's order."""
        # So a model that never answers holds up no other: the next call to try is another cell's. Warm-ups stay first,
        # since what is measured waits for them.
        times = 0 if cell.warmup else self._times_requeued[cell.key]
        heapq.heappush(self._waiting, (times, cell.order, cell))

    def requeue(self, cell: Cell) -> None:
        """Have a cell wait again whose call was not taken."""
        self._times_requeued[cell.key] += 1
        self.add(cell)

    @property
    def has_work(self) -> bool:
        """Whether there are cells that it may still answer."""
        return bool(self._waiting) and not self.is_given_up

    @property
    def first(self) -> Cell:
        """The cell whose turn is next."""
        return self._waiting[0][-1]

    @property
    def turn(self) -> tuple[int, int]:
        """Orders the services by the cell whose turn is next."""
        return self._waiting[0][:2]

    def pop(self) -> Cell:
        """Take the cell whose turn is next."""
        return heapq.heappop(self._waiting)[-1]

    def can_start(self, now: float, limit: Callable[[Cell], int | None]) -> bool:
        """Whether it takes one more call now.

        `limit` gives how many calls a cell's service takes at once; None if nothing is known to limit it.
        """
        if not self.has_work or now < self.paused_until:
            return False
        # After trouble one call alone finds out whether it is over: all of them would be refused together.
        most = 1 if self.failures else limit(self.first)
        return most is None or self.running < most

    def on_available(self) -> None:
        """The service took a call, however it ended."""
        self.failures = 0

    def on_unavailable(self, outcome: CallOutcome, now: float) -> None:
        """The service did not take a call, which is in flight no more: pause, or give the service up."""
        self.trouble = _describe(outcome)
        # While others run the service is there, only short of room. A burst of refusals counts once, with its last.
        if not self.running:
            self.failures += 1
            self.is_given_up = self.failures >= MAX_FAILURES
        first_pause = THROTTLED_PAUSE_S if outcome.http_status in THROTTLED else PAUSE_S
        pause_s = outcome.retry_after_s or first_pause * 2.0 ** max(self.failures - 1, 0)
        self.paused_until = max(self.paused_until, now + pause_s)

    @property
    def why_given_up(self) -> str:
        """Why no further call is started, as a sentence without a full stop."""
        return f"{address_of(self.service)} took no call {self.failures} times in a row ({self.trouble})"


def explain_denial(service: str, outcome: CallOutcome) -> str:
    """Why no further call is started after a status such as 401, as a sentence without a full stop."""
    return (
        f"{address_of(service)} takes no call with this key ({_describe(outcome)}); the key is the one in {VARIABLE}, "
        "unless the client was given another as api_key="
    )


def _describe(outcome: CallOutcome) -> str:
    """The class and the message of a call's error on one line."""
    return shorten(" ".join(f"{outcome.error}: {outcome.message}".split()), MAX_MESSAGE_CHARS)
