"""JSON text indented while it grows: a further piece only appends to what is shown, and no value is rewritten."""

from __future__ import annotations

import json

_SPACE = " \t\r\n"
_INDENT = "  "


class JsonLayout:
    """Indents JSON text that comes in pieces. Text that is not JSON loses only white space.

    `json.dumps` would change numbers (1.0, 1e3) and needs the whole text; a tool call's arguments stream in fragments.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._just_opened = False
        """Whether the last character opened an object or a list, which may turn out to be empty."""

    def add(self, piece: str) -> str:
        """Return what a further piece adds to the text that is shown."""
        return "".join(map(self._lay_out, piece))

    def _lay_out(self, char: str) -> str:
        """Return one character of the text with the line breaks and spaces around it."""
        if self._in_string:
            self._in_string = char != '"' or self._escaped
            self._escaped = char == "\\" and not self._escaped
            return char
        if char in _SPACE:
            return ""
        just_opened, self._just_opened = self._just_opened, char in "{["
        if char in "}]":
            # Text that is not JSON may close more brackets than it has opened.
            self._depth = max(0, self._depth - 1)
            return char if just_opened else self._line_break() + char
        before = self._line_break() if just_opened else ""
        self._in_string = char == '"'
        if self._just_opened:
            self._depth += 1
        match char:
            case ",":
                return before + char + self._line_break()
            case ":":
                return before + char + " "
            case _:
                return before + char

    def _line_break(self) -> str:
        return "\n" + _INDENT * self._depth


def indent_json(text: str) -> str:
    """Return a whole JSON text indented; text that is not a JSON object or list is returned unchanged."""
    return JsonLayout().add(text) if is_json(text) else text


def is_json(text: str) -> bool:
    """Return whether a text is a JSON object or list, whose indentation Markdown would lose."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
