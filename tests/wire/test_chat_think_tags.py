"""Thinking written as tags: the same split however the content is cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.wire.chat import ThinkTags


def split(*pieces: str) -> dict[str, str]:
    """What of the content is thinking, and what is text."""
    tags = ThinkTags()
    parts = [part for piece in pieces for part in tags.split(piece)] + tags.end()
    assert all(text for _, text in parts)
    groups = itertools.groupby(parts, lambda part: part[0])
    return {kind: "".join(text for _, text in group) for kind, group in groups}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<think>hm</think>yes", {"thinking": "hm", "text": "yes"}),
        ("\n <think>\nhm\n</think>\n\nyes\n", {"thinking": "hm\n", "text": "yes\n"}),
        ("<think>hm", {"thinking": "hm"}),
        ("<think>hm</thi", {"thinking": "hm</thi"}),
        ("<think></think>yes", {"text": "yes"}),
        ("<think>\n\n</think>\n\nyes", {"text": "yes"}),
        ("<think>a</think></think>b<think>c", {"thinking": "a", "text": "</think>b<think>c"}),
        ("yes <think>hm</think>", {"text": "yes <think>hm</think>"}),
        ("<thin", {"text": "<thin"}),
        ("<table>", {"text": "<table>"}),
        ("  yes", {"text": "  yes"}),
        (" ", {"text": " "}),
        ("", {}),
    ],
)
def test_only_tags_at_the_start_are_thinking(content: str, expected: dict[str, str]):
    """Whole and character by character."""
    assert split(content) == expected
    assert split(*content) == expected


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "/", "think", ">", "a", "\n", " "])))
def test_any_cut_gives_the_same_split(pieces: list[str]):
    assert split(*pieces) == split("".join(pieces))


def test_text_flows_once_no_tag_can_follow():
    """Nothing is held back longer than a tag may still come."""
    tags = ThinkTags()
    assert tags.split("<") == []
    assert tags.split("b") == [("text", "<b")]
    assert tags.split("<think>") == [("text", "<think>")]


def test_leading_white_space_is_held_back_only_so_far():
    tags = ThinkTags()
    assert tags.split(" " * 100) == [("text", " " * 100)]
