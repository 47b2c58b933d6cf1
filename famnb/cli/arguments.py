"""Types of arguments that several commands take."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def integer_from(minimum: int, maximum: int | None = None) -> Callable[[str], int]:
    """Return a parser, for `type=`, of a whole number within bounds; it raises ArgumentTypeError for anything else."""
    bounds = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = minimum - 1
        if number < minimum or (maximum is not None and number > maximum):
            raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, got {text!r}")
        return number

    return parse
