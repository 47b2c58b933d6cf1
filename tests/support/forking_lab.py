"""A JupyterLab whose kernels are forked from a process that has loaded them, `python -m tests.support.forking_lab`."""

from __future__ import annotations

import sys

# As in `tests/conftest.py`: this grammar of international addresses takes a second and a half to load. None is how
# Python marks a module that is not to be found, and it has to stand there before JupyterLab is imported.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # typeshed knows modules alone

from jupyterlab import commands  # noqa: E402
from jupyterlab.labapp import main  # noqa: E402

from tests.support.forked_kernels import fork_kernels  # noqa: E402

if __name__ == "__main__":
    # It would ask Node.js, for half a second, where packages to build JupyterLab of come from: nothing is built here.
    commands._yarn_config = lambda logger: {"yarn config": {}, "npm config": {}}
    with fork_kernels():
        sys.exit(main())
