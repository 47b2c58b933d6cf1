"""Differences between two answers: every word is accounted for, marked without colour, and inert."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.widget.html import diff
from famnb.widget.html.diff import MAX_WORDS, compare_words
from famnb.widget.html.sanitize import render_markdown

TEXTS = st.lists(st.sampled_from(["a", "b ", "c\n\n", " d", "<b>", "**e**", "é "]), max_size=60).map("".join)


@given(TEXTS, TEXTS)
def test_what_is_not_gone_is_the_text_and_what_is_not_new_is_the_reference(reference: str, text: str):
    pieces = compare_words(reference, text)
    assert "".join(piece.text for piece in pieces if piece.kind != "gone").split() == text.split()
    assert "".join(piece.text for piece in pieces if piece.kind != "new").split() == reference.split()


def test_only_words_that_differ_are_marked():
    pieces = compare_words("the sky is blue today", "the sky is green today")
    assert [tuple(piece) for piece in pieces] == [
        ("same", "the sky is"),
        ("gone", " blue"),
        ("new", " green"),
        ("same", " today"),
    ]
    assert diff.plain(pieces) == "the sky is [-blue-] [+green+] today"
    assert diff.markdown(pieces) == "the sky is ~~blue~~ **green** today"
    assert diff.describe_differences(pieces) == "1 word differs"


def test_hostile_words_are_inert():
    pieces = compare_words(
        "safe", "<script>alert(1)</script>\n<img src=x onerror=alert(2)> ![p](http://127.0.0.1:9/p.png) \x1b[1m"
    )
    markdown = diff.markdown(pieces)
    assert not any(words in markdown for words in ("<script", "<img", "!["))
    assert "\x1b" not in markdown + diff.plain(pieces)


def test_rendered_answers_are_compared_by_their_words():
    reference = render_markdown("The sky is **blue** today.\n\n| a | b |\n|-|-|\n| one | two |\n\nBye")
    html, summary = diff.mark_html(
        reference, render_markdown("The sky is *blue* today, too.\n\n| a | b |\n|-|-|\n| one | 2 |")
    )
    text = re.sub(r' style="[^"]*"', "", html)
    assert "<em>blue</em> <del>today.</del> <ins>today, too.</ins></p>" in text
    assert "<td>one</td>" in text
    assert "<td><del>two Bye</del> <ins>2</ins></td>" in text
    assert summary == "2 words differ, 1 word is new, 1 word is missing"
    assert "line-through" in html.partition("<del")[2]
    assert "underline" in html.partition("<ins")[2]
    assert diff.mark_html(reference, reference) == (reference, "the same words")


def test_what_is_missing_at_the_end_is_said_there():
    html, _ = diff.mark_html(render_markdown("one two"), render_markdown("one"))
    assert re.sub(r' style="[^"]*"', "", html).endswith("<del>two</del>")


@given(TEXTS, TEXTS)
def test_marked_html_has_the_words_of_the_answer_and_no_other_tags(reference: str, text: str):
    answer = render_markdown(text)
    html, _ = diff.mark_html(render_markdown(reference), answer)
    plain = re.sub(r"<del[^>]*>.*?</del>|</?ins[^>]*>", "", html, flags=re.DOTALL)
    assert plain.split() == answer.split() or re.sub(r"\s", "", plain) == re.sub(r"\s", "", answer)


@pytest.mark.parametrize("words", ["same ", "n{} "])
def test_long_answers_are_compared_up_to_a_bound(words: str):
    text = "".join(words.format(n) for n in range(MAX_WORDS + 50))
    pieces = compare_words(text, text)
    assert [piece.kind for piece in pieces] == ["same", "rest"]
    assert "".join(piece.text for piece in pieces).split() == text.split()
    assert diff.describe_differences(pieces) == f"the same words; only the first {MAX_WORDS:,} are compared"
