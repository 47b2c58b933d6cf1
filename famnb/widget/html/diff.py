"""Differences between two answers, word by word, marked in their rendered HTML.

Marks can be told apart without colour: what is new is underlined, what is missing is struck through.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Set

from famnb.widget.html.sanitize import SafeHtml

# difflib may take the square of the number of words, on the thread that answers a click.
MAX_WORDS = 3_000
"""Words of either answer that are compared; the rest of this one is shown without marks."""

_WORD = re.compile(r"\s*\S+")
# A tag of clean HTML; an attribute may hold ">".
_TAG = re.compile(r"""(<(?:[^>"']|"[^"]*"|'[^']*')*>)""")
_STYLE = "border-radius:3px;padding:0 1px;color:inherit;"
_GONE = SafeHtml(f'<del style="{_STYLE}text-decoration:line-through;background-color:rgba(211,47,47,0.16)">{{}}</del>')
_NEW = SafeHtml(f'<ins style="{_STYLE}text-decoration:underline;background-color:rgba(46,125,50,0.2)">{{}}</ins>')


# An answer is compared for its live pane and for the saved table, and again whenever either is drawn anew.
@functools.lru_cache(maxsize=16)
def mark_html(reference: SafeHtml, html: SafeHtml) -> tuple[SafeHtml, str]:
    """Return rendered HTML with the words marked in which it differs from a reference, and how many do.

    Only words are compared, whatever their markup. Both must be clean; the markup of `html` stays as it is.
    """
    reference_words, words = _words(reference), _words(html)
    left, right = reference_words[:MAX_WORDS], words[:MAX_WORDS]
    new: set[int] = set()
    gone: dict[int, str] = {}
    differing = added = missing = 0
    # SequenceMatcher ignores words that make up more than 1 % of a long text, so a text of few different words would
    # differ from itself.
    opcodes = [] if left == right else difflib.SequenceMatcher(None, left, right).get_opcodes()
    for tag, start, end, new_start, new_end in opcodes:
        if tag == "equal":
            continue
        new.update(range(new_start, new_end))
        if start < end:
            gone[new_start] = " ".join(left[start:end])
        # What stands in the place of something missing differs; only what is more than that is new.
        replaced = min(end - start, new_end - new_start)
        differing, added = differing + replaced, added + new_end - new_start - replaced
        missing += end - start - replaced
    numbers = itertools.count()
    marked: list[str] = []
    for part in _TAG.split(html):
        marked += [part] if part.startswith("<") else _mark_text(part, numbers, new, gone)
    # After the last word there may be no text to put it into.
    marked += [_GONE.format(SafeHtml(gone[len(words)]))] if len(words) in gone else []
    phrases = [
        f"{count:,} words {plural}" if count > 1 else f"1 word {singular}"
        for count, singular, plural in (
            (differing, "differs", "differ"),
            (added, "is new", "are new"),
            (missing, "is missing", "are missing"),
        )
        if count
    ]
    is_cut = len(words) > MAX_WORDS or len(reference_words) > MAX_WORDS
    note = f"; only the first {MAX_WORDS:,} are compared" if is_cut else ""
    return SafeHtml("".join(marked)), (", ".join(phrases) or "the same words") + note


def _words(html: SafeHtml) -> list[str]:
    texts = [part for part in _TAG.split(html) if not part.startswith("<")]
    return [word.strip() for text in texts for word in _WORD.findall(text)]


def _mark_text(text: str, numbers: Iterator[int], new: Set[int], gone: Mapping[int, str]) -> Iterator[str]:
    """Yield the pieces of a text between two tags, its words marked; `numbers` counts the words of all texts."""
    end = 0
    run: list[str] = []
    for match in _WORD.finditer(text):
        number, end = next(numbers), match.end()
        word = match[0].lstrip()
        space = match[0][: len(match[0]) - len(word)]
        if run and (number not in new or number in gone):
            yield _NEW.format(SafeHtml("".join(run)))
            run = []
        if number in gone:
            yield f"{space}{_GONE.format(SafeHtml(gone[number]))}"
            space = " "
        if number not in new:
            yield space + word
        elif run:
            run.append(space + word)
        else:
            yield space
            run = [word]
    if run:
        yield _NEW.format(SafeHtml("".join(run)))
    yield text[end:]
