"""The command line, `famnb COMMAND`: finds the command, runs it, and turns errors into words and a status.

MERGED: One module a command of `famnb`: its options and what it prints; the work is done below.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

import famnb
from famnb.cli import bench, calls, check, lab, ledger, scrub, serve
from famnb.errors import FamnbError

READER_LEFT = 141
"""The exit status of a program that writes to a pipe that nobody reads any more, as shells tell it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0 when it did what it was asked, 1 when it did not, 2 for a wrong call."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        status = run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read has left, as `head` does; what is still held back would be written, and fail, at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_LEFT
    except (FamnbError, OSError) as error:
        print(f"famnb: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="famnb", description="A notebook workbench and measuring instrument for a text-generation API."
    )
    parser.add_argument("--version", action="version", version=f"famnb {famnb.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (lab, serve, check, calls, ledger, scrub, bench):
        name = command.__name__.rpartition(".")[2]
        words = (command.declare.__doc__ or "").strip()
        command.declare(commands.add_parser(name, help=words.split(";")[0], description=words))
    return parser


if __name__ == "__main__":
    sys.exit(main())
