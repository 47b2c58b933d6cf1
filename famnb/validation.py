"""Checks of arguments: each returns the value as the type that was expected, or raises InvalidRequest.

Every message names the argument, what was expected and what was given, such as `repeats: expected an integer of at
least 1, got 0`.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import operator
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from famnb.errors import InvalidArgument, InvalidRequest

P = ParamSpec("P")
R = TypeVar("R")


def explain_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Have a function that is called with wrong arguments raise InvalidArgument, which names what was meant."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            # Without a further frame it was the call itself that failed, and nothing inside the function.
            is_call = isinstance(error, TypeError) and (error.__traceback__ is None or not error.__traceback__.tb_next)
            message = _describe_call(function, args, kwargs, str(error)) if is_call else ""
            # A verbose traceback shows the variables of this frame, and an API key may be one of them.
            kwargs.clear()
            del args
            if not is_call:
                raise
        raise InvalidArgument(message)

    return call


def explain_constructor(kind: type[R]) -> type[R]:
    """Have a class do the same: for a dataclass, whose constructor is written by no one."""
    kind.__init__ = explain_arguments(kind.__init__)  # type: ignore[method-assign]
    return kind


def _describe_call(function: Callable[..., Any], arguments: Any, keywords: Any, fault: str) -> str:
    """Say which keyword a function does not have, and what was probably meant; else what Python says."""
    known = [name for name in inspect.signature(function).parameters if name != "self"]
    unknown = next((name for name in keywords if name not in known), None)
    if unknown is None:
        return fault
    import difflib  # late, since most calls are right

    close = difflib.get_close_matches(unknown, known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    # A constructor may be a base class's, which the caller has never heard of.
    name = type(arguments[0]).__name__ if function.__name__ == "__init__" else function.__name__
    return f"{unknown}: {name} has no such argument{hint} It has {', '.join(known)}"


def check_text(name: str, value: object, *, expected: str) -> str:
    """Return `value` if it is a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise _refusal(name, expected, value)
    return value


def check_texts(name: str, value: object) -> dict[str, str]:
    """Return `value` as a dict if it is a mapping of texts to texts."""
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for item in value.items() for text in item):
        raise _refusal(name, "texts by name", value)
    return dict(value)


def check_integer(name: str, value: Any, *, minimum: int | None = None, expected: str = "") -> int:
    """Return `value` as an int if it is an integer, of numpy too, and not below `minimum`."""
    try:
        # `True` is an int to Python; as a number of anything it is a slip.
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
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
    try:
        index = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        index = None
    if index is None or not -length <= index < length:
        raise InvalidRequest(f"{name}: there is no {value!r} among {length}; expected an index from 0, or from -1 back")
    return index % length


def _refusal(name: str, expected: str, value: object) -> InvalidRequest:
    # 80 characters show what a value is; a whole prompt or a frame would bury the message.
    return InvalidRequest(f"{name}: expected {expected}, got {value!r:.80}")
