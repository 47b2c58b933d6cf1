"""Token counts that the service did not report, estimated from text lengths, each with its bounds and marked as such.

The ratios of tokens to characters are fitted on recorded replies whose counts were reported. One formula fills in what
is missing, for one call when it ends (`estimate_usage`) and for the columns of a frame (`frame.fill_estimates`).
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from famnb.events import Count, Usage
from famnb.record.elementwise import NUMBERS, Elementwise

SPREAD = 2.0
"""How far off, as a factor either way, an estimate may be if nothing better is known."""


@dataclasses.dataclass(frozen=True, slots=True)
class TokenRatio:
    """Tokens per character: the middle and the interval; numbers, or arrays with a call a place."""

    mid: Any
    low: Any
    high: Any
    n: int = 0
    """Replies it was fitted on."""


PRIOR = TokenRatio(1 / 4, 1 / 8, 1)
"""Without history: 4 characters a token, as English text has; 1 to 8 covers code, and most languages."""


@dataclasses.dataclass(frozen=True, slots=True)
class TokenFit:
    """The ratios of one model."""

    input: TokenRatio = PRIOR
    """Of what was sent."""
    output: TokenRatio = PRIOR
    """Of replies that show all that was generated."""
    reasoned: TokenRatio = PRIOR
    """Of replies whose reasoning was asked for and not shown, which count tokens that no character stands for."""


@dataclasses.dataclass(frozen=True, slots=True)
class UsageEstimate:
    """Usage with what was missing estimated, and the same at the low and the high end."""

    usage: Usage
    low: Usage
    high: Usage


class Lengths(NamedTuple):
    """What a call's tokens are estimated from; numbers or arrays, 0 and None or NaN alike where nothing is known."""

    input_chars: Any
    output_chars: Any
    hidden_cap: Any
    """The most tokens that may have come, where the text does not show all; missing where it does."""


class CountEstimate(NamedTuple):
    """Input and output tokens, filled in where they were missing."""

    input: tuple[Any, Any, Any]
    """Middle, low and high count; equal unless the count is estimated."""
    output: tuple[Any, Any, Any]
    input_derived: Any
    """Whether the count follows from two reported ones."""
    output_derived: Any
    input_estimated: Any
    output_estimated: Any


def has_answer(http_status: int | None) -> bool:
    """Whether there is anything to estimate: a call without a success status used no tokens that anyone knows of."""
    return http_status is not None and 200 <= http_status < 300


def fill_missing(
    input_tokens: Any, output_tokens: Any, total_tokens: Any, *, lengths: Lengths, fit: TokenFit, of: Elementwise
) -> CountEstimate:
    """Return input and output counts, derived from the total if that is possible, else estimated from text lengths.

    A count stays missing where neither is possible: nothing is known then, which is not 0. All arguments are single
    numbers or arrays, and `of` the operations for them.
    """
    no_input, no_output = of.is_missing(input_tokens), of.is_missing(output_tokens)
    has_total = of.logical_not(of.is_missing(total_tokens))
    known_input, known_output, total = of.or_zero(input_tokens), of.or_zero(output_tokens), of.or_zero(total_tokens)
    # A total smaller than one of its parts is a service's mistake and derives nothing.
    input_derived = no_input & of.logical_not(no_output) & has_total & (total >= known_output)
    output_derived = no_output & of.logical_not(no_input) & has_total & (total >= known_input)
    derived_input = of.where(input_derived, total - known_output, input_tokens)
    derived_output = of.where(output_derived, total - known_input, output_tokens)

    input_chars, output_chars = of.or_zero(lengths.input_chars), of.or_zero(lengths.output_chars)
    input_estimated = of.is_missing(derived_input) & (input_chars > 0)
    output_estimated = of.is_missing(derived_output) & (output_chars > 0)
    input_bounds = _tokens_of_text(input_chars, fit.input, of)

    is_hidden, cap = of.logical_not(of.is_missing(lengths.hidden_cap)), of.or_zero(lengths.hidden_cap)
    shown = _tokens_of_text(output_chars, fit.output, of)
    reasoned_mid, _, _ = _tokens_of_text(output_chars, fit.reasoned, of)
    # Hidden reasoning may be all that the cap allows, or nothing: then the text is as dense as in other replies.
    lowest_ratio = of.minimum(fit.output.low, fit.reasoned.low)
    hidden = (
        of.maximum(of.minimum(reasoned_mid, cap), 1),
        of.maximum(of.floor(output_chars * lowest_ratio), 1),
        of.maximum(cap, 1),
    )
    output_bounds = [of.where(is_hidden, *pair) for pair in zip(hidden, shown, strict=True)]
    return CountEstimate(
        input=_fill(derived_input, input_estimated, input_bounds, of),
        output=_fill(derived_output, output_estimated, output_bounds, of),
        input_derived=input_derived,
        output_derived=output_derived,
        input_estimated=input_estimated,
        output_estimated=output_estimated,
    )


