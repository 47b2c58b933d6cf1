"""`famnb scrub`: removes keys from notebooks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from famnb.errors import FamnbError
from famnb.formatting import format_count
from famnb.scrub import scrub


def declare(parser: argparse.ArgumentParser) -> None:
    """Remove keys from notebooks, in place; prints where they were and never shows one."""
    parser.add_argument("files", nargs="+", metavar="FILE.ipynb", type=Path, help="notebooks")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if there is a key")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Scrub every file; one that cannot be scrubbed is reported, and the others are scrubbed all the same."""
    status = 0
    for file in options.files:
        try:
            findings = scrub(file, write=not options.check)
        except (FamnbError, OSError) as error:
            print(f"famnb: {error}", file=sys.stderr)
            status = 1
            continue
        for finding in findings:
            print(f"{file}: {finding}")
        verb = "found" if options.check else "removed"
        print(f"{file}: {format_count(len(findings), 'key')} {verb}" if findings else f"{file}: no key found")
        # Keys that were removed are a success; with --check, finding one is not.
        status = 1 if findings and options.check else status
    return status
