"""Any transport of httpx carries our calls; one that does not say when bytes came is timed by the user's clock."""

import gzip
import json
import zlib

import httpx
import pytest

from famnb.client.retry import Retries
from famnb.errors import ConnectError, InvalidRequest, ResponseFormatError, ServerError, StreamInterrupted
from tests.support.client_shells import KEY
from tests.support.fault_server import Action, chunked, head, whole
from tests.support.wire_payloads import body, delta, request, sse_stream

STREAM, WHOLE = request("web"), request("web", stream=False)
ONCE = Retries(tries=1)


def answer(sent: httpx.Request) -> httpx.Response:
    """A stream in pieces, or a whole reply, as the request asks."""
    if not json.loads(sent.content).get("stream"):
        return httpx.Response(200, json=body("web", "Hello"))

    async def pieces():
        for piece in sse_stream("web", "Hel", "lo"):
            yield piece

    return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=pieces())


@pytest.mark.parametrize("question", [STREAM, WHOLE], ids=["stream", "whole"])
def test_a_transport_of_the_users_tests_answers(caller, connect, question):
    seen = []
    transport = httpx.MockTransport(lambda sent: seen.append(sent) or answer(sent))
    reply = caller.send(connect("http://nowhere.test", transport=transport), question)
    assert (reply.text, reply.complete) == ("Hello", True)
    assert (reply.timing.clock, reply.timing.exact_share, reply.timing.late_max_ms) == ("user", None, None)
    assert seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert str(seen[0].url) == "http://nowhere.test/v1/web/chat/completions"


@pytest.mark.parametrize("wrong", [httpx.HTTPTransport(), httpx.AsyncClient(), "http://proxy", object()])
def test_what_is_no_transport_is_refused(connect, wrong):
    with pytest.raises(InvalidRequest, match=r"httpx\.AsyncBaseTransport"):
        connect("http://nowhere.test", transport=wrong)


def test_the_transport_is_closed_with_its_client(connect):
    class Noting(httpx.MockTransport):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    transport = Noting(answer)
    client = connect("http://nowhere.test", transport=transport)
    client.send(WHOLE)
    client.close()
    assert transport.closed == 1


def test_httpxs_own_transport_says_when_it_sends(serve, connect):
    server = serve(chunked(*sse_stream("web", "Hel", "lo")))
    client = connect(server, transport=httpx.AsyncHTTPTransport())
    first, second = (client.send(STREAM).timing for _ in range(2))
    assert first.connect_s > 0
    assert (second.connect_s, first.clock, server.connections) == (None, "user", 1)
    assert first.ttfb_s <= first.ttft_s <= first.e2e_s


@pytest.mark.parametrize(
    ("script", "error", "requests"),
    [
        ([Action.RESET], ConnectError, 3),
        ([Action.CLOSE], ConnectError, 3),
        (whole(b"", 503), ServerError, 3),
        ([b"this is no HTTP\r\n\r\n", Action.CLOSE], ResponseFormatError, 1),
        ([*chunked(delta("web", "Hel"), end=False), Action.RESET], StreamInterrupted, 1),
        ([*chunked(delta("web", "Hel"), end=False), Action.CLOSE], StreamInterrupted, 1),
    ],
)
def test_failures_of_httpxs_own_transport_are_the_errors_of_ours(caller, serve, connect, script, error, requests):
    """`test_every_way.py` has those of ours."""
    server = serve(script)
    failure = caller.failure(connect(server, transport=httpx.AsyncHTTPTransport()), STREAM)
    assert (type(failure), len(server.requests)) == (error, requests)
    assert failure.reply.text == ("Hel" if error is StreamInterrupted else "")


def test_a_transport_that_breaks_a_promise_is_an_error_of_ours(connect):
    def break_down(sent):
        raise OSError("out of order")

    client = connect("http://nowhere.test", transport=httpx.MockTransport(break_down), retries=ONCE)
    with pytest.raises(ConnectError, match="out of order"):
        client.send(WHOLE)


@pytest.mark.parametrize("default", [True, False])
@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate"])
def test_a_packed_body_is_unpacked(serve, connect, default, coding):
    """Also in a coding that httpx decodes, and gzip of several members that httpx (0.28) does not."""
    text = b"".join(sse_stream("web", "Hel", "lo"))
    parts = [text[:100], text[100:]]
    packed = zlib.compress(text) if coding == "deflate" else b"".join(map(gzip.compress, parts))
    server = serve([head(200, content_type="text/event-stream", content_encoding=coding) + packed, Action.CLOSE])
    client = connect(server, transport=None if default else httpx.AsyncHTTPTransport(), retries=ONCE)
    assert client.send(STREAM).text == "Hello"


@pytest.mark.parametrize("default", [True, False])
@pytest.mark.parametrize(
    ("coding", "packed", "message"),
    [
        ("gzip", gzip.compress(bytes(150_000_000), 1), "unpacks to more than 100,000,000 bytes"),
        ("gzip", b"no gzip", "incorrect header"),
        ("br", b"whatever", "'br', which nobody asked for"),
    ],
)
def test_a_body_that_cannot_be_unpacked_is_an_error_in_words(serve, connect, default, coding, packed, message):
    """And no memory is filled by one that is small as long as it is packed."""
    server = serve(whole(packed, content_encoding=coding))
    client = connect(server, transport=None if default else httpx.AsyncHTTPTransport(), retries=ONCE)
    with pytest.raises(StreamInterrupted, match=message):
        client.send(WHOLE)
