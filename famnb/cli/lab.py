"""`famnb lab`: JupyterLab on the notebooks beside the embedded service."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from famnb import service
from famnb.cli._common import at_least, shipped
from famnb.service.process import KEY_VARIABLE, SERVICE_URL, spawn

START = "01-start.ipynb"


def declare(parser: argparse.ArgumentParser) -> None:
    """JupyterLab on the notebooks, with the embedded service running; Ctrl-C ends both."""
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--port", type=at_least(0, 65_535), metavar="N", help="JupyterLab's port (default: 8888, or the next free one)"
    )
    parser.add_argument("lab", nargs="*", metavar="-- OPTION", help="further options for JupyterLab, after --")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Start the service, then JupyterLab in a child that knows where the service is."""
    if find_spec("jupyterlab") is None:
        print('famnb: JupyterLab is not installed; run: pip install "famnb[lab]"', file=sys.stderr)
        return 1
    folder = notebooks()
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"]
    command += [f"--LabApp.default_url=/lab/tree/{START}"]
    command += ["--no-browser"] if options.no_browser else []
    command += [f"--port={options.port}"] if options.port is not None else []
    if getattr(os, "geteuid", lambda: 1)() == 0:
        command.append("--allow-root")
    with service.serve() as server:
        print(f"famnb: notebooks in {folder}; embedded service at {server.url}", flush=True)
        child = spawn([*command, *options.lab], {SERVICE_URL: server.url, KEY_VARIABLE: server.key})
        if isinstance(child, OSError):
            raise child
        try:
            return child.wait()
        except KeyboardInterrupt:
            # Ctrl-C reached JupyterLab as well; it asks once more, and is not waited for any longer then.
            child.terminate()
            return child.wait()


def notebooks() -> Path:
    """The folder of notebooks: the checkout's own, else a copy of the installed ones that the user may change."""
    source, own = shipped("notebooks", START)
    if own:
        return source
    copy = Path.cwd() / "famnb-notebooks"
    copy.mkdir(exist_ok=True)
    for notebook in sorted(source.glob("*.ipynb")):
        if not (copy / notebook.name).exists():
            shutil.copy(notebook, copy)
    return copy
