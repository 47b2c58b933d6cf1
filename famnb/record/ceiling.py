"""The most that a call can cost, by its request and today's prices."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from decimal import Decimal

from famnb.record.price import MILLION, Price, ServiceNames
from famnb.record.price_book import prices
from famnb.request import Request
from famnb.request.types import MINI_MODELS, MINI_OUTPUT_TOKENS
from famnb.wire import lenient_json


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
