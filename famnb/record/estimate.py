"""Token counts that the service did not give, estimated from text lengths, always with an interval and always marked.

The ratios are fitted on replies whose counts were reported; reading them from the ledger is `ledger`'s business.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Any

from famnb.events import Count, Usage

SPREAD = 2.0
"""How far off, as a factor either way, a ratio may be until enough replies were seen to say better."""
ENOUGH = 5
"""From this many replies on the interval is the observed one: lowest to highest, 5th to 95th percentile from 20 on."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ratio:
    """Tokens per character: the middle and the interval."""

    mid: float
    low: float
    high: float
    n: int = 0
    """Replies it was fitted on."""


PRIOR = Ratio(1 / 4, 1 / 8, 1 / 2)
"""Without history: 4 characters a token, as English text has; 2 to 8 covers code, and most languages."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """The ratios of one model: of what was asked, and of what came back (hidden reasoning included)."""

    input: Ratio = PRIOR
    output: Ratio = PRIOR


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """Usage with what was missing estimated, and the same at the low and the high end."""

    usage: Usage
    low: Usage
    high: Usage


def answered(http_status: int | None) -> bool:
    """Whether there is anything to estimate: a call without a success status used no tokens that anyone knows of."""
    return http_status is not None and 200 <= http_status < 300


def fitted(ratios: Sequence[float]) -> Ratio:
    """The ratio that observed ratios of tokens to characters suggest; the prior if there are none."""
    if not ratios:
        return PRIOR
    mid = statistics.median(ratios)
    if len(ratios) < ENOUGH:
        return Ratio(mid, mid / SPREAD, mid * SPREAD, len(ratios))
    if len(ratios) < 20:
        return Ratio(mid, min(ratios), max(ratios), len(ratios))
    cuts = statistics.quantiles(ratios, n=20, method="inclusive")
    return Ratio(mid, cuts[0], cuts[-1], len(ratios))


def estimated(usage: Usage, *, input_chars: int | None, output_chars: int | None, fit: Fit) -> Estimate:
    """`usage` with absent input and output counts derived from the total, else estimated from text lengths.

    A length that is None or 0 leaves its count absent: nothing is known then, which is not 0.
    """
    usage = _from_total(usage)
    mid, low, high = usage, usage, usage
    sides: tuple[tuple[Count, int | None, Ratio], ...] = (
        ("input_tokens", input_chars, fit.input),
        ("output_tokens", output_chars, fit.output),
    )
    for count, chars, ratio in sides:
        if getattr(usage, count) is None and chars:
            mid = _with(mid, count, round(chars * ratio.mid))
            low = _with(low, count, math.floor(chars * ratio.low))
            high = _with(high, count, math.ceil(chars * ratio.high))
    if mid is usage:
        return Estimate(usage, usage, usage)
    return Estimate(_total(mid), _total(low), _total(high))


def _from_total(usage: Usage) -> Usage:
    """One of input and output follows from the other and the total."""
    match usage:
        case Usage(total_tokens=int(total), input_tokens=None, output_tokens=int(out)) if total >= out:
            return usage.then(Usage(input_tokens=total - out, derived=("input_tokens",)))
        case Usage(total_tokens=int(total), input_tokens=int(given), output_tokens=None) if total >= given:
            return usage.then(Usage(output_tokens=total - given, derived=("output_tokens",)))
        case _:
            return usage


def _with(usage: Usage, count: Count, value: int) -> Usage:
    counts: dict[str, Any] = {count: max(value, 1)}
    return usage.then(Usage(**counts, estimated=(count,)))


def _total(usage: Usage) -> Usage:
    if usage.total_tokens is not None or usage.input_tokens is None or usage.output_tokens is None:
        return usage
    total = usage.input_tokens + usage.output_tokens
    return usage.then(Usage(total_tokens=total, estimated=("total_tokens",)))
