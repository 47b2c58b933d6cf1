"""`famnb prices`: shows the price book, and takes prices over from the community's file.

The file is litellm's `model_prices_and_context_window.json`, which you download yourself. Models are ids, or patterns
in quotes, such as 'gpt-*'; without any they are those that the ledger has calls of. Every entry keeps the file's name
and date as its source; look at a vendor's own list before you decide by it.

With `--service openrouter` the prices are those that this vendor has in the file, and hold for calls by its profile
alone.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from famnb.formatting import format_count
from famnb.frame import calls
from famnb.record import Ledger, prices
from famnb.record.price_book import read_community_prices


def declare(parser: argparse.ArgumentParser) -> None:
    """Show the prices of models; `import` takes some over from the community's file."""
    parser.set_defaults(run=show)
    actions = parser.add_subparsers(metavar="import")
    action = actions.add_parser("import", help="take prices over into your own file")
    action.add_argument("file", type=Path, metavar="FILE.json", help="litellm's price file")
    action.add_argument("models", nargs="*", metavar="MODEL", help="ids or patterns; else those in the ledger")
    action.add_argument("--service", metavar="PROFILE", help="for calls by this profile alone; else for all")
    action.set_defaults(run=import_prices)


def show(_options: argparse.Namespace) -> int:
    """Print the price book."""
    print(prices)
    return 0


def import_prices(options: argparse.Namespace) -> int:
    """Take prices over into the user's file, in place of those of the same model, date, tier and service."""
    service = options.service
    patterns, where = options.models, f" at {service}" if service else ""
    if not patterns:
        patterns = sorted(set(calls(Ledger(), profile=service, columns=["model"])["model"].dropna()))
    if not patterns:
        print(f"famnb: the ledger has no calls{where}: name the models, such as 'gpt-*'", file=sys.stderr)
        return 2
    imported = read_community_prices(options.file, patterns, service=service)
    path = prices.add(imported)
    models = ", ".join(sorted({price.model for price in imported}))
    print(f"{format_count(len(imported), 'price')} of {models}{where} written to {path}; {imported[0].source}")
    return 0
