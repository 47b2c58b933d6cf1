"""The service as `famnb.serve` starts it, but forked from a process that has loaded it, for tests that need many."""

from __future__ import annotations

import atexit
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

from famnb.service import Server, process
from tests.support.fork_server import ForkedProcess, ForkServer


@functools.cache
def fork_server() -> ForkServer:
    """The process that services are forked from, one for each process of tests."""
    server = ForkServer("famnb.service.server")
    atexit.register(server.close)
    return server


def serve_forked(**options: Any) -> Server:
    """Start a service as `famnb.serve` does, of which only the child's imports are saved."""

    def spawn(command: Sequence[str], variables: Mapping[str, str], **files: Any) -> ForkedProcess:
        del files["start_new_session"]  # It has one.
        return ForkedProcess(fork_server(), command, env={**os.environ, **variables}, **files)

    with mock.patch.object(process, "spawn", spawn):
        return process.serve(**options)
