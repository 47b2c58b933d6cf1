"""Where two answers differ, word by word, as HTML, Markdown and plain text; how answers are laid out is left to others.

Marks are told apart without colour: what is new is underlined or bold, what is gone is struck through.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from famnb.widget.html import sanitize

Kind: TypeAlias = Literal["same", "gone", "new", "apart"]
"""In both, only in the other answer, only in this one, or beyond what was compared."""
MOST_WORDS = 3_000
"""Of either answer that are compared: what is beyond is shown as it is."""

_WORD = re.compile(r"\s*\S+")
_MARK = "border-radius:3px;padding:0 1px;color:inherit;"
_TAGS = {
    "gone": (f'<del style="{_MARK}text-decoration:line-through;background-color:rgba(211,47,47,0.16)">', "</del>"),
    "new": (f'<ins style="{_MARK}text-decoration:underline;background-color:rgba(46,125,50,0.2)">', "</ins>"),
}


class Piece(NamedTuple):
    """Words that follow each other and belong together."""

    kind: Kind
    text: str


@functools.lru_cache(maxsize=16)
def compare_words(reference: str, text: str) -> Sequence[Piece]:
    """A text as words it shares with a reference, words it lacks and words of its own, in reading order."""
    theirs, ours = _WORD.findall(reference), _WORD.findall(text)
    left, right = theirs[:MOST_WORDS], ours[:MOST_WORDS]
    found: list[Piece] = []
    for same, gone, here in _steps(left, right):
        if same:
            found.append(Piece("same", here))
            continue
        found += [Piece("gone", gone)] if gone else []
        found += [Piece("new", here)] if here else []
    beyond = "".join(ours[MOST_WORDS:])
    found += [Piece("apart", beyond)] if beyond or theirs[MOST_WORDS:] else []
    # A text's first word has no space before it, but here another word may.
    return [*found[:1], *(Piece(kind, text if text[:1].isspace() else f" {text}") for kind, text in found[1:])]


def _steps(left: list[str], right: list[str]) -> Iterator[tuple[bool, str, str]]:
    """Whether the words are the same, those of the left text and those of the right, step by step."""
    theirs, ours = [word.strip() for word in left], [word.strip() for word in right]
    if theirs == ours:  # the search for anchors below passes over words that come again and again
        yield True, "".join(left), "".join(right)
        return
    for what, a, b, c, d in difflib.SequenceMatcher(None, theirs, ours).get_opcodes():
        yield what == "equal", "".join(left[a:b]), "".join(right[c:d])


def describe_differences(found: Sequence[Piece]) -> str:
    """How much differs, in words."""
    gone, new = (sum(len(piece.text.split()) for piece in found if piece.kind == kind) for kind in ("gone", "new"))
    words = f"{new:,} {'word differs' if new == 1 else 'words differ'}, {gone:,} {'is' if gone == 1 else 'are'} missing"
    said = words if new or gone else "the same words"
    return f"{said}; only the first {MOST_WORDS:,} are compared" if any(p.kind == "apart" for p in found) else said


def html(found: Sequence[Piece]) -> str:
    """The words with their marks, everything in them inert."""
    inner = "".join(_marked(piece, sanitize.escape, _TAGS) for piece in found)
    return f'<div dir="auto" style="white-space:pre-wrap">{inner.lstrip()}</div>'


def markdown(found: Sequence[Piece]) -> str:
    """The words with their marks as Markdown: new ones bold, missing ones struck through."""
    return "".join(
        _marked(piece, sanitize.escape_markdown, {"new": ("**", "**"), "gone": ("~~", "~~")}) for piece in found
    )


def plain(found: Sequence[Piece]) -> str:
    """The words with their marks as text: [+new+] and [-missing-]."""
    return "".join(_marked(piece, sanitize.visible, {"new": ("[+", "+]"), "gone": ("[-", "-]")}) for piece in found)


def _marked(piece: Piece, written: Callable[[str], str], marks: Mapping[str, tuple[str, str]]) -> str:
    """The words between their marks, line by line, since not every form can mark several lines at once."""
    before, after = marks.get(piece.kind, ("", ""))
    lead = piece.text[: len(piece.text) - len(piece.text.lstrip())]
    lines = piece.text[len(lead) :].split("\n")
    return lead + "\n".join(f"{before}{written(line)}{after}" if line.strip() else line for line in lines)
