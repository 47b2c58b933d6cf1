"""The costs of many calls at once, as NumPy columns, by the same formula that prices one call; and the most that
one can cost.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from famnb.record.price import MILLION, Price, ServiceNames, TokenCounts, TokenRates, cost_bounds
from famnb.record.price_book import PriceBook, prices
from famnb.record.serialize import EPOCH, microseconds
from famnb.request import Request
from famnb.request.types import MINI_MODELS, MINI_OUTPUT_TOKENS
from famnb.wire import lenient_json

FloatColumn: TypeAlias = npt.NDArray[np.float64]
CountColumns: TypeAlias = Mapping[str, FloatColumn]
"""Token counts by name, arrays with one element per call, NaN where missing."""


def cost_columns(
    book: PriceBook,
    model: str,
    started_us: npt.NDArray[np.int64],
    counts: CountColumns,
    *,
    low: CountColumns,
    high: CountColumns,
    service: ServiceNames = (),
) -> tuple[FloatColumn, FloatColumn, FloatColumn]:
    """Return the best, low and high cost in USD of each of one model's calls, NaN where no price or count is known.

    They are calls of one service, by whose names its prices are found.
    `started_us` is in microseconds since 1970, UTC. `low` and `high` hold the lowest and highest input and output
    counts of calls whose usage was estimated, and the counts themselves of all others.
    """
    ends = [
        _cost_of_counts(
            book,
            model,
            started_us,
            TokenCounts(
                input=bound["input_tokens"],
                output=bound["output_tokens"],
                cached=counts["cached_tokens"],
                cache_write=counts["cache_write_tokens"],
            ),
            service,
        )
        for bound in (counts, low, high)
    ]
    lowest = np.minimum.reduce([end_low for _, end_low, _ in ends])
    highest = np.maximum.reduce([end_high for _, _, end_high in ends])
    # The lowest and the highest count may lie in a tier that has no price; then there is no interval, so no cost.
    is_known = ~np.isnan(lowest) & ~np.isnan(highest)
    return (
        np.where(is_known, ends[0][0], np.nan),
        np.where(is_known, lowest, np.nan),
        np.where(is_known, highest, np.nan),
    )


def _cost_of_counts(
    book: PriceBook, model: str, started_us: npt.NDArray[np.int64], counts: TokenCounts, service: ServiceNames
) -> tuple[FloatColumn, FloatColumn, FloatColumn]:
    """Best, low and high cost of each call by the price that holds for it, in USD."""
    best, low, high = (np.full(len(started_us), np.nan) for _ in range(3))
    for price, mask in _prices_in_use(book, model, started_us, counts.input, service):
        rates, unit = _whole_rates(price)
        # Calls that lack the same cache counts are priced together, since those decide which rates bound the cost.
        for has_cached, has_cache_write in itertools.product((True, False), repeat=2):
            rows = np.flatnonzero(
                mask
                & ~np.isnan(counts.output)
                & (np.isnan(counts.cached) != has_cached)
                & (np.isnan(counts.cache_write) != has_cache_write)
            )
            if not len(rows):
                continue
            selected = TokenCounts(*(np.nan_to_num(column[rows]) for column in counts))
            bounds = cost_bounds(rates, selected, has_cached=has_cached, has_cache_write=has_cache_write)
            for column, bound in zip((best, low, high), bounds, strict=True):
                column[rows] = bound / unit
    return best, low, high


def _prices_in_use(
    book: PriceBook,
    model: str,
    started_us: npt.NDArray[np.int64],
    input_tokens: FloatColumn,
    service: ServiceNames,
) -> Iterator[tuple[Price, npt.NDArray[np.bool_]]]:
    """Every price that holds for some of the calls, with the mask of those calls.

    Which price holds is decided by `PriceBook.price`, asked once for each span between two dates and each tier.
    """
    prices = [price for price in book if price.model == model]
    dates = sorted({price.since for price in prices if price.since is not None})
    tiers = sorted({price.until_context for price in prices if price.until_context is not None})
    starts = np.array([microseconds(date) for date in dates], dtype=np.int64)
    span_of_call = np.searchsorted(starts, started_us, side="right")
    tier_of_call = np.searchsorted(np.array(tiers, dtype=float), input_tokens, side="right")
    has_input = ~np.isnan(input_tokens)
    for span, tier in itertools.product(range(len(dates) + 1), range(len(tiers) + 1)):
        before_all = dates[0] - timedelta(days=1) if dates else EPOCH
        at, context = dates[span - 1] if span else before_all, tiers[tier - 1] if tier else 0
        price = book.price(model, at=at, context=context, service=service)
        if price is not None:
            yield price, (span_of_call == span) & (tier_of_call == tier) & has_input


def _whole_rates(price: Price) -> tuple[TokenRates, float]:
    """The rates times a power of ten that makes them whole, and the divisor that makes USD of what they give.

    Products and sums of whole numbers are exact in floats up to 2**53, so only the division rounds, and a frame shows
    the float nearest to the exact cost of `PriceBook.cost`.
    """
    decimal_places = max(0, *(-int(rate.normalize().as_tuple().exponent) for rate in price.rates))
    scale = Decimal(10) ** decimal_places
    return TokenRates(*(float(rate * scale) for rate in price.rates)), float(MILLION * scale)


@dataclasses.dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that one call can cost."""

    input_tokens: int
    """An upper limit: one token for each byte of the request's body."""
    output_tokens: int | None
    """The request's cap on output tokens; None if nothing caps them."""
    usd: Decimal | None
    """The most it can cost in USD; None if that is not known."""
    reason: str = ""
    """Why `usd` is not known, and what to do about it."""


def ceiling(request: Request, service: ServiceNames = ()) -> Ceiling:
    """The most that a call can cost at today's prices of a service."""
    # A token of a byte-pair vocabulary is at least one byte, so the size of the body is a safe upper limit.
    input_tokens = len(lenient_json.encode(request.body()))
    model = str(getattr(request, "model", ""))
    output_tokens = _output_cap(request, model)
    if getattr(request, "previous_response_id", None):
        return Ceiling(input_tokens, output_tokens, None, "what an earlier response adds to the input is not known")
    if output_tokens is None:
        return Ceiling(input_tokens, None, None, f"nothing limits the answer of {model!r}: give {request.cap}")
    tier_prices = _reachable_prices(model, input_tokens, service)
    if not tier_prices:
        reason = (
            f"no price is known for {model!r}: famnb.prices.set({model!r}, input=…, output=…) in USD per million tokens"
        )
        return Ceiling(input_tokens, output_tokens, None, reason)
    # Writing to a cache can cost more than plain input, and whether the service does is not known beforehand.
    most = max(input_tokens * max(price.rates.inputs) + output_tokens * price.output for price in tier_prices)
    return Ceiling(input_tokens, output_tokens, most / MILLION)


def _output_cap(request: Request, model: str) -> int | None:
    cap: int | None = getattr(request, request.cap)
    return MINI_OUTPUT_TOKENS if cap is None and model in MINI_MODELS else cap


def _reachable_prices(model: str, input_tokens: int, service: ServiceNames) -> list[Price]:
    """The prices of every tier that a request of up to so many tokens can fall into."""
    limits = {entry.until_context for entry in prices if entry.model == model and entry.until_context is not None}
    now = datetime.now(UTC)
    contexts = [0, *(limit for limit in limits if limit <= input_tokens)]
    tier_prices = (prices.price(model, at=now, context=context, service=service) for context in contexts)
    return [price for price in tier_prices if price is not None]
