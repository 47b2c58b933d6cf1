"""A JupyterLab whose kernels are forked from a process that has loaded them, `python -m tests.support.forking_lab`."""

from __future__ import annotations

import os
import sys
from typing import Any

# As in `tests/conftest.py`: this grammar of international addresses takes a second and a half to load. None is how
# Python marks a module that is not to be found, and it has to stand there before JupyterLab is imported.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # typeshed knows modules alone

from jupyter_client.provisioning import local_provisioner  # noqa: E402
from jupyterlab import commands  # noqa: E402
from jupyterlab.labapp import main  # noqa: E402

from tests.support.fork_server import ForkedProcess, ForkServer  # noqa: E402

LOADED = (
    *("ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell", "ipykernel.pylab.backend_inline"),
    *("ipywidgets", "anywidget", "pandas", "matplotlib.figure", "matplotlib.backends.backend_agg"),
    *("famnb.magic", "famnb.api", "famnb.experiment_api", "famnb.plot", "famnb.widget.board"),
    *("famnb.widget.composer", "famnb.widget.dashboard", "famnb.widget.experiment", "famnb.widget.explorer"),
)

if __name__ == "__main__":
    server = ForkServer(*LOADED)

    def launch_kernel(command: list[str], **options: Any) -> ForkedProcess:
        return ForkedProcess(server, command, env=options.get("env", os.environ), cwd=options.get("cwd"))

    # What the provisioner uses of a process is all that a forked one has.
    local_provisioner.launch_kernel = launch_kernel  # type: ignore[assignment]
    # It would ask Node.js, for half a second, where packages to build JupyterLab of come from: nothing is built here.
    commands._yarn_config = lambda logger: {"yarn config": {}, "npm config": {}}
    sys.exit(main())
