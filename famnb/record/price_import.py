"""Prices from the community's JSON file, litellm's `model_prices_and_context_window.json`, for the price book.

{"gpt-x": {"litellm_provider": "openai", "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05,
           "cache_read_input_token_cost": …, "input_cost_per_token_above_200k_tokens": …}, …}

It is nobody's price list: its authors collect what vendors publish, and each entry keeps the file's name and date.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from famnb.errors import InvalidRequest
from famnb.profiles import NAMES
from famnb.record.price import MILLION, Price, parse_price

_NAMES = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
}
"""The name in the file of each amount, which it has in USD per token."""
_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


def read_community_prices(path: Path, patterns: Iterable[str], *, service: str | None = None) -> tuple[Price, ...]:
    """Return the prices of the models whose ids match one of the patterns, such as `gpt-*`.

    A model that several vendors sell has the price of the vendor whose entry is called like the model itself. With a
    `service` they are prices at this one alone: of a profile's name or a vendor's, those that the file has of that
    vendor, if any; of a host, those of the entries called like the models. Raises InvalidRequest if the file is not of
    this form, OSError if it cannot be read.
    """
    try:
        content = json.loads(path.read_bytes(), parse_float=Decimal)
    except ValueError as error:
        raise InvalidRequest(f"{path}: this is not JSON ({error})") from None
    if not isinstance(content, dict) or not all(isinstance(entry, dict) for entry in content.values()):
        raise InvalidRequest(f"{path}: expected an object of models, as litellm's price file is")
    source = f"{path.name}, {datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d}"
    chosen: dict[str, Mapping[str, Any]] = {}
    patterns = list(patterns)
    # Of a vendor whom the file does not know, others' prices would be a guess.
    vendors = {*NAMES, *(entry.get("litellm_provider") for entry in content.values())}
    for name, entry in content.items():
        model = name.removeprefix(f"{entry.get('litellm_provider')}/")
        is_wanted = any(fnmatch.fnmatchcase(model, pattern) for pattern in patterns)
        has_price = all(isinstance(entry.get(_NAMES[kind]), Decimal | int) for kind in ("input", "output"))
        is_sold_there = service is None or (
            entry.get("litellm_provider") == service if service in vendors else model == name
        )
        if is_wanted and has_price and is_sold_there and (model not in chosen or model == name):
            chosen[model] = entry
    return tuple(price for model, entry in chosen.items() for price in _prices(model, entry, service, source))


def _prices(model: str, entry: Mapping[str, Any], service: str | None, source: str) -> Iterator[Price]:
    """Yield the prices of a model: one, or one for each size of the input that has its own."""
    tiers = sorted(int(match[1]) for match in map(_TIER.fullmatch, entry) if match)
    for index, suffix in enumerate(["", *(f"_above_{tier}k_tokens" for tier in tiers)]):
        amounts = {kind: entry.get(f"{name}{suffix}", entry.get(name)) for kind, name in _NAMES.items()}
        known: dict[str, Any] = {kind: _per_million(amount) for kind, amount in amounts.items() if amount is not None}
        yield parse_price(
            model,
            **known,
            # "above 200k" is more than 200,000, which is not below 200,001.
            until_context=tiers[index] * 1000 + 1 if index < len(tiers) else None,
            service=service,
            source=source,
        )


def _per_million(amount: Decimal | int) -> Decimal:
    return (Decimal(amount) * MILLION).normalize()
