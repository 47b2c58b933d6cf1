"""Foreign text is harmless in every form it is shown in."""

from __future__ import annotations

import html as stdlib_html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.widget.html import highlight, sanitize
from tests.support.hostile_text import HOSTILE, acts


def links(html: str) -> list[str]:
    return [stdlib_html.unescape(href) for href in re.findall(r'<\w[^>]*? href="([^"]*)"', html)]


@pytest.mark.parametrize("text", HOSTILE)
def test_html_of_hostile_markdown_is_inert(text: str):
    """No element that acts or loads, and no link but to http, https or mailto."""
    made = sanitize.render_markdown(f"before {text} after")
    assert acts(made) == []
    assert all(href.startswith(("http://", "https://", "mailto:")) for href in links(made))


@pytest.mark.parametrize("text", HOSTILE)
def test_saved_markdown_is_inert_in_a_viewer_that_allows_html(text: str):
    """Rendered with HTML on, as some viewers do, there is no element, no image and no script link."""
    viewer = sanitize.MarkdownIt("commonmark", {"html": True})
    viewer.validateLink = lambda _url: True
    made = viewer.render(sanitize.defuse_markdown(f"before {text} after\n\n{text}"))
    assert acts(made) == []
    assert not [href for href in links(made) if "script" in href.lower() or href.startswith("data:")]


@given(st.text(alphabet="<>![]()`*_\\&;:#/ \njavscriptmghoe=1\"'", max_size=80))
def test_no_markdown_at_all_becomes_an_element_that_acts(text: str):
    """Whatever the characters, clean HTML holds only the tags that Markdown needs."""
    assert acts(sanitize.render_markdown(text)) == []
    assert acts(sanitize.MarkdownIt("commonmark", {"html": True}).render(sanitize.defuse_markdown(text))) == []


def test_a_good_link_opens_elsewhere_and_tells_nothing():
    """A web link keeps its address, opens in a new tab, and passes no opener or referrer on."""
    made = sanitize.render_markdown("[site](https://example.com 'title')")
    assert 'href="https://example.com"' in made
    assert 'rel="noopener noreferrer"' in made
    assert 'target="_blank"' in made


def test_an_image_becomes_a_link_to_itself():
    """What the model wanted to show can be reached, but not without the reader's wish."""
    assert "image: a cat</a>" in sanitize.render_markdown("![a cat](https://example.com/cat.png)")


def test_markdown_is_still_markdown():
    """Headings two levels down, emphasis, lists, tables with their alignment, code and strikethrough survive."""
    made = sanitize.render_markdown(
        "# Title\n\n**bold** ~~gone~~\n\n1. one\n\n|a|b|\n|--|--:|\n|1|2|\n\n```python\nx < y\n```"
    )
    for piece in (
        ">Title</h3>",
        "<strong>bold</strong>",
        "<s>gone</s>",
        "<ol ",
        '<td style="text-align:right">2</td>',
        ">x &lt; y\n</code></pre>",
    ):
        assert piece in made


def test_code_is_coloured_by_kind_in_its_language():
    """Each kind is mixed from the text's own colour, so that it reads in any theme; the words stay as they were."""
    made = sanitize.render_markdown("```python\nreturn 'a < b'  # no\n```")
    mixed = '<span style="color:color-mix(in srgb,currentcolor 40%,#8b2fc9)">return </span>'
    assert mixed in made
    assert "a &lt; b" in made
    assert made.count("<span style=") == 3


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("```klingon\nreturn 1\n```", id="an unknown language"),
        pytest.param("```python\n" + "return 1\n" * 1000 + "```", id="a long block"),
        pytest.param("```python\nreturn '" + "a" * 600 + "'\n```", id="a long line"),
    ],
)
def test_other_code_stays_plain(code: str):
    """A language that is not known, and what would take long to tell apart."""
    assert "<span" not in sanitize.render_markdown(code)


@given(st.sampled_from(sorted(highlight.LANGUAGES)), st.text(alphabet="ab1 \n\"'`<>&/*#${}()[]=-\\\t", max_size=60))
def test_highlighting_changes_no_character(language: str, code: str):
    """Without its spans, highlighted code is the code."""
    assert stdlib_html.unescape(re.sub(r"</?span[^>]*>", "", highlight.spans(code, language))) == code


def test_terminal_and_direction_controls_can_only_be_seen():
    """An escape sequence shows as text, an override as its name, and invisible marks are gone."""
    assert sanitize.visible("\x1b[31mred\x07") == "␛[31mred␇"
    assert sanitize.visible("user\u202egnp.exe\u202c") == "user[U+202E]gnp.exe[U+202C]"
    assert sanitize.visible("a\u200eb\r\nc") == "ab\nc"


def test_a_lone_surrogate_can_be_sent_and_saved():
    """Half a character becomes the replacement character, which every encoder takes."""
    assert sanitize.visible("x\ud83dy").encode() == "x\ufffdy".encode()


