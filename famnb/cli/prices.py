"""`famnb prices`: shows the price book, and takes prices over from the community's file.

The file is litellm's `model_prices_and_context_window.json`, which you download yourself. Models are ids, or patterns
in quotes, such as 'gpt-*'; without any they are those that the ledger has calls of. Every entry keeps the file's name
and date as its source; look at a vendor's own list before you decide by it.

With `--service openrouter` the prices are those that this vendor has in the file, and hold for calls by its profile
alone; a host, such as `gpu:8000`, is a service too, which gets those of the models' own vendors.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from famnb.formatting import format_count
from famnb.frame import calls
from famnb.record import Ledger, prices
from famnb.record.price import parse_service, service_names
from famnb.record.price_book import read_community_prices


def declare(parser: argparse.ArgumentParser) -> None:
    """Show the prices of models; `import` takes some over from the community's file."""
    parser.set_defaults(run=show)
    actions = parser.add_subparsers(metavar="import")
    action = actions.add_parser("import", help="take prices over into your own file")
    action.add_argument("file", type=Path, metavar="FILE.json", help="litellm's price file")
    action.add_argument("models", nargs="*", metavar="MODEL", help="ids or patterns; else those in the ledger")
    action.add_argument(
        "--service", metavar="NAME", help="at this service alone: a profile's name, or a host; else at all services"
    )
    action.set_defaults(run=import_prices)


def show(_options: argparse.Namespace) -> int:
    """Print the price book."""
    print(prices)
    return 0


def import_prices(options: argparse.Namespace) -> int:
    """Take prices over into the user's file, in place of those of the same model, date, tier and service."""
    service = None if options.service is None else parse_service(options.service)
    patterns, where = options.models or _models_asked(service), f" at {service}" if service else ""
    if not patterns:
        print(f"famnb: the ledger has no calls{where}: name the models, such as 'gpt-*'", file=sys.stderr)
        return 2
    imported = read_community_prices(options.file, patterns, service=service)
    path = prices.add(imported)
    models = ", ".join(sorted({price.model for price in imported}))
    print(f"{format_count(len(imported), 'price')} of {models}{where} written to {path}; {imported[0].source}")
    return 0


def _models_asked(service: str | None) -> list[str]:
    """Return the models that the ledger has calls of, at this service if one is given."""
    rows = calls(Ledger(), columns=["model", "url", "profile"]).dropna(subset="model")
    if service is not None:
        names = rows[["url", "profile"]].drop_duplicates()
        sold_there = names.loc[[service in service_names(*row) for row in names.itertuples(index=False)]]
        rows = rows.merge(sold_there)
    return sorted(set(rows["model"]))
