"""What a setting has to be, whoever takes it; InvalidRequest, saying what was expected, for anything else."""

from __future__ import annotations

import math
import operator
from typing import Any

from famnb.errors import InvalidRequest


def named(name: str, value: object, *, what: str) -> str:
    """A text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(f"{name}: expected {what}; got {value!r:.80}")
    return value


def count(name: str, value: Any, *, least: int | None = None) -> int:
    """An integer, of numpy too, of at least so much."""
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if found is None or (least is not None and found < least):
        wanted = "an integer" if least is None else f"an integer of at least {least}"
        raise InvalidRequest(f"{name}: expected {wanted}, got {value!r:.80}")
    return found


def rate(value: Any) -> float | None:
    """Calls a second; None does not limit them."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value > 0):
        raise InvalidRequest(f"rate: expected a number of calls a second above 0, got {value!r:.80}")
    return float(value)
