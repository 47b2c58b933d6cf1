"""The colours of models: each keeps its own for as long as the process lives, in every figure and on every page."""

from __future__ import annotations

import threading
from collections.abc import Sequence

# Okabe and Ito's palette without its yellow, which is too pale for a line on white. They can be told apart without full
# colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

_numbers: dict[str, int] = {}
"""Each model in the order in which they were first drawn."""
_lock = threading.Lock()


def model_slots(models: Sequence[str]) -> tuple[int, ...]:
    """Return a number for each of some models that are drawn together, no two alike.

    Its rest by the number of colours decides the colour, which belongs to the model; how often they go into it tells
    models of one colour apart, by dashes, hatches or marks.
    """
    slots: list[int] = []
    for model in models:
        with _lock:
            slot = _numbers.setdefault(model, len(_numbers)) % len(COLOURS)
        while slot in slots:
            slot += len(COLOURS)
        slots.append(slot)
    return tuple(slots)
