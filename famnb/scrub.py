"""Takes keys out of notebook files, which keep their form, so that a difference shows where a key was."""

from __future__ import annotations

import codecs
import dataclasses
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

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
# Names of binary outputs, whose base64 may look like a key; SVG is text.
_BINARY_TYPE = re.compile(r"(?:image/(?!svg)|audio/|video/|font/|application/(?:pdf|octet-stream|zip))")


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One key that was found, described without showing it."""

    location: str
    """Where it stood: the cell, counted from 1, and the part of it."""
    kind: str
    """The variable whose value it is, or the shape it has."""
    length: int
    """Its characters."""

    def __str__(self) -> str:
        return f"{self.location}: {self.kind}, {self.length} characters"


def scrub(path: str | os.PathLike[str], *, write: bool = True) -> list[Finding]:
    """Mask every key in a notebook file and return what was found; without `write`, leave the file as it is.

    Keys are those of the environment, and what has the shape of one. Indentation, line ends and escapes stay as they
    were. Raises FamnbError for a file that is not a notebook, OSError for one that cannot be read or written.
    """
    file = Path(path).resolve()
    try:
        data = file.read_bytes()
        text = data.decode("utf-8-sig")
        tree = json.loads(text)
        clean, findings = _mask_tree(tree)
    except (ValueError, RecursionError) as fault:
        raise FamnbError(f"{path}: not a notebook: expected JSON in UTF-8 ({type(fault).__name__}: {fault})") from None
    if not isinstance(tree, dict) or "nbformat" not in tree:
        raise FamnbError(f"{path}: not a notebook: expected a JSON object with `nbformat`")
    if write and findings:
        mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        atomic_write(file, mark + _encode(clean, text).encode(), keep_mode=True)
    return findings


def _mask_tree(value: Any) -> tuple[Any, list[Finding]]:
    """Return a notebook's JSON without keys, and what they were."""
    findings: list[Finding] = []

    def mask(value: Any, path: JSONPath, *, is_secret: bool = False) -> Any:
        match value:
            case str():
                return mask_lines([value], path, is_secret=is_secret)[0]
            case dict():
                # ipywidgets saves the state of a Password widget with its value, under `_model_name` in the state or
                # `model_name` beside it.
                holder = value.get("model_name") == "PasswordModel"
                has_secret = is_secret or value.get("_model_name") == "PasswordModel"
                return {
                    mask(name, (*path, name)): mask(
                        inner,
                        (*path, name),
                        is_secret=(holder and name == "state")
                        or (has_secret and name == "value" and inner not in ("", MASK)),
                    )
                    for name, inner in value.items()
                }
            # Notebooks save a text as a list of lines, and a key may go over two.
            case [str(), *_] if all(isinstance(item, str) for item in value):
                return mask_lines(value, path)
            case list():
                return [mask(inner, (*path, number)) for number, inner in enumerate(value)]
            case _:
                return value

    def mask_lines(lines: list[str], path: JSONPath, *, is_secret: bool = False) -> list[str]:
        if is_secret:
            findings.append(Finding(_describe(path), "value of a password field", len(lines[0])))
            return [MASK]
        if any(isinstance(part, str) and (_BINARY_TYPE.match(part) or part == "buffers") for part in path):
            return lines
        # Lines of a source end with their line end; those of a traceback have none.
        separator = "\n" if "traceback" in path else ""
        for _ in range(PASSES):
            matches = secret_patterns.find_keys(separator.join(lines))
            if not matches:
                break
            location = _describe(path)
            lengths = [(kind, sum(end - start for start, end in spans)) for kind, spans in matches]
            findings.extend(Finding(location, kind, length) for kind, length in lengths)
            lines = secret_patterns.mask_spans(lines, [spans for _, spans in matches], gap=len(separator))
        return lines

    return mask(value, ()), findings


def _encode(tree: Any, like: str) -> str:
    """Return JSON in the form of another text: its indentation, line ends and escapes, as Jupyter and others write."""
    indent = re.search(r"\{\r?\n([ \t]+)", like)
    separators = None if indent or ": " in like else (",", ":")
    text = json.dumps(tree, indent=indent and indent[1], separators=separators, ensure_ascii=like.isascii())
    text = _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    if "\r\n" in like:
        text = text.replace("\n", "\r\n")
    return f"{text}{like[len(like.rstrip()) :]}"


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
