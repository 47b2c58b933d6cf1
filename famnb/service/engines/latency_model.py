"""The latency of the simulated engine: log-normal waits per model, whose true distribution can be asked for.

    reply    first token: LogNormal(median, sigma)           each next token: LogNormal(median, sigma), independently
    median   the model's + 20 µs a token of the prompt       the model's
             + its gap for each token of hidden reasoning

All in seconds at `time_scale` 1, which multiplies them. Thinking that is part of the reply comes token by token like
the answer, which therefore comes later the larger the budget. `latency_profile(model, effort).ttft.quantile(0.95)` is a
true percentile, against which measured ones can be tested.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Mapping
from statistics import NormalDist

# Each step is clearly slower than the one before, yet `xhigh` delays the first token by some 10 s only (448 × 21 ms).
EFFORT_TOKENS: Mapping[str, int] = {"minimal": 16, "low": 48, "medium": 112, "high": 224, "xhigh": 448}
"""The typical number of reasoning tokens of each effort, for which the first token waits; `none` has none."""
# A real prompt is read far faster than an answer is written: 100,000 tokens of it take 2 s.
PROMPT_TOKEN_S = 0.00002
"""The seconds that each token of the prompt adds to the median of the first token."""


@dataclasses.dataclass(frozen=True, slots=True)
class LogNormal:
    """A log-normal distribution of times in seconds."""

    median: float
    sigma: float
    """The standard deviation of the logarithm."""

    def quantile(self, p: float) -> float:
        """Return the value that a share `p` of all samples is below. Raises StatisticsError unless 0 < p < 1."""
        return self.median * math.exp(self.sigma * NormalDist().inv_cdf(p))

    def sample(self, rng: random.Random) -> float:
        """Return a random value."""
        return rng.lognormvariate(math.log(self.median), self.sigma)


@dataclasses.dataclass(frozen=True, slots=True)
class LatencyProfile:
    """The latency of a model."""

    ttft: LogNormal
    """From accepting the request to the first token."""
    gap: LogNormal
    """From one token to the next; each is an event of its own."""


# Chosen to be lifelike: 0.1 to 1 s to the first token, then 40 to 85 tokens a second, larger models slower.
PROFILES: Mapping[str, LatencyProfile] = {
    "fam-2-5-pro": LatencyProfile(LogNormal(0.45, 0.30), LogNormal(0.021, 0.45)),
    "fam-2-5-mini": LatencyProfile(LogNormal(0.24, 0.35), LogNormal(0.012, 0.45)),
    "fam-mini": LatencyProfile(LogNormal(0.30, 0.30), LogNormal(0.015, 0.45)),
}
"""The latency of each model for an empty prompt without reasoning."""
OTHER_PROFILE = LatencyProfile(LogNormal(0.35, 0.30), LogNormal(0.018, 0.45))
"""The same for provider-prefixed models."""


def latency_profile(
    model: str, effort: str | None = None, *, prompt_tokens: int = 0, cap: int | None = None
) -> LatencyProfile:
    """Return the true latency of a model's replies at an effort of hidden reasoning.

    `prompt_tokens` are those that usage reports as input, `cap` is the request's limit of generated tokens: one below
    the effort's typical tokens shortens the reasoning.
    """
    base = PROFILES.get(model, OTHER_PROFILE)
    reasoning = EFFORT_TOKENS.get(effort or "none", 0)
    reasoning = reasoning if cap is None else min(reasoning, cap - 1)
    median = base.ttft.median + PROMPT_TOKEN_S * prompt_tokens + base.gap.median * reasoning
    return LatencyProfile(LogNormal(median, base.ttft.sigma), base.gap)
