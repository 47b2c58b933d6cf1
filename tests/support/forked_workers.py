"""Workers of pytest-xdist that are forked from one process that has loaded every test, for runs of all of them."""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from _pytest.config import _prepareconfig
from execnet import gateway_base, gateway_io

from tests.support.fork_server import ForkedProcess, ForkServer


def fork_workers(config: pytest.Config) -> None:
    """Have the workers that start from now on forked, until this run of pytest ends."""
    server = ForkServer("tests.support.forked_workers:load_tests")
    config.add_cleanup(server.close)

    class ForkedIO(gateway_io.Popen2IOMaster):
        """What execnet 2.1 says to a worker and hears of it; it has no public name for the process between them."""

        def __init__(self, command: list[str], execmodel: gateway_base.ExecModel) -> None:
            files: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.popen = process = ForkedProcess(server, command, env=os.environ, **files)
            gateway_base.Popen2IO.__init__(self, process.stdin, process.stdout, execmodel)

    gateway_io.Popen2IOMaster = ForkedIO


def load_tests() -> None:
    """Import every test module as pytest does, its assertions rewritten."""
    # Each worker of pytest-xdist 3.8 begins with it, too; it has assertions rewritten. -s: nothing is captured here.
    _prepareconfig(["-s"])
    root = Path(__file__).parents[2]
    for file in sorted((root / "tests").rglob("test_*.py")):
        # What does not load is reported where it is collected.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
