"""The costs of many calls at once: the same figures as `PriceBook.cost` gives for one call, to the last digit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from famnb.record.price import MILLION, Price
from famnb.record.price_book import PriceBook
from famnb.record.serialize import EPOCH

Floats: TypeAlias = npt.NDArray[np.float64]
Counts: TypeAlias = Mapping[str, Floats]
"""Token counts by name, a call a place, NaN where missing."""


def costs(
    book: PriceBook, model: str, started_us: npt.NDArray[np.int64], counts: Counts, *, low: Counts, high: Counts
) -> tuple[Floats, Floats, Floats]:
    """What calls of one model cost in USD: best, low and high, NaN where no price or no count is known.

    `started_us` is in microseconds since 1970, UTC; `low` and `high` hold the input and output tokens at the ends of
    where they were estimated.
    """
    read, write = counts["cached_tokens"], counts["cache_write_tokens"]
    ends = [
        _between(book, model, started_us, read, write, each["input_tokens"], each["output_tokens"])
        for each in (counts, low, high)
    ]
    lowest = np.minimum.reduce([end[1] for end in ends])
    highest = np.maximum.reduce([end[2] for end in ends])
    known = ~np.isnan(lowest) & ~np.isnan(highest)  # no tier may hold at one of the ends
    return np.where(known, ends[0][0], np.nan), np.where(known, lowest, np.nan), np.where(known, highest, np.nan)


def _between(
    book: PriceBook,
    model: str,
    started_us: npt.NDArray[np.int64],
    read: Floats,
    write: Floats,
    tokens_in: Floats,
    tokens_out: Floats,
) -> tuple[Floats, Floats, Floats]:
    """The same as `Price.between`, each call by the entry that holds for it."""
    found = tuple(np.full(len(started_us), np.nan) for _ in range(3))
    for entry, where in _entries(book, model, started_us, tokens_in):
        where &= ~np.isnan(tokens_out)
        figures = _priced(entry, read[where], write[where], tokens_in[where], tokens_out[where])
        for column, figure in zip(found, figures, strict=True):
            column[where] = figure
    return found[0], found[1], found[2]


def _entries(
    book: PriceBook, model: str, started_us: npt.NDArray[np.int64], tokens_in: Floats
) -> Iterator[tuple[Price, npt.NDArray[np.bool_]]]:
    """The entries that hold for some of the calls, and for which; the book itself decides, once a date and tier."""
    entries = [entry for entry in book if entry.model == model]
    dates = sorted({entry.since for entry in entries if entry.since is not None})
    tiers = sorted({entry.until_context for entry in entries if entry.until_context is not None})
    begins = np.array([(date - EPOCH) // timedelta(microseconds=1) for date in dates], dtype=np.int64)
    era = np.searchsorted(begins, started_us, side="right")
    tier = np.searchsorted(np.array(tiers, dtype=float), tokens_in, side="right")
    counted = ~np.isnan(tokens_in)
    for at, size in itertools.product(range(len(dates) + 1), range(len(tiers) + 1)):
        since = dates[at - 1] if at else (dates[0] - timedelta(days=1) if dates else EPOCH)
        entry = book.price(model, at=since, context=tiers[size - 1] if size else 0)
        if entry is not None:
            yield entry, (era == at) & (tier == size) & counted


def _priced(entry: Price, read: Floats, write: Floats, tokens_in: Floats, tokens_out: Floats) -> tuple[Floats, ...]:
    """Best, low and high cost in USD; whole numbers until the last division, which alone rounds."""
    prices = [
        entry.input,
        entry.output,
        entry.input if entry.cached is None else entry.cached,
        entry.input if entry.cache_write is None else entry.cache_write,
    ]
    places = max(0, *(-int(price.normalize().as_tuple().exponent) for price in prices))
    plain_price, output, cached, written = (float(price * Decimal(10) ** places) for price in prices)
    plain = np.maximum(tokens_in - np.nan_to_num(read) - np.nan_to_num(write), 0)
    known = np.nan_to_num(read) * cached + np.nan_to_num(write) * written + tokens_out * output
    whole = plain * plain_price
    either = [whole, np.where(np.isnan(read), plain * cached, whole), np.where(np.isnan(write), plain * written, whole)]
    unit = float(MILLION * Decimal(10) ** places)
    ends = whole, np.minimum.reduce(either), np.maximum.reduce(either)
    return tuple((known + end) / unit for end in ends)
