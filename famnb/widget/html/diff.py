"""Differences between two answers, word by word: of their rendered HTML, and of their text as Markdown and plain text.

Marks can be told apart without colour: what is new is underlined or bold, what is missing is struck through.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Literal, NamedTuple, TypeAlias

from famnb.widget.html import sanitize
from famnb.widget.html.sanitize import SafeHtml

PieceKind: TypeAlias = Literal["same", "gone", "new", "rest"]
"""In both answers, only in the reference, only in this one, or beyond the words that are compared."""
# difflib may take the square of the number of words, on the thread that answers a click.
MAX_WORDS = 3_000
"""Words of either answer that are compared; the rest of this one is shown without marks."""

_WORD = re.compile(r"\s*\S+")
_STYLE = "border-radius:3px;padding:0 1px;color:inherit;"
_TAGS = {
    "gone": SafeHtml(
        f'<del style="{_STYLE}text-decoration:line-through;background-color:rgba(211,47,47,0.16)">{{}}</del>'
    ),
    "new": SafeHtml(f'<ins style="{_STYLE}text-decoration:underline;background-color:rgba(46,125,50,0.2)">{{}}</ins>'),
}


class Piece(NamedTuple):
    """Words that follow each other and are alike in which of the answers have them."""

    kind: PieceKind
    text: str


# An answer is compared for its live pane and for the saved table, and again whenever either is drawn anew.
@functools.lru_cache(maxsize=16)
def compare_words(reference: str, text: str) -> Sequence[Piece]:
    """Return a text as words it shares with a reference, words it lacks and words of its own, in reading order."""
    reference_words, text_words = _WORD.findall(reference), _WORD.findall(text)
    pieces: list[Piece] = []
    for is_same, gone, new in _compare(reference_words, text_words):
        if not is_same and gone.start < gone.stop:
            pieces.append(Piece("gone", "".join(reference_words[gone])))
        if new.start < new.stop:
            pieces.append(Piece("same" if is_same else "new", "".join(text_words[new])))
    rest = "".join(text_words[MAX_WORDS:])
    pieces += [Piece("rest", rest)] if rest or reference_words[MAX_WORDS:] else []
    # A text's first word has no space before it, but here another word may stand before it.
    return [*pieces[:1], *(Piece(kind, text if text[:1].isspace() else f" {text}") for kind, text in pieces[1:])]


def _compare(left: Sequence[str], right: Sequence[str]) -> list[tuple[bool, slice, slice]]:
    """Return runs of the words that are compared: whether they are the same, and where in either list they are."""
    left, right = ([word.strip() for word in words[:MAX_WORDS]] for words in (left, right))
    # SequenceMatcher ignores words that make up more than 1 % of a long text, so a text of few different words would
    # differ from itself.
    if left == right:
        return [(True, slice(0, len(left)), slice(0, len(right)))]
    opcodes = difflib.SequenceMatcher(None, left, right).get_opcodes()
    return [(tag == "equal", slice(*ends[:2]), slice(*ends[2:])) for tag, *ends in opcodes]


def describe_differences(pieces: Sequence[Piece]) -> str:
    """Return how many words differ, how many are new and how many are missing, as a text."""
    differing = new = gone = 0
    for before, piece in itertools.pairwise([Piece("same", ""), *pieces, Piece("same", "")]):
        # What stands in the place of something missing differs; only what is more than that is new.
        missing, words = (len(part.text.split()) for part in (before, piece))
        if before.kind == "gone":
            replaced = min(missing, words) if piece.kind == "new" else 0
            differing, new, gone = differing + replaced, new - replaced, gone + missing - replaced
        new += words if piece.kind == "new" else 0
    counts = ((differing, "differ"), (new, "are new"), (gone, "are missing"))
    singular = {"differ": "differs", "are new": "is new", "are missing": "is missing"}
    phrases = [
        f"{count:,} words {verb}" if count > 1 else f"1 word {singular[verb]}" for count, verb in counts if count
    ]
    text = ", ".join(phrases) or "the same words"
    is_cut = any(piece.kind == "rest" for piece in pieces)
    return f"{text}; only the first {MAX_WORDS:,} are compared" if is_cut else text


# A tag of clean HTML; an attribute may hold ">".
_TAG = re.compile(r"""(<(?:[^>"']|"[^"]*"|'[^']*')*>)""")


@functools.lru_cache(maxsize=16)
def mark_html(reference: SafeHtml, html: SafeHtml) -> tuple[SafeHtml, str]:
    """Return rendered HTML with the words marked in which it differs from a reference, and how many do.

    Only words are compared, whatever their markup. Both must be clean; the markup of `html` stays as it is.
    """
    reference_words = [word.strip() for text in _texts(reference) for word in _WORD.findall(text)]
    words = [word.strip() for text in _texts(html) for word in _WORD.findall(text)]
    marked: list[str] = []
    new: set[int] = set()
    gone: dict[int, str] = {}
    pieces: list[Piece] = []
    for is_same, missing, added in _compare(reference_words, words):
        if is_same:
            continue
        new.update(range(added.start, added.stop))
        if missing.start < missing.stop:
            gone[added.start] = " ".join(reference_words[missing])
        pieces += [Piece("gone", " ".join(reference_words[missing])), Piece("new", " ".join(words[added]))]
    if words[MAX_WORDS:] or reference_words[MAX_WORDS:]:
        pieces.append(Piece("rest", ""))
    numbers = itertools.count()
    for part in _TAG.split(html):
        marked += [part] if part.startswith("<") else _mark_text(part, numbers, new, gone)
    end_of_words = len(words)
    if end_of_words in gone:
        # After the last word there may be no text to put it into.
        marked.append(_TAGS["gone"].format(SafeHtml(gone[end_of_words])))
    return SafeHtml("".join(marked)), describe_differences(pieces)


def _texts(html: SafeHtml) -> list[str]:
    return [part for part in _TAG.split(html) if not part.startswith("<")]


def _mark_text(text: str, numbers: Iterator[int], new: Set[int], gone: Mapping[int, str]) -> Iterator[str]:
    """Yield the pieces of a text between two tags, its words marked; `numbers` counts the words of all texts."""
    end = 0
    run: list[str] = []
    for match in _WORD.finditer(text):
        number, end = next(numbers), match.end()
        word = match[0].lstrip()
        space = match[0][: len(match[0]) - len(word)]
        if run and (number not in new or number in gone):
            yield _TAGS["new"].format(SafeHtml("".join(run)))
            run = []
        if number in gone:
            yield f"{space}{_TAGS['gone'].format(SafeHtml(gone[number]))}"
            space = " "
        if number not in new:
            yield space + word
        elif run:
            run.append(space + word)
        else:
            yield space
            run = [word]
    if run:
        yield _TAGS["new"].format(SafeHtml("".join(run)))
    yield text[end:]


def markdown(pieces: Sequence[Piece]) -> str:
    """Return the words as Markdown: new ones bold, missing ones struck through."""
    marks = {"new": "**", "gone": "~~"}

    def marker(piece: Piece) -> Callable[[str], str]:
        mark = marks.get(piece.kind, "")
        return lambda line: f"{mark}{sanitize.escape_markdown(line)}{mark}"

    return "".join(_mark_lines(piece, marker(piece)) for piece in pieces)


def plain(pieces: Sequence[Piece]) -> str:
    """Return the words as plain text: [+new+] and [-missing-]."""
    marks = {"new": ("[+", "+]"), "gone": ("[-", "-]")}

    def marker(piece: Piece) -> Callable[[str], str]:
        before, after = marks.get(piece.kind, ("", ""))
        return lambda line: f"{before}{sanitize.visible(line)}{after}"

    return "".join(_mark_lines(piece, marker(piece)) for piece in pieces)


def _mark_lines(piece: Piece, mark: Callable[[str], str]) -> str:
    """Mark a piece line by line, since Markdown cannot mark several paragraphs at once."""
    space = piece.text[: len(piece.text) - len(piece.text.lstrip())]
    lines = piece.text[len(space) :].split("\n")
    return space + "\n".join(mark(line) if line.strip() else line for line in lines)
