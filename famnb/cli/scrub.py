"""`famnb scrub`: removes keys from notebooks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from famnb.errors import FamnbError
from famnb.scrub import scrub


def declare(parser: argparse.ArgumentParser) -> None:
    """Remove keys from notebooks, in place; says where they were and never shows one."""
    parser.add_argument("files", nargs="+", metavar="FILE.ipynb", type=Path, help="notebooks")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if there is a key")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Scrub every file; a file that cannot be scrubbed does not keep the others from it."""
    status = 0
    for file in options.files:
        try:
            found = scrub(file, write=not options.check)
        except (FamnbError, OSError) as error:
            print(f"famnb: {error}", file=sys.stderr)
            status = 1
            continue
        for finding in found:
            print(f"{file}: {finding}")
        keys = f"{len(found)} key{'' if len(found) == 1 else 's'}"
        print(f"{file}: {keys} {'found' if options.check else 'removed'}" if found else f"{file}: no key found")
        status = 1 if found and options.check else status
    return status
