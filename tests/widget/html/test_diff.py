"""Differences between two answers: marked without colour, and inert."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.widget.html import diff
from famnb.widget.html.diff import MAX_WORDS
from famnb.widget.html.sanitize import render_markdown

TEXTS = st.lists(st.sampled_from(["a", "b ", "c\n\n", " d", "<b>", "**e**", "é "]), max_size=60).map("".join)


def test_rendered_answers_are_compared_by_their_words():
    reference = render_markdown("The sky is **blue** today.\n\n| a | b |\n|-|-|\n| one | two |\n\nBye")
    html, summary = diff.mark_html(
        reference, render_markdown("The sky is *blue* today, too.\n\n| a | b |\n|-|-|\n| one | 2 |")
    )
    text = re.sub(r' style="[^"]*"', "", html)
    assert "<em>blue</em> <ins>today,</ins> <ins>too.</ins></p>" in text
    assert "<td>one</td>" in text
    assert "<td><ins>2</ins></td>" in text
    assert summary == "2 words differ, 1 word is new, 1 word is missing"
    assert "underline" in html.partition("<ins")[2]
    assert diff.mark_html(reference, reference) == (reference, "the same words")


@given(TEXTS, TEXTS)
def test_marked_html_has_the_words_of_the_answer_and_no_other_tags(reference: str, text: str):
    answer = render_markdown(text)
    html, _ = diff.mark_html(render_markdown(reference), answer)
    assert re.sub(r"</?ins[^>]*>", "", html) == answer


@pytest.mark.parametrize("words", ["same ", "n{} "])
def test_long_answers_are_compared_up_to_a_bound(words: str):
    html = render_markdown("".join(words.format(n) for n in range(MAX_WORDS + 50)))
    assert diff.mark_html(html, html) == (html, f"the same words; only the first {MAX_WORDS:,} are compared")


def test_hostile_words_are_inert():
    html, _ = diff.mark_html(render_markdown("safe"), render_markdown("<script>alert(1)</script> <img src=x> \x1b[1m"))
    assert not any(words in html for words in ("<script", "<img", "\x1b"))
