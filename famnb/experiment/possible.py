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
from scipy import stats

from famnb.experiment.past import Flags, Floats, Pool
from famnb.record.estimate import PRIOR

RUNS = 1_000
"""Runs that are drawn."""
LOW, HIGH = PRIOR.low / PRIOR.mid, PRIOR.high / PRIOR.mid
"""How far off, as a factor, a count may be that was estimated from the length of a text."""


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
    """What each variant sums up to in each run, and each run's seconds; NaN where a call has no history.

    The sums are input tokens, output tokens and USD × lowest, best and highest × RUNS: the ends differ from the best
    where counts were estimated, and where input that is read from a cache has a price of its own.
    """
    rng = np.random.default_rng(seed)
    pools = {id(slot.pool): slot.pool for slot in slots if slot.pool is not None}
    again = {place: _Again(each, rng) for place, each in pools.items()}
    sums: dict[str, Floats] = {}
    free = np.zeros((RUNS, min(concurrency, max(len(slots), 1))))
    every = np.arange(RUNS)
    for slot in slots:
        total = sums.setdefault(slot.variant, np.zeros((3, 3, RUNS)))
        if slot.pool is None or slot.chars is None:
            total += math.nan
            free += math.nan
            continue
        ratio, output, took = again[id(slot.pool)].call(rng)
        given = slot.chars * ratio
        output = np.minimum(output, math.inf if slot.cap is None else slot.cap)
        total += np.stack([given, output, _costs(given, output, slot.rates)])
        # The worker that is free first takes the next call.
        free[every, free.argmin(axis=1)] += took
    return sums, free.max(axis=1)


def _costs(given: Floats, output: Floats, rates: Rates | None) -> Floats:
    if rates is None:
        return np.full_like(given, math.nan)
    inputs: Floats = given * np.array([[rates.lowest], [rates.input], [rates.highest]])
    return inputs + output * rates.output


class _Again:
    """A pool drawn again for each run, so that what few calls cannot tell shows as doubt."""

    def __init__(self, pool: Pool, rng: np.random.Generator) -> None:
        found = np.stack([pool.ratio, pool.output, pool.e2e_s])
        middle = found.mean(axis=1, keepdims=True)
        # Few calls look more alike than their kind is; by how much, Student's t and n - 1 say.
        stretch = float(stats.t.ppf(0.975, pool.n - 1) / stats.norm.ppf(0.975)) * math.sqrt(pool.n / (pool.n - 1))
        self._of = np.maximum(middle + stretch * (found - middle), 0.0)
        self._ends = [_ends(pool.ratio_guessed), _ends(pool.output_guessed)]
        self._taken = rng.integers(pool.n, size=(RUNS, pool.n))

    def call(self, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """One more call in every run: input tokens per character and output tokens at both ends, and seconds."""
        runs, n = self._taken.shape
        picked = self._taken[np.arange(runs), rng.integers(n, size=runs)]
        ratio, output, took = self._of[:, picked]
        return ratio * self._ends[0][:, picked], output * self._ends[1][:, picked], took


def _ends(guessed: Flags) -> Floats:
    """Factors of the lowest, best and highest count of each call."""
    return np.where(guessed, np.array([[LOW], [1.0], [HIGH]]), 1.0)
