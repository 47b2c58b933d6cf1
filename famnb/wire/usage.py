"""Figures of a usage object that servers of every dialect send in the same places."""

from __future__ import annotations

from typing import Any, Literal

from famnb.wire import lenient_json


def read_reasoning(usage: dict[str, Any], details: Any) -> int | None:
    """Return the tokens of thinking: from the details of the output, else from the usage itself."""
    fields = lenient_json.as_object(details)
    return lenient_json.first_integer(
        fields.get("reasoning_tokens"),
        fields.get("thinking_tokens"),
        usage.get("reasoning_tokens"),
        usage.get("thinking_tokens"),
    )


def read_cache_writes(usage: dict[str, Any], details: Any = None) -> int | None:
    """Return the input tokens that were written to a cache: from the details of the input, else from the usage."""
    fields = lenient_json.as_object(details)
    known = lenient_json.first_integer(
        fields.get("cache_write_tokens"),
        fields.get("cache_creation_tokens"),
        usage.get("cache_write_tokens"),
        usage.get("cache_creation_input_tokens"),
    )
    if known is not None:
        return known
    # Zeros alone are what a stream writes that does not know its counts yet.
    return (read_cache_lifetime(usage, "5m") or 0) + (read_cache_lifetime(usage, "1h") or 0) or None


def read_cache_lifetime(usage: dict[str, Any], lifetime: Literal["5m", "1h"]) -> int | None:
    """Return the tokens written to a cache for five minutes or for an hour."""
    written = lenient_json.as_object(usage.get("cache_creation"))
    return lenient_json.integer(written.get(f"ephemeral_{lifetime}_input_tokens"))


def read_cost(usage: dict[str, Any]) -> float | None:
    """Return what the service says that the call costs, in USD: `cost`, a number or an object with the `total_cost`."""
    cost = usage.get("cost")
    if isinstance(cost, dict):
        return lenient_json.amount(cost.get("total_cost"))
    total = lenient_json.amount(cost)
    # With the user's own key at the vendor, `cost` is the broker's fee alone.
    upstream = lenient_json.as_object(usage.get("cost_details")).get("upstream_inference_cost")
    if total is not None and usage.get("is_byok") is True:
        return total + (lenient_json.amount(upstream) or 0)
    return total
