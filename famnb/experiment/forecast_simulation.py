"""Possible runs of a plan, drawn from past calls; what is read from them is the forecast's business.

for each of up to 1,000 runs
    past calls ── drawn with replacement ── as many again: what may be true of such calls
    each planned call ── one of those: its tokens, its time, hence its cost
    the calls in their order, so many at once ── how long all of it takes
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from famnb.experiment.forecast_history import Flags, Floats, Pool
from famnb.record.token_estimates import PRIOR

RUNS = 1_000
"""Runs that are drawn."""
CALLS = 20_000_000
"""Calls of all runs, of a longer plan too: its runs differ less, so that a fifth of them will do."""
BATCH = 256
"""Calls that are drawn in one go."""
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

    The sums are input tokens, output tokens and USD × lowest, best and highest × runs: the ends differ from the best
    where counts were estimated, and where input that is read from a cache has a price of its own.
    """
    rng, planned = np.random.default_rng(seed), max(len(slots), 1)
    runs = min(RUNS, max(RUNS // 5, CALLS // planned))
    pools = [pool for pool in dict.fromkeys(slot.pool for slot in slots) if pool is not None]
    again = {pool: _Again(pool, runs, rng) for pool in pools}
    sums: dict[str, Floats] = {}
    every, free = np.arange(runs), np.zeros((runs, min(concurrency, planned)))
    for start in range(0, len(slots), BATCH):
        batch = slots[start : start + BATCH]
        took = np.full((len(batch), runs), math.nan)
        for alike, places in _alike(batch).items():
            total = sums.setdefault(alike.variant, np.zeros((3, 3, runs)))
            chars = [batch[place].chars for place in places]
            if alike.pool is None or None in chars:
                total += math.nan
                continue
            given, output, took[places] = again[alike.pool].calls(np.array(chars, dtype=float), alike.cap, rng)
            total += np.stack([given, output, _costs(given, output, alike.rates)])
        for each in took:
            # The worker that is free first takes the next call.
            free[every, free.argmin(axis=1)] += each
    return sums, free.max(axis=1)


def _alike(slots: Sequence[Slot]) -> dict[Slot, list[int]]:
    """The places of the calls that differ in their length alone."""
    found: dict[Slot, list[int]] = {}
    for place, slot in enumerate(slots):
        known = None if slot.chars is None else 0
        found.setdefault(dataclasses.replace(slot, chars=known), []).append(place)
    return found


def _costs(given: Floats, output: Floats, rates: Rates | None) -> Floats:
    if rates is None:
        return np.full_like(given, math.nan)
    inputs: Floats = given * np.array([[rates.lowest], [rates.input], [rates.highest]])
    return inputs + output * rates.output


class _Again:
    """A pool drawn again for each run, so that what few calls cannot tell shows as doubt."""

    def __init__(self, pool: Pool, runs: int, rng: np.random.Generator) -> None:
        found = np.stack([pool.ratio, pool.output, pool.e2e_s])
        middle = found.mean(axis=1, keepdims=True)
        # Few calls look more alike than their kind is; by how much, Student's t and n - 1 say.
        stretch = float(stats.t.ppf(0.975, pool.n - 1) / stats.norm.ppf(0.975)) * math.sqrt(pool.n / (pool.n - 1))
        ratio, output, took = np.maximum(middle + stretch * (found - middle), 0.0)
        ends = ratio * _ends(pool.ratio_guessed), output * _ends(pool.output_guessed)
        self._calls = np.ascontiguousarray(np.concatenate([*ends, took[None]]).T)
        """A row a past call: input tokens per character and output tokens, at both ends each, and seconds."""
        self._taken = rng.integers(pool.n, size=(runs, pool.n))

    def calls(self, chars: Floats, cap: int | None, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """A call of each length in every run: what the input and output tokens sum up to, and each one's seconds."""
        runs, n = self._taken.shape
        drawn = self._calls[self._taken[np.arange(runs), rng.integers(n, size=(len(chars), runs))]]
        output = np.minimum(drawn[:, :, 3:6], math.inf if cap is None else cap).sum(axis=0).T
        return np.einsum("c,cre->er", chars, drawn[:, :, :3]), output, drawn[:, :, 6]


def _ends(guessed: Flags) -> Floats:
    """Factors of the lowest, best and highest count of each call."""
    return np.where(guessed, np.array([[LOW], [1.0], [HIGH]]), 1.0)
