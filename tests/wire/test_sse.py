"""Server-sent events: bytes cut anywhere give the same data."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.wire import sse
from tests.support.strategies import cut


def decode(*chunks: bytes) -> list[bytes]:
    """The data of a stream that ends after these chunks."""
    decoder = sse.Decoder()
    return [data for chunk in chunks for data in decoder.feed(chunk)] + decoder.end()


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        pytest.param(b"data: 1\n\ndata: 2\n\n", [b"1", b"2"], id="two events"),
        pytest.param(b"data: 1\r\n\r\ndata: 2\r\n\r\n", [b"1", b"2"], id="CRLF"),
        pytest.param(b"data: 1\r\rdata: 2\r\r", [b"1", b"2"], id="CR"),
        pytest.param(b"data: 1\n\r\ndata: 2\r\n\r", [b"1", b"2"], id="mixed"),
        pytest.param(b"data:1\n\n", [b"1"], id="no space"),
        pytest.param(b"data:  1\n\n", [b" 1"], id="one space is dropped"),
        pytest.param(b"data: {\ndata: }\n\n", [b"{\n}"], id="several lines"),
        pytest.param(b"data: {\r\ndata: }\r\n\r\n", [b"{\n}"], id="several lines, CRLF"),
        pytest.param(b"data: {\rdata: }\r\r", [b"{\n}"], id="several lines, CR"),
        pytest.param(b"\xef\xbb\xbfdata: 1\n\n", [b"1"], id="byte order mark"),
        pytest.param(b"\xef\xbb\xbf\xef\xbb\xbfdata: 1\n\n", [], id="two byte order marks"),
        pytest.param(b": hi\n\n:\ndata: 1\n: hi\n\n", [b"1"], id="comments"),
        pytest.param(b"event: x\nid: 1\nretry: 5\ndata: 1\n\n", [b"1"], id="other fields"),
        pytest.param(b"id: 1\n\nevent: x\n\n", [], id="no data, no event"),
        pytest.param(b"data\n\ndata:\n\ndata: \n\n", [], id="empty data"),
        pytest.param(b"database: 1\n\n Data: 1\n\n data: 1\n\n", [], id="fields of other names"),
        pytest.param(b"\n\n\n\ndata: 1\n\n\n\n", [b"1"], id="more blank lines"),
        pytest.param(
            b'data: "\xe2\x80\xa8\xe2\x80\xa9\xc2\x85\x0b\x0c"\n\n',
            ['"\u2028\u2029\x85\v\f"'.encode()],
            id="no line ends",
        ),
        pytest.param(b"data:[DONE]\n\n", [b"[DONE]"], id="terminator"),
    ],
)
def test_lines_become_data(stream: bytes, expected: list[bytes]):
    assert decode(stream) == expected
    assert decode(*(stream[n : n + 1] for n in range(len(stream)))) == expected


@pytest.mark.parametrize(
    ("left_over", "expected"),
    [
        (b'data: {"a":1}', [b'{"a":1}']),
        (b'data: {"a":1}\n', [b'{"a":1}']),
        (b'data: {"a":1}\r\ndata: ', [b'{"a":1}\n']),
        (b"data: [DONE]", [b"[DONE]"]),
        (b'data: {"a":', []),
        (b'data: {"a":1}\ndata: {', []),
        (b"data: ", []),
        (b"", []),
    ],
)
def test_what_is_left_at_the_end_counts_if_it_is_whole(left_over: bytes, expected: list[bytes]):
    assert decode(b"data: 0\n\n" + left_over) == [b"0", *expected]


def test_an_event_is_out_as_soon_as_its_last_line_ends():
    decoder = sse.Decoder()
    assert decoder.feed(b"data: 1\r\n\r") == [b"1"]
    assert decoder.feed(b"\ndata: 2\n\n") == [b"2"]


def test_comments_and_events_are_signs_of_life():
    decoder = sse.Decoder()
    assert (decoder.feed(b"data: 1"), decoder.signs_of_life) == ([], 0)
    assert (decoder.feed(b"\n\n"), decoder.signs_of_life) == ([b"1"], 1)
    assert (decoder.feed(b": keep-alive\n\n"), decoder.signs_of_life) == ([], 2)


@given(data=st.data())
def test_what_is_encoded_is_decoded(data: st.DataObject):
    sent = data.draw(st.lists(st.binary(min_size=1).filter(lambda item: b"\r" not in item and item[-1:] != b"\n")))
    stream = b"".join(sse.encode(item, data.draw(st.sampled_from([None, "name"]))) for item in sent)
    assert decode(*data.draw(cut(stream))) == sent


LINES = [
    *(b"data: a", b"data: b", b"", b"", b"data: ", b"data:", b"data:c", b"data", b": comment", b"event: x"),
    b"data: data: d",
]


@given(st.lists(st.sampled_from(LINES)))
def test_many_events_at_once_are_those_of_single_bytes(lines: list[bytes]):
    stream = b"".join(line + b"\n" for line in lines)
    together, singly = sse.Decoder(), sse.Decoder()
    data = [event for byte in stream for event in singly.feed(bytes([byte]))]
    assert together.feed(stream) == data
    assert (together.signs_of_life, together.ends_with_event) == (singly.signs_of_life, singly.ends_with_event)


@pytest.mark.parametrize(
    ("chunk", "ends_with_event"),
    [
        (b"data: a\n\n", True),
        (b"event: x\ndata: a\n\n", True),
        (b"data: a\n\n: wait\n\n", False),
        (b"data: a\n\nevent: x\n", False),
        (b"data: a\n\ndata: b", False),
        (b"data: a\n\ndata: b\n", False),
        (b"data: a\n\n\n", False),
        (b"data: a\n\ndata:\n\n", False),
    ],
)
def test_what_follows_an_event_is_told_from_its_end(chunk: bytes, ends_with_event: bool):
    decoder = sse.Decoder()
    assert decoder.feed(chunk) == [b"a"]
    assert decoder.ends_with_event == ends_with_event


@pytest.mark.parametrize("data", [b"{\n}", b"{\r}", b"{\r\n}"])
def test_line_ends_inside_data_make_several_lines(data: bytes):
    assert sse.encode(data) == b"data: {\ndata: }\n\n"


def test_a_drip_copies_nothing_that_came_before():
    decoder = sse.Decoder()
    decoder.feed(b"data: " + b"x" * 2_000_000)
    tracemalloc.start()
    for _ in range(1000):
        decoder.feed(b"x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
    assert len(decoder.feed(b"\n\n")[0]) == 2_001_000
