"""How fast the simulated engine speaks: log-normal waits per model; what it says is not here."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import random
import time
from collections.abc import Awaitable, Callable


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """The latency of a model; times are medians in seconds, the spread is that of their logarithm."""

    first_s: float
    """From accepting the prompt to the first token."""
    gap_s: float
    """From one token to the next."""
    first_spread: float = 0.25
    gap_spread: float = 0.45
    prompt_s: float = 0.00002
    """Added to the first token for each token of the prompt."""


PROFILES = {
    "fam-2-5-pro": Profile(first_s=0.45, gap_s=0.021),
    "fam-2-5-mini": Profile(first_s=0.24, gap_s=0.012),
    "fam-mini": Profile(first_s=0.30, gap_s=0.015),
}
OTHER = Profile(first_s=0.35, gap_s=0.018)
"""For provider-prefixed models."""


class Pace:
    """The waits of one reply; they follow a timetable, so that being late once does not slow what follows."""

    def __init__(
        self,
        profile: Profile,
        *,
        scale: float,
        rng: random.Random,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._profile = profile
        self._scale = scale
        self._rng = rng
        self._clock = clock
        self._sleep = sleep
        self._due = clock()

    async def first(self, prompt_tokens: int) -> None:
        """Wait for the first token."""
        typical = self._profile.first_s + self._profile.prompt_s * prompt_tokens
        await self._wait(self._drawn(typical, self._profile.first_spread))

    async def next(self, tokens: int = 1) -> None:
        """Wait for the next tokens; many at once for what is counted but not shown."""
        await self._wait(
            tokens * self._drawn(self._profile.gap_s, self._profile.gap_spread / math.sqrt(max(tokens, 1)))
        )

    def _drawn(self, median: float, spread: float) -> float:
        return self._rng.lognormvariate(math.log(median), spread)

    async def _wait(self, seconds: float) -> None:
        """Sleep until due; even without waiting the loop gets a turn, so that each event is written by itself."""
        self._due += seconds * self._scale
        await self._sleep(max(self._due - self._clock(), 0.0) if self._scale else 0.0)
