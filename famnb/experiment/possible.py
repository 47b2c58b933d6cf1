"""Possible runs of a plan, drawn from past calls; what is read from them is the forecast's business.

for each of 1,000 runs:  past calls ── drawn with replacement ── as many again: what may be true of such calls
                         each planned call ── one of those: its tokens, its time, hence its cost
                         the calls in their order, so many at once ── how long all of it takes
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from famnb.experiment.past import Pool

RUNS = 1_000
"""Runs that are drawn."""
QUANTITIES = ("input_tokens", "output_tokens", "cost_low_usd", "cost_usd", "cost_high_usd")
"""What is summed up for each variant; the costs are those with input at its lowest, plain and highest price."""

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True)
class Rates:
    """Prices in USD per token."""

    lowest: float
    """Of input, when all of it is read from a cache."""
    input: float
    highest: float
    output: float


@dataclasses.dataclass(frozen=True, slots=True)
class Slot:
    """One planned call."""

    variant: str
    chars: int | None
    """Characters sent; None where that says nothing of its tokens, such as with images."""
    cap: int | None
    """The most output tokens."""
    pool: Pool | None
    rates: Rates | None


def draws(slots: Sequence[Slot], *, concurrency: int, seed: int) -> tuple[dict[str, Floats], Floats]:
    """The sums of each variant, QUANTITIES × RUNS, and each run's seconds; NaN where a call has no history."""
    rng = np.random.default_rng(seed)
    again = {id(slot.pool): _Again(slot.pool, rng) for slot in slots if slot.pool is not None}
    sums: dict[str, Floats] = {}
    free = np.zeros((RUNS, min(concurrency, max(len(slots), 1))))
    every = np.arange(RUNS)
    for slot in slots:
        total = sums.setdefault(slot.variant, np.zeros((len(QUANTITIES), RUNS)))
        if slot.pool is None or slot.chars is None:
            total += math.nan
            free += math.nan
            continue
        ratio, output, took = again[id(slot.pool)].call(rng)
        output = output if slot.cap is None else np.minimum(output, slot.cap)
        given = slot.chars * ratio
        total[0] += given
        total[1] += output
        total[2:] += _costs(given, output, slot.rates)
        # The worker that is free first takes the next call.
        free[every, free.argmin(axis=1)] += took
    return sums, free.max(axis=1)


def _costs(given: Floats, output: Floats, rates: Rates | None) -> Floats:
    if rates is None:
        return np.full((3, len(given)), math.nan)
    spoken = output * rates.output
    return np.stack([given * each + spoken for each in (rates.lowest, rates.input, rates.highest)])


class _Again:
    """A pool drawn again for each run, so that what few calls cannot tell shows as doubt."""

    def __init__(self, pool: Pool, rng: np.random.Generator) -> None:
        self._of = np.stack([pool.ratio, pool.output, pool.e2e_s])
        self._taken = rng.integers(pool.n, size=(RUNS, pool.n))
        # Means drawn again scatter less than means of new samples do, by what Student's t and n - 1 correct for.
        stretch = float(stats.t.ppf(0.975, pool.n - 1) / stats.norm.ppf(0.975)) * math.sqrt(pool.n / (pool.n - 1))
        means = self._of[:, self._taken].mean(axis=2)
        self._shift = (stretch - 1) * (means - self._of.mean(axis=1, keepdims=True))

    def call(self, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """One more call in every run: input tokens per character, output tokens, seconds."""
        runs, n = self._taken.shape
        picked = self._taken[np.arange(runs), rng.integers(n, size=runs)]
        ratio, output, took = np.maximum(self._of[:, picked] + self._shift, 0.0)
        return ratio, output, took
