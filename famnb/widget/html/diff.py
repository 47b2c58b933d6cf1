"""Differences between two answers, word by word, marked in the rendered HTML of one of them."""

from __future__ import annotations

import difflib
import functools
import itertools
import re

from famnb.widget.html.sanitize import SafeHtml

# difflib may take the square of the number of words, on the thread that answers a click.
MAX_WORDS = 3_000
"""Words of either answer that are compared; the rest of this one is shown without marks."""

_WORD = re.compile(r"\S+")
# A tag of clean HTML; an attribute may hold ">".
_TAG = re.compile(r"""(<(?:[^>"']|"[^"]*"|'[^']*')*>)""")
# Underlined, since colour alone does not tell everybody.
_MARK = SafeHtml(
    '<ins style="border-radius:3px;padding:0 1px;color:inherit;text-decoration:underline;'
    'background-color:rgba(46,125,50,0.2)">{}</ins>'
)


# An answer is compared for its live pane and for the saved table, and again whenever either is drawn anew.
@functools.lru_cache(maxsize=16)
def mark_html(reference: SafeHtml, html: SafeHtml) -> tuple[SafeHtml, str]:
    """Return rendered HTML with the words marked in which it differs from a reference, and how many do.

    Only words are compared, whatever their markup. Both must be clean; the markup of `html` stays as it is.
    """
    reference_words, words = _words(reference), _words(html)
    left, right = reference_words[:MAX_WORDS], words[:MAX_WORDS]
    marked: set[int] = set()
    differing = added = missing = 0
    # SequenceMatcher ignores words that make up more than 1 % of a long text, so a text of few different words would
    # differ from itself.
    opcodes = [] if left == right else difflib.SequenceMatcher(None, left, right).get_opcodes()
    for tag, start, end, new_start, new_end in opcodes:
        if tag == "equal":
            continue
        marked.update(range(new_start, new_end))
        # What stands in the place of something missing differs; only what is more than that is new.
        replaced = min(end - start, new_end - new_start)
        differing, added = differing + replaced, added + new_end - new_start - replaced
        missing += end - start - replaced
    numbers = itertools.count()

    def mark(word: re.Match[str]) -> str:
        return _MARK.format(SafeHtml(word[0])) if next(numbers) in marked else word[0]

    parts = [part if part.startswith("<") else _WORD.sub(mark, part) for part in _TAG.split(html)]
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
    return SafeHtml("".join(parts)), (", ".join(phrases) or "the same words") + note


def _words(html: SafeHtml) -> list[str]:
    texts = [part for part in _TAG.split(html) if not part.startswith("<")]
    return [word for text in texts for word in _WORD.findall(text)]
