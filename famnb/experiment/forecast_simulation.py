"""Possible runs of a plan, drawn from past calls: the bootstrap behind a forecast.

for each of up to 1,000 runs
    past calls ── drawn with replacement ── as many again: what may be true of such calls
    each planned call ── one of those: its tokens, its time, hence its cost
    the calls in their order, so many at once ── how long all of it takes

A bootstrap rather than a formula, since token counts and times have long tails, and since calls that run side by side
take as long as they do only in their order.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from famnb.experiment.forecast_history import Flags, Floats, SimilarCalls
from famnb.record.ceiling import Ceiling
from famnb.record.price import MILLION, Price
from famnb.record.token_estimates import PRIOR

RUNS = 1_000
"""Runs that are drawn."""
MAX_DRAWS = 20_000_000
"""Limit on the calls drawn in all runs: of a long plan, whose sums vary less, fewer runs are drawn, down to a fifth."""
BATCH = 256
"""Planned calls that are drawn at once, which bounds the memory."""
LOW, HIGH = PRIOR.low / PRIOR.mid, PRIOR.high / PRIOR.mid
"""Factors from a count that was estimated from the length of a text to the least and the most that it may be."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class PlannedCall:
    """A call still to be made, with what is known of it before."""

    variant: str
    model: str
    ceiling: Ceiling
    chars: int | None
    """Characters sent; None where that says nothing of its tokens, such as with images."""
    similar: SimilarCalls | None
    price: Price | None
    """Today's, for a request of its likely length."""

    @property
    def group(self) -> tuple[object, ...]:
        """Equal for calls that differ in their length alone, and so are drawn together."""
        return self.variant, self.ceiling.output_tokens, self.similar, self.price, self.chars is None


def simulate_runs(calls: Sequence[PlannedCall], *, concurrency: int, seed: int) -> tuple[dict[str, Floats], Floats]:
    """Draw possible runs: return the sums of each variant in each run, and each run's seconds.

    The sums are input tokens, output tokens and USD × lowest, best and highest × runs: the ends differ from the best
    where counts were estimated, and where input that is read from a cache has a price of its own.
    NaN where a call has no history.
    """
    rng, planned = np.random.default_rng(seed), max(len(calls), 1)
    runs = min(RUNS, max(RUNS // 5, MAX_DRAWS // planned))
    histories = [similar for similar in dict.fromkeys(call.similar for call in calls) if similar is not None]
    resampled = {similar: _ResampledCalls(similar, runs, rng) for similar in histories}
    sums: dict[str, Floats] = {}
    every_run, free_at = np.arange(runs), np.zeros((runs, min(concurrency, planned)))
    for start in range(0, len(calls), BATCH):
        batch = calls[start : start + BATCH]
        seconds = np.full((len(batch), runs), math.nan)
        for indexes in _group(batch):
            call = batch[indexes[0]]
            total = sums.setdefault(call.variant, np.zeros((3, 3, runs)))
            chars = [batch[index].chars for index in indexes]
            if call.similar is None or None in chars:
                total += math.nan
                continue
            input_tokens, output_tokens, seconds[indexes] = resampled[call.similar].draw(
                np.array(chars, dtype=float), call.ceiling.output_tokens, rng
            )
            total += np.stack([input_tokens, output_tokens, _costs(input_tokens, output_tokens, call.price)])
        for call_seconds in seconds:
            # As in a run: the next call takes the place that is free first.
            free_at[every_run, free_at.argmin(axis=1)] += call_seconds
    return sums, free_at.max(axis=1)


def _group(calls: Sequence[PlannedCall]) -> list[list[int]]:
    """The indexes of the calls of each group."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for index, call in enumerate(calls):
        groups.setdefault(call.group, []).append(index)
    return list(groups.values())


def _costs(input_tokens: Floats, output_tokens: Floats, price: Price | None) -> Floats:
    """The USD of some tokens (lowest, best, highest × runs); lowest and highest at the extreme prices of input."""
    if price is None:
        return np.full_like(input_tokens, math.nan)
    rates = price.rates
    input_rates = [[float(rate / MILLION)] for rate in (min(rates.inputs), rates.input, max(rates.inputs))]
    input_costs: Floats = input_tokens * np.array(input_rates)
    return input_costs + output_tokens * float(rates.output / MILLION)


class _ResampledCalls:
    """Past calls drawn anew for each run, so that what few calls cannot tell shows as uncertainty."""

    def __init__(self, similar: SimilarCalls, runs: int, rng: np.random.Generator) -> None:
        samples = np.stack([similar.tokens_per_char, similar.values("output_tokens"), similar.values("e2e_s")])
        mean = samples.mean(axis=1, keepdims=True)
        # A bootstrap of few calls is too narrow: by the ratio of Student's t to the normal quantile, and of the spread
        # with n - 1 to that with n.
        stretch = float(stats.t.ppf(0.975, similar.n - 1) / stats.norm.ppf(0.975)) * math.sqrt(
            similar.n / (similar.n - 1)
        )
        tokens_per_char, output_tokens, seconds = np.maximum(mean + stretch * (samples - mean), 0.0)
        tokens_per_char = tokens_per_char * _bounds(similar.is_estimated("input_tokens"))
        output_tokens = output_tokens * _bounds(similar.is_estimated("output_tokens"))
        # A row a past call: one gather fetches all seven values of a drawn call from adjacent memory.
        self._values = np.ascontiguousarray(np.concatenate([tokens_per_char, output_tokens, seconds[None]]).T)
        self._drawn = rng.integers(similar.n, size=(runs, similar.n))

    def draw(self, chars: Floats, token_cap: int | None, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Draw a call of each length in every run.

        Returns the sums of the input tokens and of the output tokens (lowest, best, highest × runs), and the seconds
        of each call (calls × runs).
        """
        runs, n = self._drawn.shape
        values = self._values[self._drawn[np.arange(runs), rng.integers(n, size=(len(chars), runs))]]
        input_tokens = np.einsum("c,cre->er", chars, values[:, :, :3])
        output_tokens = np.minimum(values[:, :, 3:6], math.inf if token_cap is None else token_cap).sum(axis=0).T
        return input_tokens, output_tokens, values[:, :, 6]


def _bounds(estimated: Flags) -> Floats:
    """Factors to the lowest, best and highest count of each call."""
    return np.where(estimated, np.array([[LOW], [1.0], [HIGH]]), 1.0)
