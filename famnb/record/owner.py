"""`OwnerProcess`: the process that has a call open, and whether it still lives."""

from __future__ import annotations

import functools
import os
import platform
from typing import NamedTuple

import psutil

# psutil derives a start from the wall clock, which may be adjusted between two looks. A process id is seldom used again
# within so short a time.
SAME_START_S = 2.0
"""By how many seconds the start of one process may seem to differ."""


class OwnerProcess(NamedTuple):
    """A process, known by its start and its machine too, since process ids are used again."""

    pid: int
    born: float
    """When it started, Unix time."""
    host: str

    @property
    def is_alive(self) -> bool:
        """Whether it may still run; True for a process of another machine, which cannot be asked."""
        if self.host != platform.node():
            return True
        try:
            process = psutil.Process(self.pid)
            # A zombie has ended; only its parent has not read its exit status yet.
            return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - self.born) <= SAME_START_S
        except psutil.NoSuchProcess:
            return False
        except psutil.Error:  # such as AccessDenied: there is a process, and no more is known
            return True


def this_process() -> OwnerProcess:
    """Return the process that this is called in."""
    return _describe_process(os.getpid())


@functools.lru_cache(maxsize=1)
def _describe_process(pid: int) -> OwnerProcess:
    """Cached by process id, so that a forked child is not taken for its parent."""
    return OwnerProcess(pid, psutil.Process(pid).create_time(), platform.node())
