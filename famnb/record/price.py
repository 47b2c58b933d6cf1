"""One entry of the price book, the cost of one call, and the formula that gives the one from the other."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from famnb.errors import InvalidRequest
from famnb.events import Billing
from famnb.formatting import format_estimate, format_usd, html_table
from famnb.record.filters import Moment, parse_moment
from famnb.validation import check_integer, check_text

MILLION = Decimal(1_000_000)
UNMADE_ERRORS = frozenset({"ConnectError", "PoolTimeout"})
"""Errors of calls that no service has accepted, so that none can bill them."""
USER = "you"
"""The source of a price set in this process."""

Amount: TypeAlias = int | float | str | Decimal


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a call in USD: the best figure, and the interval that holds the true one."""

    usd: Decimal
    low: Decimal
    high: Decimal
    """Infinity where the service bills something that has no price here."""

    @property
    def exact(self) -> bool:
        """Whether the price and every count are known, so that the interval is a point."""
        return self.low == self.high

    def __str__(self) -> str:
        return format_estimate(self.usd, self.low, self.high)

    def __repr__(self) -> str:
        return f"<Cost {self}>"

    def _repr_html_(self) -> str:
        rows = [("best figure", format_usd(self.usd))]
        if not self.exact:
            rows += [("at least", format_usd(self.low))]
            rows += [("at most", format_usd(self.high) if self.high.is_finite() else "not known")]
        return html_table(("cost", "USD"), rows)


MORE_AMOUNTS = ("cache_write_1h", "audio_input", "audio_output", "image_output", "search")
"""What a price may have besides the rates of input, output and cache."""
AMOUNTS = ("input", "output", "cached", "cache_write", *MORE_AMOUNTS)
"""The amounts of a price, those that each has first."""


class TokenRates(NamedTuple):
    """What a token of each kind costs: Decimals, or floats where arrays are priced."""

    input: Any
    output: Any
    cached: Any
    """For input read from the cache."""
    cache_write: Any
    """For input written to the cache."""

    @property
    def inputs(self) -> tuple[Any, Any, Any]:
        """What a token of input may cost, as long as it is not known what the cache does."""
        return self.input, self.cached, self.cache_write


class TokenCounts(NamedTuple):
    """The token counts that a cost depends on: integers, or arrays with one element per call."""

    input: Any
    output: Any
    cached: Any
    """0 where the service did not report it."""
    cache_write: Any
    """0 where the service did not report it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One entry of the book, in USD per million tokens."""

    model: str
    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    """For input read from the cache; None: the same as `input`."""
    cache_write: Decimal | None = None
    """For input written to the cache; None: the same as `input`."""
    cache_write_1h: Decimal | None = None
    """For input written to the cache for an hour; like the next three it is not known where it is None."""
    audio_input: Decimal | None = None
    """For audio in the prompt."""
    audio_output: Decimal | None = None
    """For audio in the answer."""
    image_output: Decimal | None = None
    """For images in the answer."""
    search: Decimal | None = None
    """USD for one search of the web that the service makes; None: not known."""
    tier: str | None = None
    """The capacity that it is the price of, as replies name it: `flex`, `priority`, `batch`; None: the ordinary one."""
    since: datetime | None = None
    """When it begins to hold; None: it always held."""
    until_context: int | None = None
    """It holds for calls with fewer input tokens than this; None: for all."""
    service: str | None = None
    """The profile of the calls that it is for; None: all whose profile has no price of its own."""
    source: str = USER
    """Where the price comes from: the API's document, a file, or `USER`."""

    @property
    def rates(self) -> TokenRates:
        """What a token of each kind costs, in USD per million."""
        return TokenRates(
            input=self.input,
            output=self.output,
            cached=self.input if self.cached is None else self.cached,
            cache_write=self.input if self.cache_write is None else self.cache_write,
        )


def cost_bounds(
    rates: TokenRates, counts: TokenCounts, *, has_cached: bool, has_cache_write: bool
) -> tuple[Any, Any, Any]:
    """Return the best, low and high cost of these tokens, in the unit of `rates`.

    Input tokens neither read from the cache nor written to it cost `rates.input`. Where a cache count was not reported
    (`has_cached`, `has_cache_write`), any of them may have been cached, so that rate bounds the cost too.
    """
    plain = counts.input - counts.cached - counts.cache_write
    # A service may report more cached tokens than input tokens; then no input was plain, rather than less than none.
    # Multiplied, since `max` does not take arrays: only operators keep one formula exact for Decimals and fast for
    # columns. NumPy on a single call would take 45 µs, five times all that its cost takes.
    plain = plain * (plain > 0)
    known_cost = counts.cached * rates.cached + counts.cache_write * rates.cache_write + counts.output * rates.output
    possible_rates = [rates.input]
    if not has_cached:
        possible_rates.append(rates.cached)
    if not has_cache_write:
        possible_rates.append(rates.cache_write)
    low, high = plain * min(possible_rates), plain * max(possible_rates)
    return known_cost + plain * rates.input, known_cost + low, known_cost + high


def add_billed_items(price: Price, billing: Billing, bounds: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """Return these bounds of a cost with what is billed besides plain tokens, in USD per million.

    What has no rate is counted as plain tokens in the best figure, and leaves the upper end open.
    """
    rates = price.rates
    extra, is_open = Decimal(), bool(billing.unpriced or billing.broken_tries)
    for count, rate, counted in (
        (billing.cache_write_1h_tokens, price.cache_write_1h, rates.cache_write),
        (billing.audio_input_tokens, price.audio_input, rates.input),
        (billing.audio_output_tokens, price.audio_output, rates.output),
        (billing.image_output_tokens, price.image_output, rates.output),
        (billing.searches * MILLION, price.search, Decimal()),
    ):
        extra += count * ((counted if rate is None else rate) - counted)
        is_open = is_open or bool(count and rate is None)
    best, low, high = (bound + extra for bound in bounds)
    return best, low, Decimal("Infinity") if is_open else high


def parse_price(
    model: str = "",
    *,
    since: Moment | None = None,
    until_context: int | None = None,
    service: str | None = None,
    tier: str | None = None,
    source: str = USER,
    **amounts: Amount | None,
) -> Price:
    """Return the price that a user's values describe, its amounts by their names in AMOUNTS.

    Raises InvalidRequest, naming the field that is wrong.
    """
    check_text("model", model, expected="the name of a model")
    check_text("source", source, expected="where the price comes from")
    if tier is not None:
        check_text("tier", tier, expected="the name of a tier, such as 'flex'")
    if service is not None:
        check_text("service", service, expected="the name of a profile, such as 'openrouter'")
    if until_context is not None:
        check_integer("until_context", until_context, minimum=1, expected="a number of tokens, 1 or more")
    known = {name: _parse_amount(name, value) for name, value in amounts.items() if value is not None}
    if missing := [name for name in AMOUNTS[:2] if name not in known]:
        raise InvalidRequest(f"{', '.join(missing)} missing")
    begin = None if since is None else parse_moment("since", since).astimezone(UTC)
    return Price(
        model=model, tier=tier, since=begin, until_context=until_context, service=service, source=source, **known
    )


def _parse_amount(name: str, value: Amount) -> Decimal:
    if name not in AMOUNTS:
        raise InvalidRequest(f"{name}: there is no such field; the amounts are {', '.join(AMOUNTS)}")
    try:
        # By way of its text: Decimal(0.1) would be 0.1000000000000000055…, which nobody meant.
        amount = Decimal(str(value))
    except ArithmeticError:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise InvalidRequest(f"{name}: a price is a number of USD per million tokens, 0 or more; got {value!r}")
    return amount
