"""Which process has a call open, and whether that process still lives."""

from __future__ import annotations

import functools
import os
import platform
from typing import NamedTuple

import psutil

SAME_S = 2.0
"""Start times are read from a clock that may be adjusted, so the same process may differ by this much."""


class Owner(NamedTuple):
    """A process: its id, which is used again some day; its start, which is not; its machine."""

    pid: int
    born: float
    """Unix time."""
    host: str

    @property
    def alive(self) -> bool:
        """Whether it may still run; a process of another machine is taken to."""
        if self.host != platform.node():
            return True
        try:
            process = psutil.Process(self.pid)
            return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - self.born) <= SAME_S
        except psutil.NoSuchProcess:
            return False
        except psutil.Error:
            return True


def this_process() -> Owner:
    """The process that asks."""
    return _process(os.getpid())


@functools.lru_cache(maxsize=1)
def _process(pid: int) -> Owner:
    return Owner(pid, psutil.Process(pid).create_time(), platform.node())
