"""Rows of a CSV or JSONL file, each with its line; what they are to mean is left to `prompts`."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from famnb.errors import InvalidRequest

FILES = (".csv", ".jsonl")
_LONGEST = 2**31 - 1
"""Characters of a value; a prompt may be longer than the 131,072 that `csv` takes by itself."""


def rows_of(path: Path) -> Iterator[tuple[str, Any]]:
    """What each line holds, and what an error calls it; an empty value of a CSV file is None.

    Raises InvalidRequest, naming the line, for what is no such file; OSError where there is none to read.
    """
    path = path.expanduser()
    match path.suffix.lower():
        case ".csv":
            yield from _csv(path.name, _text(path))
        case ".jsonl":
            yield from _jsonl(path.name, _text(path))
        case _:
            raise InvalidRequest(
                f"prompts: {path.name} is no CSV or JSONL file; rename it, or read it into a frame. "
                "A text of that name is put in a list"
            )


def _text(path: Path) -> str:
    """The whole file, without a byte order mark."""
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(
            f"{path.name}, line {line}: not UTF-8 (byte 0x{content[error.start]:02x}); save the file as UTF-8, or read "
            "it into a frame with pandas.read_csv(…, encoding=…)"
        ) from None


def _csv(name: str, text: str) -> Iterator[tuple[str, dict[str, str | None]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    usual = csv.field_size_limit(_LONGEST)
    try:
        lines = [(reader.line_num, values) for values in reader if any(values)]
    except csv.Error as error:
        raise InvalidRequest(f"{name}, line {reader.line_num}: {error}; is a quote open, or not doubled?") from None
    finally:
        csv.field_size_limit(usual)
    if not lines:
        return
    (_, head), *rest = lines
    refuse_twice(name, head)
    for number, values in rest:
        place = f"{name}, line {number}"
        if len(values) != len(head):
            raise InvalidRequest(f"{place}: expected {len(head)} values, as the head has, got {len(values)}")
        yield place, {column: value or None for column, value in zip(head, values, strict=True)}


def _jsonl(name: str, text: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"{name}, line {number}"
            try:
                yield place, json.loads(line)
            except ValueError as error:
                raise InvalidRequest(f"{place}: not JSON ({error}); expected one object a line") from None


def refuse_twice(place: str, columns: list[str]) -> None:
    """InvalidRequest where a column occurs twice, since only one of the two could be meant."""
    for column, count in Counter(columns).items():
        if count > 1:
            raise InvalidRequest(f"{place}: the column {column!r} occurs {count} times; give each its own name")
