"""Prompts of an experiment, read from a list, a frame or a file, with the slots of a template filled in.

    template "Name a dish of {city}."   row {"id": "l", "city": "Lyon"}   ->   Prompt("l", "Name a dish of Lyon.", ...)

A slot is a name in braces. In a text without values to fill in, and wherever braces hold anything but a name, as in
JSON, they are left alone. Values are filled in once: braces in a value are no slots.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import pandas as pd

from famnb.errors import InvalidRequest
from famnb.prompts import SavedPrompt

_TABLES: Mapping[str, Callable[..., pd.DataFrame]] = {".parquet": pd.read_parquet, ".xlsx": pd.read_excel}
FILE_SUFFIXES = (".csv", ".jsonl", ".json", *_TABLES)
_MAX_VALUE_CHARS = 2**31 - 1
"""Limit of one value in a CSV file: a prompt may be longer than the 131,072 characters that `csv` reads by default."""


def read_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each row of a file of prompts with its location for error messages; an empty value is None or missing.

    Raises InvalidRequest, naming the line, if the file is malformed or of another kind; OSError if it cannot be read.
    """
    path = path.expanduser()
    name, suffix = path.name, path.suffix.lower()
    if suffix not in FILE_SUFFIXES:
        raise InvalidRequest(
            f"prompts: expected a file named {', '.join(FILE_SUFFIXES)}, got {name}; rename it, or read it "
            "into a frame. To use the name itself as a prompt, put it in a list"
        )
    if suffix in _TABLES:
        # Nullable types keep integers with gaps from becoming floats: 4.0 is no answer to 2 + 2.
        try:
            frame = _TABLES[suffix](path, dtype_backend="numpy_nullable")
        except ImportError:
            raise InvalidRequest(f'{name}: to read it, run: pip install "famnb[scale]"') from None
        except ValueError as error:
            raise InvalidRequest(f"{name}: cannot be read ({error}); is it a {path.suffix} file?") from None
        for number, row in enumerate(frame.to_dict("records"), 1):
            yield f"{name}, row {number}", {str(column): value for column, value in row.items()}
        return
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(
            f"{name}, line {line}: not UTF-8 (byte 0x{content[error.start]:02x}); save the file as UTF-8, or read "
            "it into a frame with pandas.read_csv(…, encoding=…)"
        ) from None
    match suffix:
        case ".csv":
            yield from _read_csv(name, text)
        case ".jsonl":
            # Not `splitlines`, which splits at U+2028 too: valid JSON may hold it within a text.
            for number, line_text in enumerate(text.split("\n"), 1):
                if line_text.strip():
                    location = f"{name}, line {number}"
                    try:
                        row = json.loads(line_text)
                    except ValueError as error:
                        raise InvalidRequest(f"{location}: not JSON ({error}); expected one object a line") from None
                    yield location, row
        case _:
            try:
                rows = json.loads(text)
            except ValueError as error:
                raise InvalidRequest(f"{name}: not JSON ({error}); one object a line is a .jsonl file") from None
            if not isinstance(rows, list):
                raise InvalidRequest(f"{name}: expected an array of texts or objects, got {text.strip()!r:.80}")
            for number, row in enumerate(rows, 1):
                yield f"{name}, row {number}", row


def _read_csv(name: str, text: str) -> Iterator[tuple[str, dict[str, str | None]]]:
    # Not pandas.read_csv: it accepts rows that are too short and columns of one name, makes numbers of texts such as
    # "007", and knows no line numbers, which the errors below name.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    default_limit = csv.field_size_limit(_MAX_VALUE_CHARS)
    try:
        lines = [(reader.line_num, values) for values in reader if any(values)]
    except csv.Error as error:
        raise InvalidRequest(f"{name}, line {reader.line_num}: {error}; is a quote open, or not doubled?") from None
    finally:
        # The limit is the whole process's, not the reader's.
        csv.field_size_limit(default_limit)
    if not lines:
        return
    (_, head), *rest = lines
    _check_unique(name, head)
    for number, values in rest:
        location = f"{name}, line {number}"
        if len(values) != len(head):
            raise InvalidRequest(f"{location}: expected {len(head)} values, as the head has, got {len(values)}")
        yield location, {column: value or None for column, value in zip(head, values, strict=True)}


def _check_unique(location: str, columns: list[str]) -> None:
    """Raise InvalidRequest if a column occurs twice: a row could keep only one of the two."""
    for column, count in Counter(columns).items():
        if count > 1:
            raise InvalidRequest(f"{location}: the column {column!r} occurs {count} times; give each its own name")


Row: TypeAlias = Mapping[str, Any]
Source: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | Iterable[str | Row | Prompt]"
"""A text, the path of a file (FILE_SUFFIXES), a frame, or texts or rows, as a list or a dataset of Hugging Face."""

SLOT_PATTERN = re.compile(r"\{([^\W\d]\w*)\}")
EXPECTED_SLOT = "expected"
"""The column that need not be a slot: what a scorer compares an answer with."""


@dataclasses.dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt with its slots filled in."""

    id: str
    """Its name in frames, unique in the experiment; `p1`, `p2`, … by its row if the row has no `id`."""
    text: str
    """The text that is sent."""
    slots: Row = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    """The row's other values: those filled in, and those kept for scorers."""
    tags: Row = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    """Of these, the values named in `keep=`: each is a column of frames, by which calls are grouped."""


