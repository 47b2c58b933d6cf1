"""Replaces files at once: a reader sees all of the old file or all of the new one, also if writing fails halfway."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path


def atomic_write(path: Path, data: bytes, *, keep_mode: bool = False, shared: bool = False) -> None:
    """Write `data` to `path`, all of it or nothing. Raises OSError, and then leaves the old file as it was.

    Only the file's owner can read it; with `keep_mode` it gets the permissions of the file that it replaces, `shared`
    those of any new file.
    """
    # In the same folder, since a file is moved over another at once only within one file system.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    mode = 0o666 if shared else 0o600
    file = open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115 - closed below
    try:
        with file:
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
