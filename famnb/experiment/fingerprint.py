"""What tells two scores of one answer apart: a short digest of how they were made, and of what the prompt told."""

from __future__ import annotations

import contextlib
import dis
import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from famnb.experiment.prompts import Prompt


def fingerprint(*what: Any) -> str:
    """Eight hexadecimal digits: equal for equal plain values and for functions that do the same, in every process."""
    return hashlib.blake2b(repr([_plain(each) for each in what]).encode(), digest_size=4).hexdigest()


class Keys:
    """What scores are kept under: how their scorer scores, its `key`, else its name, and what the prompt has for it."""

    def __init__(self, scorers: Iterable[Any]) -> None:
        self._own = {one.name: str(getattr(one, "key", one.name)) for one in scorers}
        self._told: dict[str, str] = {}

    def key(self, scorer: str, prompt: Prompt) -> str:
        """That of a scorer, by its name, for the answers to one prompt of an experiment."""
        if prompt.id not in self._told:
            values = sorted((name, str(value)) for name, value in prompt.slots.items())
            self._told[prompt.id] = f"@{fingerprint(*values)}" if values else ""
        return self._own[scorer] + self._told[prompt.id]


def _plain(value: Any, within: tuple[Any, ...] = ()) -> Any:
    """A value whose text is the same in every process; of what has none, or may change while it scores, its type."""
    if any(value is each for each in within):
        return "itself"
    inside = functools.partial(_plain, within=(*within, value))
    match value:
        case None | str() | bytes() | bool() | int() | float() | complex():
            return value
        case CodeType():
            # Where it was written is no part of what it does.
            return value.co_code, value.co_names, value.co_varnames, [inside(each) for each in value.co_consts]
        case FunctionType():
            return [inside(each) for each in _made_of(value, within)]
        case MethodType():
            return inside(value.__func__)
        case functools.partial():
            return [inside(each) for each in (value.func, value.args, tuple(value.keywords.items()))]
        case re.Pattern():
            return value.pattern, value.flags
        case frozenset():
            return sorted(repr(inside(each)) for each in value)
        case tuple():
            return [inside(each) for each in value]
        case ModuleType() | BuiltinFunctionType() | type():
            return value.__name__
        case _:
            kind = type(value)
            return kind.__qualname__, inside(vars(kind).get("__call__"))


def _made_of(function: FunctionType, within: tuple[Any, ...]) -> Iterator[Any]:
    """What a function's result depends on: its code, its defaults, and the values of the names it reads."""
    home = next((each.__module__ for each in within if isinstance(each, FunctionType)), function.__module__)
    if function.__module__ != home:
        yield f"{function.__module__}.{function.__qualname__}"  # of a library, which is not followed further
        return
    code = function.__code__
    yield from (code, function.__defaults__, tuple((function.__kwdefaults__ or {}).items()))
    closed = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for name in _names(code):
        if name in closed:
            with contextlib.suppress(ValueError):  # a variable that was never set
                yield closed[name].cell_contents
        elif name in function.__globals__:
            yield function.__globals__[name]


def _names(code: CodeType) -> list[str]:
    """The names that a code reads outside of itself and never writes, its inner functions' too."""
    codes = [code, *(each for each in code.co_consts if isinstance(each, CodeType))]
    used = {(each.opname.partition("_")[0], each.argval) for one in codes for each in _outside(one)}
    return sorted(name for how, name in used if how == "LOAD" and not {("STORE", name), ("DELETE", name)} & used)


def _outside(code: CodeType) -> Iterator[dis.Instruction]:
    """Where it reads or changes a name that is not its own."""
    return (each for each in dis.get_instructions(code) if each.opname.endswith(("_GLOBAL", "_DEREF")))
