"""Streams as servers really send them: what comes is read, what is missing is said."""

import threading
import zlib

import pytest

from famnb.errors import StreamError, StreamInterrupted
from famnb.events import Delta
from tests.support.fault_server import DONE, chunked, whole
from tests.support.wire_payloads import (
    ENDPOINTS,
    body,
    delta,
    evidence,
    failure,
    opening,
    request,
    sse_stream,
)

STREAM = request("web")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_streamed_reply_is_read_on_every_endpoint(caller, serve, connect, endpoint):
    server = serve(chunked(*sse_stream(endpoint, "Hel", "lo")))
    client = connect(server)
    reply = caller.send(client, request(endpoint))
    assert (reply.text, reply.status, reply.complete, reply.streamed) == ("Hello", "completed", True, True)
    assert (reply.endpoint, reply.request, client.last) == (endpoint, request(endpoint), reply)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_whole_reply_is_read_on_every_endpoint(caller, serve, connect, endpoint):
    reply = caller.send(connect(serve(whole(body(endpoint, "Hello")))), request(endpoint, stream=False))
    assert (reply.text, reply.status, reply.complete, reply.streamed) == ("Hello", "completed", True, False)
    assert reply.raw == body(endpoint, "Hello")
    assert reply.timing.ttft_s == reply.timing.e2e_s
    assert reply.timing.icl_max_s is None


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_json_body_in_answer_to_a_stream_is_one_complete_reply(caller, serve, connect, endpoint):
    for content_type in ("application/json", "text/plain", "text/event-stream"):
        reply = caller.send(
            connect(serve(whole(body(endpoint, "Hello"), content_type=content_type))), request(endpoint)
        )
        assert (reply.text, reply.complete, reply.streamed, len(reply.reads)) == ("Hello", True, False, 1)


def test_a_stream_in_answer_to_a_whole_request_is_read(caller, serve, connect):
    reply = caller.send(connect(serve(chunked(*sse_stream("web", "Hello")))), request("web", stream=False))
    assert (reply.text, reply.streamed) == ("Hello", True)


def test_events_come_typed_and_in_order(caller, serve, connect):
    events = caller.iterate(connect(serve(chunked(*sse_stream("web", "Hel", "lo")))), STREAM)
    assert [event.text for event in events if isinstance(event, Delta) and event.text] == ["Hel", "lo"]


def test_a_gzip_stream_is_read_as_it_comes(serve, connect):
    compressor, seen = zlib.compressobj(wbits=31), threading.Event()
    pieces = [
        compressor.compress(piece) + compressor.flush(zlib.Z_SYNC_FLUSH) for piece in sse_stream("web", "Hel", "lo")
    ]
    server = serve(chunked(*pieces[:2], seen, *pieces[2:], compressor.flush(), content_encoding="gzip"))
    with connect(server).stream(STREAM) as stream:
        first = next(event for event in stream if isinstance(event, Delta) and event.text)
        seen.set()
        assert (first.text, stream.result().text) == ("Hel", "Hello")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_stream_without_evidence_is_interrupted(caller, serve, connect, endpoint):
    error = caller.failure(connect(serve(chunked(*opening(endpoint), delta(endpoint, "Hel")))), request(endpoint))
    assert isinstance(error, StreamInterrupted)
    assert (error.reply.text, error.reply.complete) == ("Hel", False)


@pytest.mark.parametrize("endpoint", ["chat", "web", "messages"])
def test_evidence_without_the_terminator_is_complete(serve, connect, endpoint):
    stream = [*opening(endpoint), delta(endpoint, "Hello"), evidence(endpoint)]
    assert connect(serve(chunked(*stream))).send(request(endpoint)).complete is True


def test_the_terminator_alone_proves_nothing(serve, connect):
    reply = connect(serve(chunked(delta("web", "Hello"), DONE))).send(STREAM)
    assert (reply.text, reply.complete, len(reply.warnings)) == ("Hello", None, 1)


def test_bytes_after_the_terminator_are_ignored_and_the_connection_is_free(serve, connect):
    server = serve(chunked(*sse_stream("web", "Hello"), delta("web", " again"), b"rubbish"))
    client = connect(server)
    assert [client.send(STREAM).text for _ in range(3)] == ["Hello"] * 3
    assert server.connections == 1


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_an_error_inside_a_stream_keeps_what_came(caller, serve, connect, endpoint):
    deltas = [delta(endpoint, piece) for piece in ("a", "b", "c")]
    server = serve(chunked(*opening(endpoint), *deltas, *failure(endpoint)))
    error = caller.failure(connect(server), request(endpoint))
    assert isinstance(error, StreamError)
    assert "the engine stopped" in str(error)
    assert (error.reply.text, error.reply.status, len(server.requests)) == ("abc", "failed", 1)


def test_a_whole_response_that_failed_is_an_error(serve, connect):
    failed = {**body("responses", "Hel"), "status": "failed", "error": {"code": "server_error", "message": "it broke"}}
    with pytest.raises(StreamError, match="it broke") as caught:
        connect(serve(whole(failed))).send(request("responses", stream=False))
    assert (caught.value.code, caught.value.reply.status) == ("server_error", "failed")
