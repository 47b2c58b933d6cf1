r"""Untrusted text made safe to show and to save, as HTML, as Markdown and as plain text.

What a model writes is treated as hostile: nothing shows or saves it that did not pass through here. HTML is built as
`SafeHtml`, whose templates escape what is put into them:

    _WARNING = SafeHtml('<p class="famnb-warning">{}</p>')
    _WARNING.format(text)       # escaped; a value that is SafeHtml itself goes in as it is
    SafeHtml().join(items)      # each item likewise

TeX formulas stay in Markdown exactly as written: it would take the backslashes of `\(`, `\,` and `\\` for escapes,
and underscores and stars for emphasis. `_guard_formula` decides which formulas a viewer may typeset.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from html import escape as escape_characters
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

from famnb.widget.html import highlight

# Marks give a direction to the characters beside them, which honest text needs too: they are dropped. Embeddings,
# overrides and isolates can make a text read as another one: they are shown by their code.
_BIDI_MARKS = (0x061C, 0x200E, 0x200F)
_BIDI_CONTROLS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_VISIBLE: Mapping[int, str | None] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n\r"},
    0x0D: None,
    0x7F: "␡",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    **dict.fromkeys(_BIDI_MARKS),
    **{code: f"[U+{code:04X}]" for code in _BIDI_CONTROLS},
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}
"""Characters that act on a terminal, reorder text or cannot be encoded, and what is shown in their place."""
# Viewers typeset what stands between two dollars or after one of these backslashes, so that "$5 or $6" would lose its
# spaces and its sense. A tag around the dollar or backslash keeps them from it.
_FORMULA_START = r"\$(?=[^$]*\$)|\\(?=[(\[]|begin\b)"


def visible(text: str) -> str:
    """Return the text with characters that act on a terminal or reorder text made visible or dropped."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


class SafeHtml(Markup):
    """HTML that may be shown as it is: made from literal templates and from values that were escaped on their way in.

    `format`, `join` and `+` escape every value that is not SafeHtml itself, and return SafeHtml. An f-string or a
    regular expression returns a plain `str`, which a type checker refuses where SafeHtml is expected.
    """

    __slots__ = ()

    @classmethod
    def escape(cls, value: Any, /) -> SafeHtml:
        """Return a value as HTML that shows exactly its text.

        Unlike markupsafe's own `escape`, it shows control characters and keeps prices from becoming formulas.
        """
        if isinstance(value, SafeHtml):
            return value
        return cls(re.sub(_FORMULA_START, r"<span>\g<0></span>", escape_characters(visible(str(value)))))


_FORMULA_PATTERN = (
    r"\$\$[^$`]+\$\$(?![\d$])"
    r"|\$(?=[^\s$])[^$`\n]*(?<=[^\s$])\$(?![\d$])"
    r"|\\\((?:\\\\|(?!\\[()]).)+\\\)"
    r"|\\\[(?:\\\\|(?!\\[\[\]]).)+\\\]"
)
"""A formula with its delimiters. "$5 or $6" is not one: a closing dollar has no space before and no digit after it."""
_FORMULA = re.compile(_FORMULA_PATTERN, re.DOTALL)


def _parse_formula(state: StateInline, silent: bool) -> bool:
    """Inline rule: add a formula inside a paragraph as text, whatever characters it has."""
    match = _FORMULA.match(state.src, state.pos, state.posMax)
    # Bold words with a price on either side are likelier than a formula with two stars.
    if match is None or (not match[0].startswith(("$$", "\\")) and "**" in match[0]):
        return False
    if not silent:
        state.pending += match[0]
    state.pos = match.end()
    return True