def _tokens_of_text(chars: Any, ratio: TokenRatio, of: Elementwise) -> tuple[Any, Any, Any]:
    """Middle, low and high count of a text's tokens; at least 1, since text that is there has a token."""
    return (
        of.maximum(of.round(chars * ratio.mid), 1),
        of.maximum(of.floor(chars * ratio.low), 1),
        of.maximum(of.ceil(chars * ratio.high), 1),
    )


def _fill(count: Any, is_estimated: Any, bounds: Iterable[Any], of: Elementwise) -> tuple[Any, Any, Any]:
    """The count at the middle, the low and the high end."""
    mid, low, high = (of.where(is_estimated, bound, count) for bound in bounds)
    return mid, low, high


def estimate_usage(
    usage: Usage, *, input_chars: int | None, output_chars: int | None, fit: TokenFit, hidden_cap: int | None = None
) -> UsageEstimate:
    """Return `usage` with absent input and output counts filled in, as `fill_missing` does, and its bounds.

    Lengths are in characters. `hidden_cap` is the most tokens that may have come, if reasoning that is not shown can
    be most of them; None if the text shows all.
    """
    if usage.input_tokens is not None and usage.output_tokens is not None:
        return UsageEstimate(usage, usage, usage)
    lengths = Lengths(input_chars, output_chars, hidden_cap)
    filled = fill_missing(
        usage.input_tokens, usage.output_tokens, usage.total_tokens, lengths=lengths, fit=fit, of=NUMBERS
    )
    if filled.input_derived:
        usage = usage.merge(Usage(input_tokens=filled.input[0], derived=("input_tokens",)))
    if filled.output_derived:
        usage = usage.merge(Usage(output_tokens=filled.output[0], derived=("output_tokens",)))
    if not (filled.input_estimated or filled.output_estimated):
        return UsageEstimate(usage, usage, usage)
    ends = []
    for input_tokens, output_tokens in zip(filled.input, filled.output, strict=True):
        end = usage
        if filled.input_estimated:
            end = _with_estimate(end, "input_tokens", input_tokens)
        if filled.output_estimated:
            end = _with_estimate(end, "output_tokens", output_tokens)
        if end.total_tokens is None and end.input_tokens is not None and end.output_tokens is not None:
            end = _with_estimate(end, "total_tokens", end.input_tokens + end.output_tokens)
        ends.append(end)
    return UsageEstimate(*ends)


def _with_estimate(usage: Usage, count: Count, value: int) -> Usage:
    """The usage with a count that is marked as estimated."""
    marks = usage.estimated if count in usage.estimated else (*usage.estimated, count)
    return msgspec.structs.replace(usage, estimated=marks, **{count: value})


def fit_ratio(ratios: Sequence[float]) -> TokenRatio:
    """Return the ratio that n observed ratios of tokens to characters suggest; the prior if there are none.

    The interval reaches from the 1st to the 99th percentile, so that one odd reply in hundreds does not widen it, and
    beyond both by a factor of 1 + 1/sqrt(n), since the next reply may be unlike those seen.
    """
    n = len(ratios)
    if n == 0:
        return PRIOR
    cuts = statistics.quantiles(ratios, n=100, method="inclusive") if n > 1 else ratios
    doubt = 1 + 1 / math.sqrt(n)
    return TokenRatio(statistics.median(ratios), cuts[0] / doubt, cuts[-1] * doubt, n)


REPLIES = 500
"""How many of a model's newest calls its ratios are fitted on: enough for a 99th percentile, few enough to be read
again every minute (`ledger.FIT_S`)."""

RATIOS = """
    SELECT service,
        CASE WHEN input_tokens_source IN ('reported', 'derived') AND input_chars > 0
            THEN CAST(input_tokens AS DOUBLE) / input_chars END,
        CASE WHEN output_tokens_source IN ('reported', 'derived') AND output_chars > 0
            THEN CAST(output_tokens AS DOUBLE) / output_chars END,
        hidden_cap IS NOT NULL AND thinking_chars = 0
    FROM calls WHERE model = ? AND complete = 1 ORDER BY started_us DESC LIMIT ?"""
"""The ratios of a model's newest calls, in SQL that SQLite and DuckDB share."""


def fit_by_service(rows: Iterable[Sequence[Any]]) -> dict[str | None, TokenFit]:
    """Return the fits that the rows of `RATIOS` make, by the service that answered.

    A simulated engine's tokens say nothing of a real one's, so each service has a fit of its own.
    """
    ratios: dict[str | None, tuple[list[float], list[float], list[float]]] = {}
    for service, input_ratio, output_ratio, is_hidden in rows:
        inputs, outputs, reasoned = ratios.setdefault(service, ([], [], []))
        inputs.extend([input_ratio] if input_ratio else [])
        (reasoned if is_hidden else outputs).extend([output_ratio] if output_ratio else [])
    return {service: TokenFit(*map(fit_ratio, lists)) for service, lists in ratios.items()}
