"""Token counts that the service did not give, estimated from text lengths, always with an interval and always marked.

The ratios are fitted on replies whose counts were reported; reading them from the ledger is `ledger`'s business.

MERGED: Tokens per character fitted on recorded calls: the query that finds them, and its rows as fits.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from famnb.events import Count, Usage

SPREAD = 2.0
"""How far off, as a factor either way, an estimate may be about which nothing better is known."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ratio:
    """Tokens per character: the middle and the interval."""

    mid: float
    low: float
    high: float
    n: int = 0
    """Replies it was fitted on."""


PRIOR = Ratio(1 / 4, 1 / 8, 1)
"""Without history: 4 characters a token, as English text has; 1 to 8 covers code, and most languages."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """The ratios of one model: of what was asked, and of what came back, hidden reasoning included."""

    input: Ratio = PRIOR
    output: Ratio = PRIOR
    reasoned: Ratio = PRIOR
    """Of what came back where reasoning was asked for and not shown."""


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
    """The ratio that n observed ratios of tokens to characters suggest; the prior if there are none.

    The interval reaches from the 1st to the 99th percentile, so that one odd reply in hundreds does not widen it, and
    beyond both by a factor of 1 + 1/sqrt(n), since the next reply may be unlike those seen.
    """
    n = len(ratios)
    if n == 0:
        return PRIOR
    cuts = statistics.quantiles(ratios, n=100, method="inclusive") if n > 1 else ratios
    doubt = 1 + 1 / math.sqrt(n)
    return Ratio(statistics.median(ratios), cuts[0] / doubt, cuts[-1] * doubt, n)


def estimated(
    usage: Usage, *, input_chars: int | None, output_chars: int | None, fit: Fit, hidden_cap: int | None = None
) -> Estimate:
    """`usage` with absent input and output counts derived from the total, else estimated from text lengths.

    A length that is None or 0 leaves its count absent: nothing is known then, which is not 0. `hidden_cap` is the most
    tokens that may have come, where reasoning that is not shown can be most of them; None where the text shows all.
    """
    usage = _from_total(usage)
    mid, low, high = usage, usage, usage
    if usage.input_tokens is None and input_chars:
        mid, low, high = _sized((mid, low, high), "input_tokens", input_chars, fit.input)
    if usage.output_tokens is None and output_chars:
        ratio = fit.output if hidden_cap is None else fit.reasoned
        mid, low, high = _sized((mid, low, high), "output_tokens", output_chars, ratio)
        if hidden_cap is not None:
            mid = _with(mid, "output_tokens", min(mid.output_tokens or 1, hidden_cap))
            low = _with(low, "output_tokens", math.floor(output_chars * min(fit.output.low, ratio.low)))
            high = _with(high, "output_tokens", hidden_cap)
    if mid is usage:
        return Estimate(usage, usage, usage)
    return Estimate(_total(mid), _total(low), _total(high))


def _sized(ends: tuple[Usage, Usage, Usage], count: Count, chars: int, ratio: Ratio) -> tuple[Usage, Usage, Usage]:
    """The middle, low and high usage with a count that follows from a length."""
    mid, low, high = ends
    return (
        _with(mid, count, round(chars * ratio.mid)),
        _with(low, count, math.floor(chars * ratio.low)),
        _with(high, count, math.ceil(chars * ratio.high)),
    )


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
    marks = usage.estimated if count in usage.estimated else (*usage.estimated, count)
    return msgspec.structs.replace(usage, estimated=marks, **{count: max(value, 1)})


def _total(usage: Usage) -> Usage:
    if usage.total_tokens is not None or usage.input_tokens is None or usage.output_tokens is None:
        return usage
    total = usage.input_tokens + usage.output_tokens
    return _with(usage, "total_tokens", total)


REPLIES = 500
"""The newest calls of a model that its tokens per character are fitted on."""

RATIOS = """
    SELECT service,
        CASE WHEN input_tokens_source IN ('reported', 'derived') AND input_chars > 0
            THEN CAST(input_tokens AS DOUBLE) / input_chars END,
        CASE WHEN output_tokens_source IN ('reported', 'derived') AND output_chars > 0
            THEN CAST(output_tokens AS DOUBLE) / output_chars END,
        hidden_cap IS NOT NULL AND thinking_chars = 0
    FROM calls WHERE model = ? AND complete = 1 ORDER BY started_us DESC LIMIT ?"""
"""The ratios of a model's newest calls, in words that SQLite and DuckDB share."""


def fit_by_service(ratios: Iterable[Sequence[Any]]) -> dict[str | None, Fit]:
    """The fits that the rows of `RATIOS` make, by the service that answered."""
    seen: dict[str | None, tuple[list[float], list[float], list[float]]] = {}
    for service, of_input, of_output, hidden in ratios:
        inputs, outputs, reasoned = seen.setdefault(service, ([], [], []))
        inputs.extend([of_input] if of_input else [])
        (reasoned if hidden else outputs).extend([of_output] if of_output else [])
    return {service: Fit(*map(fitted, lists)) for service, lists in seen.items()}
