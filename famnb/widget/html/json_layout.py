"""JSON text laid out as it grows: each piece only adds to what is there, and no value is read or written anew."""

from __future__ import annotations

import json

_SPACE = " \t\r\n"
_INDENT = "  "


class JsonLayout:
    """Lays out a JSON text that comes in pieces; what is no JSON is laid out as well as it can be, and all of it."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self._escaped = False
        self._opened = False
        """Whether the last thing that came opened an object or a list, which may turn out to be empty."""

    def add(self, piece: str) -> str:
        """What a further piece adds to the text that is shown."""
        return "".join(map(self._added, piece))

    def _added(self, sign: str) -> str:
        if self._quoted:
            self._quoted = sign != '"' or self._escaped
            self._escaped = sign == "\\" and not self._escaped
            return sign
        if sign in _SPACE:
            return ""
        opened, self._opened = self._opened, sign in "{["
        if sign in "}]":
            self._depth = max(0, self._depth - 1)
            return sign if opened else self._line() + sign
        before = self._line() if opened else ""
        self._quoted = sign == '"'
        if self._opened:
            self._depth += 1
        match sign:
            case ",":
                return before + sign + self._line()
            case ":":
                return before + sign + " "
            case _:
                return before + sign

    def _line(self) -> str:
        return "\n" + _INDENT * self._depth


def indent_json(text: str) -> str:
    """A whole JSON text, laid out; one that is no JSON as it stands."""
    return JsonLayout().add(text) if is_json(text) else text


def is_json(text: str) -> bool:
    """Whether a text is an object or a list in JSON, whose layout Markdown would lose."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
