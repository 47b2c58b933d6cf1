"""Work on large requests beside the event loop, so that other callers are served meanwhile; what work is the caller's.

What takes long with a body of many megabytes is Python code for each message, and that lets the event loop in every
few milliseconds. Half of the 3.8 s that 550,000 messages took went to the garbage collector, which looked through all
of the growing request again and again, and held everything up for up to 0.3 s each time; hence `collect_rarely`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

LARGE = 256_000
"""Bytes, or characters, from which a request is large; a smaller one takes a few milliseconds at most."""
_THRESHOLDS = (50_000, 50, 20)
"""New objects until the collector looks at these, such rounds until it looks at survivors, and those until at all."""

_Made = TypeVar("_Made")
# One thread: more would take the interpreter from the event loop for longer, and have no more of it among them.
_worker = ThreadPoolExecutor(1, thread_name_prefix="famnb-large")


async def beside(work: Callable[[], _Made], *, size: int) -> _Made:
    """What some work makes: at once for a small size, else in a thread while the event loop goes on."""
    if size < LARGE:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_worker, work)


@contextlib.contextmanager
def collect_rarely() -> Iterator[None]:
    """Have the garbage collector leave alone what is there now, and look at new objects seldom."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
