"""The colours of models, variants and other groups, and of the parts of a call: the same in all figures and pages."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Sequence
from typing import Any

from famnb.errors import LedgerError
from famnb.record.ledger import connected_ledger

# Okabe and Ito's palette without its yellow, which is too pale for a line on white. They can be told apart without full
# colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

# Found by search: of the colours that read on white and on near-black, these are the farthest from COLOURS and from
# each other, also for eyes that lack one kind of cone.
PART_COLOURS = {
    "thinking": "#8462E8",
    "answer": "#85592C",
    "tool call": "#8C9550",
    "refusal": "#D62839",
    "input": "#57606A",
    "cached": "#B8C0C8",
    "waiting": "#B8C0C8",
}
"""The parts of a call: none looks like a model."""
KIND_PARTS = {"thinking": "thinking", "text": "answer", "tool_call": "tool call", "refusal": "refusal"}
"""The kinds of content, and the parts of a call that they are."""

_numbers: dict[tuple[str, str], int] = {}
"""The groups of each column in the order in which they were first drawn, as numbers."""
_lock = threading.Lock()


def group_slots(column: str, names: Sequence[str]) -> tuple[int, ...]:
    """Return a number for each of some values of a column that are drawn together, no two alike.

    Its rest by the number of colours decides the colour, which belongs to the value for as long as the process lives.
    Models have their numbers in the order of their first calls in the ledger, so the same in every notebook. How often
    the colours go into a number tells values of one colour apart, by dashes, hatches or marks. A variant that is named
    after its model has the model's colour, and the reverse, unless another one of its column had it first.
    """
    slots: list[int] = []
    with _lock:
        if any((column, name) not in _numbers for name in names):
            # A ledger that cannot be read costs the colours of notebooks before, and not the figure.
            with contextlib.suppress(LedgerError):
                for model in connected_ledger().models():
                    _find_number("model", model)
        for name in names:
            slot = _find_number(column, name) % len(COLOURS)
            while slot in slots:
                slot += len(COLOURS)
            slots.append(slot)
    return tuple(slots)


def part_colours(column: str, names: Sequence[str]) -> tuple[str | None, ...]:
    """Return the colours of values of `kind` or `part` that are parts of a call; None for any other."""
    if column not in ("kind", "part"):
        return (None,) * len(names)
    return tuple(PART_COLOURS.get(KIND_PARTS.get(name, name)) for name in names)


def _find_number(column: str, name: str) -> int:
    """Return the number of a group: a group that has none gets that of its name in another column, else the next."""
    if (column, name) not in _numbers:
        taken = {number for (other, _), number in _numbers.items() if other == column}
        of_name = [number for (_, other), number in _numbers.items() if other == name]
        _numbers[column, name] = next(n for n in itertools.chain(of_name, itertools.count()) if n not in taken)
    return _numbers[column, name]


def page_style(slot: int) -> dict[str, Any]:
    """Return the colour of a group by its number, and how often the colours were all used before it."""
    colour = COLOURS[slot % len(COLOURS)]
    # Black would not be seen on a dark page.
    return {"colour": "currentColor" if colour == "#000000" else colour, "cycle": slot // len(COLOURS)}
