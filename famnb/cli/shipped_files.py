"""Folders that ship beside the package, notebooks and benchmarks: a checkout's own, else the copy in the wheel."""

from __future__ import annotations

from pathlib import Path

import famnb


def find_shipped_folder(folder: str, file: str) -> tuple[Path, bool]:
    """Return a folder, known by a file in it, and whether it is the checkout's own."""
    package = Path(famnb.__file__).parent
    checkout = package.parent / folder
    # The wheel holds them inside the package, see `force-include` in pyproject.toml.
    return (checkout, True) if (checkout / file).exists() else (package / checkout.name, False)
