"""`famnb lab`: starts the embedded service, and JupyterLab on the notebooks."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from famnb import service
from famnb.cli import add_model, find_shipped_folder, integer_from
from famnb.service.process import spawn, variables_of

START = "01-start.ipynb"
# JupyterLab ends its kernels one after another, each of which may take seconds.
_STOP_TIMEOUT_S = 15.0
"""How many seconds JupyterLab may take to end by itself before it is killed."""


def declare(parser: argparse.ArgumentParser) -> None:
    """JupyterLab on the notebooks, with the embedded service running; Ctrl-C, SIGTERM or a closed terminal end both."""
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    port_help = "JupyterLab's port (default: 8888, or the next free one)"
    parser.add_argument("--port", type=integer_from(0, 65_535), metavar="N", help=port_help)
    add_model(parser, "a model on this machine that answers in place of the simulation")
    parser.add_argument("lab", nargs="*", metavar="-- OPTION", help="further options for JupyterLab, after --")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Start the service, then JupyterLab in a child that knows where the service is."""
    if find_spec("jupyterlab") is None:
        print('famnb: JupyterLab is not installed; run: pip install "famnb[lab]"', file=sys.stderr)
        return 1
    folder = find_notebooks()
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"]
    # The question whether news of Jupyter are wanted would cover the first page; both look-ups want a network.
    command += [f"--LabApp.default_url=/lab/tree/{START}", "--LabApp.news_url=None"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate"]
    # For what a widget inserts as a cell below: it finds the notebook through the application.
    command += ["--LabApp.expose_app_in_browser=True"]
    command += ["--no-browser"] if options.no_browser else []
    command += [f"--port={options.port}"] if options.port is not None else []
    # JupyterLab refuses to run as root, the user of most containers, unless told to; Windows has no such user.
    if getattr(os, "geteuid", lambda: 1)() == 0:
        command.append("--allow-root")
    # As Ctrl-C: what ends this process ends the service and JupyterLab with it, in this order from inside out.
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), signal.default_int_handler)
    with service.serve(model=options.model) as server:
        engine = f"{', '.join(server.models)} on this machine" if server.models else "embedded service"
        print(f"famnb: notebooks in {folder}; {engine} at {server.url}", flush=True)
        child = spawn(
            [*command, *options.lab],
            variables_of(server),
            # A session of its own: at Ctrl-C JupyterLab would ask whether to stop, and a terminal that is closed would
            # kill it before it has ended its kernels.
            start_new_session=True,
        )
        if isinstance(child, OSError):
            raise child
        try:
            return child.wait()
        finally:
            # It ends its kernels with it.
            child.terminate()
            try:
                child.wait(_STOP_TIMEOUT_S)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):  # a second Ctrl-C
                child.kill()
                child.wait()


def find_notebooks() -> Path:
    """The folder of notebooks: the checkout's own, else a copy of the installed ones that the user may change."""
    source, is_checkout = find_shipped_folder("notebooks", START)
    if is_checkout:
        return source
    copy = Path.cwd() / "famnb-notebooks"
    copy.mkdir(exist_ok=True)
    # What the user has changed is not written over.
    for notebook in sorted(source.glob("*.ipynb")):
        if not (copy / notebook.name).exists():
            shutil.copy(notebook, copy)
    return copy
