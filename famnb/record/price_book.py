"""What tokens cost: a dated, tiered price book in USD per million tokens, and the cost of a call by it.

set in this process ── wins over ── set and kept ── wins over ── the user's file ── wins over ── built in

Estimated counts come from `token_estimates`; here they make the cost an interval. `ceiling` is the most that a call can
cost before it is sent. NumPy is not needed here, so that a form can show a cost without loading it: `costs` prices many
calls at once.

The user's file is TOML, which people can edit; errors name the entry and the field:

[[price]]
model = "fam-2-5-pro"
input = 1.25            # USD per million tokens, as are all of these
output = 10
cached = 0.31           # optional: input read from the cache
cache_write = 1.60      # optional: input written to it; also cache_write_1h, audio_input, audio_output, image_output
search = 0.01           # optional: USD for one search of the web
tier = "flex"           # optional: the price of this tier alone
since = 2026-01-01      # optional: from when it holds
until_context = 200000  # optional: for calls of fewer input tokens
service = "openrouter"  # optional: for calls by this profile alone; it counts before a price for all
source = "the vendor"   # optional: where it comes from; else this file

Prices can be taken into it from the community's JSON file, litellm's `model_prices_and_context_window.json`:

{"gpt-x": {"litellm_provider": "openai", "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05,
           "cache_read_input_token_cost": …, "input_cost_per_token_above_200k_tokens": …}, …}

It is nobody's price list: its authors collect what vendors publish, and each entry keeps the file's name and date.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import json
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from famnb.atomic_write import atomic_write
from famnb.errors import InvalidRequest
from famnb.events import Billing, Usage
from famnb.formatting import format_table, html_table
from famnb.profiles import NAMES, find_profile
from famnb.record.filters import Moment
from famnb.record.price import (
    AMOUNTS,
    MILLION,
    MORE_AMOUNTS,
    USER,
    Amount,
    Cost,
    Price,
    TokenCounts,
    add_billed_items,
    cost_bounds,
    parse_price,
)
from famnb.record.token_estimates import SPREAD, contradiction_bounds
from famnb.request import Request
from famnb.request.types import MINI_CONTEXT_TOKENS
from famnb.wire import lenient_json

BUILT_IN = (
    Price(
        model="fam-mini",
        input=Decimal("0.25"),
        output=Decimal("1.0"),
        until_context=MINI_CONTEXT_TOKENS,
        source="the API's document",
    ),
)


COMMUNITY_PRICES = "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
"""Where the community's file is."""


