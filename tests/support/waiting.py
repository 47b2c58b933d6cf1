"""Waiting for what happens on another thread or in another process."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
TIMEOUT_S = 120.0
"""Long enough for a loaded machine: a test that passes never waits this long, so the limit says nothing about speed."""
INTERVAL_S = 0.01


def wait_until(condition: Callable[[], T], *, timeout: float = TIMEOUT_S) -> T:
    """Call `condition` until it returns something true, and return that; AssertionError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"the condition did not become true within {timeout:g} s; it last returned {value!r}")
        time.sleep(INTERVAL_S)
    return value
