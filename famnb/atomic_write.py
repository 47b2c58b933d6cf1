"""Replaces files at once: a reader sees all of the old file or all of the new one, also if writing fails halfway."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path


def atomic_write(path: Path, data: bytes, *, keep_mode: bool = False) -> None:
    """Write `data` to `path`, all of it or nothing. Raises OSError, and then leaves the old file as it was.

    Only the file's owner can read it; with `keep_mode` it gets the permissions of the file that it replaces.
    """
    # In the same folder, since a file is moved over another at once only within one file system.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            # Else a power cut after the move may leave the new name with none of the new content.
            os.fsync(file.fileno())
        if keep_mode:
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