class PriceBook:
    """Prices by model, service, date and context size, in USD per million tokens, with the source of each.

        famnb.prices                                                                      # shows itself as a table
        famnb.prices.set("fam-2-5-pro", input=1.25, output=10, cached=0.31, since="2026-01-01")    # kept in your file
        famnb.prices.set("openai/gpt-5.4", input=2.6, output=16, service="openrouter")    # at this service alone
        famnb.prices.set("test", input=1, output=2, keep=False)                           # for this process
        famnb.prices.fetch("gpt-*", "claude-*")                                           # vendors' prices, dated

    The API's document has a price for `fam-mini` alone, under 256,000 input tokens; other calls have no cost until a
    price is set. A call is priced by what held on its day. What is set takes precedence over the rest of the user's
    file, from its date on, and the file over what is built in.

    A price of the call's profile counts before one of all services, whichever was set last. The file is the one that
    FAMNB_PRICES names, else `prices.toml` in the user's configuration folder, with the arguments of `set` as fields
    under `[[price]]`.
    """

    def __init__(self, built_in: tuple[Price, ...] = BUILT_IN, *, use_file: bool = False) -> None:
        self._built_in = built_in
        self._set: tuple[Price, ...] = ()
        self._file: tuple[Price, ...] | None = None if use_file else ()
        """The user's file; None before it is first read."""
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Price]:
        """The prices that can apply, by model, context and date."""
        visible: list[Price] = []
        for prices in self._by_rank():
            # A price without a date holds for all times, so a lower source never has its turn for that model there.
            hidden = {(price.model, price.service) for price in visible if price.since is None}
            visible += [price for price in prices if (price.model, price.service) not in hidden]
        return iter(sorted(visible, key=_identity))

    def set(
        self,
        model: str,
        *,
        input: Amount,
        output: Amount,
        cached: Amount | None = None,
        cache_write: Amount | None = None,
        since: Moment | None = None,
        until_context: int | None = None,
        service: str | None = None,
        tier: str | None = None,
        keep: bool | None = None,
        **more: Amount | None,
    ) -> None:
        """Set a model's price in USD per million tokens; where it holds, built-in prices of the model do not.

        `since` (a date, or an ISO text; UTC where it names no zone) starts a new price and leaves earlier calls at the
        old one; without it the price holds for all calls, also those already made. `until_context` makes a tier: the
        price holds for calls of fewer input tokens. `service` is the name of the profile that it is for alone, such as
        `openrouter`, or one of your own. `tier` is the capacity that it is the price of, such as `flex`. `more` are
        prices of what few calls are billed for: `cache_write_1h`, `audio_input`, `audio_output`, `image_output`, and
        `search` in USD for one search. What a call is billed for and has no price leaves the upper end of its cost
        open. The same entry set again is replaced.
        It is kept in your file with today's date; with `keep=False`, or if FAMNB_KEEP_PRICES is 0, it lasts as long as
        the process. A file that cannot be read or written is left as it is, with a warning.
        Raises InvalidRequest for a wrong value, and for a `service` that is not a known profile: no call would have it.
        """
        if service is not None:
            find_profile(service)
        amounts = {"input": input, "output": output, "cached": cached, "cache_write": cache_write, **more}
        price = parse_price(
            model, since=since, until_context=until_context, service=service, tier=tier, source=USER, **amounts
        )
        with self._lock:
            self._set = tuple(other for other in self._set if _identity(other) != _identity(price))
            if os.getenv("FAMNB_KEEP_PRICES", "1").lower() not in ("0", "false", "no") if keep is None else keep:
                kept = dataclasses.replace(price, source=f"{USER}, {datetime.now(UTC):%Y-%m-%d}")
                try:
                    self._change_file(lambda prices: [*prices, kept])
                except (InvalidRequest, OSError) as error:
                    warnings.warn(f"the price is not kept: {error}", RuntimeWarning, stacklevel=2)
                else:
                    return
            self._set = (*self._set, price)

    def unset(self, model: str) -> None:
        """Forget what was set for a model, also in the file; its other prices, or built-in ones, apply again.

        Raises OSError if it cannot be taken out of the file.
        """
        with self._lock:
            self._set = tuple(price for price in self._set if price.model != model)
            if any(price.model == model and _was_set(price) for price in self._user_file()):
                self._change_file(
                    lambda prices: [price for price in prices if price.model != model or not _was_set(price)]
                )

    def load(self, path: str | os.PathLike[str] | None = None) -> None:
        """Read the user's prices again, from `path`, else from FAMNB_PRICES or the user's configuration folder.

        Raises InvalidRequest, naming entry and field, if the file is wrong, and OSError if it cannot be read.
        """
        self._file = read_price_file(Path(path).expanduser() if path else default_price_file())

    def fetch(
        self, *models: str, source: str | os.PathLike[str] = COMMUNITY_PRICES, service: str | None = None
    ) -> Path:
        """Take vendors' prices of models into your file, each with the date of its source; return the file's path.

        `models` are ids or patterns such as "gpt-*". `source` is the address of litellm's price file, which collects
        what vendors publish, or the path of a copy; `service` is as for `set`. Raises InvalidRequest if there is no
        such price, OSError if the source cannot be read.
        """
        if not models:
            raise InvalidRequest("models: expected ids or patterns of models, such as 'gpt-*'")
        return self.add(read_community_prices(source, models, service=service))

    def add(self, prices: Iterable[Price]) -> Path:
        """Write prices into the user's file, in place of those of the same model, date, tier and service; return it.

        Raises InvalidRequest if what it holds is wrong, OSError if it cannot be read or written.
        """
        with self._lock:
            return self._change_file(lambda old_prices: [*old_prices, *prices])

    def _change_file(self, change: Callable[[Sequence[Price]], Iterable[Price]]) -> Path:
        """Write the prices of the user's file changed, as it is now: another process may have written it."""
        target = default_price_file()
        prices = {_identity(price): price for price in change(read_price_file(target) if target.exists() else ())}
        write_price_file(target, sorted(prices.values(), key=_identity))
        # Read again rather than kept, so that each price has a source.
        self._file = read_price_file(target)
        return target

    def _user_file(self) -> tuple[Price, ...]:
        """The prices in the user's file, read on first use; warns once if it cannot be read, since no call may fail."""
        if self._file is None:
            self._file = ()
            try:
                self._file = read_price_file(default_price_file())
            except FileNotFoundError:
                pass
            except (InvalidRequest, OSError) as error:
                warnings.warn(f"the price file is not used: {error}", RuntimeWarning, stacklevel=2)
        return self._file

    def _by_rank(self) -> tuple[tuple[Price, ...], ...]:
        """The sources of prices, the one that wins first."""
        file = self._user_file()
        kept = tuple(price for price in file if _was_set(price))
        return self._set, kept, tuple(price for price in file if not _was_set(price)), self._built_in

    def price(self, model: str, *, at: datetime | None = None, context: int = 0, service: str = "") -> Price | None:
        """Return the price that holds for a model at a time and a number of input tokens; None if there is none.

        The prices of `service`, the call's profile, decide if there is one for the model by that time, else those for
        all services; of these the first source that has one, in it the newest date, and of that date the smallest tier
        that holds the input.
        """
        return _find_tier(self._tiers(model, at or datetime.now(UTC), service), context)

    def priced_model(self, model: str, reply_model: str = "") -> str:
        """Return the name by which a call's model has a price: that of its deployment is the one that the reply names.

        `reply_model` is given where requests name deployments; it counts with its date, then without.
        """
        names = (reply_model, re.sub(r"-(\d{8}|\d{4}-\d{2}-\d{2})$", "", reply_model))
        priced = {price.model for prices in self._by_rank() for price in prices}
        return next((name for name in names if name in priced), model)

    def _tiers(self, model: str, at: datetime, service: str, tier: str | None = None) -> list[Price]:
        """The prices that hold for a model at a time by context, as `price` chooses them; empty if there is none."""
        sources = [
            [
                price
                for price in prices
                if price.model == model and price.tier == tier and (price.since is None or price.since <= at)
            ]
            for prices in self._by_rank()
        ]
        for name, prices in itertools.product((service, None), sources):
            if candidates := [price for price in prices if price.service == name]:
                newest = max(map(_since, candidates))
                return [price for price in candidates if _since(price) == newest]
        return []

    def cost(
        self,
        model: str,
        usage: Usage,
        at: datetime | None = None,
        *,
        between: tuple[Usage, Usage] | None = None,
        has_cache_writes: bool = True,
        service: str = "",
        reply_model: str = "",
    ) -> Cost | None:
        """Return the cost of a call made at `at` (now, if None); None if no price, input or output count is known.

        A cost that the service itself reports (`usage.cost_usd`) takes precedence over the book.
        `between` holds the lowest and highest counts where `usage` has estimated ones; without it an estimated count
        is taken to be right within a factor of two. A cache count that is absent leaves the cost an interval: any of
        the input may have been read from the cache or, if the endpoint `has_cache_writes`, written to it. `service` is
        as for `price`, `reply_model` the model that the reply names where the request names a deployment.

        Tokens that nothing limits, and what is billed and has no price, such as a search, a tier without one or a try
        that broke off and was made again, leave the upper end open: Infinity.
        """
        if usage.cost_usd is not None:
            reported = Decimal(str(usage.cost_usd))
            return Cost(reported, reported, reported)
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        usages = [usage]
        if usage.is_contradictory:
            usages += contradiction_bounds(usage)
        elif "input_tokens" in usage.estimated or "output_tokens" in usage.estimated:
            usages += between or (_scale_estimated(usage, 1 / SPREAD), _scale_estimated(usage, SPREAD))
        at, billing = at or datetime.now(UTC), usage.billing
        if billing.iterations:
            return self._cost_of_iterations(model, usage, at, service)
        name = self.priced_model(model, reply_model)
        tiers = self._tiers(name, at, service, billing.tier or None)
        has_tier = bool(tiers) or not billing.tier
        bounds, is_open = [], False
        for bound in usages:
            counts = TokenCounts(
                bound.input_tokens or 0,
                bound.output_tokens or 0,
                usage.cached_tokens or 0,
                usage.cache_write_tokens or 0,
            )
            # Each end is priced by its own tier; one without a price leaves the cost without a bound, so unknown.
            price = _find_tier(tiers or self._tiers(name, at, service), counts.input)
            if price is None:
                return None
            is_open |= bound.output_tokens is None and price.output > 0
            plain = cost_bounds(
                price.rates,
                counts,
                has_cached=usage.cached_tokens is not None,
                has_cache_write=usage.cache_write_tokens is not None or not has_cache_writes,
            )
            bounds.append(add_billed_items(price, billing, plain))
        best = bounds[0][0]
        low, high = min(bound_low for _, bound_low, _ in bounds), max(bound_high for _, _, bound_high in bounds)
        # No prompt is empty: a service that reports no input has not counted it, or bills it elsewhere.
        if usage.input_tokens == 0 or not has_tier or is_open:
            high = Decimal("Infinity")
        return Cost(best / MILLION, low / MILLION if has_tier else Decimal(), high / MILLION)

    def _cost_of_iterations(self, model: str, usage: Usage, at: datetime, service: str) -> Cost | None:
        """The cost of a call that is billed by its passes, each at the price of its own model."""
        low = high = best = Decimal()
        items = msgspec.structs.replace(usage.billing, iterations=())
        for iteration in usage.billing.iterations:
            is_last = iteration is usage.billing.iterations[-1]
            counts = Usage(
                input_tokens=iteration.input_tokens,
                output_tokens=iteration.output_tokens,
                cached_tokens=iteration.cached_tokens,
                cache_write_tokens=iteration.cache_write_5m_tokens + iteration.cache_write_1h_tokens,
                # What else is billed is billed once.
                billing=msgspec.structs.replace(
                    items if is_last else Billing(tier=items.tier),
                    cache_write_1h_tokens=iteration.cache_write_1h_tokens,
                ),
            )
            cost = self.cost(iteration.model or model, counts, at, service=service)
            if cost is None:
                high = Decimal("Infinity")
                continue
            best, low, high = best + cost.usd, low + cost.low, high + cost.high
        return Cost(best, low, high) if best or high.is_finite() else None

    def __repr__(self) -> str:
        return f"{_TABLE_TITLE}\n{format_table(_TABLE_HEAD, map(_table_cells, self), left=len(_TABLE_HEAD))}"

    def _repr_html_(self) -> str:
        return price_html(self)


