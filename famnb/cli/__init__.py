"""The command line, `famnb COMMAND`: one module a command, which declares its options, runs, and prints the outcome.

What several commands need stands here: some arguments, and where the notebooks and the benchmarks are.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import famnb
from famnb.errors import FamnbError

COMMANDS = ("lab", "serve", "model", "check", "run", "calls", "ledger", "prices", "scrub", "bench")
"""The commands, each a module of this package, in the order of the overview."""
BROKEN_PIPE = 141
"""The exit status of a program whose pipe nobody reads any more: 128 + SIGPIPE, as shells report it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status: 0 for success, 1 for failure, 2 for wrong arguments."""
    words = sys.argv[1:] if arguments is None else arguments
    # Only the command that is called is imported: pandas, which others need, would more than double what a service
    # takes of memory. Without one there is the overview, or an error, with all of them.
    names = [name for name in words[:1] if name in COMMANDS]
    options = _make_parser(names or COMMANDS).parse_args(words)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        status = run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader has left, as `head` does. What is still buffered would be written when the interpreter ends, and
        # fail there with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (FamnbError, OSError) as error:
        print(f"famnb: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT


def _make_parser(names: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of these commands."""
    parser = argparse.ArgumentParser(
        prog="famnb", description="A notebook workbench and measuring instrument for a text-generation API."
    )
    parser.add_argument("--version", action="version", version=f"famnb {famnb.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in names:
        command = importlib.import_module(f"famnb.cli.{name}")
        # The docstring of `declare` describes a command; up to its semicolon, it is the line of the overview.
        description = (command.declare.__doc__ or "").strip()
        # What its module says after the first sentence stands below the options, line by line as it is written there.
        explanation = (command.__doc__ or "").partition("\n\n")[2]
        command.declare(
            commands.add_parser(
                name,
                help=description.split(";")[0],
                description=description,
                epilog=explanation,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
        )
    return parser


def integer_from(minimum: int, maximum: int | None = None) -> Callable[[str], int]:
    """Return a parser, for `type=`, of a whole number within bounds; it raises ArgumentTypeError for anything else."""
    bounds = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = minimum - 1
        if number < minimum or (maximum is not None and number > maximum):
            raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, got {text!r}")
        return number

    return parse


def add_model(parser: argparse.ArgumentParser, help: str) -> None:
    """Declare `--model`, for models on this machine."""
    help = f"{help}, repeatable; names: famnb model list"
    parser.add_argument("--model", action="append", default=[], metavar="NAME|FILE.gguf", help=help)


def add_ledger(parser: argparse.ArgumentParser) -> None:
    """Declare `--ledger`, for another ledger than the user's own."""
    parser.add_argument("--ledger", metavar="FILE", type=Path, help="the ledger (default: FAMNB_LEDGER, else your own)")


def find_shipped_folder(folder: str, file: str) -> tuple[Path, bool]:
    """Return a folder that ships beside the package, known by a file in it, and whether it is the checkout's own."""
    package = Path(famnb.__file__).parent
    checkout = package.parent / folder
    # The wheel holds them inside the package, see `force-include` in pyproject.toml.
    return (checkout, True) if (checkout / file).exists() else (package / checkout.name, False)
