"""Answers as no service should send them: fixtures with their bytes, lines or JSON values changed at random."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[1] / "wire" / "fixtures"
STRANGE: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    7,
    10**30,
    1.5,
    -0.0,
    float("nan"),
    float("inf"),
    "",
    "x",
    "12",
    "-3",
    "1e999",
    "²",
    "\ud83d",
    "<think>",
    "</think>",
    "text",
    "tool_use",
    "thinking_delta",
    "response.completed",
    [],
    [None],
    [[]],
    [{}],
    {},
    {"type": None},
    {"type": "text", "text": 5},
    {"error": {"message": ["no"]}},
    [{"index": "0", "delta": {"content": [{"text": {}}]}}],
)
"""Values of every JSON type, and words that mean something in one place or another."""


def answers() -> list[tuple[str, bytes]]:
    """The fixtures: their endpoint's name and their bytes."""
    found = []
    for path in sorted([*FIXTURES.rglob("*.sse"), *FIXTURES.glob("*.json")]):
        name = next((name for name in ("messages", "responses") if name in path.stem), "web")
        found.append((name, path.read_bytes()))
    return found


def mutants(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """`count` changed answers, each with the name of an endpoint, seldom another's; the same for the same seed."""
    chance, originals = random.Random(seed), answers()
    names = sorted({name for name, _ in originals})
    for _ in range(count):
        name, data = chance.choice(originals)
        for _ in range(chance.randint(1, 4)):
            data = chance.choice(CHANGES)(chance, data)
        yield (name if chance.random() < 0.9 else chance.choice(names)), data


def _bytes(chance: random.Random, data: bytes) -> bytes:
    """Some bytes replaced, dropped or put in."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(changed) + 1)
        changed[at : at + chance.choice((0, 1, 1, 9))] = chance.randbytes(chance.choice((0, 1, 1, 5)))
    return bytes(changed)


def _cut(chance: random.Random, data: bytes) -> bytes:
    """The beginning alone."""
    return data[: chance.randrange(len(data) + 1)]


def _lines(chance: random.Random, data: bytes) -> bytes:
    """Lines repeated, dropped, exchanged, or taken from another answer."""
    lines = data.split(b"\n")
    lines += chance.choice(answers())[1].split(b"\n") if chance.random() < 0.2 else []
    for _ in range(chance.randint(1, 4)):
        one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[one : one + chance.randint(0, 2)] = lines[other : other + chance.randint(0, 2)]
        lines = lines or [b""]
    return b"\n".join(lines)


def _values(chance: random.Random, data: bytes) -> bytes:
    """A JSON value replaced, dropped, doubled or moved to another name."""
    lines = data.split(b"\n")
    spots = [number for number, line in enumerate(lines) if b"{" in line]
    if data.lstrip().startswith(b"{"):
        lines, spots = [data], [0]
    for number in chance.sample(spots, min(len(spots), chance.randint(1, 3))):
        head, brace, rest = lines[number].partition(b"{")
        try:
            value = json.loads(brace + rest)
        except ValueError:
            continue
        chance.choice(_places(value))(chance)
        lines[number] = head + json.dumps(value).encode()
    return b"\n".join(lines)


def _places(value: Any) -> list[Callable[[random.Random], object]]:
    """A change for every place in a JSON value."""
    found: list[Callable[[random.Random], object]] = [lambda chance: None]
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found.append(lambda chance, at=key: _change(chance, value, at))
        found += _places(value[key])
    return found


def _change(chance: random.Random, holder: Any, at: Any) -> None:
    match chance.randrange(5):
        case 0:
            del holder[at]
        case 1 if isinstance(holder, dict):
            holder[chance.choice(list(holder))] = holder[at]
        case 1:
            holder.append(holder[at])
        case 2:
            holder[at] = [holder[at]]
        case _:
            holder[at] = chance.choice(STRANGE)


CHANGES = (_bytes, _cut, _lines, _values, _values, _values, _values)