def _was_set(price: Price) -> bool:
    """Whether a price of the file was kept by `PriceBook.set`."""
    return price.source.startswith(f"{USER}, ")


_ALWAYS = datetime.min.replace(tzinfo=UTC)


def _since(price: Price) -> datetime:
    return price.since or _ALWAYS


def _tier(price: Price) -> float:
    return float("inf") if price.until_context is None else price.until_context


def _find_tier(tiers: Iterable[Price], context: int) -> Price | None:
    """The smallest tier that holds a number of input tokens."""
    return min((price for price in tiers if context < _tier(price)), key=_tier, default=None)


def _identity(price: Price) -> tuple[str, str, float, datetime, str]:
    """What tells a price from others of its source, in the order in which they are shown."""
    return price.model, price.service or "", _tier(price), _since(price), price.tier or ""


def _scale_estimated(usage: Usage, factor: float) -> Usage:
    """Input and output counts, the estimated ones multiplied by a factor."""
    counts = {count: getattr(usage, count) for count in ("input_tokens", "output_tokens")}
    return Usage(**{name: round(n * factor) if name in usage.estimated else n for name, n in counts.items()})


prices = PriceBook(use_file=True)
"""The price book of this process."""


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


def ceiling(request: Request, service: str = "") -> Ceiling:
    """The most that a call by a profile can cost at today's prices."""
    # A token of a byte-pair vocabulary is at least one byte, so the size of the body is a safe upper limit.
    input_tokens = len(lenient_json.encode(request.body()))
    model = str(getattr(request, "model", ""))
    output_tokens = request.most_tokens
    if getattr(request, "previous_response_id", None):
        return Ceiling(input_tokens, output_tokens, None, "what an earlier response adds to the input is not known")
    if output_tokens is None:
        return Ceiling(input_tokens, None, None, f"nothing limits the answer of {model!r}: give {request.cap}")
    now = datetime.now(UTC)
    limits = {entry.until_context or 0 for entry in prices if entry.model == model}
    # A request of up to so many tokens can fall into each tier below that.
    contexts = {0, *(limit for limit in limits if limit <= input_tokens)}
    found = (prices.price(model, at=now, context=context, service=service) for context in contexts)
    tier_prices = [price for price in found if price is not None]
    if not tier_prices:
        reason = (
            f"no price is known for {model!r}: famnb.prices.set({model!r}, input=…, output=…) in USD per million tokens"
        )
        return Ceiling(input_tokens, output_tokens, None, reason)
    # Writing to a cache can cost more than plain input, and whether the service does is not known beforehand.
    most = max(input_tokens * max(price.rates.inputs) + output_tokens * price.output for price in tier_prices)
    return Ceiling(input_tokens, output_tokens, most / MILLION)


