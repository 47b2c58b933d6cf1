"""Syntax highlighting: program code as HTML spans of five classes, without colours of its own.

pygments finds the tokens. Its HtmlFormatter is not used: it maps tokens to dozens of classes, which only its private
`_get_css_class` could reduce to these five, and writes five times as many spans (pygments 2.21, 8,000 characters of
Python: 547 for 114), each of which is sanitised, sent and saved.
"""

from __future__ import annotations

import functools
import re
from html import escape

from pygments import lex
from pygments.lexers import get_lexer_by_name

# `_TokenType` is private to pygments (2.21), which has no public name for the type of a token. Used in annotations
# only.
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType

from famnb.secret_patterns import find_keys

# At this length a lexer takes a few milliseconds, in which the kernel does nothing else.
MAX_CHARS = 8_000
"""Code with more characters stays plain."""
# A lexer's regular expression cannot be interrupted, and some take the square of a long line's or gap's length.
_UNUSUAL = re.compile(r"[^\n]{500}|\s{200}")
_LANGUAGES = """
    bash c c++ console cpp cs csharp css diff docker dockerfile go html ini javascript js json jsx julia kotlin lua php
    powershell py pycon python python3 r rb rs ruby rust scala sh shell sql swift toml ts tsx typescript xml
    yaml yml zsh
"""
LANGUAGES = frozenset(_LANGUAGES.split())
"""The languages that are highlighted, by the names that stand after a fence."""
_KIND_OF: dict[_TokenType, str] = {
    Comment: "comment",
    **dict.fromkeys((Keyword, Name.Tag), "keyword"),
    **dict.fromkeys((Name.Builtin, Name.Class, Name.Decorator, Name.Function), "name"),
    Number: "number",
    String: "string",
}
"""The classes of the spans, which `sanitize` colours."""


# A block is rendered when it closes, and again with the whole reply.
@functools.lru_cache(maxsize=64)
def spans(code: str, language: str) -> str:
    """Return code as HTML with a `<span class="…">` around what has a kind, which is its class.

    Code in an unknown language, longer than MAX_CHARS, with unusually long lines or with a key has no spans.
    """
    is_plain = language.lower() not in LANGUAGES or len(code) > MAX_CHARS or _UNUSUAL.search(code)
    # Spans inside a key would keep it from being masked in a saved file.
    if is_plain or find_keys(code):
        return escape(code)
    lexer = get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    runs: list[tuple[str, str]] = []
    for token, text in lex(code, lexer):
        before, kind = runs[-1] if runs else ("", ""), ""
        if text.strip():
            # That of the nearest ancestor of the token type that has one.
            kind = next((_KIND_OF[ancestor] for ancestor in reversed(token.split()) if ancestor in _KIND_OF), "")
        # White space continues the run before it, so that "return x" needs no span of its own for the space.
        if runs and (before[0] == kind or not text.strip()):
            runs[-1] = before[0], before[1] + text
        else:
            runs.append((kind, text))
    # A lexer may drop what it does not expect; a reader must see every character.
    if "".join(text for _, text in runs) != code:
        return escape(code)
    return "".join(f'<span class="{kind}">{escape(text)}</span>' if kind else escape(text) for kind, text in runs)
