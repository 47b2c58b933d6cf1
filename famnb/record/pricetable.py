"""The price book as a table, for terminals and for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from famnb.record.price import Price

TITLE = "Prices in USD per million tokens"
HEAD = ("model", "input", "output", "cached", "cache write", "context", "since", "source")
NUMBERS = ("input", "output")


def text(entries: Iterable[Price]) -> str:
    """The entries as lines of text."""
    rows = [HEAD, *map(_cells, entries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join([TITLE, *lines])


def markup(entries: Iterable[Price]) -> str:
    """The entries as an HTML table; names are text, never markup."""
    body = "".join(_line(_cells(entry), "td") for entry in entries)
    return f"<table><caption>{TITLE}</caption><thead>{_line(HEAD, 'th')}</thead><tbody>{body}</tbody></table>"


def _line(cells: tuple[str, ...], tag: str) -> str:
    aligned = ("right" if name in NUMBERS else "left" for name in HEAD)
    return (
        "<tr>"
        + "".join(
            f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>'
            for cell, side in zip(cells, aligned, strict=True)
        )
        + "</tr>"
    )


def _cells(entry: Price) -> tuple[str, ...]:
    return (
        entry.model,
        f"{entry.input:f}",
        f"{entry.output:f}",
        "as input" if entry.cached is None else f"{entry.cached:f}",
        "as input" if entry.cache_write is None else f"{entry.cache_write:f}",
        "any" if entry.until_context is None else f"under {entry.until_context:,}",
        "always" if entry.since is None else f"{entry.since:%Y-%m-%d %H:%M} UTC".replace(" 00:00 UTC", ""),
        entry.source,
    )