_TABLE_TITLE = "Prices in USD per million tokens"
_TABLE_HEAD = ("model", "service", "input", "output", "cached", "cache write", "also", "context", "since", "source")


def price_html(entries: Iterable[Price]) -> str:
    """Return the prices as an HTML table; a model's name is escaped."""
    return f"<p>{_TABLE_TITLE}</p>{html_table(_TABLE_HEAD, map(_table_cells, entries), left=len(_TABLE_HEAD))}"


def _table_cells(entry: Price) -> tuple[str, ...]:
    more = [f"tier {entry.tier}"] if entry.tier else []
    more += [f"{name} {amount:f}" for name in MORE_AMOUNTS if (amount := getattr(entry, name)) is not None]
    return (
        entry.model,
        entry.service or "any",
        f"{entry.input:f}",
        f"{entry.output:f}",
        "as input" if entry.cached is None else f"{entry.cached:f}",
        "as input" if entry.cache_write is None else f"{entry.cache_write:f}",
        ", ".join(more) or "–",
        "any" if entry.until_context is None else f"under {entry.until_context:,}",
        "always" if entry.since is None else f"{entry.since:%Y-%m-%d %H:%M} UTC".replace(" 00:00 UTC", ""),
        entry.source,
    )


def default_price_file() -> Path:
    """Return the file that FAMNB_PRICES names, else `prices.toml` in the user's configuration folder."""
    return Path(os.getenv("FAMNB_PRICES") or Path(platformdirs.user_config_dir("famnb")) / "prices.toml").expanduser()