def test_a_code_block_that_was_cut_off_does_not_swallow_what_follows():
    """A reply that stopped inside a fence gets its fence closed; a whole one gets nothing."""
    assert sanitize.defuse_markdown("```python\nx = 1") == "```python\nx = 1\n```"
    assert sanitize.defuse_markdown("```\nx\n```") == "```\nx\n```"


def test_settled_text_is_all_but_the_last_block():
    """A paragraph is settled once another block has begun; an open list or fence is not."""
    assert sanitize.settled_length("one\n\ntwo") == len("one\n\n")
    assert sanitize.settled_length("only one, still growing") == 0
    assert sanitize.settled_length("one\n\n```\ncode\n\nmore") == len("one\n\n")
    assert sanitize.settled_length("one\n\nso\n$$\nx\n- y") == len("one\n\n")
    assert sanitize.settled_length("one\n\n$$\nx\n- y\n$$\ntwo") == len("one\n\n$$\nx\n- y\n$$\n")


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
    """Freezing the settled part changes nothing of what is shown."""
    text = "".join(pieces)
    cut = sanitize.settled_length(text)
    assert sanitize.render_markdown(text[:cut]) + sanitize.render_markdown(text[cut:]) == sanitize.render_markdown(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It is $5, or $6.", "It is <span>$</span>5, or $6."),
        ("$5 for $x$", "<span>$</span>5 for $x$"),
        ("so $$a + b$$ and $c_1$ hold", "so $$a + b$$ and $c_1$ hold"),
    ],
)
def test_prices_are_not_typeset_and_formulas_may_be(text: str, shown: str):
    """A viewer typesets what is between two dollars in one piece of text; a tag between them keeps it from it."""
    assert shown in sanitize.render_markdown(text)


@pytest.mark.parametrize(
    "formula",
    [
        r"\(x_i * y_i * z\)",
        r"$\int e^{-x}\,dx \{a\}$",
        "\\[\nx_1 = \\frac{a}{b} \\\\[2pt]\n- y_1\n\\]",
        "$$\na_1 \\\\\n- b_2 * c * d\n$$",
    ],
)
@pytest.mark.parametrize("before", ["", "so:\n", "- so\n  ", "> so\n> "])
def test_a_formula_keeps_every_sign(formula: str, before: str):
    """Nothing in it is Markdown: no backslash is lost, nothing is emphasised or listed, and no line is broken."""
    indent = before.split("\n")[-1]
    text = before + formula.replace("\n", f"\n{indent if indent.strip() in ('', '>') else ''}") + "\n\nend"
    assert formula in sanitize.render_markdown(text)


def test_only_beginnings_of_formulas_take_no_longer_than_words():
    """However many: each is looked for over some lines, not to the end of the text."""
    assert sanitize.render_markdown("\\[\n" * 20_000).count("<br>") == 19_999


@pytest.mark.parametrize("command", [r"\href{javascript:x}{y}", r"\htmlData{a=b}{y}", r"\style{color:red}{y}"])
def test_a_formula_that_does_more_than_show_is_not_typeset(command: str):
    """Links and attributes out of a formula: its signs are kept apart, so that every viewer shows it as text."""
    assert sanitize.render_markdown(f"${command}$").count("<span>$</span>") == 2
    assert sanitize.render_markdown(f"\\({command}\\)").count("<span>\\</span>") == 3
    assert sanitize.render_markdown(f"$${command}$$").count("<span>$</span>") == 4


def test_an_escaped_text_is_never_typeset():
    """What shows exactly a text leaves no pair of signs of mathematics in one piece."""
    assert sanitize.escape(r"$5 to $6 \[x\]") == r"<span>$</span>5 to $6 <span>\</span>[x\]"


def test_each_block_runs_in_the_direction_of_its_own_words():
    """Arabic beside English, and code from left to right."""
    made = sanitize.render_markdown("مرحبا\n\nhello\n\n- שלום\n\n```\ncode\n```")
    assert made.count('<p dir="auto" style="text-align:start">') == 2
    assert '<ul dir="auto">' in made
    assert '<pre dir="ltr"' in made


def test_a_wide_table_scrolls_by_itself():
    """Its cells stand left unless the text says otherwise."""
    made = sanitize.render_markdown("|a|b|\n|--|--:|\n|1|2|")
    assert made.startswith('<div style="overflow-x:auto"><table')
    assert '<td style="text-align:left">1</td>' in made
    assert made.endswith("</table></div>\n")


def test_a_literal_text_has_no_markup():
    """In Markdown every sign of it shows as itself."""
    assert (
        sanitize.MarkdownIt().render(sanitize.escape_markdown("*a* <b> [c](d) `e`"))
        == "<p>*a* &lt;b&gt; [c](d) `e`</p>\n"
    )


def test_a_fenced_text_cannot_leave_its_fence():
    """Backticks inside make the fence longer."""
    assert sanitize.fence("```\nout") == "````\n```\nout\n````"
