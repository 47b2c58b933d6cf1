"""Small tables and intervals as text and as HTML, for terminals and notebooks; what is in them is left to others."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from famnb.stats import Interval

Row = Sequence[str]
_CELL = "padding:0.25em 0.8em 0.25em 0;border:none;vertical-align:top"
_LINE = "1px solid rgba(128,128,128,0.35)"
# Notebooks typeset what stands between two of these: "$5 or $6" would become a formula.
_FORMULA = re.compile(r"\$|\\(?=[(\[]|begin\b)")


def text(head: Row, rows: Iterable[Row], *, left: int = 1) -> str:
    """Aligned lines: the first `left` columns to the left, the others to the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def escape(words: str) -> str:
    """The words as HTML that shows exactly them, amounts included."""
    return _FORMULA.sub(r"<span>\g<0></span>", html.escape(words))


def markup(head: Row, rows: Iterable[Row], *, left: int = 1) -> str:
    """The same as an HTML table that takes its colours from the page around it; every cell is text, never markup."""

    def line(cells: Row, tag: str, style: str) -> str:
        made = (
            f'<{tag} style="text-align:{_side(place, left)};{_CELL};{style}">{escape(cell)}</{tag}>'
            for place, cell in enumerate(cells)
        )
        return f'<tr style="background:none">{"".join(made)}</tr>'

    body = "".join(line(row, "td", f"border-top:{_LINE}") for row in rows)
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        f"<thead>{line(head, 'th', 'font-weight:600')}</thead><tbody>{body}</tbody></table></div>"
    )


def _side(place: int, left: int) -> str:
    return "left" if place < left else "right"


def paragraphs(lines: Iterable[str]) -> str:
    """Lines of text as HTML paragraphs."""
    return "".join(f'<p style="margin:0.35em 0">{escape(line)}</p>' for line in lines)


def seconds(value: float) -> str:
    """A duration as one reads it, without its sign."""
    value = abs(value)
    match value:
        case _ if value >= 5400:
            return f"{value / 3600:.1f} h"
        case _ if value >= 90:
            return f"{value / 60:.1f} min"
        case _ if value >= 0.0995:
            return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"
        case _:
            return f"{value * 1e3:.2g} ms" if value else "0 s"


def usd(value: float) -> str:
    """An amount with as many digits as it has a say in, without its sign."""
    return dollars(Decimal(f"{abs(value):.3g}") if abs(value) < 1 else Decimal(f"{abs(value):.2f}"))


def counted(n: int, noun: str) -> str:
    """So many of something."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def whole(value: float) -> str:
    """A count."""
    return f"{abs(value):,.0f}"


def plain(value: float) -> str:
    """Any other number."""
    return f"{value:.3g}"


def around(found: Interval, said: Callable[[float], str]) -> str:
    """A value with its interval; what is not known says so."""
    if not math.isfinite(found.value):
        return f"not known, at most {said(found.high)}" if math.isfinite(found.high) else "not known"
    if not found.known:
        return said(found.value)
    return f"{said(found.value)} ({between(found.low, found.high, said)})"


def between(low: float, high: float, said: Callable[[float], str]) -> str:
    """The two ends of an interval, their common unit once."""
    if low < 0 < high or low < 0:
        return f"{signed(low, said)} to {signed(high, said)}"
    first, last = said(low), said(high)
    unit = last.rpartition(" ")[2]
    if " " in last and first.endswith(f" {unit}"):
        first = first.removesuffix(f" {unit}")
    return f"{first}–{last}"


def signed(value: float, said: Callable[[float], str]) -> str:
    """A value with a minus sign where it is below 0."""
    shown = said(abs(value))
    return f"−{shown}" if value < 0 else shown


def dollars(amount: Decimal) -> str:
    """An amount as one reads it: two decimals from a dollar up, three significant digits below."""
    if amount == 0 or amount >= 1:
        return f"${amount:,.2f}"
    places = 2 - amount.adjusted()
    digits = f"{amount:.{places}f}".rstrip("0")
    return f"${digits}" if len(digits) >= 4 else f"${amount:.2f}"
