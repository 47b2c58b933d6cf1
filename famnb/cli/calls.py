"""`famnb calls`: prints the recorded calls as a table, or writes them to a file.

In Python, famnb.calls() is the same as a frame, and help(famnb.calls) lists every column with its unit and meaning.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from famnb.cli import add_ledger, integer_from
from famnb.cli.filters import add_filters, read_filters
from famnb.frame.calls import CALLS_LEGEND, calls, format_calls
from famnb.frame.csv_file import write_csv
from famnb.record.filters import Filters

_COLUMNS = ("started_at", "endpoint", "model", "status", "ttft_s", "e2e_s", "output_tokens", "cost_usd")


def declare(parser: argparse.ArgumentParser) -> None:
    """The recorded calls; the latest as a table, or all of them into a file."""
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--csv", metavar="FILE", help="write all calls as CSV; - is standard output")
    target.add_argument("--parquet", metavar="FILE", type=Path, help="write all calls as Parquet")
    add_ledger(parser)
    rows_help = "rows of the table (default: %(default)s)"
    parser.add_argument("-n", type=integer_from(1), default=20, metavar="ROWS", help=rows_help)
    add_filters(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the latest calls, or export all."""
    filters = read_filters(options)
    if options.parquet or (options.csv and options.csv != "-"):
        file = options.parquet or Path(options.csv)
        return write_frame(file, options.ledger, filters, is_csv=not options.parquet)
    frame = calls(options.ledger, **filters)
    if options.csv:
        write_csv(frame, sys.stdout)
    elif frame.empty:
        print("No calls fit these filters." if filters else "No calls are recorded yet. `famnb check` makes some.")
    else:
        shown = format_calls(frame.tail(options.n), _COLUMNS)
        # To the second: a terminal has no room to spare.
        shown["started_at"] = shown["started_at"].str.partition(".")[0]
        print(shown.to_string(index=False))
        print(f"{len(frame)} calls in all; {CALLS_LEGEND}")
    return 0


def write_frame(file: Path, ledger: Path | None, filters: Filters, *, is_csv: bool) -> int:
    """Write the frame of calls to a CSV or a Parquet file; return the exit status."""
    if not is_csv and find_spec("pyarrow") is None:
        print('famnb: Parquet needs pyarrow; run: pip install "famnb[scale]", or use --csv', file=sys.stderr)
        return 1
    frame = calls(ledger, **filters)
    if is_csv:
        write_csv(frame, file)
    else:
        frame.to_parquet(file, index=False)
    print(f"{len(frame)} calls written to {file}")
    return 0
