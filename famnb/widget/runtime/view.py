"""What a page shows, as frozen structs, and how one view becomes the next: a delta that names only what has changed.

A delta follows the shape of the view:

    [value]                     the value takes the place of the old one
    {"name": delta, …}          these fields of a struct or items of a keyed list or dict have changed
    {"$": ["a", "b"], …}        as before; the keyed list now has these items, in this order

A tuple of structs with a field `key` is a keyed list. What is the same object is taken as unchanged and not looked
into, so a view is cheap to compare if its parts are made anew only when they change.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

Delta: TypeAlias = list[Any] | dict[str, Any]
_numbers = itertools.count(1)


class View(msgspec.Struct, frozen=True, rename="camel"):
    """What a page shows of one thing; a subclass with a field `key: str` may repeat in a tuple.

    Its subclasses are `frozen=True`. A field is a number, text, bool or None, another `View`, a tuple, a dict by text,
    bytes (a `DataView` on the page), or a `Growing` value. HTML is a `SafeHtml`, the only type that the page inserts as
    HTML.
    """


class Growing:
    """A value in a view that changes by what is appended to it, so that the whole is sent only once.

    A view holds it by reference, and it belongs to one tool. Its methods are called under the tool's lock.
    """

    def __init__(self) -> None:
        self.id = str(next(_numbers))
        """Its name in messages: short, since each appended word is sent with it."""

    def whole(self) -> Any:
        """Return all of it as JSON; `changes` then begins here."""
        raise NotImplementedError

    def changes(self) -> Any:
        """Return as JSON what was appended since the last call of `changes` or `whole`; something false if nothing."""
        raise NotImplementedError


class Encoder:
    """Makes JSON of views for one message, and gathers what travels beside them."""

    def __init__(self) -> None:
        self.growing: dict[str, Growing] = {}
        """The growing values that were met, by id."""
        self.buffers: list[bytes] = []
        """The binary values that were met."""

    def encode(self, value: Any) -> Any:
        """Return a value of a view as JSON."""
        match value:
            case View():
                return {wire: self.encode(getattr(value, name)) for name, wire in _names(type(value))}
            case Growing():
                self.growing[value.id] = value
                return {"$growing": value.id}
            case bytes():
                self.buffers.append(value)
                return {"$bytes": len(self.buffers) - 1}
            case tuple() | list():
                return [self.encode(item) for item in value]
            case Mapping():
                return {str(name): self.encode(item) for name, item in value.items()}
            case str():
                # A plain text: marimo writes a value that can show itself as HTML into a message as an object.
                return str(value)
            case _:
                return value

    def diff(self, old: Any, new: Any) -> Delta | None:
        """Return the delta that makes `new` of `old`; None if they are equal."""
        if old is new:
            return None
        if type(old) is not type(new):
            return [self.encode(new)]
        changes: dict[str, Any] = {}
        match new:
            case View():
                for name, wire in _names(type(new)):
                    if (delta := self.diff(getattr(old, name), getattr(new, name))) is not None:
                        changes[wire] = delta
            case Mapping() if old.keys() == new.keys():
                for name, item in new.items():
                    if (delta := self.diff(old[name], item)) is not None:
                        changes[str(name)] = delta
            case tuple() if _is_keyed(old) and _is_keyed(new):
                items = {item.key: item for item in old}
                if list(items) != [item.key for item in new]:
                    changes["$"] = [item.key for item in new]
                for item in new:
                    delta = self.diff(items[item.key], item) if item.key in items else [self.encode(item)]
                    if delta is not None:
                        changes[item.key] = delta
            case _:
                return None if old == new else [self.encode(new)]
        return changes or None


def _is_keyed(items: tuple[Any, ...]) -> bool:
    return bool(items) and isinstance(items[0], View) and "key" in items[0].__struct_fields__


@functools.cache
def _names(kind: type[View]) -> tuple[tuple[str, str], ...]:
    """Return the fields of a struct with their names on the wire."""
    return tuple(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
