"""`famnb bench`: runs the benchmarks of tests/bench in a process of their own.

Each part runs beside its peers on this machine, in one run: the client beside the openai SDK and aiohttp with
msgspec; the service beside a bare Starlette response; a board of eight panes in JupyterLab beside HTML.value +=; an
experiment of 10,000 calls beside send_many and the same on two Dask workers.

Each peer is a process of its own, each round begins with another peer, and figures are medians. Read the ratios
(× famnb) rather than the figures, on a machine that does nothing else; lines that begin with `goal:` give a target and
whether it was met. --quick only shows that everything runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from famnb.cli import find_shipped_folder


def declare(parser: argparse.ArgumentParser) -> None:
    """Benchmarks beside their peers, in one run; needs what `famnb[test]` installs."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    parser.add_argument("--quick", action="store_true", help="sizes so small that the figures mean nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to a file")
    parser.add_argument("--list", action="store_true", help="list the benchmarks, and run none")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run benchmarks in a child process, so that nothing this process has loaded is measured."""
    folder, _ = find_shipped_folder("tests/bench", "__main__.py")
    command = [sys.executable, str(folder), *options.names]
    command += ["--quick"] if options.quick else []
    command += ["--list"] if options.list else []
    command += ["--json", str(options.json)] if options.json else []
    return subprocess.call(command)  # noqa: S603 - our own interpreter with our own arguments
