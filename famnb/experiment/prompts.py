"""Prompts from a list, a frame or a file, their slots filled; what is asked of whom is left to the plan.

    template "Name a dish of {city}."   row {"id": "l", "city": "Lyon"}   ->   Prompt("l", "Name a dish of Lyon.", ...)

A slot is a name in braces. In a text without values to fill in, and wherever braces hold anything but a name, as in
JSON, they are left alone. Values are filled in once: braces in a value are no slots.

MERGED: Rows of a CSV or JSONL file, each with its line; what they are to mean is left to `prompts`.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import pandas as pd

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


Row: TypeAlias = Mapping[str, Any]
Source: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | Iterable[str | Row | Prompt]"
"""A text, the path of a `.csv` or `.jsonl` file, a frame, or a list of texts or rows."""

SLOT = re.compile(r"\{([^\W\d]\w*)\}")
KEPT = "expected"
"""The column that is never a slot by force: what a scorer compares an answer with."""


@dataclasses.dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt, its slots filled."""

    id: str
    """Its name in frames, unique in the experiment; its place, from `p1` on, where the row has none."""
    text: str
    """What is asked."""
    slots: Row = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    """The row's other values: those filled in, and those kept for scorers."""


def prompts_of(source: Source, *, template: str | None = None, keep: str | Iterable[str] = ()) -> tuple[Prompt, ...]:
    """The prompts of a source; InvalidRequest, naming row and slot, where one cannot be made, OSError without the file.

    A row's text is its `prompt`, or the `template`. Every other value but `id` is to be used in that text, except
    `expected` and the names in `keep`, which are kept on `slots` for scorers.
    """
    if not isinstance(template, str | None):
        raise InvalidRequest(f"template: expected a text with slots such as {{question}}, got {template!r:.80}")
    kept = {KEPT, keep} if isinstance(keep, str) else {KEPT, *keep}
    made: list[Prompt] = []
    places: dict[str, str] = {}
    for number, (place, row) in enumerate(_rows(source), 1):
        prompt = row if isinstance(row, Prompt) else _prompt(place, row, number, template, kept)
        _sendable(place, prompt.text)
        if prompt.id in places:
            raise InvalidRequest(f"{place}: the id {prompt.id!r} is {places[prompt.id]}'s already; give each its own")
        places[prompt.id] = place
        made.append(prompt)
    if not made:
        raise InvalidRequest("prompts: there are none; give at least one text or row")
    return tuple(made)


def _rows(source: object) -> Iterator[tuple[str, Row | Prompt]]:
    """Each row, and what an error calls it."""
    match source:
        case pd.DataFrame():
            refuse_twice("prompts", list(map(str, source.columns)))
            for label, row in zip(source.index, _recounted(source).to_dict("records"), strict=True):
                yield f"prompts, row {label!r}", {str(name): value for name, value in row.items()}
        case os.PathLike():
            yield from _read(Path(source))
        case str() if _is_path(source):
            yield from _read(Path(source))
        case str():
            yield "prompts, row 1", {"prompt": source}
        case Mapping():
            raise InvalidRequest("prompts: expected a list of rows, got one mapping; put it in a list")
        case Iterable() if not isinstance(source, bytes):
            for number, each in enumerate(source, 1):
                yield f"prompts, row {number}", _row(f"prompts, row {number}", each)
        case _:
            raise InvalidRequest(
                "prompts: expected a list of texts or rows, a frame, or the path of a .csv or .jsonl file; "
                f"got {source!r:.80}"
            )


def _recounted(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the counts back that pandas made floats because others are missing: 4.0 is no answer to 2 + 2."""
    made = [name for name, kind in frame.dtypes.items() if kind.kind == "f" and frame[name].isna().any()]
    return frame.assign(**{str(name): frame[name].convert_dtypes() for name in made})


def _is_path(text: str) -> bool:
    """Whether a text names a file: by its ending, or since there is one of that name."""
    return "\n" not in text and (text.lower().endswith(FILES) or os.path.isfile(text))  # noqa: PTH113 - takes any text


def _read(path: Path) -> Iterator[tuple[str, Row | Prompt]]:
    for place, row in rows_of(path):
        yield place, _row(place, row)


def _row(place: str, each: Any) -> Row | Prompt:
    match each:
        case str():
            return {"prompt": each}
        case Mapping() | Prompt():
            return each
        case _:
            raise InvalidRequest(f"{place}: expected a text or a mapping such as {{'prompt': …}}, got {each!r:.80}")


def _prompt(place: str, row: Row, number: int, template: str | None, kept: set[str]) -> Prompt:
    given = {name: value for name, value in row.items() if not _missing(value)}
    name = str(given.pop("id", f"p{number}"))
    text = template if template is not None else given.pop("prompt", None)
    if text is None and "prompt" in row:
        raise InvalidRequest(f"{place}: the prompt is empty")
    if text is None:
        columns = ", ".join(map(repr, row)) or "none"
        raise InvalidRequest(f"{place}: has no `prompt`, and there is no template=; its columns are {columns}")
    if not isinstance(text, str):
        raise InvalidRequest(f"{place}: `prompt` should be a text, got {text!r:.80}")
    to_fill = {slot for slot in row if slot not in ("id", *([] if template is not None else ["prompt"]))} - kept
    if to_fill or template is not None:
        text = _filled(place, text, given, to_fill)
    return Prompt(name, text, MappingProxyType(given))


def _sendable(place: str, text: str) -> None:
    """Refuse a text that no request can carry."""
    if not text.strip():
        raise InvalidRequest(f"{place}: the prompt is empty")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"{place}: character {error.start + 1} of the prompt, U+{ord(text[error.start]):04X}, is half of a pair "
            "and no text; it was decoded wrongly, read it as UTF-8"
        ) from None


def _filled(place: str, text: str, given: Row, to_fill: set[str]) -> str:
    """The text with its slots filled."""
    used = set(SLOT.findall(text))
    if missing := sorted(used - set(given)):
        raise InvalidRequest(
            f"{place}: no value for the slot {{{missing[0]}}}; it has {', '.join(given) or 'none'}. Add the value; if "
            f"these braces are text, give the value {'{' + missing[0] + '}'!r}"
        )
    if unused := sorted((to_fill & set(given)) - used):
        raise InvalidRequest(
            f"{place}: the value {unused[0]!r} has no slot {{{unused[0]}}} in the prompt; add the slot, leave the "
            f"value out, or keep it for scorers with keep=[{unused[0]!r}]"
        )
    return SLOT.sub(lambda slot: str(given[slot[1]]), text)


def _missing(value: Any) -> bool:
    """Whether a table has no value there."""
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)
