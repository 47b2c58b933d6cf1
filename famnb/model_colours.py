"""The colours of models: each keeps its own for as long as the process lives, in every figure and on every page."""

from __future__ import annotations

import threading

# Okabe and Ito's palette without its yellow, which is too pale for a line on white. They can be told apart without full
# colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

_slots: dict[str, int] = {}
_lock = threading.Lock()


def model_slot(model: str) -> int:
    """Return the number of a model, in the order in which models were first drawn; it decides colour and dashes."""
    with _lock:
        return _slots.setdefault(model, len(_slots))
