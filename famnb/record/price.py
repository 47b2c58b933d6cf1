"""One price and one cost: what an entry of the price book says, and what a call cost by it."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TypeAlias

from famnb.errors import InvalidRequest
from famnb.events import Usage
from famnb.formatting import format_usd
from famnb.validation import check_integer, check_text

MILLION = Decimal(1_000_000)
USER = "you"
"""The source of a price that was set by the user."""

Amount: TypeAlias = int | float | str | Decimal


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """What a call cost in USD: the best figure and the interval it lies in, which is a point when all is known."""

    usd: Decimal
    low: Decimal
    high: Decimal

    @property
    def exact(self) -> bool:
        """Whether price and every count are known."""
        return self.low == self.high

    def __str__(self) -> str:
        if self.exact:
            return format_usd(self.usd)
        return f"about {format_usd(self.usd)} ({format_usd(self.low)} to {format_usd(self.high)})"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One entry of the book, in USD per million tokens."""

    model: str
    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    """For input read from the cache; None: as other input."""
    cache_write: Decimal | None = None
    """For input written to the cache; None: as other input."""
    since: datetime | None = None
    """From when it holds; None: from the beginning."""
    until_context: int | None = None
    """It holds for calls of fewer input tokens than this; None: for all."""
    source: str = USER
    """Who says so."""

    def between(self, usage: Usage, tokens_in: int, tokens_out: int) -> tuple[Decimal, Decimal, Decimal]:
        """The cost of these many tokens, (best, low, high); cache counts that are absent but priced apart widen it."""
        output = tokens_out * self.output
        cached = _per_token(self.cached, self.input)
        write = _per_token(self.cache_write, self.input)
        apart = [
            price
            for price, count in ((cached, usage.cached_tokens), (write, usage.cache_write_tokens))
            if count is None and price != self.input
        ]
        read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        plain = max(tokens_in - read - written, 0)
        known = read * cached + written * write + output
        ends = [plain * price for price in (self.input, *apart)]
        return known + plain * self.input, known + min(ends), known + max(ends)


def _per_token(price: Decimal | None, default: Decimal) -> Decimal:
    return default if price is None else price


def entry(
    model: str,
    *,
    input: Amount,
    output: Amount,
    cached: Amount | None = None,
    cache_write: Amount | None = None,
    since: datetime | date | str | None = None,
    until_context: int | None = None,
    source: str = USER,
) -> Price:
    """A price of what people write; raises InvalidRequest, naming the field, for what is none."""
    check_text("model", model, expected="the name of a model")
    if until_context is not None:
        check_integer("until_context", until_context, minimum=1, expected="a number of tokens, 1 or more")
    return Price(
        model=model,
        input=_amount("input", input),
        output=_amount("output", output),
        cached=None if cached is None else _amount("cached", cached),
        cache_write=None if cache_write is None else _amount("cache_write", cache_write),
        since=None if since is None else _moment(since),
        until_context=until_context,
        source=source,
    )


def _amount(name: str, value: Amount) -> Decimal:
    try:
        amount = Decimal(str(value))
    except ArithmeticError:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise InvalidRequest(f"{name}: a price is a number of USD per million tokens, 0 or more; got {value!r}")
    return amount


def _moment(since: datetime | date | str) -> datetime:
    try:
        read = datetime.fromisoformat(since) if isinstance(since, str) else since
        moment = read if isinstance(read, datetime) else datetime.combine(read, time())
    except (TypeError, ValueError):
        raise InvalidRequest(f"since: expected a date such as '2026-01-31'; got {since!r}") from None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