def parse_prompts(source: Source, *, template: str | None = None, keep: str | Iterable[str] = ()) -> tuple[Prompt, ...]:
    """Return the prompts of a source.

    A row's text is its `prompt`, or the `template`. Every other value but `id` must be used in that text, except
    `expected` and the names in `keep`, which are kept on `slots` for scorers; those in `keep` are its `tags`, too.
    Raises InvalidRequest, naming row and slot, if a prompt cannot be made; OSError if the file cannot be read.
    """
    if not isinstance(template, str | None):
        raise InvalidRequest(f"template: expected a text with slots such as {{question}}, got {template!r:.80}")
    tag_names = {EXPECTED_SLOT, keep} if isinstance(keep, str) else {EXPECTED_SLOT, *keep}
    prompts: list[Prompt] = []
    locations: dict[str, str] = {}
    for number, (location, row) in enumerate(_rows(source), 1):
        prompt = _make_prompt(location, row, number, template, tag_names)
        if not prompt.text.strip():
            raise InvalidRequest(f"{location}: the prompt is empty")
        try:
            prompt.text.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(
                f"{location}: character {error.start + 1} of the prompt, U+{ord(prompt.text[error.start]):04X}, is "
                "half of a pair and no text; it was decoded wrongly, read it as UTF-8"
            ) from None
        if prompt.id in locations:
            raise InvalidRequest(
                f"{location}: the id {prompt.id!r} is {locations[prompt.id]}'s already; give each its own"
            )
        locations[prompt.id] = location
        prompts.append(prompt)
    if not prompts:
        raise InvalidRequest("prompts: there are none; give at least one text or row")
    return tuple(prompts)


def _rows(source: object) -> Iterator[tuple[str, Any]]:
    """Yield each row with its location for error messages."""
    match source:
        case pd.DataFrame():
            _check_unique("prompts", list(map(str, source.columns)))
            # pandas holds integers with gaps as floats, and 4.0 is no answer to 2 + 2.
            gaps = [name for name, dtype in source.dtypes.items() if dtype.kind == "f" and source[name].isna().any()]
            frame = source.assign(**{str(name): source[name].convert_dtypes() for name in gaps})
            for label, row in zip(source.index, frame.to_dict("records"), strict=True):
                yield f"prompts, row {label!r}", {str(name): value for name, value in row.items()}
        case str() if "\n" in source or not (source.lower().endswith(FILE_SUFFIXES) or os.path.isfile(source)):  # noqa: PTH113 - takes any text
            yield "prompts, row 1", source
        case str() | os.PathLike():
            yield from read_rows(Path(source))
        case Mapping():
            raise InvalidRequest(
                "prompts: expected a list of rows, got one mapping; put it in a list, or take one split of a dataset"
            )
        case Iterable() if not isinstance(source, bytes):
            for number, item in enumerate(source, 1):
                yield f"prompts, row {number}", item
        case _:
            raise InvalidRequest(
                "prompts: expected a list of texts or rows, a frame, or the path of a file "
                f"({', '.join(FILE_SUFFIXES)}); got {source!r:.80}"
            )


def _make_prompt(location: str, item: Any, number: int, template: str | None, tag_names: set[str]) -> Prompt:
    """Return the prompt of a text or a row. Raises InvalidRequest if it makes none."""
    match item:
        case Prompt():
            return item
        case SavedPrompt():
            # Frames then tell the versions of a prompt apart by name.
            row: Row = {"id": f"{item.name} v{item.version}", "prompt": str(item)}
        case str():
            row = {"prompt": item}
        case Mapping():
            row = item
        case _:
            raise InvalidRequest(f"{location}: expected a text or a mapping such as {{'prompt': …}}, got {item!r:.80}")
    # Not `pd.isna`, which answers with an array for a list; only NaN is unequal to itself.
    values = {
        name: value
        for name, value in row.items()
        if not (value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value))
    }
    prompt_id = str(values.pop("id", f"p{number}"))
    text = template if template is not None else values.pop("prompt", None)
    if text is None and "prompt" in row:
        raise InvalidRequest(f"{location}: the prompt is empty")
    if text is None:
        columns = ", ".join(map(repr, row)) or "none"
        raise InvalidRequest(f"{location}: has no `prompt`, and there is no template=; its columns are {columns}")
    if not isinstance(text, str):
        raise InvalidRequest(f"{location}: `prompt` should be a text, got {text!r:.80}")
    must_use = set(row) - tag_names - ({"id", "prompt"} if template is None else {"id"})
    # Without a template and without values, braces in the prompt are text.
    if must_use or template is not None:
        used = set(SLOT_PATTERN.findall(text))
        if lacking := sorted(used - set(values)):
            raise InvalidRequest(
                f"{location}: no value for the slot {{{lacking[0]}}}; it has {', '.join(values) or 'none'}. Add the "
                f"value; if these braces are text, give the value {'{' + lacking[0] + '}'!r}"
            )
        if unused := sorted((must_use & set(values)) - used):
            raise InvalidRequest(
                f"{location}: the value {unused[0]!r} has no slot {{{unused[0]}}} in the prompt; add the slot, leave "
                f"the value out, or keep it for scorers with keep=[{unused[0]!r}]"
            )
        text = SLOT_PATTERN.sub(lambda match: str(values[match[1]]), text)
    tags = {name: value for name, value in values.items() if name in tag_names and name != EXPECTED_SLOT}
    return Prompt(prompt_id, text, MappingProxyType(values), MappingProxyType(tags))
