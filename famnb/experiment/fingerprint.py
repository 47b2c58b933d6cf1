"""Fingerprints of scorers: digests that change when a scorer would score otherwise, so that no old score is reused."""

from __future__ import annotations

import contextlib
import dataclasses
import dis
import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from famnb.experiment.prompts import Prompt


def fingerprint(*values: Any) -> str:
    """Eight hexadecimal digits: equal for equal plain values and for functions that do the same, in every process."""
    return hashlib.blake2b(repr([_normalize(value) for value in values]).encode(), digest_size=4).hexdigest()


def score_keys(scorers: Iterable[Any], prompts: Iterable[Prompt]) -> dict[tuple[str, str], str]:
    """The keys under which scores are kept, by the name of the score and the id of the prompt that was answered.

    A key is the scorer's `key`, else its name, and a digest of the prompt's values: a corrected `expected` is another
    question to the scorer, though the call is the same.
    """
    by_name: dict[str, str] = {}
    for scorer in scorers:
        # A judge with a rubric makes several scores; any other scorer one, of its own name.
        by_name |= getattr(scorer, "score_keys", None) or {scorer.name: str(getattr(scorer, "key", scorer.name))}
    keys = {}
    for prompt in prompts:
        values = sorted([(name, str(value)) for name, value in prompt.slots.items()])
        digest = hashlib.blake2b(repr(values).encode(), digest_size=4).hexdigest()
        for name, scorer_key in by_name.items():
            keys[name, prompt.id] = f"{scorer_key}@{digest}" if values else scorer_key
    return keys


def _normalize(value: Any, parents: tuple[Any, ...] = ()) -> Any:
    """Return something whose repr is the same in every process.

    For an object that has no such repr, or may change while it scores, that is its type. `parents` are the values that
    this one is part of, to stop at a function that refers to itself.
    """
    if any(value is parent for parent in parents):
        return "itself"
    normalize = functools.partial(_normalize, parents=(*parents, value))
    match value:
        case None | str() | bytes() | bool() | int() | float() | complex():
            return value
        case CodeType():
            # Bytecode rather than source, which a notebook's cell or `python -c` may not have; without file name and
            # line numbers, since where a function is written is no part of what it does.
            return value.co_code, value.co_names, value.co_varnames, [normalize(item) for item in value.co_consts]
        case FunctionType():
            return [normalize(part) for part in _function_parts(value, parents)]
        case MethodType():
            return normalize(value.__func__)
        case functools.partial():
            return [normalize(part) for part in (value.func, value.args, tuple(value.keywords.items()))]
        case re.Pattern():
            return value.pattern, value.flags
        case Decimal():
            return str(value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return [normalize(getattr(value, field.name)) for field in dataclasses.fields(value)]
        case frozenset():
            # A set's order depends on the process's hash seed.
            return sorted(repr(normalize(item)) for item in value)
        case tuple():
            return [normalize(item) for item in value]
        case ModuleType() | BuiltinFunctionType() | type():
            return value.__name__
        case _:
            cls = type(value)
            return cls.__qualname__, normalize(vars(cls).get("__call__"))


def _function_parts(function: FunctionType, parents: tuple[Any, ...]) -> Iterator[Any]:
    """What a function's result depends on: its code, its defaults, and the values of the names it reads."""
    outer_module = next((parent.__module__ for parent in parents if isinstance(parent, FunctionType)), None)
    if outer_module is not None and function.__module__ != outer_module:
        # A library's function is not followed: its code may change with every release, and call half the library.
        yield f"{function.__module__}.{function.__qualname__}"
        return
    code = function.__code__
    yield from (code, function.__defaults__, tuple((function.__kwdefaults__ or {}).items()))
    closure = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for name in _names_read(code):
        if name in closure:
            with contextlib.suppress(ValueError):  # a variable that has no value yet
                yield closure[name].cell_contents
        elif name in function.__globals__:
            yield function.__globals__[name]


def _names_read(code: CodeType) -> list[str]:
    """The outer names that a function and its inner functions read and never write: a counter changes as it scores."""
    codes = [code, *(item for item in code.co_consts if isinstance(item, CodeType))]
    accesses = {
        # LOAD_GLOBAL, STORE_DEREF, … are the accesses to names outside of the function.
        (instruction.opname.partition("_")[0], instruction.argval)
        for inner in codes
        for instruction in dis.get_instructions(inner)
        if instruction.opname.endswith(("_GLOBAL", "_DEREF"))
    }
    return sorted(
        name for kind, name in accesses if kind == "LOAD" and not {("STORE", name), ("DELETE", name)} & accesses
    )
