"""Folders that ship beside the package: a checkout's own, else the copy in the wheel."""

from __future__ import annotations

from pathlib import Path

import famnb


def shipped(folder: str, file: str) -> tuple[Path, bool]:
    """A folder that is not code of the package, known by a file in it, and whether it is the checkout's own."""
    package = Path(famnb.__file__).parent
    checkout = package.parent / folder
    return (checkout, True) if (checkout / file).exists() else (package / checkout.name, False)
