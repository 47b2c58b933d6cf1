"""Takes keys out of notebook files, leaving every other byte as it was; printing and exit statuses are `cli`'s.

file ── string literals, each with its place ── texts ── (known keys, shapes of keys) ── masked ── written at once
                                                └ a list of lines is one text
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from famnb import secret_patterns
from famnb.errors import FamnbError
from famnb.secret_patterns import MASK, Span

Place: TypeAlias = tuple[str | int, ...]
PASSES = 4

_HALF = re.compile("[\ud800-\udfff]")
"""Half a character: JSON can have it as an escape, UTF-8 cannot have it at all."""
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
_BLOB = re.compile(r"(?:image/(?!svg)|audio/|video/|font/|application/(?:pdf|octet-stream|zip))")


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One key, told without showing it."""

    place: str
    """Where it stood: the cell, counted from 1, and the part of it."""
    kind: str
    """The variable whose value it is, or the shape it has."""
    length: int
    """Its characters."""

    def __str__(self) -> str:
        return f"{self.place}: {self.kind}, {self.length} characters"


def scrub(path: str | os.PathLike[str], *, keys: Mapping[str, str] | None = None, write: bool = True) -> list[Finding]:
    """Mask every key in a notebook file and say what was found; without `write`, only say it.

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
    clean, findings = _scrubbed(text, strings, secret_patterns.known_keys() if keys is None else keys)
    if write and findings:
        _replace(file, clean.encode())
    return findings


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it stands in the file, repeated names included."""


class _String(NamedTuple):
    """One string literal of the file."""

    place: Place
    value: str
    name: bool = False
    """Whether it is the name of what follows."""
    secret: bool = False
    """Whether all of it is a secret, whatever it looks like."""


def _strings(value: Any, place: Place = (), *, password: bool = False) -> Iterator[_String]:
    """Every string of a JSON value in the order of the file."""
    match value:
        case str():
            yield _String(place, value)
        case _Pairs():
            password = password or ("_model_name", "PasswordModel") in value
            holder = ("model_name", "PasswordModel") in value
            for name, inner in value:
                yield _String((*place, name), name, name=True)
                if password and name == "value" and isinstance(inner, str):
                    yield _String((*place, name), inner, secret=inner not in ("", MASK))
                else:
                    yield from _strings(inner, (*place, name), password=holder and name == "state")
        case list():
            for number, inner in enumerate(value):
                yield from _strings(inner, (*place, number))
        case _:
            pass


def _scrubbed(text: str, strings: Sequence[_String], keys: Mapping[str, str]) -> tuple[str, list[Finding]]:
    """The file's text without keys, and what they were; literals without one are not touched."""
    literals = list(_LITERAL.finditer(text))
    findings: list[Finding] = []
    pieces: list[str] = []
    done = at = 0
    for _, group in itertools.groupby(strings, _unit):
        members = list(group)
        cleaned, found = _cleaned(members, keys)
        for member, value, literal in zip(members, cleaned, literals[at:], strict=False):
            if value != member.value:
                pieces += [text[done : literal.start()], _literal(value, like=literal[0])]
                done = literal.end()
        findings += [Finding(_where(members[0].place), kind, length) for kind, length in found]
        at += len(members)
    return "".join([*pieces, text[done:]]), findings


def _unit(string: _String) -> tuple[Place, bool]:
    """What the strings of one text have in common: a list of lines is one text."""
    listed = isinstance(string.place[-1], int)
    return string.place[:-1] if listed else string.place, string.name


def _cleaned(members: Sequence[_String], keys: Mapping[str, str]) -> tuple[list[str], list[tuple[str, int]]]:
    """The strings of one text without keys, and the kind and length of each key."""
    values = [member.value for member in members]
    if members[0].secret:
        return [MASK], [("value of a password field", len(values[0]))]
    place = members[0].place
    if any(isinstance(part, str) and (_BLOB.match(part) or part == "buffers") for part in place):
        return values, []
    found: list[tuple[str, int]] = []
    # What is masked may bring out another key beside it, seldom; so it is looked at until there is none.
    for _ in range(PASSES):
        joint = "\n" if "traceback" in place else ""
        keys_here = secret_patterns.find_keys(joint.join(values), keys)
        if not keys_here:
            break
        found += [(kind, sum(end - start for start, end in spans)) for kind, spans in keys_here]
        values = _masked(values, len(joint), [spans for _, spans in keys_here])
    return values, found


def _masked(values: Sequence[str], joint: int, keys: Iterable[Sequence[Span]]) -> list[str]:
    """The strings with the mask where each key began; `joint` is what lies between two of them, in characters."""
    edits = sorted((start, end, MASK if not n else "") for spans in keys for n, (start, end) in enumerate(spans))
    made: list[str] = []
    offset = 0
    for value in values:
        parts, done = [], 0
        for start, end, mask in edits:
            low, high = max(start - offset, 0), min(end - offset, len(value))
            if low < high:
                parts += [value[done:low], mask if start >= offset else ""]
                done = high
        made.append("".join([*parts, value[done:]]))
        offset += len(value) + joint
    return made


def _literal(value: str, *, like: str) -> str:
    """A string as JSON, in ASCII where it was."""
    text = json.dumps(value, ensure_ascii=like.isascii())
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _where(place: Place) -> str:
    """A place in a notebook in words."""
    match place:
        case ("cells", int(cell), "outputs", int(output), *inner):
            return f"cell {cell + 1}, output {output + 1} {_last(inner)}".rstrip()
        case ("cells", int(cell), *inner):
            return f"cell {cell + 1}, {_last(inner)}"
        case ("metadata", "widgets", *_):
            return "widget state"
        case _:
            return f"notebook {place[0]}"


def _last(inner: Sequence[str | int]) -> str:
    names = [part for part in inner if isinstance(part, str)]
    return names[1] if names[:1] == ["data"] and len(names) > 1 else names[0] if names else ""


def _replace(file: Path, data: bytes) -> None:
    """Put new bytes in the place of a file at once, its permissions kept; on failure the old file stays."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(data)
            new.flush()
            os.fsync(new.fileno())
        shutil.copymode(file, name)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
