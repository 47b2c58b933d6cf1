"""`famnb ledger info | prune | export | import`: what the ledger file holds, and its upkeep.

`info` counts calls by status, model and endpoint, and those that run. `prune` deletes old calls, or only their bytes,
never a running one. An exported Parquet file has all calls with their requests and bytes, lossless; `import` merges by
id, and famnb.calls("folder/*.parquet") reads such files directly (pip install "famnb[scale]"). `import` also reads what
other tools recorded: OpenAI-style JSONL, batch files and stored completions, exports of LiteLLM and Langfuse, logs of
Inspect and promptfoo, and OpenTelemetry spans; what such a file does not say is missing.
"""

from __future__ import annotations

import argparse
import re
import sys
from datetime import timedelta
from pathlib import Path

from famnb.cli import integer_from
from famnb.record import Ledger

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def declare(parser: argparse.ArgumentParser) -> None:
    """The upkeep of the ledger file; info, prune, export and import."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    info = commands.add_parser("info", help="what it holds, and how large it is")
    info.set_defaults(run=_info)
    prune = commands.add_parser("prune", help="delete calls, for good; those that still run stay")
    prune.add_argument(
        "--older-than", type=_parse_age, metavar="AGE", help="calls before this age, such as 90d, 12h or 2w"
    )
    prune.add_argument("--keep", type=integer_from(0), metavar="N", help="calls beyond the N newest")
    prune.add_argument("--payloads-only", action="store_true", help="keep the rows with their metrics")
    prune.add_argument("--dry-run", action="store_true", help="only count what would be deleted")
    prune.set_defaults(run=_prune)
    export = commands.add_parser("export", help="write all calls with their bytes to one Parquet file")
    export.add_argument("file", type=Path)
    export.set_defaults(run=_export)
    load = commands.add_parser("import", help="add the calls of a file that are not there yet")
    load.add_argument("file", type=Path)
    load.set_defaults(run=_import)
    for command in (info, prune, export, load):
        command.add_argument(
            "--ledger", metavar="FILE", type=Path, help="the ledger (default: FAMNB_LEDGER, else yours)"
        )


def _parse_age(text: str) -> timedelta:
    """Return an age such as 90d; raises ArgumentTypeError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([hdw])", text)
    if not match:
        raise argparse.ArgumentTypeError(f"expected an age such as 90d, 12h or 2w, got {text!r}")
    try:
        return timedelta(**{_UNITS[match[2]]: float(match[1])})
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than there have been calls") from None


def _info(options: argparse.Namespace) -> int:
    print(Ledger(options.ledger).info())
    return 0


def _prune(options: argparse.Namespace) -> int:
    if options.older_than is None and options.keep is None:
        print("famnb: expected --older-than AGE, --keep N, or both", file=sys.stderr)
        return 2
    pruned = Ledger(options.ledger).prune(
        older_than=options.older_than,
        keep=options.keep,
        payloads_only=options.payloads_only,
        dry_run=options.dry_run,
    )
    print(pruned)
    return 0


def _export(options: argparse.Namespace) -> int:
    print(f"{Ledger(options.ledger).export(options.file):,} calls written to {options.file}")
    return 0


def _import(options: argparse.Namespace) -> int:
    ledger = Ledger(options.ledger)
    try:
        added = ledger.load(options.file)
    except OSError as error:
        print(f"famnb: {options.file}: {error.strerror}", file=sys.stderr)
        return 2
    print(f"{added:,} new calls in {ledger.path}, {len(ledger):,} in all")
    return 0
