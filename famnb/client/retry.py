"""Whether to try again and when, as pure rules; the trying itself is in `core`.

failure                                   again?
── status 408 409 429 500 502 503 504 529 yes, or what `x-should-retry` says
── any other status                       no, or what `x-should-retry` says
── no connection, broken before headers   yes
── a stream broken before its content     yes
── anything else                          no
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from famnb.errors import APIStatusError, ConnectError, FamnbError, StreamInterrupted
from famnb.validation import check_integer, check_number

RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
THROTTLED = frozenset({429, 529})
"""Statuses that ask for fewer requests."""
LONGEST_S = 8.0
SHORTEST_S = 0.05
BASE_S = 0.5
THROTTLED_BASE_S = 1.0
SPREAD = 0.1
"""A wait the service asked for is lengthened by up to this share, so that not all come back at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Retries:
    """How stubborn a client is."""

    tries: int = 3
    """Requests sent at most for one call; 1 never tries again."""
    max_wait: float = 60.0
    """Seconds; when the service asks for a longer wait, the error is raised at once with its `retry_after`."""

    def __post_init__(self) -> None:
        check_integer("retries: tries", self.tries, minimum=1)
        check_number(
            "retries: max_wait", self.max_wait, minimum=0, finite=False, expected="a number of seconds from 0 up"
        )


def worth_retrying(error: FamnbError, *, should_retry: str | None = None, spent: bool = False) -> bool:
    """Whether a failed try may be repeated; `should_retry` is the header, `spent` whether its answer was in use."""
    match error:
        case _ if spent:
            return False
        case APIStatusError(status=status):
            said = (should_retry or "").strip().lower()
            return said == "true" if said in ("true", "false") else status in RETRIED
        case ConnectError() | StreamInterrupted():
            return True
        case _:
            return False


def pause(error: FamnbError, *, retried: int, uniform: Callable[[float, float], float]) -> float:
    """Seconds to wait before the next try, `retried` tries after the first; the service's own wish goes first."""
    status = error.status if isinstance(error, APIStatusError) else None
    wish = error.retry_after if isinstance(error, APIStatusError) else None
    if wish is not None:
        return max(SHORTEST_S, wish + uniform(0, SPREAD * wish))
    base = THROTTLED_BASE_S if status == 429 else BASE_S
    return max(SHORTEST_S, uniform(0, min(LONGEST_S, base * 2.0**retried)))


class RetryBudget:
    """Tries left for one service, so that many failing calls do not become a storm of them."""

    __slots__ = ("_left", "capacity", "cost")

    def __init__(self, capacity: int = 500, cost: int = 14) -> None:
        self.capacity = capacity
        self.cost = cost
        self._left = capacity

    def take(self) -> bool:
        """Pay for one more try; False when the service has failed too often lately."""
        if self._left < self.cost:
            return False
        self._left -= self.cost
        return True

    def refill(self, *, retried: bool) -> None:
        """A call succeeded: what its last retry cost comes back, or 1 when it needed none."""
        self._left = min(self.capacity, self._left + (self.cost if retried else 1))
