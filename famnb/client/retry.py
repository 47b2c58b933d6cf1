"""Whether to try a failed call again, and when, as pure rules; `engine.py` makes the attempts.

failure                                   again?
── status 408 409 429 500 502 503 504     yes, or what `x-should-retry` says
   or 520 to 529, which proxies send
── any other status                       no, or what `x-should-retry` says
── no connection, broken before headers   yes
── a stream broken before its content     yes, since nobody has seen any of it
── anything else                          no
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from famnb.errors import APIStatusError, ConnectError, FamnbError, StreamInterrupted
from famnb.validation import check_integer, check_number

RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504, *range(520, 530)})
"""Statuses of failures that may pass; no other 4xx gets better by being sent again."""
THROTTLED = frozenset({429, 529})
"""Statuses that ask for fewer requests."""
MAX_PAUSE_S = 8.0
"""The longest pause of our own choice; a service's own wish may be longer, see `Retries.max_wait`."""
# The draw may be next to 0, and so may a service's wish: a request sent at once meets the same fault.
MIN_PAUSE_S = 0.05
"""The shortest pause, in seconds."""
BASE_S = 0.5
"""The upper bound of the first pause, in seconds; it doubles with each retry."""
THROTTLED_BASE_S = 1.0
"""The same after a 429."""
SPREAD = 0.1
"""The wait that a service asked for is lengthened by up to this share, so that not all clients return at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Retries:
    """How often a call is sent again after a failure, and how long a wait the service may ask for.

        famnb.Client(retries=famnb.Retries(tries=3, max_wait=60))

    `tries` counts requests, the first included; 1 never sends again. `max_wait` is in seconds: where the service asks
    for a longer one, the error is raised at once with its `retry_after`. A stream that has begun is never sent again.
    """

    tries: int = 3
    """Requests sent at most for one call; 1 never tries again."""
    max_wait: float = 60.0
    """Seconds; when the service asks for a longer wait, the error is raised at once with its `retry_after`."""

    def __post_init__(self) -> None:
        check_integer("retries: tries", self.tries, minimum=1)
        check_number(
            "retries: max_wait", self.max_wait, minimum=0, finite=False, expected="a number of seconds from 0 up"
        )

    def with_max_wait(self, max_wait: float) -> Retries:
        """The same with waits of at most so many seconds, for a caller that sees to longer ones itself."""
        return dataclasses.replace(self, max_wait=min(self.max_wait, max_wait))


def is_worth_retrying(error: FamnbError, *, should_retry: str | None = None, is_consumed: bool = False) -> bool:
    """Whether a failed attempt may be repeated.

    `should_retry` is the `x-should-retry` header, `is_consumed` whether content of the response was already handed on.
    """
    match error:
        # Ahead of all others: whoever watches the stream would see its beginning twice.
        case _ if is_consumed:
            return False
        case APIStatusError(status=status):
            header = (should_retry or "").strip().lower()
            return header == "true" if header in ("true", "false") else status in RETRIED
        case ConnectError() | StreamInterrupted():
            return True
        case _:
            return False


def compute_pause(error: FamnbError, *, retried: int, uniform: Callable[[float, float], float]) -> float:
    """Seconds to wait before the next attempt, after `retried` retries; what `retry-after` asks for comes first."""
    status = error.status if isinstance(error, APIStatusError) else None
    retry_after = error.retry_after if isinstance(error, APIStatusError) else None
    if retry_after is not None:
        return max(MIN_PAUSE_S, retry_after + uniform(0, SPREAD * retry_after))
    base = THROTTLED_BASE_S if status == 429 else BASE_S
    # Anywhere from nothing to the bound ("full jitter"): calls that failed together must not come back together.
    return max(MIN_PAUSE_S, uniform(0, min(MAX_PAUSE_S, base * 2.0**retried)))


class RetryBudget:
    """Retries left for one service, so that many failing calls do not become a storm of requests.

    A retry costs `cost`, so `capacity` allows about 35 in a row; a success pays some of it back.
    """

    def __init__(self, capacity: int = 500, cost: int = 14) -> None:
        self.capacity = capacity
        self.cost = cost
        self._left = capacity

    def take(self) -> bool:
        """Pay for one more attempt; False, and nothing is paid, when the service has failed too often lately."""
        if self._left < self.cost:
            return False
        self._left -= self.cost
        return True

    def refill(self, *, retried: bool) -> None:
        """A call succeeded: what its last retry cost comes back, or 1 if it needed none."""
        self._left = min(self.capacity, self._left + (self.cost if retried else 1))
