"""Takes keys out of notebook files and leaves every other byte as it was.

file ── string literals, each with its path ── texts ── (known keys, shapes of keys) ── masked ── written at once
                                                └ a list of lines is one text
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from famnb import secret_patterns
from famnb.atomic_write import atomic_write
from famnb.errors import FamnbError
from famnb.secret_patterns import MASK

JSONPath: TypeAlias = tuple[str | int, ...]
"""Names and indices from the root to a value."""
# Masking one key may reveal another beside it, but not without end.
PASSES = 4
"""How often one text is searched."""

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character: JSON can have it as an escape, UTF-8 cannot have it at all."""
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
# Names of binary outputs, whose base64 may look like a key; SVG is text.
_BINARY_TYPE = re.compile(r"(?:image/(?!svg)|audio/|video/|font/|application/(?:pdf|octet-stream|zip))")


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One key that was found, described without showing it."""

    place: str
    """Where it stood: the cell, counted from 1, and the part of it."""
    kind: str
    """The variable whose value it is, or the shape it has."""
    length: int
    """Its characters."""

    def __str__(self) -> str:
        return f"{self.place}: {self.kind}, {self.length} characters"


def scrub(path: str | os.PathLike[str], *, keys: Mapping[str, str] | None = None, write: bool = True) -> list[Finding]:
    """Mask every key in a notebook file and return what was found; without `write`, leave the file as it is.

    `keys` are keys to look for beside the well-known shapes, each with a name for it; by default the environment's.
    Everything but the keys stays as it was, byte by byte. Raises FamnbError for a file that is no notebook, OSError
    for one that cannot be read or written.
    """
    file = Path(path).resolve()
    try:
        text = file.read_bytes().decode()
        tree = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_Pairs)
        strings = list(_strings(tree))
    except (ValueError, RecursionError) as fault:
        raise FamnbError(f"{path}: not a notebook: expected JSON in UTF-8 ({type(fault).__name__}: {fault})") from None
    if not isinstance(tree, _Pairs) or "nbformat" not in dict(tree):
        raise FamnbError(f"{path}: not a notebook: expected a JSON object with `nbformat`")
    clean, findings = _mask_strings(text, strings, secret_patterns.known_keys() if keys is None else keys)
    if write and findings:
        atomic_write(file, clean.encode(), keep_mode=True)
    return findings


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it stands in the file, repeated names included, which a dict would drop."""


class _String(NamedTuple):
    """One string literal of the file."""

    path: JSONPath
    value: str
    name: bool = False
    """Whether it is a name in an object."""
    secret: bool = False
    """Whether it is a secret whatever it looks like: the value of a password field."""


def _strings(value: Any, path: JSONPath = (), *, password: bool = False) -> Iterator[_String]:
    """Every string of a JSON value in the order of the file."""
    match value:
        case str():
            yield _String(path, value)
        case _Pairs():
            # ipywidgets saves the state of a Password widget with its value, under `_model_name` in the state or
            # `model_name` beside it.
            password = password or ("_model_name", "PasswordModel") in value
            holder = ("model_name", "PasswordModel") in value
            for name, inner in value:
                yield _String((*path, name), name, name=True)
                if password and name == "value" and isinstance(inner, str):
                    yield _String((*path, name), inner, secret=inner not in ("", MASK))
                else:
                    yield from _strings(inner, (*path, name), password=holder and name == "state")
        case list():
            for number, inner in enumerate(value):
                yield from _strings(inner, (*path, number))
        case _:
            pass


def _mask_strings(text: str, strings: Sequence[_String], keys: Mapping[str, str]) -> tuple[str, list[Finding]]:
    """The file's text without keys, and what they were; literals without one are not touched."""
    # Literals and strings are in the same order, so the n-th of one is the n-th of the other.
    literals = list(_LITERAL.finditer(text))
    findings: list[Finding] = []
    pieces: list[str] = []
    copied = first = 0
    for _, group in itertools.groupby(strings, _text_key):
        members = list(group)
        values, masked = _mask_text(members, keys)
        for member, value, literal in zip(members, values, literals[first:], strict=False):
            if value != member.value:
                pieces += [text[copied : literal.start()], _literal(value, like=literal[0])]
                copied = literal.end()
        findings += [Finding(_describe(members[0].path), kind, length) for kind, length in masked]
        first += len(members)
    return "".join([*pieces, text[copied:]]), findings


def _text_key(string: _String) -> tuple[JSONPath, bool]:
    """Equal for the strings of one text: notebooks save a text as a list of lines, and a key may go over two."""
    is_line = isinstance(string.path[-1], int)
    return string.path[:-1] if is_line else string.path, string.name


def _mask_text(members: Sequence[_String], keys: Mapping[str, str]) -> tuple[list[str], list[tuple[str, int]]]:
    """The strings of one text without keys, and the kind and length of each key."""
    values = [member.value for member in members]
    if members[0].secret:
        return [MASK], [("value of a password field", len(values[0]))]
    path = members[0].path
    if any(isinstance(part, str) and (_BINARY_TYPE.match(part) or part == "buffers") for part in path):
        return values, []
    found: list[tuple[str, int]] = []
    # Lines of a source end with their line end; those of a traceback have none.
    separator = "\n" if "traceback" in path else ""
    for _ in range(PASSES):
        matches = secret_patterns.find_keys(separator.join(values), keys)
        if not matches:
            break
        found += [(kind, sum(end - start for start, end in spans)) for kind, spans in matches]
        values = secret_patterns.mask_spans(values, [spans for _, spans in matches], gap=len(separator))
    return values, found


def _literal(value: str, *, like: str) -> str:
    """A string as JSON, in ASCII if the literal that it replaces is."""
    text = json.dumps(value, ensure_ascii=like.isascii())
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _describe(path: JSONPath) -> str:
    """Where in a notebook a path leads, for people."""
    match path:
        case ("cells", int(cell), "outputs", int(output), *inner):
            return f"cell {cell + 1}, output {output + 1} {_part_of_cell(inner)}".rstrip()
        case ("cells", int(cell), *inner):
            return f"cell {cell + 1}, {_part_of_cell(inner)}"
        case ("metadata", "widgets", *_):
            return "widget state"
        case _:
            return f"notebook {path[0]}"


def _part_of_cell(inner: Sequence[str | int]) -> str:
    """The name of the part, such as `source`; of an output's data, its media type."""
    names = [part for part in inner if isinstance(part, str)]
    return names[1] if names[:1] == ["data"] and len(names) > 1 else names[0] if names else ""
