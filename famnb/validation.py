"""Checks of arguments: each returns the value as the type that was expected, or raises InvalidRequest.

Every message names the argument, what was expected and what was given, such as `repeats: expected an integer of at
least 1, got 0`.
"""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any
from zoneinfo import ZoneInfo

from famnb.errors import InvalidRequest


def check_text(name: str, value: object, *, expected: str) -> str:
    """Return `value` if it is a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise _refusal(name, expected, value)
    return value


def check_integer(name: str, value: Any, *, minimum: int | None = None, expected: str = "") -> int:
    """Return `value` as an int if it is an integer, of numpy too, and not below `minimum`."""
    number = _as_integer(value)
    if number is None or (minimum is not None and number < minimum):
        integer = "an integer" if minimum is None else f"an integer of at least {minimum}"
        raise _refusal(name, expected or integer, value)
    return number


def check_number(
    name: str,
    value: Any,
    *,
    minimum: float = -math.inf,
    above: float = -math.inf,
    finite: bool = True,
    expected: str,
) -> float:
    """Return `value` if it is a number, of numpy too, that is at least `minimum`, greater than `above`, and finite."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    # Written so that NaN, which compares as False with everything, is refused.
    if not is_number or not value >= minimum or not value > above or (finite and not math.isfinite(value)):
        raise _refusal(name, expected, value)
    return value  # type: ignore[no-any-return]


def check_index(name: str, value: Any, length: int) -> int:
    """Return `value`, a place in a list of that length, as an index from 0; -1 is the last."""
    index = _as_integer(value)
    if index is None or not -length <= index < length:
        raise InvalidRequest(f"{name}: there is no {value!r} among {length}; expected an index from 0, or from -1 back")
    return index % length


def check_zone(name: str, value: Any) -> ZoneInfo:
    """Return the time zone of that name; raise InvalidRequest if there is none."""
    try:
        return ZoneInfo(value)
    except (KeyError, TypeError, ValueError):
        raise _refusal(name, "the name of a time zone, such as 'Europe/Paris'", value) from None


def _as_integer(value: Any) -> int | None:
    """Return the value of an integer, of numpy too; None for anything else."""
    try:
        # `True` is an int to Python; as a number of anything it is a slip.
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def _refusal(name: str, expected: str, value: object) -> InvalidRequest:
    # 80 characters show what a value is; a whole prompt or a frame would bury the message.
    return InvalidRequest(f"{name}: expected {expected}, got {value!r:.80}")
