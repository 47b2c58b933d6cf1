"""Token counts that the service did not report, estimated from text lengths, each with its bounds and marked as such.

The ratios of tokens to characters are fitted on recorded replies whose counts were reported. `estimate_usage` fills in
one call when it ends, `frame.fill_estimates` the columns of a frame, both by the formulas here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from famnb.events import Usage

# As `fit_ratio` gives it for a single reply.
SPREAD = 2.0
"""How far off, as a factor either way, an estimate may be if nothing better is known."""


class TokenRatio(msgspec.Struct, frozen=True):
    """Tokens per character: the middle and the interval; numbers, or arrays with one element per call."""

    mid: Any
    low: Any
    high: Any
    n: int = 0
    """Replies it was fitted on."""


USAGE_HINT = 'stream_options={"include_usage": True} has a streamed call report its tokens, and stream=False any call'
"""What to do about counts that were not reported."""
NO_CAP = 0
"""The `hidden_cap` of a reply that nothing limits."""
PLAIN_MODELS = re.compile(
    r"(?:.*/)?(?:gpt-3\.5|gpt-4(?:$|-|o|\.1)|claude-3(?:-5)?-(?:haiku|sonnet|opus)|gemini-(?:1\.|2\.0-flash(?!-think))"
    r"|(?:meta-)?llama-?[123]|smollm2|mixtral|codestral)",
    re.IGNORECASE,
)
"""The names of models that do not reason unless they are asked to."""
PRIOR = TokenRatio(1 / 4, 1 / 8, 1)
"""Without history: 4 characters a token, as English text has; 1 to 8 covers code, and most languages."""


class TokenFit(msgspec.Struct, frozen=True):
    """The ratios of one model."""

    input: TokenRatio = PRIOR
    """Of what was sent."""
    output: TokenRatio = PRIOR
    """Of replies that show all that was generated."""
    reasoned: TokenRatio = PRIOR
    """Of replies that may have hidden their reasoning, which count tokens that no character stands for."""


class MathFunctions(NamedTuple):
    """The functions that a formula needs for its kind of numbers, so that it is written once for both kinds.

    Not NumPy's for a single call as well: each takes about 1 µs there, and a call that ends would wait for a dozen.
    """

    round: Callable[[Any], Any]
    """To the nearest integer, halves to the even one."""
    floor: Callable[[Any], Any]
    ceil: Callable[[Any], Any]
    minimum: Callable[[Any, Any], Any]
    maximum: Callable[[Any, Any], Any]


NUMBERS = MathFunctions(round=round, floor=math.floor, ceil=math.ceil, minimum=min, maximum=max)
"""For single numbers."""


def has_answer(http_status: int | None) -> bool:
    """Whether there is anything to estimate: a call without a success status used no tokens that anyone knows of."""
    return http_status is not None and 200 <= http_status < 300


def tokens_of_text(chars: Any, ratio: TokenRatio, functions: MathFunctions) -> tuple[Any, Any, Any]:
    """Return the middle, low and high count of a text's tokens; at least 1, since text that is there has a token."""
    return (
        functions.maximum(functions.round(chars * ratio.mid), 1),
        functions.maximum(functions.floor(chars * ratio.low), 1),
        functions.maximum(functions.ceil(chars * ratio.high), 1),
    )


def tokens_with_hidden_reasoning(chars: Any, fit: TokenFit, cap: Any, functions: MathFunctions) -> tuple[Any, Any, Any]:
    """Return the middle, low and high count of a reply of at most `cap` tokens that may hide its reasoning."""
    # The reasoning may be all that the cap allows, or nothing: then the text is as dense as that of other replies.
    lowest_ratio = functions.minimum(fit.output.low, fit.reasoned.low)
    return (
        functions.maximum(functions.minimum(functions.round(chars * fit.reasoned.mid), cap), 1),
        functions.maximum(functions.floor(chars * lowest_ratio), 1),
        functions.maximum(cap, 1),
    )


def estimate_usage(
    usage: Usage, *, input_chars: int | None, output_chars: int | None, fit: TokenFit, hidden_cap: int | None = None
) -> tuple[Usage, Usage, Usage]:
    """Return `usage` with absent input and output counts derived from the total, else estimated, and its two ends.

    A length, in characters, that is None or 0 leaves its count absent: nothing is known then, which is not 0.
    `hidden_cap` is the most tokens that may have come, if reasoning that is not shown can be most of them: NO_CAP
    leaves the high end open, as None. Without one the text shows all.
    """
    if usage.input_tokens is not None and usage.output_tokens is not None:
        return usage, *(contradiction_bounds(usage) if usage.is_contradictory else (usage, usage))
    usage = _derive_from_total(usage)
    estimates: dict[str, Sequence[Any]] = {}
    if usage.input_tokens is None and input_chars:
        estimates["input_tokens"] = tokens_of_text(input_chars, fit.input, NUMBERS)
    if usage.output_tokens is None and output_chars:
        estimates["output_tokens"] = (
            tokens_of_text(output_chars, fit.output, NUMBERS)
            if hidden_cap is None
            else tokens_with_hidden_reasoning(output_chars, fit, hidden_cap or math.inf, NUMBERS)
        )
    if not estimates:
        return usage, usage, usage
    inputs = estimates.get("input_tokens", [usage.input_tokens] * 3)
    outputs = estimates.get("output_tokens", [usage.output_tokens] * 3)
    if usage.total_tokens is None and inputs[0] is not None and outputs[0] is not None:
        estimates["total_tokens"] = [sum(pair) for pair in zip(inputs, outputs, strict=True)]
    estimates = {count: [None if value == math.inf else value for value in ends] for count, ends in estimates.items()}
    marks = (*usage.estimated, *(count for count in estimates if count not in usage.estimated))
    mid, low, high = (
        msgspec.structs.replace(usage, estimated=marks, **dict(zip(estimates, values, strict=True)))
        for values in zip(*estimates.values(), strict=True)
    )
    return mid, low, high


