"""The words of a program told apart by kind, for a reader; knows nothing of Markdown, and colours nothing itself."""

from __future__ import annotations

import functools
import re
from html import escape

from pygments import lex
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType

LONGEST = 8_000
"""Characters; a longer program stays plain, so that no text holds the kernel up for more than a moment."""
KINDS = ("keyword", "string", "number", "comment", "name")
"""The classes of the spans, for whoever colours them."""
# A lexer's regular expression cannot be interrupted, and some take the square of a long line's or gap's length.
_UNUSUAL = re.compile(r"[^\n]{500}|\s{200}")
LANGUAGES = {"bash", "c", "c++", "console", "cpp", "cs", "csharp", "css", "diff", "docker", "dockerfile", "go", "html"}
LANGUAGES |= {"ini", "javascript", "js", "json", "jsx", "julia", "kotlin", "lua", "php", "powershell", "pycon", "py"}
LANGUAGES |= {
    "python",
    "python3",
    "r",
    "rb",
    "ruby",
    "rs",
    "rust",
    "scala",
    "sh",
    "shell",
    "sql",
    "swift",
    "toml",
    "ts",
}
LANGUAGES |= {"tsx", "typescript", "xml", "yaml", "yml", "zsh"}
_KIND_OF: dict[_TokenType, str] = {
    Comment: "comment",
    Keyword: "keyword",
    Name.Builtin: "name",
    Name.Class: "name",
    Name.Decorator: "name",
    Name.Function: "name",
    Name.Tag: "keyword",
    Number: "number",
    String: "string",
}


# A block is rendered when it closes, and again with the whole reply.
@functools.lru_cache(maxsize=64)
def spans(code: str, language: str) -> str:
    """The code as HTML, a `<span class="…">` of KINDS around what has a kind; unknown and unusual code is plain."""
    if language.lower() not in LANGUAGES or len(code) > LONGEST or _UNUSUAL.search(code):
        return escape(code)
    lexer = get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    runs: list[tuple[str, list[str]]] = []
    for token, text in lex(code, lexer):
        kind = _kind(token) if text.strip() else runs[-1][0] if runs else ""
        if runs and runs[-1][0] == kind:
            runs[-1][1].append(text)
        else:
            runs.append((kind, [text]))
    joined = [(kind, "".join(texts)) for kind, texts in runs]
    if "".join(text for _, text in joined) != code:  # a lexer may drop what it does not expect
        return escape(code)
    return "".join(_span(kind, text) for kind, text in joined)


def _kind(token: _TokenType) -> str:
    """The kind of the nearest ancestor that has one."""
    for ancestor in reversed(token.split()):
        if ancestor in _KIND_OF:
            return _KIND_OF[ancestor]
    return ""


def _span(kind: str, text: str) -> str:
    return f'<span class="{kind}">{escape(text)}</span>' if kind else escape(text)
