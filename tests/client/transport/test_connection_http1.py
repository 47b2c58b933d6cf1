"""Answers are parsed alike however they are cut, and what is not HTTP is reported, after what came before it."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.client.transport.connection import HEAD_BYTES, ResponseParser, encode_head
from tests.support.strategies import cut

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


def parse(*pieces: bytes, end: bool = False, has_body: bool = True) -> tuple[ResponseParser, bytes]:
    """A parser that was fed these pieces, and the body in them."""
    parser = ResponseParser(has_body=has_body)
    content = b"".join([parser.feed(piece) for piece in pieces])
    if end:
        parser.feed_end()
    return parser, content


WHOLE = {
    "length": OK + b"content-length: 3\r\n\r\nabc",
    "chunks": CHUNKED + b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
    "an extension and a trailer": CHUNKED + b"3;name=value\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n",
    "spaces after a size": CHUNKED + b"3  \r\nabc\r\n0\r\n\r\n",
    "an interim answer": b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"content-length: 3\r\n\r\nabc",
    "two interim answers": b"HTTP/1.1 103 Early\r\nlink: a\r\n\r\n" * 2 + OK + b"content-length: 3\r\n\r\nabc",
    "bare line feeds": b"HTTP/1.1 200 OK\ncontent-length: 3\n\nabc",
    "no reason": b"HTTP/1.1 200\r\ncontent-length: 3\r\n\r\nabc",
}


@pytest.mark.parametrize("answer", WHOLE.values(), ids=WHOLE)
@given(data=st.data())
def test_any_cut_is_the_same_answer(answer, data):
    parser, content = parse(*data.draw(cut(answer)))
    assert parser.head is not None
    assert (parser.head.status, content, parser.fault) == (200, b"abc", None)
    assert (parser.is_complete, parser.is_reusable) == (True, True)


def test_headers_come_as_they_are():
    parser, _ = parse(OK + b"B: 1\r\na:2  \r\nB: \xe93\r\ntransfer-encoding: chunked\r\n\r\n0\r\nc: 4\r\n\r\n")
    assert parser.head.headers[:3] == [(b"B", b"1"), (b"a", b"2"), (b"B", b"\xe93")]
    assert len(parser.head.headers) == 4


UNTIL_CLOSE = {
    "no length": OK + b"\r\nabc",
    "close": OK + b"connection: close\r\n\r\nabc",
    "an old version": b"HTTP/1.0 200 OK\r\n\r\nabc",
    "a coding without chunks": OK + b"transfer-encoding: gzip\r\n\r\nabc",
}


@pytest.mark.parametrize("answer", UNTIL_CLOSE.values(), ids=UNTIL_CLOSE)
def test_a_body_without_a_length_ends_with_its_connection(answer):
    parser, content = parse(answer)
    assert (content, parser.is_complete) == (b"abc", False)
    parser.feed_end()
    assert (parser.is_complete, parser.is_reusable, parser.fault) == (True, False, None)


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_some_answers_have_no_body(status):
    parser, content = parse(b"HTTP/1.1 " + status + b"\r\ncontent-length: 5\r\n\r\n")
    assert (parser.is_complete, content) == (True, b"")
    parser, _ = parse(OK + b"content-length: 5\r\n\r\n", has_body=False)
    assert parser.is_complete


BROKEN_BODIES = {
    "an invalid chunk size": CHUNKED + b"3\r\nabc\r\nthis is none\r\n",
    "a negative size": CHUNKED + b"3\r\nabc\r\n-1\r\n",
    "a size without end": CHUNKED + b"3\r\nabc\r\n" + b"F" * 40 + b"\r\n",
    "a chunk that goes on": CHUNKED + b"3\r\nabcdef\r\n",
}


@pytest.mark.parametrize("answer", BROKEN_BODIES.values(), ids=BROKEN_BODIES)
@given(data=st.data())
def test_what_came_before_a_fault_counts(answer, data):
    parser, content = parse(*data.draw(cut(answer)))
    assert (parser.head.status, content, parser.is_complete) == (200, b"abc", False)
    assert parser.fault
    assert parser.feed(b"0\r\n\r\n") == b""


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (OK + b"content-length: 5\r\n\r\nabc", "before the body was complete"),
        (CHUNKED + b"5\r\nabc", "before the body was complete"),
        (CHUNKED + b"3\r\nabc\r\n0\r\n", "before the body was complete"),
        (b"HTTP/1.1 200 O", "in the middle of the head"),
        (b"", "without an answer"),
    ],
)
def test_an_answer_that_breaks_off_says_where(answer, fault):
    parser, _ = parse(*([answer] if answer else []), end=True)
    assert (parser.is_complete, fault in parser.fault, parser.has_bytes) == (False, True, bool(answer))


@pytest.mark.parametrize(
    "answer",
    [
        b"\0\1 this is not http at all\r\n\r\n",
        b"<html>",
        b"HTTP/2 200\r\n\r\n",
        OK + b"content-length: -3\r\n\r\n",
        OK + b"x: a\0b\r\n\r\n",
        OK + b"content-length: 3\r\ncontent-length: 4\r\n\r\n",
        OK + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n\x81\0",
    ],
)
def test_what_is_no_answer_is_said(answer):
    parser, content = parse(answer)
    assert parser.fault
    assert (parser.head, content) == (None, b"")


@pytest.mark.parametrize("begun", [OK + b"x: ", OK, b"HTTP/1.1 200 ", CHUNKED + b"3;", CHUNKED + b"0\r\nx: "])
def test_nothing_without_end_fills_the_memory(begun):
    parser = ResponseParser()
    parser.feed(begun)
    for _ in range(HEAD_BYTES // 4096 + 1):
        assert parser.feed(b"x" * 4096) == b""
    assert "262,144" in parser.fault or "Invalid" in parser.fault


@pytest.mark.parametrize("garbage", [b"garbage", OK + b"content-length: 0\r\n\r\n", b"\0"])
def test_what_follows_an_answer_is_not_part_of_it(garbage):
    parser, content = parse(WHOLE["length"] + garbage)
    assert (content, parser.is_complete, parser.fault, parser.is_reusable) == (b"abc", True, None, False)
    parser, _ = parse(WHOLE["length"], garbage)
    assert (parser.head.status, parser.is_complete, parser.fault) == (200, True, None)


def test_a_request_is_one_request():
    head = encode_head(b"POST", b"/v1", [(b"Host", b"a"), (b"X", b"\xe9 b")])
    assert head == b"POST /v1 HTTP/1.1\r\nHost: a\r\nX: \xe9 b\r\n\r\n"


@pytest.mark.parametrize(
    ("method", "target", "header"),
    [
        (b"GET /other HTTP/1.1\r\nx: ", b"/", (b"a", b"b")),
        (b"G T", b"/", (b"a", b"b")),
        (b"", b"/", (b"a", b"b")),
        (b"GET", b"/a b", (b"a", b"b")),
        (b"GET", b"/\r\nx: y", (b"a", b"b")),
        (b"GET", b"/", (b"a\n", b"b")),
        (b"GET", b"/", (b"a b", b"b")),
        (b"GET", b"/", (b"a:", b"b")),
        (b"GET", b"/", (b"", b"b")),
        (b"GET", b"/", (b"a", b"b\r\nc: d")),
        (b"GET", b"/", (b"a", b"\0")),
        (b"GET", b"/", (b"a", b"b\0c")),
        (b"GET", b"/", (b"a", b" b")),
    ],
)
def test_a_request_that_would_be_read_as_another_is_refused(method, target, header):
    with pytest.raises(httpx.LocalProtocolError):
        encode_head(method, target, [header])


def test_a_body_whose_end_anybody_could_forge_is_incomplete():
    """One without a length, if the end of the connection was not its peer's own word; others know their end."""
    for answer, is_complete in [(UNTIL_CLOSE["no length"], False), (WHOLE["length"], True)]:
        parser, _ = parse(answer)
        parser.feed_end(is_truncated=True)
        assert (parser.is_complete, parser.fault is None) == (is_complete, is_complete)
