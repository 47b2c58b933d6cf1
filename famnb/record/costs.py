"""The costs of many calls at once, as NumPy columns, by the same formula that prices one call."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from famnb.record.price import MILLION, Price, ServiceNames, TokenCounts, TokenRates, cost_bounds
from famnb.record.price_book import PriceBook
from famnb.record.serialize import EPOCH, microseconds

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
    # As in `PriceBook.cost`: who reports no input has not counted it, or bills it elsewhere.
    highest = np.where(counts["input_tokens"] == 0, np.inf, highest)
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
            selected = TokenCounts(*(np.nan_to_num(column[rows], posinf=0.0) for column in counts))
            bounds = cost_bounds(rates, selected, has_cached=has_cached, has_cache_write=has_cache_write)
            # Tokens without a limit may cost anything, unless they cost nothing.
            is_open = np.isinf(counts.output[rows]) & (rates.output > 0)
            for column, bound in zip((best, low, high), bounds, strict=True):
                column[rows] = np.where(is_open, np.inf, bound / unit)
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
