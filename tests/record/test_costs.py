"""Many costs at once are the same as one at a time, whatever the book says."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from famnb.events import Usage
from famnb.record.costs import cost_columns
from famnb.record.price_book import PriceBook
from famnb.record.serialize import microseconds

DAY = datetime(2026, 3, 1, tzinfo=UTC)
PRICE = st.decimals(0, 100, places=4)
TOKENS = st.none() | st.integers(0, 400_000)


@st.composite
def books(draw: st.DrawFn) -> PriceBook:
    """A book of some dates and tiers of one model."""
    book = PriceBook(())
    for _ in range(draw(st.integers(1, 4))):
        book.set(
            "m",
            input=draw(PRICE),
            output=draw(PRICE),
            cached=draw(st.none() | PRICE),
            cache_write=draw(st.none() | PRICE),
            since=draw(st.none() | st.integers(0, 3).map(lambda days: DAY + timedelta(days=days))),
            until_context=draw(st.none() | st.sampled_from([1000, 200_000])),
            service=draw(st.none() | st.sampled_from(["ollama", "vllm"])),
        )
    return book


@given(
    books(),
    st.lists(st.tuples(st.integers(-1, 4), TOKENS, TOKENS, TOKENS, TOKENS, st.floats(1, 3)), min_size=1, max_size=12),
    st.sampled_from(["fam", "ollama", "vllm"]),
)
def test_many_at_once_equal_one_at_a_time(book, calls, profile):
    """Best, low and high, to the last digit of a float, missing where there is no price or no count."""
    moments = [DAY + timedelta(days=call[0], hours=1) for call in calls]
    names = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
    usages = [Usage(*call[1:3], None, *call[3:5]) for call in calls]
    columns = {name: np.array([getattr(usage, name) for usage in usages], dtype=float) for name in names}
    low = {name: np.floor(columns[name] / [call[5] for call in calls]) for name in names[:2]}
    high = {name: np.ceil(columns[name] * [call[5] for call in calls]) for name in names[:2]}
    found = cost_columns(
        book,
        {
            "model": pd.Categorical(["m"] * len(calls)),
            "started_us": np.array([microseconds(moment) for moment in moments]),
            "profile": pd.Categorical([profile] * len(calls)),
        },
        columns,
        low=low,
        high=high,
    )
    for index, (usage, moment) in enumerate(zip(usages, moments, strict=True)):
        marked = Usage(*(getattr(usage, name) for name in usage.__struct_fields__[:6]), estimated=("input_tokens",))
        ends = [
            Usage(*(None if np.isnan(end[n][index]) else int(end[n][index]) for n in names[:2])) for end in (low, high)
        ]
        cost = book.cost("m", marked, moment, between=(ends[0], ends[1]), service=profile)
        expected = [None] * 3 if cost is None else [float(cost.usd), float(cost.low), float(cost.high)]
        assert [None if np.isnan(column[index]) else column[index] for column in found] == expected
