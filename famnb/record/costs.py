"""The costs of many calls at once, as NumPy columns, by the same formula that prices one call."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from famnb.record.price import MILLION, Price, TokenCounts, TokenRates, cost_bounds
from famnb.record.price_book import PriceBook
from famnb.record.serialize import microseconds

FloatColumn: TypeAlias = npt.NDArray[np.float64]
CountColumns: TypeAlias = Mapping[str, FloatColumn]
"""Token counts by name, arrays with one element per call, NaN where missing."""
CallColumns: TypeAlias = Mapping[str, Any]
"""Columns of calls: `started_us`, in microseconds since 1970, UTC, and Categoricals of `model` and `profile`."""


def cost_columns(
    book: PriceBook, calls: CallColumns, counts: CountColumns, *, low: CountColumns, high: CountColumns
) -> tuple[FloatColumn, FloatColumn, FloatColumn]:
    """Return the best, low and high cost in USD of each call, NaN where no price or count is known.

    `low` and `high` hold the lowest and highest input and output counts of calls whose usage was estimated, and the
    counts themselves of all others.
    """
    best, lowest, highest = _cost_of_counts(book, calls, counts)
    is_estimated = (low["input_tokens"] != high["input_tokens"]) | (low["output_tokens"] != high["output_tokens"])
    rows = np.flatnonzero(is_estimated & ~np.isnan(best))
    calls = {name: calls[name][rows] for name in ("started_us", "model", "profile")}
    for end in (low, high):
        end_counts = {name: column[rows] for name, column in {**counts, **end}.items()}
        _, end_low, end_high = _cost_of_counts(book, calls, end_counts)
        lowest[rows], highest[rows] = np.minimum(lowest[rows], end_low), np.maximum(highest[rows], end_high)
    # As in `PriceBook.cost`: who reports no input has not counted it, or bills it elsewhere.
    highest[counts["input_tokens"] == 0] = np.inf
    # The lowest and the highest count may lie in a tier that has no price; then there is no interval, so no cost.
    is_unknown = np.isnan(lowest) | np.isnan(highest)
    for column in (best, lowest, highest):
        column[is_unknown] = np.nan
    return best, lowest, highest


def _cost_of_counts(
    book: PriceBook, calls: CallColumns, counts: CountColumns
) -> tuple[FloatColumn, FloatColumn, FloatColumn]:
    """Best, low and high cost of each call by the price that holds for it, in USD."""
    count_columns = [counts[f"{name}_tokens"] for name in TokenCounts._fields]
    best, low, high = (np.full(len(count_columns[0]), np.nan) for _ in range(3))
    moments = [datetime.min.replace(tzinfo=UTC), *sorted({price.since for price in book if price.since is not None})]
    contexts = [0, *sorted({price.until_context for price in book if price.until_context is not None})]
    is_known = calls["model"].isin({price.model for price in book})
    known = np.flatnonzero(is_known & ~np.isnan(counts["input_tokens"]) & ~np.isnan(counts["output_tokens"]))
    # Calls that are alike in all that decides on the price and on the formula are priced together.
    kinds = pd.DataFrame(
        {name: calls[name].codes[known] for name in ("model", "profile")}
        | {
            "moment": np.searchsorted([microseconds(at) for at in moments[1:]], calls["started_us"][known], "right"),
            "context": np.searchsorted(contexts[1:], counts["input_tokens"][known], "right"),
            "has_cached": ~np.isnan(counts["cached_tokens"][known]),
            "has_cache_write": ~np.isnan(counts["cache_write_tokens"][known]),
        }
    )
    groups: dict[Any, Any] = kinds.groupby(list(kinds), sort=False).indices
    for (*_, moment, context, has_cached, has_cache_write), positions in groups.items():
        rows = known[positions]
        model, profile = (calls[name][rows[0]] for name in ("model", "profile"))
        price = book.price(model, at=moments[moment], context=contexts[context], service=profile)
        if price is None:
            continue
        rates, unit = _whole_rates(price)
        selected = TokenCounts(*(np.nan_to_num(column[rows], posinf=0.0) for column in count_columns))
        bounds = cost_bounds(rates, selected, has_cached=has_cached, has_cache_write=has_cache_write)
        # Tokens without a limit may cost anything, unless they cost nothing.
        is_open = np.isinf(counts["output_tokens"][rows]) & (rates.output > 0)
        for column, bound in zip((best, low, high), bounds, strict=True):
            column[rows] = np.where(is_open, np.inf, bound / unit)
    return best, low, high


def _whole_rates(price: Price) -> tuple[TokenRates, float]:
    """The rates times a power of ten that makes them whole, and the divisor that makes USD of what they give.

    Products and sums of whole numbers are exact in floats up to 2**53, so only the division rounds, and a frame shows
    the float nearest to the exact cost of `PriceBook.cost`.
    """
    decimal_places = max(0, *(-int(rate.normalize().as_tuple().exponent) for rate in price.rates))
    scale = Decimal(10) ** decimal_places
    return TokenRates(*(float(rate * scale) for rate in price.rates)), float(MILLION * scale)
