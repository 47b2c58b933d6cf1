"""Foreign text is harmless in every form it is shown in."""

import html as stdlib_html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.widget.html import sanitize
from tests.support.hostile_text import HOSTILE, acts


def links(html: str) -> list[str]:
    return [stdlib_html.unescape(href) for href in re.findall(r'<\w[^>]*? href="([^"]*)"', html)]


@pytest.mark.parametrize("text", HOSTILE)
def test_html_of_hostile_markdown_is_inert(text: str):
    html = sanitize.render_markdown(f"before {text} after")
    assert acts(html) == []
    assert all(href.startswith(("http://", "https://", "mailto:")) for href in links(html))


@pytest.mark.parametrize("text", HOSTILE)
def test_saved_markdown_is_inert_in_a_viewer_that_allows_html(text: str):
    viewer = sanitize.MarkdownIt("commonmark", {"html": True})
    viewer.validateLink = lambda _url: True
    html = viewer.render(sanitize.defuse_markdown(f"before {text} after\n\n{text}"))
    assert acts(html) == []
    assert not [href for href in links(html) if "script" in href.lower() or href.startswith("data:")]


@given(st.text(alphabet="<>![]()`*_\\&;:#/ \njavscriptmghoe=1\"'", max_size=80))
def test_no_markdown_at_all_becomes_an_element_that_acts(text: str):
    assert acts(sanitize.render_markdown(text)) == []
    assert acts(sanitize.MarkdownIt("commonmark", {"html": True}).render(sanitize.defuse_markdown(text))) == []


def test_markdown_is_still_markdown():
    """A link opens elsewhere and tells nothing, an image becomes a link to itself, a wide table scrolls by itself."""
    html = sanitize.render_markdown(
        "# Title\n\n**bold** ~~gone~~ [site](https://example.com 't') ![a cat](https://example.com/c)\n\n1. one\n\n"
        "|a|b|\n|--|--:|\n|1|2|\n\n```python\nx < y\n```"
    )
    for piece in (
        '<a href="https://example.com" title="t" target="_blank" rel="noopener noreferrer">',
        "image: a cat</a>",
        '<div style="overflow-x:auto"><table',
        '<td style="text-align:left">1</td>',
        "</table></div>",
        ">Title</h3>",
        "<strong>bold</strong>",
        "<s>gone</s>",
        "<ol ",
        '<td style="text-align:right">2</td>',
        ">x &lt; y\n</code></pre>",
    ):
        assert piece in html


def test_terminal_and_direction_controls_can_only_be_seen():
    assert sanitize.visible("\x1b[31mred\x07") == "␛[31mred␇"
    assert sanitize.visible("user\u202egnp.exe\u202c") == "user[U+202E]gnp.exe[U+202C]"
    assert sanitize.visible("a\u200eb\r\nc") == "ab\nc"
    assert sanitize.visible("x\ud83dy").encode() == "x\ufffdy".encode()


def test_a_code_block_that_was_cut_off_does_not_swallow_what_follows():
    assert sanitize.defuse_markdown("```python\nx = 1") == "```python\nx = 1\n```"
    assert sanitize.defuse_markdown("```\nx\n```") == "```\nx\n```"


def test_settled_text_is_all_but_the_last_block():
    assert sanitize.stable_length("one\n\ntwo") == len("one\n\n")
    assert sanitize.stable_length("only one, still growing") == 0
    assert sanitize.stable_length("one\n\n```\ncode\n\nmore") == len("one\n\n")


@given(
    st.lists(
        st.sampled_from(
            [
                "word ",
                "\n",
                "\n\n",
                "- item",
                "```\n",
                "# h",
                "> q",
                "|a|b|\n|-|-|\n",
                "1. x",
                "    c",
                "$$\n",
                "x$$\n",
                "\\[\n",
                "\\]\n",
            ]
        )
    )
)
def test_settled_text_and_the_rest_render_as_the_whole(pieces: list[str]):
    text = "".join(pieces)
    cut = sanitize.stable_length(text)
    assert sanitize.render_markdown(text[:cut]) + sanitize.render_markdown(text[cut:]) == sanitize.render_markdown(text)


def test_each_block_runs_in_the_direction_of_its_own_words():
    html = sanitize.render_markdown("مرحبا\n\nhello\n\n- שלום\n\n```\ncode\n```")
    assert html.count('<p dir="auto" style="text-align:start">') == 2
    assert '<ul dir="auto">' in html
    assert '<pre dir="ltr"' in html


def test_a_literal_text_has_no_markup():
    assert (
        sanitize.MarkdownIt().render(sanitize.escape_markdown("*a* <b> [c](d) `e`"))
        == "<p>*a* &lt;b&gt; [c](d) `e`</p>\n"
    )


def test_a_fenced_text_cannot_leave_its_fence():
    assert sanitize.fence("```\nout") == "````\n```\nout\n````"


@given(st.text())
def test_what_is_put_into_a_template_is_text(text: str):
    template = sanitize.SafeHtml("<p>{}</p>")
    escape = sanitize.SafeHtml.escape
    shown = f"<p>{escape(text)}</p>"
    assert template.format(text) == shown
    assert template.format(escape(text)) == shown
    assert sanitize.SafeHtml().join(["<p>", text]) == escape("<p>") + text
    assert acts(template.format(text)) == []


def test_what_is_built_from_safe_html_is_safe_html():
    """So that it is not escaped once more where it is put in."""
    template = sanitize.SafeHtml("<p>{}</p>")
    for html in (template.format("x"), template + "x", sanitize.SafeHtml().join([template]), sanitize.code_block("x")):
        assert type(html) is sanitize.SafeHtml
