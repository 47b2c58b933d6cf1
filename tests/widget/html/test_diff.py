"""Differences between two answers: every word is accounted for, marked without colour, and inert."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.widget.html import diff
from famnb.widget.html.diff import MAX_WORDS, compare_words

TEXTS = st.lists(st.sampled_from(["a", "b ", "c\n\n", " d", "<b>", "**e**", "é "]), max_size=60).map("".join)


@given(TEXTS, TEXTS)
def test_what_is_not_gone_is_the_text_and_what_is_not_new_is_the_reference(reference: str, text: str):
    """No word of either is lost or made up."""
    pieces = compare_words(reference, text)
    assert "".join(piece.text for piece in pieces if piece.kind != "gone").split() == text.split()
    assert "".join(piece.text for piece in pieces if piece.kind != "new").split() == reference.split()


def test_only_words_that_differ_are_marked():
    """In HTML by tags, in Markdown and plain text by signs; what they come to is said in words."""
    pieces = compare_words("the sky is blue today", "the sky is green today")
    assert [tuple(piece) for piece in pieces] == [
        ("same", "the sky is"),
        ("gone", " blue"),
        ("new", " green"),
        ("same", " today"),
    ]
    assert diff.plain(pieces) == "the sky is [-blue-] [+green+] today"
    assert diff.markdown(pieces) == "the sky is ~~blue~~ **green** today"
    assert diff.describe_differences(pieces) == "1 word differs, 1 is missing"
    html = diff.html(pieces)
    assert "line-through" in html.partition("<del")[2]
    assert "underline" in html.partition("<ins")[2]


def test_hostile_words_are_inert():
    """What a model says is escaped wherever it stands, also between marks and over several lines."""
    pieces = compare_words(
        "safe", "<script>alert(1)</script>\n<img src=x onerror=alert(2)> ![p](http://127.0.0.1:9/p.png) \x1b[1m"
    )
    html, markdown = diff.html(pieces), diff.markdown(pieces)
    assert "<script" not in html + markdown
    assert "<img" not in html + markdown
    assert "![" not in markdown
    assert "\x1b" not in html + markdown + diff.plain(pieces)


@pytest.mark.parametrize("words", ["same ", "n{} "])
def test_long_answers_are_compared_up_to_a_bound(words: str):
    """What is beyond is shown as it is, and said to be; equal texts are equal however they repeat."""
    text = "".join(words.format(n) for n in range(MAX_WORDS + 50))
    pieces = compare_words(text, text)
    assert [piece.kind for piece in pieces] == ["same", "rest"]
    assert "".join(piece.text for piece in pieces).split() == text.split()
    assert diff.describe_differences(pieces) == f"the same words; only the first {MAX_WORDS:,} are compared"
