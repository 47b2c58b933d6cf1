"""What tokens cost: a dated, tiered price book in USD per million tokens, and the cost of a call by it.

set in this process ── wins over ── the user's file (`pricefile`) ── wins over ── built in

When token counts are only estimated is `estimate`'s business; here an uncertain count makes an uncertain cost.

MERGED: The price book as a table, for terminals and for notebooks.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from famnb.record.price import Price


import os
import threading
import warnings
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

from famnb.errors import InvalidRequest
from famnb.events import Count, Usage
from famnb.formatting import format_table
from famnb.record import price_file
from famnb.record.price import MILLION, Amount, Cost, Price, entry
from famnb.record.token_estimates import SPREAD
from famnb.request.types import MINI_CONTEXT_TOKENS

TITLE = "Prices in USD per million tokens"
HEAD = ("model", "input", "output", "cached", "cache write", "context", "since", "source")
NUMBERS = ("input", "output")


def text(entries: Iterable[Price]) -> str:
    """The entries as lines of text."""
    return f"{TITLE}\n{format_table(HEAD, map(_cells, entries), left=len(HEAD))}"


def markup(entries: Iterable[Price]) -> str:
    """The entries as an HTML table; names are text, never markup."""
    body = "".join(_line(_cells(entry), "td") for entry in entries)
    return f"<table><caption>{TITLE}</caption><thead>{_line(HEAD, 'th')}</thead><tbody>{body}</tbody></table>"


def _line(cells: tuple[str, ...], tag: str) -> str:
    aligned = ("right" if name in NUMBERS else "left" for name in HEAD)
    return (
        "<tr>"
        + "".join(
            f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>'
            for cell, side in zip(cells, aligned, strict=True)
        )
        + "</tr>"
    )


def _cells(entry: Price) -> tuple[str, ...]:
    return (
        entry.model,
        f"{entry.input:f}",
        f"{entry.output:f}",
        "as input" if entry.cached is None else f"{entry.cached:f}",
        "as input" if entry.cache_write is None else f"{entry.cache_write:f}",
        "any" if entry.until_context is None else f"under {entry.until_context:,}",
        "always" if entry.since is None else f"{entry.since:%Y-%m-%d %H:%M} UTC".replace(" 00:00 UTC", ""),
        entry.source,
    )


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

    def __init__(self, built_in: tuple[Price, ...] = BUILT_IN, *, filed: bool = False) -> None:
        self._built_in = built_in
        self._set: tuple[Price, ...] = ()
        self._file: tuple[Price, ...] | None = None if filed else ()
        """The user's file; None before it is first looked at."""
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Price]:
        """The entries that can apply, by model, context and date."""
        kept: list[Price] = []
        for entries in self._by_rank():
            hidden = {price.model for price in kept if price.since is None}
            kept += [price for price in entries if price.model not in hidden]
        return iter(sorted(kept, key=_order))

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
        price holds for calls of fewer input tokens. The same model, date and tier set again replaces the entry. It
        lasts as long as the process; `save` keeps it.
        """
        made = entry(
            model,
            input=input,
            output=output,
            cached=cached,
            cache_write=cache_write,
            since=since,
            until_context=until_context,
        )
        with self._lock:
            others = [old for old in self._set if _place(old) != _place(made)]
            self._set = (*others, made)

    def unset(self, model: str) -> None:
        """Forget what was set for a model; the prices of the file, or those built in, apply again."""
        with self._lock:
            self._set = tuple(price for price in self._set if price.model != model)

    def load(self, path: str | os.PathLike[str] | None = None) -> None:
        """Read the user's prices anew, from `path`, else from where FAMNB_PRICES or the configuration folder has them.

        Raises InvalidRequest, naming entry and field, for a file that is wrong, and OSError for one that is not there.
        """
        self._file = price_file.read(Path(path).expanduser() if path else price_file.default_path())

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write what was set, and what the user's file had besides, to that file; returns where it is."""
        target = Path(path).expanduser() if path else price_file.default_path()
        with self._lock:
            known = {_place(price): price for price in (*self._filed(), *self._set)}
            kept = sorted(known.values(), key=_order)
            price_file.write(target, kept)
            self._file, self._set = price_file.read(target), ()
        return target

    def _filed(self) -> tuple[Price, ...]:
        """The user's file; a file in trouble is said once and stops no call."""
        if self._file is None:
            self._file = ()
            try:
                self._file = price_file.read(price_file.default_path())
            except FileNotFoundError:
                pass
            except (InvalidRequest, OSError) as error:
                warnings.warn(f"the price file is not used: {error}", RuntimeWarning, stacklevel=2)
        return self._file

    def _by_rank(self) -> tuple[tuple[Price, ...], ...]:
        return self._set, self._filed(), self._built_in

    def price(self, model: str, *, at: datetime | None = None, context: int = 0) -> Price | None:
        """The entry that holds for a model at a time and a number of input tokens; None where there is none.

        Of the entries begun by then the newest date decides, and in it the smallest tier that fits.
        """
        at = at or datetime.now(UTC)
        begun: list[Price] = []
        for entries in self._by_rank():
            begun = begun or [
                price for price in entries if price.model == model and (price.since is None or price.since <= at)
            ]
        if not begun:
            return None
        newest = max(map(_since, begun))
        tiers = [price for price in begun if _since(price) == newest and context < _tier(price)]
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
        return text(self)

    def _repr_html_(self) -> str:
        return markup(self)


_ALWAYS = datetime.min.replace(tzinfo=UTC)


def _since(price: Price) -> datetime:
    return price.since or _ALWAYS


def _tier(price: Price) -> float:
    return float("inf") if price.until_context is None else price.until_context


def _place(price: Price) -> tuple[str, datetime, float]:
    return price.model, _since(price), _tier(price)


def _order(price: Price) -> tuple[str, float, datetime]:
    return price.model, _tier(price), _since(price)


def _scaled(usage: Usage, factor: float) -> Usage:
    """The counts with the estimated ones multiplied."""

    def scaled(count: Count) -> int | None:
        value: int | None = getattr(usage, count)
        return round(value * factor) if value is not None and count in usage.estimated else value

    return Usage(input_tokens=scaled("input_tokens"), output_tokens=scaled("output_tokens"))


prices = PriceBook(filed=True)
"""The price book of this process."""
