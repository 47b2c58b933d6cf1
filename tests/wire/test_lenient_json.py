"""JSON of sloppy servers, and questions to JSON of unknown shape."""

from typing import Any

import pytest

from famnb.errors import StreamDecodeError
from famnb.wire import lenient_json


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b'"\xf0\x9f\x98\x80"', "\U0001f600"),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\ud83d"', "\ud83d"),
        (b'"\xff"', "\ufffd"),
        (b'"a\nb"', "a\nb"),
        (b"[NaN]", [pytest.approx(float("nan"), nan_ok=True)]),
        (b"\xef\xbb\xbf{}", {}),
    ],
)
def test_sloppy_json_is_read(data: bytes, expected: Any):
    assert lenient_json.decode(data) == expected
    assert lenient_json.decode_event(data) == expected


@pytest.mark.parametrize("data", [b"", b"{", b"{'a': 1}", b"nope", b"[" * 100_000, b"1" * 5000 + b"x"])
def test_an_error_shows_what_is_not_json(data: bytes):
    with pytest.raises(ValueError):
        lenient_json.decode(data)
    with pytest.raises(StreamDecodeError, match="is not JSON") as caught:
        lenient_json.decode_event(data)
    assert len(str(caught.value)) < 450


def test_half_characters_can_be_written():
    assert lenient_json.encode({"a": "\ud83d"}) == rb'{"a":"\ud83d"}'


def test_a_count_is_read_from_any_number():
    assert [lenient_json.integer(value) for value in (3, "3", 3.0, "3.7", 0)] == [3, 3, 3, 3, 0]
    others = (-1, "-1", True, None, "x", "nan", float("inf"), {})
    assert [lenient_json.integer(value) for value in others] == [None] * len(others)


def test_text_is_found_in_any_shape():
    shapes = ["a", [{"type": "text", "text": "a"}, "b", 3, None], {"content": [{"text": "a"}]}, {"summary": "a"}]
    assert [lenient_json.find_text(shape) for shape in shapes] == ["a", "ab", "a", "a"]
    assert [lenient_json.find_text(other) for other in ({"image_url": "x"}, None, 7)] == ["", "", ""]


@pytest.mark.parametrize(("value", "expected"), [("a", "a"), (5, "5"), (1.5, "1.5"), (True, ""), (None, ""), ([], "")])
def test_a_word_may_be_a_number(value: Any, expected: str):
    assert lenient_json.scalar_text(value) == expected


def test_a_body_is_shown_on_one_short_line():
    assert lenient_json.excerpt(b"<html>\n  <body>") == "<html> <body>"
    assert len(lenient_json.excerpt("é" * 10_000)) == 200
