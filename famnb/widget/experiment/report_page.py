"""The parts of a report's page: its tables, cards and figures."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence

import matplotlib.figure

from famnb.plot.figure import Figure
from famnb.widget.html.sanitize import SafeHtml

_FACTS = SafeHtml('<dl class="facts">{}</dl>')
_FACT = SafeHtml("<div><dt>{}</dt><dd>{}</dd></div>")
_TABLE = SafeHtml("<div class=wide><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>")
_ROW = SafeHtml("<tr>{}</tr>")
_HEAD_CELLS = {"left": SafeHtml("<th>{}</th>"), "right": SafeHtml("<th class=n>{}</th>")}
_CELLS = {"left": SafeHtml("<td>{}</td>"), "right": SafeHtml("<td class=n>{}</td>")}
_INTERVAL = SafeHtml("{}<small>{}</small>")
_FIGURE_WIDTH_PX = 820
_FIGURE = SafeHtml(
    '<figure><picture><source srcset="{dark}" media="screen and (prefers-color-scheme:dark)">'
    f'<img src="{{light}}" alt="{{alt}}" width="{_FIGURE_WIDTH_PX}"></picture></figure>'
)


def facts_html(facts: Iterable[tuple[str, str]]) -> SafeHtml:
    """Names and values as small cards."""
    return _FACTS.format(SafeHtml().join(_FACT.format(name, value) for name, value in facts))


def table_html(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> SafeHtml:
    """A table, its first `left` columns aligned left; in the others an interval in brackets stands under its value."""
    sides = ["left" if column < left else "right" for column in range(len(head))]
    names = SafeHtml().join(_HEAD_CELLS[side].format(name) for side, name in zip(sides, head, strict=True))
    lines = (
        _ROW.format(SafeHtml().join(_cell(text, side) for side, text in zip(sides, row, strict=True))) for row in rows
    )
    return _TABLE.format(names, SafeHtml().join(lines))


def _cell(text: str, side: str) -> SafeHtml:
    value, bracket, interval = text.partition(" (") if side == "right" else (text, "", "")
    return _CELLS[side].format(_INTERVAL.format(value, interval.removesuffix(")")) if bracket else value)


def figure_html(draw: Callable[[], matplotlib.figure.Figure]) -> SafeHtml:
    """A figure of `famnb.plot`, for light pages and paper, and for dark ones."""
    figure = draw()
    assert isinstance(figure, Figure)
    # In an attribute nothing is typeset as a formula, and no tag can keep it from being so.
    alt = SafeHtml(html.escape(figure.alt))
    return _FIGURE.format(light=figure.to_uri(), dark=figure.to_uri(dark=True), alt=alt)
