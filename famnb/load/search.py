"""The search for the highest load that keeps an objective: a rule without a service.

double until it is missed, or halve until it is kept ── then halve the distance between the two, by ratio
"""

from __future__ import annotations

import math
from collections.abc import Callable

MAX_STEPS = 16
"""How many loads a search tries at most."""


def search_peak(
    keeps: Callable[[float], bool], start: float, *, tolerance: float, is_whole: bool = False
) -> tuple[float, float]:
    """Return the highest load that kept the objective, or 0, and the lowest above it that missed it, or infinity.

    They are no more than `tolerance` apart, by ratio, unless MAX_STEPS was reached; whole numbers next to each other if
    the load is one (`is_whole`).
    """
    kept, missed, load = 0.0, math.inf, start
    for _ in range(MAX_STEPS):
        if keeps(load):
            kept = load
        else:
            missed = load
        if math.isinf(missed):
            load = 2 * load
        elif kept == 0:
            load = load / 2
        else:
            load = math.sqrt(kept * missed)
        if is_whole:
            load = float(round(load))
        if load in (0, kept, missed) or (kept and missed / kept <= 1 + tolerance):
            break
    return kept, missed
