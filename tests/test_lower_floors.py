"""The lower floors stand alone: what they need, and what they must not."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("httpx", "pandas", "matplotlib", "ipywidgets", "starlette")


@pytest.mark.parametrize(
    "module",
    ["errors", "events", "timing", "reply", "request", "wire.chat", "wire.responses", "wire.messages", "wire.errors"],
)
def test_a_lower_floor_imports_without_heavy_libraries(module: str):
    """Reading a recorded stream takes no HTTP, no frames and no widgets."""
    code = f"import sys, famnb.{module}; print([name for name in {HEAVY} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "[]"


@pytest.mark.parametrize("module", ["record", "frame", "plot", "scrub", "secret_patterns", "client.exchange"])
def test_what_reads_recorded_calls_imports_without_the_network(module: str):
    """Ledger, frames and figures need what a call is, not what carries it."""
    network = ("aiohttp", "httpx", "httpx_aiohttp", "tqdm", "starlette")
    code = f"import sys, famnb.{module}; print([name for name in {network} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "[]"
