"""Kernels of notebooks that are forked from a process that has loaded what they import, and otherwise as any other."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any
from unittest import mock

from jupyter_client.provisioning import local_provisioner

from tests.support.fork_server import ForkedProcess, ForkServer

LOADED = (
    *("ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell", "ipykernel.pylab.backend_inline"),
    *("ipywidgets", "anywidget", "pandas", "matplotlib.figure", "matplotlib.backends.backend_agg"),
    *("famnb.magic", "famnb.api", "famnb.experiment_api", "famnb.plot", "famnb.widget.board"),
    *("famnb.widget.composer", "famnb.widget.dashboard", "famnb.widget.experiment", "famnb.widget.explorer"),
)


@contextlib.contextmanager
def fork_kernels() -> Iterator[None]:
    """Have every kernel that this process starts forked."""
    with ForkServer(*LOADED) as server:

        def launch_kernel(command: list[str], **options: Any) -> ForkedProcess:
            return ForkedProcess(server, command, env=options.get("env", os.environ), cwd=options.get("cwd"))

        # What the provisioner uses of a process is all that a forked one has.
        with mock.patch.object(local_provisioner, "launch_kernel", launch_kernel):
            yield