def contradiction_bounds(usage: Usage) -> tuple[Usage, Usage]:
    """Return the usage at the low and at the high end if its total is not input and output together.

    Any of the three may be wrong; either part is then between what it is reported as and what the other leaves of the
    total.
    """
    total = usage.total_tokens or 0
    inputs, outputs = parts_by_total(usage.input_tokens, usage.output_tokens, total, NUMBERS)
    low, high = (
        msgspec.structs.replace(usage, input_tokens=end_input, output_tokens=end_output)
        for end_input, end_output in zip(inputs, outputs, strict=True)
    )
    return low, high


def parts_by_total(input_tokens: Any, output_tokens: Any, total: Any, functions: MathFunctions) -> tuple[Any, Any]:
    """Return (low, high) of the input and of the output where the total contradicts them."""
    lowest, largest = functions.minimum, functions.maximum
    input_by_total, output_by_total = largest(total - output_tokens, 0), largest(total - input_tokens, 0)
    return (
        (lowest(input_tokens, input_by_total), largest(input_tokens, input_by_total)),
        (lowest(output_tokens, output_by_total), largest(output_tokens, output_by_total)),
    )


def _derive_from_total(usage: Usage) -> Usage:
    """The usage with input or output, if one of them is missing, as what the other leaves of the total."""
    # A total smaller than one of its parts is a service's mistake and derives nothing.
    match usage:
        case Usage(input_tokens=None, output_tokens=int(known), total_tokens=int(total)) if total >= known:
            return usage.merge(Usage(input_tokens=total - known, derived=("input_tokens",)))
        case Usage(input_tokens=int(known), output_tokens=None, total_tokens=int(total)) if total >= known:
            return usage.merge(Usage(output_tokens=total - known, derived=("output_tokens",)))
        case _:
            return usage


def fit_ratio(ratios: Sequence[float]) -> TokenRatio:
    """Return the ratio that n observed ratios of tokens to characters suggest; the prior if there are none.

    The interval reaches from the 1st to the 99th percentile, so that one odd reply in hundreds does not widen it, and
    beyond both by a factor of 1 + 1/sqrt(n), since the next reply may be unlike those seen.
    """
    n = len(ratios)
    if n == 0:
        return PRIOR
    # Loaded late: the first call of a model has nothing to learn from.
    import statistics

    cuts = statistics.quantiles(ratios, n=100, method="inclusive") if n > 1 else ratios
    doubt = 1 + 1 / math.sqrt(n)
    return TokenRatio(statistics.median(ratios), cuts[0] / doubt, cuts[-1] * doubt, n)


# Enough for a 99th percentile, few enough to be read again every minute (`ledger.FIT_S`).
REPLIES = 500
"""How many of a model's newest calls its ratios are fitted on."""

RATIOS = """
    SELECT service,
        CASE WHEN input_tokens_source IN ('reported', 'derived') AND input_chars > 0
            THEN CAST(input_tokens AS DOUBLE) / input_chars END,
        CASE WHEN output_tokens_source IN ('reported', 'derived') AND output_chars > 0
            THEN CAST(output_tokens AS DOUBLE) / output_chars END,
        hidden_cap IS NOT NULL
    FROM calls WHERE model = ? AND complete = 1 ORDER BY started_us DESC LIMIT ?"""
"""The ratios of a model's newest calls."""


def fit_by_service(rows: Iterable[Sequence[Any]]) -> dict[str | None, TokenFit]:
    """Return the fits that the rows of `RATIOS` make, by the service that answered.

    A simulated engine's tokens are unlike a real one's, so each service has a fit of its own.
    """
    ratios: dict[str | None, tuple[list[float], list[float], list[float]]] = {}
    for service, input_ratio, output_ratio, is_hidden in rows:
        inputs, outputs, reasoned = ratios.setdefault(service, ([], [], []))
        inputs.extend([input_ratio] if input_ratio else [])
        (reasoned if is_hidden else outputs).extend([output_ratio] if output_ratio else [])
    return {service: TokenFit(*map(fit_ratio, lists)) for service, lists in ratios.items()}
