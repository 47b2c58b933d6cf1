"""What tokens cost: a dated, tiered price book in USD per million tokens, and the cost of a call by it.

When token counts are only estimated is `estimate`'s business; here an uncertain count makes an uncertain cost.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TypeAlias

from famnb.errors import InvalidRequest
from famnb.events import Count, Usage
from famnb.record import pricetable
from famnb.record.estimate import SPREAD
from famnb.request.limits import MINI_CONTEXT_TOKENS

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
            return dollars(self.usd)
        return f"about {dollars(self.usd)} ({dollars(self.low)} to {dollars(self.high)})"


def dollars(amount: Decimal) -> str:
    """An amount as one reads it: two decimals from a dollar up, three significant digits below."""
    if amount == 0 or amount >= 1:
        return f"${amount:,.2f}"
    places = 2 - amount.adjusted()
    digits = f"{amount:.{places}f}".rstrip("0")
    return f"${digits}" if len(digits) >= 4 else f"${amount:.2f}"


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


BUILT_IN = (
    Price(
        model="fam-mini",
        input=Decimal("0.25"),
        output=Decimal("1.0"),
        until_context=MINI_CONTEXT_TOKENS,
        source="the API's document",
    ),
)


class PriceBook:
    """Prices by model, date and context size; what the user sets wins over what is built in, from its date on."""

    def __init__(self, built_in: tuple[Price, ...] = BUILT_IN) -> None:
        self._built_in = built_in
        self._set: tuple[Price, ...] = ()
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Price]:
        """The entries that can apply, by model, context and date."""
        mine = {entry.model for entry in self._set if entry.since is None}
        kept = [entry for entry in self._built_in if entry.model not in mine]
        return iter(sorted([*kept, *self._set], key=_order))

    def set(
        self,
        model: str,
        *,
        input: Amount,
        output: Amount,
        cached: Amount | None = None,
        cache_write: Amount | None = None,
        since: datetime | date | str | None = None,
        until_context: int | None = None,
    ) -> None:
        """Set a model's price in USD per million tokens; where it holds, built-in prices of the model do not.

        `since` (a date, or an ISO text; UTC where it names no zone) starts a new price and leaves earlier calls at the
        old one; without it the price holds for all calls, also those already made. `until_context` makes a tier: the
        price holds for calls of fewer input tokens. The same model, date and tier set again replaces the entry.
        """
        entry = Price(
            model=model,
            input=_amount("input", input),
            output=_amount("output", output),
            cached=None if cached is None else _amount("cached", cached),
            cache_write=None if cache_write is None else _amount("cache_write", cache_write),
            since=None if since is None else _moment(since),
            until_context=until_context,
        )
        with self._lock:
            others = [old for old in self._set if _place(old) != _place(entry)]
            self._set = (*others, entry)

    def unset(self, model: str) -> None:
        """Forget what was set for a model; its built-in prices apply again."""
        with self._lock:
            self._set = tuple(entry for entry in self._set if entry.model != model)

    def price(self, model: str, *, at: datetime | None = None, context: int = 0) -> Price | None:
        """The entry that holds for a model at a time and a number of input tokens; None where there is none.

        Of the entries begun by then the newest date decides, and in it the smallest tier that fits.
        """
        at = at or datetime.now(UTC)
        begun: list[Price] = []
        for entries in (self._set, self._built_in):
            begun = begun or [
                entry for entry in entries if entry.model == model and (entry.since is None or entry.since <= at)
            ]
        if not begun:
            return None
        newest = max(map(_since, begun))
        tiers = [entry for entry in begun if _since(entry) == newest and context < _tier(entry)]
        return min(tiers, key=_tier, default=None)

    def cost(
        self,
        model: str,
        usage: Usage,
        at: datetime | None = None,
        *,
        between: tuple[Usage, Usage] | None = None,
    ) -> Cost | None:
        """The cost of a call made at `at` (now, if None); None where no price, or input or output count, is known.

        `between` holds the lowest and highest counts where `usage` has estimated ones; without it an estimated count
        is taken to be right within a factor of two.
        """
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        counts = [usage]
        if "input_tokens" in usage.estimated or "output_tokens" in usage.estimated:
            counts += between or (_scaled(usage, 1 / SPREAD), _scaled(usage, SPREAD))
        figures = []
        for each in counts:
            tokens_in, tokens_out = each.input_tokens or 0, each.output_tokens or 0
            price = self.price(model, at=at, context=tokens_in)
            if price is None:
                return None
            figures.append(price.between(usage, tokens_in, tokens_out))
        best, lowest, highest = figures[0][0], min(each[1] for each in figures), max(each[2] for each in figures)
        return Cost(best / MILLION, lowest / MILLION, highest / MILLION)

    def __repr__(self) -> str:
        return pricetable.text(self)

    def _repr_html_(self) -> str:
        return pricetable.markup(self)


_ALWAYS = datetime.min.replace(tzinfo=UTC)


def _since(entry: Price) -> datetime:
    return entry.since or _ALWAYS


def _tier(entry: Price) -> float:
    return float("inf") if entry.until_context is None else entry.until_context


def _place(entry: Price) -> tuple[str, datetime, float]:
    return entry.model, _since(entry), _tier(entry)


def _order(entry: Price) -> tuple[str, float, datetime]:
    return entry.model, _tier(entry), _since(entry)


def _amount(name: str, value: Amount) -> Decimal:
    try:
        amount = Decimal(str(value))
    except ArithmeticError:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise InvalidRequest(f"{name}: a price is a number of USD per million tokens, 0 or more; got {value!r}")
    return amount


def _moment(since: datetime | date | str) -> datetime:
    if isinstance(since, str):
        try:
            since = datetime.fromisoformat(since)
        except ValueError:
            raise InvalidRequest(f"since: expected a date such as '2026-01-31'; got {since!r}") from None
    moment = since if isinstance(since, datetime) else datetime.combine(since, time())
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _scaled(usage: Usage, factor: float) -> Usage:
    """The counts with the estimated ones multiplied."""

    def scaled(count: Count) -> int | None:
        value: int | None = getattr(usage, count)
        return round(value * factor) if value is not None and count in usage.estimated else value

    return Usage(input_tokens=scaled("input_tokens"), output_tokens=scaled("output_tokens"))


prices = PriceBook()
"""The price book of this process."""
