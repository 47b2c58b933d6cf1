r"""TeX formulas in Markdown as rules of markdown-it: they keep what they mean; showing them is left to `markup`.

Markdown would take the backslashes of `\(`, `\,` and `\\` for its own, and underscores and stars for emphasis.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

FORMULA = (
    r"\$\$[^$`]+\$\$(?![\d$])"
    r"|\$(?=[^\s$])[^$`\n]*(?<=[^\s$])\$(?![\d$])"
    r"|\\\((?:\\\\|(?!\\[()]).)+\\\)"
    r"|\\\[(?:\\\\|(?!\\[\[\]]).)+\\\]"
)
"""What stands between its marks; prices, which have a space or a digit at the second sign, are none."""
_FORMULA = re.compile(FORMULA, re.DOTALL)
MOST_LINES = 60
"""Of a formula: whoever writes only beginnings shall not have each looked for to the end of the text."""
_DISPLAYED = {"$$": "$$", "\\[": "\\]"}
"""How a formula of several lines begins and ends."""


def add_formula_rules(markdown: MarkdownIt) -> None:
    """Have formulas left as they were written."""
    markdown.inline.ruler.before("escape", "formula", _inside)
    markdown.block.ruler.before("fence", "formula", _displayed, {"alt": ["paragraph", "blockquote", "list"]})


def open_formula_line(lines: Sequence[str]) -> int | None:
    """The line on which a formula of several lines begins that more text may still close."""
    first, close = None, ""
    for number in range(max(len(lines) - MOST_LINES, 0), len(lines)):
        line = lines[number].strip()
        if not line or (first is not None and line.endswith(close)):
            first = None
        elif first is None and line[:2] in _DISPLAYED and not line[2:].endswith(_DISPLAYED[line[:2]]):
            first, close = number, _DISPLAYED[line[:2]]
    return first


def _inside(state: StateInline, silent: bool) -> bool:
    """A formula inside a paragraph is text, whatever its signs."""
    found = _FORMULA.match(state.src, state.pos, state.posMax)
    # Bold words with a price on either side are likelier than a formula with two stars.
    if found is None or (not found[0].startswith(("$$", "\\")) and "**" in found[0]):
        return False
    if not silent:
        state.pending += found[0]
    state.pos = found.end()
    return True


def _displayed(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A formula of several lines is one paragraph, whatever its lines begin with."""
    first = _line(state, start)
    close = _DISPLAYED.get(first[:2])
    if close is None or state.is_code_block(start):
        return False
    line = start
    while not (_line(state, line) if line > start else first[2:]).endswith(close):
        line += 1
        if line >= min(end, start + MOST_LINES) or state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            return False
    if not silent:
        _push(state, start, line + 1)
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()


def _push(state: StateBlock, start: int, after: int) -> None:
    # A paragraph by another name: those of a list would be joined with the words before them.
    state.line = after
    state.push("formula_open", "p", 1).map = [start, after]
    inline = state.push("inline", "", 0)
    inline.content = state.getLines(start, after, state.blkIndent, False).strip()
    inline.map, inline.children = [start, after], []
    state.push("formula_close", "p", -1)