def read_price_file(path: Path) -> tuple[Price, ...]:
    """Return the prices in a file. Raises InvalidRequest, naming entry and field, or OSError."""
    data = path.read_bytes()
    # Loaded late: few have a price file, and this is called for everybody's first call.
    import tomllib

    try:
        # Some editors begin every file with a byte order mark.
        content = tomllib.loads(data.decode("utf-8-sig"), parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path}: this is not TOML ({error}); expected tables that begin with [[price]]") from None
    tables = content.pop("price", [])
    if content or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        got = ", ".join(content) if content else "one table [price]"
        raise InvalidRequest(f"{path}: expected nothing but tables that begin with [[price]]; got {got}")
    number_of: dict[tuple[object, ...], int] = {}
    prices: list[Price] = []
    for number, table in enumerate(tables, start=1):
        try:
            price = parse_price(**{"source": str(path), **table})
            first = number_of.setdefault(_identity(price), number)
            if first != number:
                raise InvalidRequest(
                    f"model, service, since, until_context and tier are those of price {first}; one of the two must go"
                )
        except InvalidRequest as error:
            raise InvalidRequest(f"{path}, price {number}: {error}") from None
        prices.append(price)
    return tuple(prices)


def write_price_file(path: Path, prices: Iterable[Price]) -> None:
    """Write these prices in place of what the file held, all of it or nothing. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The file itself is the source of what names no other.
    prices = [dataclasses.replace(price, source="") if price.source in (USER, str(path)) else price for price in prices]
    text = "# Prices in USD per million tokens, for famnb.\n" + "".join(map(_format_entry, prices))
    atomic_write(path, text.encode())


def _format_entry(price: Price) -> str:
    values: dict[str, str] = {"model": _format_text(price.model)}
    values |= {name: f"{amount:f}" for name in AMOUNTS if (amount := getattr(price, name)) is not None}
    if price.since is not None:
        is_midnight = price.since.timetz() == time(tzinfo=price.since.tzinfo)
        values["since"] = f"{price.since:%Y-%m-%d}" if is_midnight else price.since.isoformat()
    if price.until_context is not None:
        values["until_context"] = str(price.until_context)
    for name in ("service", "tier", "source"):
        if text := getattr(price, name):
            values[name] = _format_text(text)
    return "\n[[price]]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())


def _format_text(text: str) -> str:
    # As JSON has it, but for the one control character that TOML alone forbids.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


_COMMUNITY_NAMES = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
}
"""The name of each amount in the community's file, which has it in USD per token."""
_MORE_COMMUNITY_NAMES = {
    "cache_write_1h": "cache_creation_input_token_cost_above_1hr",
    "audio_input": "input_cost_per_audio_token",
    "audio_output": "output_cost_per_audio_token",
    "image_output": "output_cost_per_image_token",
}
_COMMUNITY_TIERS = {"flex": "_flex", "priority": "_priority", "batch": "_batches"}
"""The end of the names of amounts that are those of a tier."""
_COMMUNITY_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


