"""Fingerprints of scorers: digests that change when a scorer would score otherwise, so that no old score is reused."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterable
from decimal import Decimal
from types import FunctionType, MethodType
from typing import Any

from famnb.experiment.prompts import Prompt


def fingerprint(*values: Any) -> str:
    """Eight hexadecimal digits: equal for equal plain values, in every process."""
    return hashlib.blake2b(repr(values).encode(), digest_size=4).hexdigest()


def score_keys(scorers: Iterable[Any], prompts: Iterable[Prompt]) -> dict[tuple[str, str], str]:
    """The keys under which scores are kept, by the scorer's name and the id of the prompt that was answered.

    A key is the scorer's `key`, else its name, and a digest of the prompt's values: a corrected `expected` is another
    question to the scorer, though the call is the same.
    """
    by_name = {scorer.name: str(getattr(scorer, "key", scorer.name)) for scorer in scorers}
    keys = {}
    for prompt in {prompt.id: prompt for prompt in prompts}.values():
        digest = fingerprint(*sorted([(name, str(value)) for name, value in prompt.slots.items()]))
        for name, scorer_key in by_name.items():
            keys[name, prompt.id] = f"{scorer_key}@{digest}" if prompt.slots else scorer_key
    return keys


def identify_function(function: Callable[..., Any]) -> Any:
    """Return plain values that change when a function does: its source, and the plain values that it reads.

    Of a function that it calls from its own module the source counts, too; of any other the name, since a library may
    change with every release. Where there is no source, as of what `exec` made, the name has to do.
    """
    if isinstance(function, functools.partial):
        return identify_function(function.func), *map(_identify, (function.args, tuple(function.keywords.items())))
    source = _read_source(function)
    variables: dict[str, Any] = {}
    if isinstance(function, FunctionType | MethodType):
        with contextlib.suppress(ValueError):  # a variable of an outer function that has no value yet
            closure = inspect.getclosurevars(function)
            variables = {**closure.globals, **closure.nonlocals}
    else:
        variables = getattr(function, "__dict__", {})
    read = {name: _identify(value, function) for name, value in variables.items()}
    defaults = getattr(function, "__defaults__", None), tuple((getattr(function, "__kwdefaults__", None) or {}).items())
    return source, _identify(defaults), sorted(read.items())


def _identify(value: Any, reader: Any = None) -> Any:
    """A value whose repr is the same in every process; for what has none, or may change meanwhile, its type's name."""
    match value:
        case None | str() | bytes() | bool() | int() | float() | complex() | Decimal():
            return value
        case tuple():
            return [_identify(item, reader) for item in value]
        case FunctionType() if reader is not None and value.__module__ == getattr(reader, "__module__", None):
            return _read_source(value)
        case _:
            return getattr(value, "__qualname__", None) or getattr(value, "__name__", type(value).__qualname__)


def _read_source(function: Any) -> str:
    is_object = not isinstance(function, FunctionType | MethodType | type)
    target = type(function) if is_object else function
    try:
        return inspect.getsource(target)
    except (OSError, TypeError):
        return f"{target.__module__}.{target.__qualname__}"
