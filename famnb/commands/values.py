"""Kinds of values that options of several commands take."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def at_least(least: int, most: int | None = None) -> Callable[[str], int]:
    """Reads a whole number that is not smaller, and not larger than `most`."""
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, got {text!r}")
        return number

    return read
