"""Deltas name only what has changed, and what is the same object is not looked into."""

from typing import Any

import pytest

from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.live.reply_pane import Markdown
from famnb.widget.runtime.view import Encoder, View


class Item(View, frozen=True):
    key: str
    text: str


class Page(View, frozen=True):
    title: str
    items: tuple[Item, ...] = ()
    sizes: tuple[int, ...] = ()


A, B = Item("a", "1"), Item("b", "2")


@pytest.mark.parametrize(
    ("old", "new", "delta"),
    [
        (Page("x"), Page("x"), None),
        (Page("x"), Page("y"), {"title": ["y"]}),
        (Page("x", sizes=(1,)), Page("x", sizes=(1, 2)), {"sizes": [[1, 2]]}),
        (Page("x", (A, B)), Page("x", (A, Item("b", "3"))), {"items": {"b": {"text": ["3"]}}}),
        (Page("x", (A, B)), Page("x", (B,)), {"items": {"$": ["b"]}}),
        (Page("x", (A,)), Page("x", (B, A)), {"items": {"$": ["b", "a"], "b": [{"key": "b", "text": "2"}]}}),
        (Page("x", (A,)), Page("x"), {"items": [[]]}),
        (Page("x"), A, [{"key": "a", "text": "1"}]),
    ],
)
def test_a_delta_names_what_has_changed(old: View, new: View, delta: object):
    assert Encoder().diff(old, new) == delta


def test_what_is_the_same_object_is_not_compared():
    class Opaque(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            raise AssertionError("it was compared")

        __hash__ = str.__hash__

    item = Item("a", Opaque("long"))
    assert Encoder().diff(Page("x", (item,)), Page("y", (item,))) == {"title": ["y"]}


def test_growing_values_and_bytes_travel_beside_the_view():
    class Figure(View, frozen=True):
        points: bytes
        text: Markdown

    text = Markdown(tail="one")
    encoder = Encoder()
    assert encoder.encode(Figure(b"\x00", text)) == {"points": {"$bytes": 0}, "text": {"$growing": text.id}}
    assert encoder.buffers == [b"\x00"]
    assert encoder.growing == {text.id: text}
    text.append(" two", is_markdown=False)
    assert text.whole() == {"html": "", "tail": "one two"}
    assert not text.changes()
    text.append(" three", is_markdown=False)
    assert (text.changes(), text.changes()) == (" three", [])


def test_html_reaches_the_page_as_a_plain_text():
    """Marimo writes a value that can show itself as HTML into a message as an object."""
    encoded: Any = Encoder().encode(Page(SafeHtml("<p>")))
    assert type(encoded["title"]) is str
