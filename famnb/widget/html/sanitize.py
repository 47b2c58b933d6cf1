"""Foreign text made harmless, as HTML, as Markdown and as plain text; knows nothing of replies.

A model's words are hostile until proven otherwise: they pass through here before anything shows or saves them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from html import escape as _escape

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from famnb.widget.html import highlight
from famnb.widget.html.math import FORMULA, add_formula_rules, open_formula_line

_BIDI_MARKS = (0x061C, 0x200E, 0x200F)
_BIDI_CONTROLS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_VISIBLE: dict[int, str | None] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n\r"},
    0x0D: None,
    0x7F: "␡",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    **dict.fromkeys(_BIDI_MARKS),
    **{code: f"[U+{code:04X}]" for code in _BIDI_CONTROLS},
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}
"""Characters that act on a terminal, reorder text or cannot be encoded, and what is shown in their place."""

_TAGS = {"a", "blockquote", "br", "code", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"}
_TAGS |= {"s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "span": {"class"}, "td": {"style"}, "th": {"style"}}
_CODE = (
    '<pre dir="ltr" style="margin:0.6em 0;padding:0.6em 0.8em;overflow:auto;border-radius:6px;'
    'background-color:rgba(128,128,128,0.1)"><code style="background-color:transparent">'
)
# Mixed with the colour of the text around it, each is readable on a light page and on a dark one, live and saved;
# viewers that do not know the mixture, and sanitisers that drop it, show plain code.
_TINTS = {"keyword": "#8b2fc9", "string": "#0a8a3a", "number": "#c2410c", "comment": "#808080", "name": "#0b5fd6"}
# Viewers differ most in these. A heading inside a reply is smaller than the notebook's own; a wide table scrolls by
# itself; each block runs in the direction of its own words, and code from left to right.
_DRESSED = {
    **{
        f"<{tag}>": f'<{tag} dir="auto" style="margin:0.9em 0 0.4em;font-weight:600;font-size:{size}em">'
        for tag, size in {"h3": 1.3, "h4": 1.15, "h5": 1, "h6": 1}.items()
    },
    **{f"<{tag}": f'<{tag} dir="auto"' for tag in ("blockquote", "ol", "ul")},
    "<p>": '<p dir="auto" style="text-align:start">',
    "<pre><code>": _CODE,
    **{
        f'<span class="{kind}">': f'<span style="color:color-mix(in srgb,currentcolor 40%,{_TINTS[kind]})">'
        for kind in highlight.KINDS
    },
    "<table>": '<div style="overflow-x:auto"><table dir="auto" style="margin:0.6em 0">',
    "</table>": "</table></div>",
    "<th>": '<th style="text-align:left">',
    "<td>": '<td style="text-align:left">',
}
_PLAIN_TAG = re.compile("|".join(_DRESSED))
# Viewers typeset what stands between two of these, so that "$5 or $6" would lose its spaces and its sense.
_MARK = r"\$(?=[^$]*\$)|\\(?=[(\[]|begin\b)"
_TYPESET = re.compile(f"(?P<formula>{FORMULA})|{_MARK}", re.DOTALL)
# What makes a formula more than a formula: links, attributes, files, extensions. It stays text, whatever the viewer.
_ACTS = re.compile(
    r"\\(?:href|url|html|class|cssId|style|data|require|include|input|unicode|bbox|mmlToken|mathtip|texttip|toggle"
    r"|[gex]?def|let|newcommand|renew|newenvironment|Declare|csname)"
)
_SCHEMES = ("http://", "https://", "mailto:")
_ALIGN = re.compile(r"text-align:(left|right|center)")


def visible(text: str) -> str:
    """The text with control and direction characters made visible or dropped, so that it can only be read."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def escape(text: str) -> str:
    """The text as HTML that shows exactly it."""
    return re.sub(_MARK, r"<span>\g<0></span>", _escape(visible(text)))


def _image(
    _self: RendererHTML, tokens: Sequence[Token], index: int, _options: object, _env: Mapping[str, object]
) -> str:
    """An image as a link, because loading it would tell its host that the text was read."""
    token = tokens[index]
    words = f"image: {token.content}" if token.content else "image"
    return f'<a href="{_escape(str(token.attrGet("src") or ""))}">{_escape(words)}</a>'