# What Markdown needs, and nothing that loads or acts: no img, style, form, iframe, svg or math. No h1 and h2, since
# `render_markdown` moves headings two levels down.
_TAGS = {"a", "blockquote", "br", "code", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"}
_TAGS |= {"s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "span": {"class"}, "td": {"style"}, "th": {"style"}}
_CODE_START = (
    '<pre dir="ltr" style="margin:0.6em 0;padding:0.6em 0.8em;overflow:auto;border-radius:6px;'
    'background-color:rgba(128,128,128,0.1)"><code style="background-color:transparent">'
)
_CODE_BLOCK = SafeHtml(f"{_CODE_START}{{}}</code></pre>")
# Mixed with the colour of the text around it, each is readable on a light page and on a dark one, live and saved.
# Viewers that do not know color-mix, and sanitisers that drop it, show plain code.
_KIND_COLOURS = {
    "keyword": "#8b2fc9",
    "string": "#0a8a3a",
    "number": "#c2410c",
    "comment": "#808080",
    "name": "#0b5fd6",
}
"""The colours of highlighted code, by the class of a span."""
# What clean tags become. Viewers differ most in these. A heading inside a reply is smaller than the notebook's own; a
# wide table scrolls by itself; each block runs in the direction of its own words, and code from left to right.
_STYLED_TAGS = {
    **{
        f"<{tag}>": f'<{tag} dir="auto" style="margin:0.9em 0 0.4em;font-weight:600;font-size:{size}em">'
        for tag, size in {"h3": 1.3, "h4": 1.15, "h5": 1, "h6": 1}.items()
    },
    **{f"<{tag}": f'<{tag} dir="auto"' for tag in ("blockquote", "ol", "ul")},
    "<p>": '<p dir="auto" style="text-align:start">',
    "<pre><code>": _CODE_START,
    **{
        f'<span class="{kind}">': f'<span style="color:color-mix(in srgb,currentcolor 40%,{colour})">'
        for kind, colour in _KIND_COLOURS.items()
    },
    "<table>": '<div style="overflow-x:auto"><table dir="auto" style="margin:0.6em 0">',
    "</table>": "</table></div>",
    "<th>": '<th style="text-align:left">',
    "<td>": '<td style="text-align:left">',
}
_UNSTYLED_TAG = re.compile("|".join(_STYLED_TAGS))
_FORMULA_OR_START = re.compile(f"(?P<formula>{_FORMULA_PATTERN})|{_FORMULA_START}", re.DOTALL)
# TeX commands that make links, set attributes, read files or load extensions. A formula with one of them stays text,
# because viewers differ in which of them they allow.
_ACTIVE_COMMAND = re.compile(
    r"\\(?:href|url|html|class|cssId|style|data|require|include|input|unicode|bbox|mmlToken|mathtip|texttip|toggle"
    r"|[gex]?def|let|newcommand|renew|newenvironment|Declare|csname)"
)
_LINK_SCHEMES = ("http://", "https://", "mailto:")
_CELL_ALIGNMENT = re.compile(r"text-align:(left|right|center)")


def _render_image(_self: RendererHTML, tokens: Sequence[Token], index: int, *_: object) -> str:
    """Render an image as a link, because loading it would tell its host that the text was read."""
    token = tokens[index]
    address = escape_characters(str(token.attrGet("src") or ""))
    label = escape_characters(f"image: {token.content}" if token.content else "image")
    return f'<a href="{address}">{label}</a>'


def _render_text(_self: RendererHTML, tokens: Sequence[Token], index: int, *_: object) -> str:
    """Render a text so that viewers typeset its formulas, but not its prices."""
    return _FORMULA_OR_START.sub(_guard_formula, escape_characters(tokens[index].content))


def _guard_formula(match: re.Match[str]) -> str:
    """Return a formula as it is, and everything else that looks like the start of one so that it is not typeset."""
    if match["formula"] and not _ACTIVE_COMMAND.search(match[0]):
        return match[0]
    return re.sub(r"[$\\]", r"<span>\g<0></span>", match[0])


# html: False shows raw HTML as text. "breaks" keeps the model's line breaks, so that a text has the same lines while it
# streams and as Markdown.
_MARKDOWN = MarkdownIt(
    "commonmark",
    {"html": False, "breaks": True, "highlight": lambda code, language, _attributes: highlight.spans(code, language)},
)
_MARKDOWN.enable(["table", "strikethrough"])
# Before the rule that would take a formula's backslashes for escapes.
_MARKDOWN.inline.ruler.before("escape", "formula", _parse_formula)
_MARKDOWN.add_render_rule("image", _render_image)
_MARKDOWN.add_render_rule("text", _render_text)
# Finds only where blocks begin and end; without the inline rules it takes a tenth of the time.
_BLOCKS = MarkdownIt("commonmark", {"html": False}).enable("table").disable("inline")


def _filter_attribute(_tag: str, name: str, value: str) -> str | None:
    """Return the value that an attribute may keep, or None to drop it."""
    match name:
        case "href":
            return value if value.lower().startswith(_LINK_SCHEMES) else None
        case "style":
            return value if _CELL_ALIGNMENT.fullmatch(value) else None
        case "class":
            return value if value in _KIND_COLOURS else None
        case _:
            return value


# A finished text is rendered several times at once: for its live view and for the output that is saved.
@functools.lru_cache(maxsize=64)
def render_markdown(markdown: str) -> SafeHtml:
    """Return Markdown as clean HTML: no raw HTML, no image, no style of its own, only http, https and mailto links.

    Headings go two levels down, since the notebook's own outline is above them.
    """
    tokens = _MARKDOWN.parse(visible(markdown))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    # markdown-it has escaped all raw HTML already; nh3 keeps it harmless should a rule of ours or of a plugin be wrong.
    clean = nh3.clean(
        _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=_filter_attribute,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    # Styles are added to clean HTML, since cleaning allows none but the alignment of a table's cell.
    return SafeHtml(_UNSTYLED_TAG.sub(lambda tag: _STYLED_TAGS[tag[0]], clean))


def render_draft(markdown: str) -> SafeHtml:
    """Return Markdown that is still growing as clean HTML, as `render_markdown` does; it is rendered only once."""
    # Not by way of the cache, which drafts of every length would fill.
    return render_markdown.__wrapped__(markdown)


def render_code(code: str, language: str) -> SafeHtml:
    """Return code as highlighted HTML, whatever is in it."""
    marks = _fence_marks(code)
    return render_draft(f"{marks}{language}\n{code}\n{marks}")


def code_block(text: str) -> SafeHtml:
    """Return an HTML code block that shows exactly this text."""
    return _CODE_BLOCK.format(text)


def stable_length(markdown: str) -> int:
    """Return how many characters at the start keep their meaning whatever text is appended: all but the last block."""
    starts = [token.map[0] for token in _BLOCKS.parse(markdown) if token.map and token.level == 0]
    return sum(len(line) + 1 for line in markdown.split("\n")[: starts[-1]]) if starts else 0


# What a viewer could take for HTML, or for a link that is not http(s) or mailto. Viewers disagree on what is code, so
# text in code blocks is treated like all other text. An address may spell the colon of its scheme as an entity or an
# escape, hence & and \; no scheme is longer than 40 characters, and the limit keeps the search linear.
_TAG_START = re.compile(r"<(?=[a-zA-Z/!?])")
_UNSAFE_LINK = re.compile(r"\](?=[(:]\s*(?!https?://|mailto:)[^\s)]{0,40}[:&\\])", re.IGNORECASE)


def defuse_markdown(text: str) -> str:
    """Return Markdown without raw HTML, images and script links, whichever viewer shows it."""
    safe = _TAG_START.sub("&lt;", visible(text)).replace("![", "!\\[")
    # An open code block at the end needs its fence, since what follows is not part of it.
    last, missing_fence = next(reversed(_BLOCKS.parse(safe)), None), ""
    if last is not None and last.type == "fence" and last.map:
        lines = safe.split("\n")[slice(*last.map)]
        # markdown-it does not say whether a fence was closed or ended with the text.
        if len(lines) == 1 or not lines[-1].strip().startswith(last.markup):
            missing_fence = f"\n{last.markup}"
    return _UNSAFE_LINK.sub("]\\\\", safe) + missing_fence


_MARKDOWN_CHARACTER = re.compile(r"([\\`*_{}\[\]>()#+!|~&$])")


def escape_markdown(text: str) -> str:
    """Return Markdown that shows exactly this text."""
    return _MARKDOWN_CHARACTER.sub(r"\\\1", visible(text)).replace("<", "&lt;")


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table that shows exactly these texts, each on one line; the first row is its head."""
    lines = [f"| {' | '.join(escape_markdown(' '.join(cell.split())) for cell in row)} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]])


def fence(text: str) -> str:
    """Return a Markdown code block with this text, which cannot end the block."""
    marks = _fence_marks(text)
    return f"{marks}\n{_TAG_START.sub('&lt;', visible(text))}\n{marks}"


def _fence_marks(text: str) -> str:
    """Return the backticks around a code block with this text: more than any that stand in it."""
    longest_run = max(map(len, re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest_run + 1)
