"""Intents: what a page may ask a tool for. A method's annotated parameters are the protocol."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_type_hints

import msgspec

from famnb.errors import InvalidArgument

MethodT = TypeVar("MethodT", bound=Callable[..., Any])


class Intent:
    """A method that a page may call, and the type of its arguments."""

    def __init__(self, method: Callable[..., Any], *, is_urgent: bool) -> None:
        self.name = method.__name__
        self.method = method
        self.is_urgent = is_urgent
        self.hints = {name: hint for name, hint in get_type_hints(method).items() if name != "return"}
        fields = []
        for parameter in list(inspect.signature(method).parameters.values())[1:]:
            default = msgspec.NODEFAULT if parameter.default is parameter.empty else parameter.default
            fields.append((parameter.name, self.hints[parameter.name], default))
        self.arguments = msgspec.defstruct(
            f"{self.name}_arguments", fields, kw_only=True, forbid_unknown_fields=True, rename="camel"
        )

    def call(self, tool: object, arguments: Mapping[str, Any]) -> Any:
        """Call the method of a tool; raises InvalidArgument if the arguments do not fit its parameters."""
        try:
            values = msgspec.convert(arguments, self.arguments)
        except msgspec.ValidationError as error:
            raise InvalidArgument(f"the page asked for {self.name!r} with arguments that do not fit: {error}") from None
        return self.method(tool, **msgspec.structs.asdict(values))


def intent(method: MethodT, *, is_urgent: bool = False) -> MethodT:
    """Mark a method that the page may ask for; what it returns, as JSON, is the answer.

    It is called with the tool's lock, one at a time, and the view is sent before the answer.
    """
    method.__intent__ = is_urgent  # type: ignore[attr-defined]
    return method


def urgent_intent(method: MethodT) -> MethodT:
    """Mark a method, such as Stop, that is called without the lock: who holds it may wait for what is to be stopped."""
    return intent(method, is_urgent=True)


def find_intents(kind: type) -> dict[str, Intent]:
    """Return the intents of a class and its bases by name."""
    methods = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    return {
        name: Intent(method, is_urgent=method.__intent__)
        for name, method in methods.items()
        if hasattr(method, "__intent__")
    }
