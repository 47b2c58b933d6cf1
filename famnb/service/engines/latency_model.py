"""How fast the simulated engine speaks: log-normal waits per model, whose true values can be asked for.

    reply    first token: LogNormal(median, sigma)           each next token: LogNormal(median, sigma), independently
    median   the model's + 20 µs a token of the prompt       the model's
             + its gap for each token of hidden reasoning

All in seconds at `time_scale` 1, which multiplies them. Thinking that is shown comes token by token like the answer,
which therefore comes later the larger the budget. `profile(model, effort).ttft.quantile(0.95)` is a true percentile.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from statistics import NormalDist
from types import MappingProxyType

EFFORT_TOKENS: Mapping[str, int] = MappingProxyType(
    {"minimal": 16, "low": 48, "medium": 112, "high": 224, "xhigh": 448}
)
"""The reasoning tokens typical of each effort, for which the first token waits; `none` has none."""
PROMPT_TOKEN_S = 0.00002
"""What each token of the prompt adds to the median of the first token, in seconds."""


@dataclasses.dataclass(frozen=True, slots=True)
class LogNormal:
    """A log-normal distribution of times in seconds."""

    median: float
    sigma: float
    """The standard deviation of the logarithm."""

    @property
    def mean(self) -> float:
        """The expected value, above the median."""
        return self.median * math.exp(self.sigma**2 / 2)

    def quantile(self, p: float) -> float:
        """The value that a share `p` of all draws stays below; raises StatisticsError unless 0 < p < 1."""
        return self.median * math.exp(self.sigma * NormalDist().inv_cdf(p))

    def drawn(self, rng: random.Random) -> float:
        """One value."""
        return rng.lognormvariate(math.log(self.median), self.sigma)


@dataclasses.dataclass(frozen=True, slots=True)
class LatencyProfile:
    """The latency of a model."""

    ttft: LogNormal
    """From accepting the request to the first token."""
    gap: LogNormal
    """From one token to the next; each is an event of its own."""


PROFILES: Mapping[str, LatencyProfile] = MappingProxyType(
    {
        "fam-2-5-pro": LatencyProfile(LogNormal(0.45, 0.30), LogNormal(0.021, 0.45)),
        "fam-2-5-mini": LatencyProfile(LogNormal(0.24, 0.35), LogNormal(0.012, 0.45)),
        "fam-mini": LatencyProfile(LogNormal(0.30, 0.30), LogNormal(0.015, 0.45)),
    }
)
"""Of an empty prompt without reasoning."""
OTHER = LatencyProfile(LogNormal(0.35, 0.30), LogNormal(0.018, 0.45))
"""For provider-prefixed models."""


def profile(model: str, effort: str | None = None, *, prompt_tokens: int = 0, cap: int | None = None) -> LatencyProfile:
    """The true latency of a model's replies at an effort of hidden reasoning.

    `prompt_tokens` are those that usage reports as input, `cap` is the request's limit of generated tokens: one below
    the effort's typical tokens shortens the reasoning.
    """
    plain = PROFILES.get(model, OTHER)
    reasoning = EFFORT_TOKENS.get(effort or "none", 0)
    reasoning = reasoning if cap is None else min(reasoning, cap - 1)
    median = plain.ttft.median + PROMPT_TOKEN_S * prompt_tokens + plain.gap.median * reasoning
    return LatencyProfile(LogNormal(median, plain.ttft.sigma), plain.gap)


class TokenPacer:
    """The waits of one reply; they follow a timetable, so that being late once does not slow what follows."""

    def __init__(
        self,
        *,
        scale: float,
        rng: random.Random,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        since: float | None = None,
    ) -> None:
        """The timetable begins at `since` by the clock, or now."""
        self._scale = scale
        self._rng = rng
        self._clock = clock
        self._sleep = sleep
        self._due = clock() if since is None else since

    async def token(self, wait: LogNormal) -> None:
        """Wait for the next token; the loop gets a turn in any case, so that each event is written by itself."""
        self._due += wait.drawn(self._rng) * self._scale
        await self._sleep(max(self._due - self._clock(), 0.0) if self._scale else 0.0)