def _text(
    _self: RendererHTML, tokens: Sequence[Token], index: int, _options: object, _env: Mapping[str, object]
) -> str:
    """A text whose formulas are left to viewers that typeset them, and whose prices are kept from them."""
    return _TYPESET.sub(_typeset, _escape(tokens[index].content))


def _typeset(mark: re.Match[str]) -> str:
    if mark["formula"] and not _ACTS.search(mark[0]):
        return mark[0]
    return re.sub(r"[$\\]", r"<span>\g<0></span>", mark[0])


def _highlighted(code: str, language: str, _attributes: str) -> str:
    return highlight.spans(code, language)


# A line break of the model's is kept: so the text that streams and its Markdown have the same lines.
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True, "highlight": _highlighted})
_MARKDOWN.enable(["table", "strikethrough"])
add_formula_rules(_MARKDOWN)
_MARKDOWN.add_render_rule("image", _image)
_MARKDOWN.add_render_rule("text", _text)
_BLOCKS = MarkdownIt("commonmark", {"html": False}).enable("table").disable("inline")
add_formula_rules(_BLOCKS)


def _attribute(_tag: str, name: str, value: str) -> str | None:
    match name:
        case "href":
            return value if value.lower().startswith(_SCHEMES) else None
        case "style":
            return value if _ALIGN.fullmatch(value) else None
        case "class":
            return value if value in highlight.KINDS else None
        case _:
            return value


# A text that has ended is wanted several times at once: by its live view, and by what is saved.
@functools.lru_cache(maxsize=64)
def render_markdown(markdown: str) -> str:
    """Markdown as clean HTML: no raw HTML, no image, no style, only http, https and mailto links.

    Headings go two levels down: the notebook's own outline is above them.
    """
    tokens = _MARKDOWN.parse(visible(markdown))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    clean = nh3.clean(
        _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=_attribute,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    return _PLAIN_TAG.sub(lambda tag: _DRESSED[tag[0]], clean)


def code_block(text: str) -> str:
    """A text as an HTML code block that shows exactly it."""
    return f"{_CODE}{escape(text)}</code></pre>"


def render_docstring(text: str) -> str:
    """A docstring's text as HTML, its names in code type."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def settled_length(markdown: str) -> int:
    """How many characters at the start can no longer change their meaning when more text is appended."""
    lines = markdown.split("\n")
    open_at = open_formula_line(lines)
    starts = [token.map[0] for token in _BLOCKS.parse(markdown) if token.map and token.level == 0]
    starts = [start for start in starts if open_at is None or start <= open_at]
    return sum(len(line) + 1 for line in lines[: starts[-1]]) if starts else 0


# What a viewer could take for HTML, or for a link that is not http(s) or mailto. Viewers disagree on what is code, so
# code is treated like all other text.
_TAG = re.compile(r"<(?=[a-zA-Z/!?])")
_LINK = re.compile(r"\](?=[(:]\s*(?!https?://|mailto:)[^\s)]{0,40}[:&\\])", re.IGNORECASE)


def defuse_markdown(text: str) -> str:
    """Markdown that stays Markdown but carries no raw HTML, no image and no script link, in whatever viewer."""
    safe = _TAG.sub("&lt;", visible(text)).replace("![", "!\\[")
    return _LINK.sub("]\\\\", safe) + _unclosed(safe)


def _unclosed(text: str) -> str:
    """The fence that a code block at the end of the text still needs, so that what follows is not part of it."""
    tokens = _BLOCKS.parse(text)
    if not tokens or tokens[-1].type != "fence" or not tokens[-1].map:
        return ""
    first, end = tokens[-1].map
    lines = text.split("\n")[first:end]
    if len(lines) > 1 and lines[-1].strip().startswith(tokens[-1].markup):
        return ""
    return f"\n{tokens[-1].markup}"


_MARKS = re.compile(r"([\\`*_{}\[\]>()#+!|~&$])")


def escape_markdown(text: str) -> str:
    """A text as Markdown that shows exactly it."""
    return _MARKS.sub(r"\\\1", visible(text)).replace("<", "&lt;")


def fence(text: str) -> str:
    """A text as a Markdown code block that it cannot end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{_TAG.sub('&lt;', visible(text))}\n{fence}"
