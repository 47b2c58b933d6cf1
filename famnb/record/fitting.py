"""Tokens per character fitted on recorded calls: the query that finds them, and its rows as fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from famnb.record import estimate

REPLIES = 500
"""The newest calls of a model that its tokens per character are fitted on."""

RATIOS = """
    SELECT service,
        CASE WHEN input_tokens_source IN ('reported', 'derived') AND input_chars > 0
            THEN CAST(input_tokens AS DOUBLE) / input_chars END,
        CASE WHEN output_tokens_source IN ('reported', 'derived') AND output_chars > 0
            THEN CAST(output_tokens AS DOUBLE) / output_chars END,
        hidden_cap IS NOT NULL AND thinking_chars = 0
    FROM calls WHERE model = ? AND complete = 1 ORDER BY started_us DESC LIMIT ?"""
"""The ratios of a model's newest calls, in words that SQLite and DuckDB share."""


def fitted(ratios: Iterable[Sequence[Any]]) -> dict[str | None, estimate.Fit]:
    """The fits that the rows of `RATIOS` make, by the service that answered."""
    seen: dict[str | None, tuple[list[float], list[float], list[float]]] = {}
    for service, of_input, of_output, hidden in ratios:
        inputs, outputs, reasoned = seen.setdefault(service, ([], [], []))
        inputs.extend([of_input] if of_input else [])
        (reasoned if hidden else outputs).extend([of_output] if of_output else [])
    return {service: estimate.Fit(*map(estimate.fitted, lists)) for service, lists in seen.items()}
