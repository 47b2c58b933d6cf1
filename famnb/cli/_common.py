"""Kinds of values that options of several commands take.

MERGED: Folders that ship beside the package: a checkout's own, else the copy in the wheel.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import famnb


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


def shipped(folder: str, file: str) -> tuple[Path, bool]:
    """A folder that is not code of the package, known by a file in it, and whether it is the checkout's own."""
    package = Path(famnb.__file__).parent
    checkout = package.parent / folder
    return (checkout, True) if (checkout / file).exists() else (package / checkout.name, False)
