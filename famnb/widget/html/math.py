r"""TeX formulas in Markdown, as rules of markdown-it that leave them exactly as written.

Markdown would take the backslashes of `\(`, `\,` and `\\` for escapes, and underscores and stars for emphasis.
`sanitize` decides which formulas a viewer may typeset.

The plugins dollarmath and texmath of mdit-py-plugins 0.7 do not do: with them a display formula of several lines cannot
follow a line of text, which models write all the time.
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
"""A formula with its delimiters. "$5 or $6" is none: a closing dollar has no space before it and no digit after it."""
_FORMULA = re.compile(FORMULA, re.DOTALL)
# Without a limit, a text of opening delimiters alone would be searched to its end for each of them.
MAX_LINES = 60
"""Lines of one formula; a longer one stays Markdown."""
_DISPLAY_DELIMITERS = {"$$": "$$", "\\[": "\\]"}
"""How a formula of several lines begins, and how it ends."""


def add_formula_rules(markdown: MarkdownIt) -> None:
    """Add the rules that leave formulas as they were written to a Markdown parser."""
    # Before the rules that would take a formula's backslashes for escapes, and its lines for other blocks. `alt` names
    # the blocks that a formula may interrupt, since models write one right below a line of text.
    markdown.inline.ruler.before("escape", "formula", _parse_inline)
    markdown.block.ruler.before("fence", "formula", _parse_display, {"alt": ["paragraph", "blockquote", "list"]})


def open_formula_line(lines: Sequence[str]) -> int | None:
    """Return the line on which a formula of several lines begins that more text may still close, or None."""
    first, close = None, ""
    for number in range(max(len(lines) - MAX_LINES, 0), len(lines)):
        line = lines[number].strip()
        # An empty line ends the paragraph, and so a formula that is still open.
        if not line or (first is not None and line.endswith(close)):
            first = None
        elif first is None and line[:2] in _DISPLAY_DELIMITERS and not line[2:].endswith(_DISPLAY_DELIMITERS[line[:2]]):
            first, close = number, _DISPLAY_DELIMITERS[line[:2]]
    return first


def _parse_inline(state: StateInline, silent: bool) -> bool:
    """Inline rule: add a formula inside a paragraph as text, whatever characters it has."""
    match = _FORMULA.match(state.src, state.pos, state.posMax)
    # Bold words with a price on either side are likelier than a formula with two stars.
    if match is None or (not match[0].startswith(("$$", "\\")) and "**" in match[0]):
        return False
    if not silent:
        state.pending += match[0]
    state.pos = match.end()
    return True


def _parse_display(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Block rule: make a formula of several lines one paragraph, whatever its lines begin with."""
    first = _line(state, start)
    close = _DISPLAY_DELIMITERS.get(first[:2])
    if close is None or state.is_code_block(start):
        return False
    line = start
    while not (_line(state, line) if line > start else first[2:]).endswith(close):
        line += 1
        if line >= min(end, start + MAX_LINES) or state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            return False
    if not silent:
        _push(state, start, line + 1)
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()


def _push(state: StateBlock, start: int, after: int) -> None:
    # Not a "paragraph_open": markdown-it hides those in a tight list, which would join the formula with the text
    # before it.
    state.line = after
    state.push("formula_open", "p", 1).map = [start, after]
    inline = state.push("inline", "", 0)
    inline.content = state.getLines(start, after, state.blkIndent, False).strip()
    inline.map, inline.children = [start, after], []
    state.push("formula_close", "p", -1)
