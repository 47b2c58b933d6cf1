"""`famnb ledger info | prune | export | import`: what the ledger file holds, and its upkeep.

`info` counts calls by status, model and endpoint, and those that run. `prune` deletes old calls, or only their bytes,
never a running one. `export` adds calls with their requests and bytes to another ledger, which is made if it is not
there, and `import` those of another ledger to this one, each call once. With --frame, or to a file named .csv or
.parquet, calls are exported in the columns of famnb.calls(), which other tools read; these cannot be imported.

`import` also reads what other tools recorded: OpenAI-style JSONL, batch files and stored completions, exports of
LiteLLM and Langfuse, logs of Inspect and promptfoo, and OpenTelemetry spans; what such a file does not say is missing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from famnb.cli import add_ledger, integer_from
from famnb.cli.filters import add_filters, parse_age, read_filters
from famnb.record import Ledger


def declare(parser: argparse.ArgumentParser) -> None:
    """The upkeep of the ledger file; info, prune, export and import."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    info = commands.add_parser("info", help="what it holds, and how large it is")
    info.set_defaults(run=_info)
    prune = commands.add_parser("prune", help="delete calls, for good; those that still run stay")
    age_help = "calls before this age, such as 90d, 12h or 2w"
    prune.add_argument("--older-than", type=parse_age, metavar="AGE", help=age_help)
    prune.add_argument("--keep", type=integer_from(0), metavar="N", help="calls beyond the N newest")
    prune.add_argument("--payloads-only", action="store_true", help="keep the rows with their metrics")
    prune.add_argument("--dry-run", action="store_true", help="only count what would be deleted")
    prune.set_defaults(run=_prune)
    export = commands.add_parser("export", help="add calls with their bytes to another ledger")
    export.add_argument("file", type=Path)
    frame_help = "the columns of famnb.calls instead, as Parquet, or as CSV if the file is named .csv"
    export.add_argument("--frame", action="store_true", help=frame_help)
    add_filters(export)
    export.set_defaults(run=_export)
    load = commands.add_parser("import", help="add the calls of a file that are not there yet")
    load.add_argument("file", type=Path)
    load.set_defaults(run=_import)
    for command in (info, prune, export, load):
        add_ledger(command)


def _info(options: argparse.Namespace) -> int:
    print(Ledger(options.ledger).info())
    return 0


def _prune(options: argparse.Namespace) -> int:
    if options.older_than is None and options.keep is None:
        print("famnb: expected --older-than AGE, --keep N, or both", file=sys.stderr)
        return 2
    choice = {name: getattr(options, name) for name in ("older_than", "keep", "payloads_only", "dry_run")}
    print(Ledger(options.ledger).prune(**choice))
    return 0


def _export(options: argparse.Namespace) -> int:
    if options.frame or options.file.suffix in (".csv", ".parquet"):
        # Late, since the other commands do without pandas.
        from famnb.cli.calls import write_frame

        is_csv = options.file.suffix == ".csv"
        return write_frame(options.file, options.ledger, read_filters(options), is_csv=is_csv)
    written = Ledger(options.ledger).export(options.file, **read_filters(options))
    print(f"{written:,} new calls in {options.file}")
    return 0


def _import(options: argparse.Namespace) -> int:
    ledger = Ledger(options.ledger)
    print(f"{ledger.load(options.file):,} new calls in {ledger.path}, {len(ledger):,} in all")
    return 0