def read_community_prices(
    source: str | os.PathLike[str], patterns: Sequence[str], *, service: str | None = None
) -> tuple[Price, ...]:
    """Return the prices that the community's file, at an address or a path, has of the models that match a pattern.

    A model that several vendors sell has the price of the vendor whose entry is called like the model itself. With a
    `service` they are for calls by this profile alone: those that the file has of the vendor of that name, and for a
    profile that it does not know, those of the entries called like the models. Raises InvalidRequest if there are none
    or the file is not of this form, OSError if it cannot be read.
    """
    if "://" in str(source):
        # Loaded late: what reads recorded calls does without the network.
        import httpx

        try:
            data = httpx.get(str(source), follow_redirects=True).raise_for_status().content
        except httpx.HTTPError as error:
            raise OSError(f"{source} cannot be read: {error}") from error
        date = datetime.now(UTC)
    else:
        file = Path(source).expanduser()
        data, date = file.read_bytes(), datetime.fromtimestamp(file.stat().st_mtime, UTC)
    try:
        content = json.loads(data, parse_float=Decimal)
    except ValueError as error:
        raise InvalidRequest(f"{source}: this is not JSON ({error})") from None
    if not isinstance(content, dict) or not all(isinstance(entry, dict) for entry in content.values()):
        raise InvalidRequest(f"{source}: expected an object of models, as litellm's price file is")
    chosen: dict[str, Mapping[str, Any]] = {}
    # Of a vendor whom the file does not know, others' prices would be a guess.
    vendors = {*NAMES, *(entry.get("litellm_provider") for entry in content.values())}
    for name, entry in content.items():
        model = name.removeprefix(f"{entry.get('litellm_provider')}/")
        is_wanted = any(fnmatch.fnmatchcase(model, pattern) for pattern in patterns)
        amounts = [entry.get(_COMMUNITY_NAMES[kind]) for kind in ("input", "output")]
        # Who sells a subscription has zeros in the file, which are not the price of a call.
        has_price = all(isinstance(amount, Decimal | int) for amount in amounts) and any(amounts)
        is_sold_there = service is None or (
            entry.get("litellm_provider") == service if service in vendors else model == name
        )
        if is_wanted and has_price and is_sold_there and (model not in chosen or model == name):
            chosen[model] = entry
    if not chosen:
        raise InvalidRequest(f"{source} has no price of {', '.join(patterns)}{f' at {service}' if service else ''}")
    label = f"{Path(source).name}, {date:%Y-%m-%d}"
    return tuple(
        price for model, entry in chosen.items() for price in _read_community_entry(model, entry, service, label)
    )


def _read_community_entry(model: str, entry: Mapping[str, Any], service: str | None, source: str) -> Iterator[Price]:
    """Yield the prices of a model: one, or one for each size of the input that has its own."""
    sizes = sorted(int(match[1]) for match in map(_COMMUNITY_TIER.fullmatch, entry) if match)
    searches = {Decimal(usd) for usd in (entry.get("search_context_cost_per_query") or {}).values()}
    more = {kind: entry[name] for kind, name in _MORE_COMMUNITY_NAMES.items() if entry.get(name) is not None}
    for tier, ending in ((None, ""), *_COMMUNITY_TIERS.items()):
        if tier and not all(f"{_COMMUNITY_NAMES[kind]}{ending}" in entry for kind in ("input", "output")):
            continue
        for index, suffix in enumerate(["", *(f"_above_{size}k_tokens" for size in sizes)]):
            amounts = {
                kind: entry.get(f"{name}{suffix}{ending}", None if tier and suffix else entry.get(f"{name}{ending}"))
                for kind, name in _COMMUNITY_NAMES.items()
            }
            if amounts["input"] is None or amounts["output"] is None:
                continue  # a size of the input that this tier has no price for
            known: dict[str, Any] = {
                kind: (Decimal(amount) * MILLION).normalize()
                for kind, amount in {**amounts, **({} if tier or suffix else more)}.items()
                if amount is not None
            }
            # What differs with the size of the results is no price of a search.
            if len(searches) == 1:
                known["search"] = next(iter(searches))
            yield parse_price(
                model,
                **known,
                # "above 200k" is more than 200,000, which is not below 200,001.
                until_context=sizes[index] * 1000 + 1 if index < len(sizes) else None,
                service=service,
                tier=tier,
                source=source,
            )
