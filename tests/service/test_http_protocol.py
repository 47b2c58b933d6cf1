"""HTTP on a connection: unreadable requests, heads without end, offers to upgrade, many requests at once."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import socket
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from famnb.service import Server
from famnb.service.http_protocol import ServiceProtocol
from famnb.service.server import ServiceApp
from famnb.service.settings import Options
from tests.support.forked_service import serve_forked
from tests.support.service_requests import PATHS, ServiceClient, error_of, minimal_body
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def impatient() -> Iterator[Server]:
    """A service that waits a fraction of a second for a head."""
    with serve_forked(time_scale=0, upload_timeout=0.5) as running:
        yield running


def connect(server: Server) -> socket.socket:
    """A connection of one's own."""
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), timeout=60)


def post(server: Server, endpoint: str, *lines: str, body: bytes | None = None, key: str | None = None) -> bytes:
    """The bytes of a valid request, with these header lines more."""
    data = json.dumps(minimal_body(endpoint, "one line")).encode() if body is None else body
    head = [f"POST {PATHS[endpoint]} HTTP/1.1", "host: x", f"authorization: Bearer {key or server.key}", *lines]
    if not any(line.lower().startswith("transfer-encoding") for line in lines):
        head.append(f"content-length: {len(data)}")
    return "\r\n".join([*head, "", ""]).encode() + data


def rest(connection: socket.socket) -> bytes:
    """All that comes until the service closes the connection."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def raw(server: Server, *pieces: bytes) -> bytes:
    """Everything the service answers to these bytes, sent piece by piece, up to the end of the connection."""
    with connect(server) as connection:
        for piece in pieces:
            connection.sendall(piece)
        return rest(connection)


def body_of(answer: bytes, status: int) -> object:
    """The JSON body of the only answer, whose status and headers are as they should be."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    for header in (b"content-type: application/json", b"connection: close", b"x-request-id: req_", b"server: famnb"):
        assert header in head
    assert answer.count(b"HTTP/1.1") - body.count(b"HTTP/1.1") == 1
    return json.loads(body)


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"BREW / HTTP/1.1\r\nhost: x\r\n\r\n",
        b"CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n",
        b"POST /v1/web/chat/completions HTTP/1.1\r\ncontent-length: abc\r\n\r\n",
        b"POST /v1/web/chat/completions HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/web/chat/completions HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        b"POST /v1/web/chat/completions HTTP/1.1\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}",
        b"POST /v1/web/chat/completions HTTP/1.1\r\nx-a: b\0c\r\n\r\n",
        b"POST /v1/web/chat/completions HTTP/1.1\r\nx-a: b\r\n folded\r\n\r\n",
    ],
    ids=lambda sent: repr(sent[-40:]),
)
def test_what_is_no_http_is_a_400_in_shape(server: Server, sent: bytes) -> None:
    """In JSON and with an id like any answer, and the connection is closed; the service goes on."""
    assert error_of("web", body_of(raw(server, sent), 400))["code"] == "invalid_http"
    assert httpx.get(f"{server.url}/health").status_code == 200


def test_a_broken_upload_is_refused_in_the_endpoints_shape(server: Server, endpoint: str) -> None:
    """A chunk without a size ends the request while its body is being read."""
    sent = post(server, endpoint, "transfer-encoding: chunked", body=b'5\r\n{"a":\r\nsize\r\n')
    assert error_of(endpoint, body_of(raw(server, sent), 400))["type"] == "invalid_request_error"


@pytest.mark.parametrize("more", [lambda _: b"", lambda server: post(server, "messages")], ids=["alone", "followed"])
def test_garbage_after_a_request_never_becomes_a_part_of_its_answer(
    server: Server, more: Callable[[Server], bytes]
) -> None:
    """The stream that runs is broken off, as its missing end shows; no second head stands inside it."""
    with connect(server) as connection:
        connection.sendall(post(server, "web", "x-famnb-fault: stall=2", body=_stream_body()) + more(server))
        received = b""
        while received.count(b"data: ") < 2:
            received += connection.recv(65536)
        connection.sendall(b"\0 this is no HTTP\r\n\r\n")
        received += rest(connection)
    assert received.count(b"HTTP/1.1") == 1
    assert not received.endswith(b"0\r\n\r\n")


def _stream_body() -> bytes:
    return json.dumps(minimal_body("web", stream=True)).encode()


@pytest.mark.parametrize("junk", [["x-junk: " + "a" * 100_000], [f"x-{n}: {'a' * 90}" for n in range(1000)]])
def test_a_head_too_large_is_431_once_the_key_is_known(server: Server, endpoint: str, junk: list[str]) -> None:
    """One long header or a thousand short ones; with a wrong key it is 401, as ever, and others are served."""
    error = error_of(endpoint, body_of(raw(server, post(server, endpoint, *junk)), 431))
    assert "65,536" in error["message"]
    with connect(server) as connection:
        connection.sendall(post(server, endpoint, *junk, key="wrong"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 401")
    assert raw(server, post(server, endpoint, "connection: close")).startswith(b"HTTP/1.1 200")


def test_an_address_too_long_is_431(server: Server) -> None:
    """It is not taken for the address that it begins with."""
    head = f"GET {PATHS['responses']}/{'a' * 100_000} HTTP/1.1\r\nauthorization: Bearer {server.key}\r\n\r\n"
    assert error_of("responses", body_of(raw(server, head.encode()), 431))["type"] == "invalid_request_error"


def test_a_key_of_any_length_is_a_wrong_one(server: Server, endpoint: str) -> None:
    """Also one that the service does not keep."""
    with connect(server) as connection:
        connection.sendall(post(server, endpoint, key="k" * 1_000_000))
        assert connection.recv(65536).startswith(b"HTTP/1.1 401")


def test_a_head_without_end_is_not_read_for_ever(server: Server) -> None:
    """After a megabyte that is not finished the connection is closed, with a reason."""
    with connect(server) as connection:
        connection.sendall(f"POST {PATHS['messages']} HTTP/1.1\r\nx-junk: ".encode() + b"a" * 1_100_000)
        assert error_of("messages", body_of(rest(connection), 431))["type"] == "invalid_request_error"


def test_a_slow_head_is_a_408_in_shape(impatient: Server, endpoint: str) -> None:
    """Bytes that trickle in do not make the time longer."""
    with connect(impatient) as connection:
        connection.sendall(f"POST {PATHS[endpoint]} HTTP/1.1\r\n".encode())
        received = b""
        while not received:
            connection.sendall(b"x: y\r\n")
            connection.settimeout(0.02)
            try:
                received = connection.recv(65536)
            except TimeoutError:
                continue
    assert "0.5 s" in error_of(endpoint, body_of(received, 408))["message"]


def test_a_connection_that_says_nothing_is_closed(impatient: Server) -> None:
    """Without an answer, since nothing was asked."""
    assert raw(impatient) == b""


def test_whoever_goes_on_sending_what_was_refused_is_left(impatient: Server) -> None:
    """A body that trickles in after its 401 holds the connection no longer than a head would."""
    with connect(impatient) as connection:
        connection.sendall(
            post(impatient, "web", "content-length: 100000", body=b"", key="wrong").replace(
                b"content-length: 0\r\n", b""
            )
        )
        assert connection.recv(65536).startswith(b"HTTP/1.1 401")
        wait_until(lambda: _is_closed(connection))


def _is_closed(connection: socket.socket) -> bool:
    """Whether the service has closed a connection that is still written to."""
    try:
        connection.sendall(b" ")
        connection.settimeout(0.02)
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_an_answer_that_takes_longer_than_a_head_may_is_not_disturbed(impatient: Server) -> None:
    """Neither by its length nor by the next head, of which a part is there already."""
    with connect(impatient) as connection:
        first = post(impatient, "web", "x-famnb-fault: delay=0.9")
        second = post(impatient, "messages", "connection: close")
        connection.sendall(first + second[:40])
        received = connection.recv(65536)
        connection.sendall(second[40:])
        received += rest(connection)
    assert received.count(b"HTTP/1.1 200 OK") == 2


UPGRADES = {
    "h2c": ["connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABkAAQAAP__"],
    "websocket": ["connection: keep-alive, Upgrade", "upgrade: websocket", "sec-websocket-version: 13"],
}


@pytest.mark.parametrize("offer", UPGRADES.values(), ids=UPGRADES.keys())
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("apart", [False, True])
def test_an_offer_to_upgrade_is_ignored(
    server: Server, endpoint: str, offer: list[str], chunked: bool, apart: bool
) -> None:
    """The request is answered as if there were none, its body in one piece with the head or not, and so is the next."""
    data = json.dumps(minimal_body(endpoint, "one line")).encode()
    if chunked:
        sent = post(
            server, endpoint, *offer, "transfer-encoding: chunked", body=b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)
        )
    else:
        sent = post(server, endpoint, *offer, body=data)
    following = post(server, endpoint, "connection: close")
    head, separator, body = sent.partition(b"\r\n\r\n")
    pieces = [head + separator, body + following] if apart else [sent + following]
    with connect(server) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.02)  # so that the pieces are read apart
        assert rest(connection).count(b"HTTP/1.1 200 OK") == 2


@pytest.mark.parametrize("stream", [False, True])
def test_a_caller_of_http_1_0_gets_no_chunks(server: Server, endpoint: str, stream: bool) -> None:
    """Whole or streamed, the body is what it would be without them, and ends with the connection."""
    body = json.dumps(minimal_body(endpoint, "one line", stream=stream)).encode()
    answer = raw(server, post(server, endpoint, body=body).replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1))
    head, _, body_ = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    if stream:
        assert all(block.startswith(b"data: ") for block in body_.split(b"\n\n")[:-1])
    else:
        assert json.loads(body_)["model"] == minimal_body(endpoint)["model"]


def test_requests_sent_together_are_answered_in_their_order(server: Server) -> None:
    """Each in its own dialect, streams between whole replies."""
    sent = post(server, "messages") + post(server, "web", body=_stream_body()) + post(server, "chat")
    answers = raw(server, sent, post(server, "responses", "connection: close")).split(b"HTTP/1.1 200 OK")
    marks = [b'"id":"msg_', b"data: [DONE]", b'"model":"fam-mini"', b'"id":"resp_']
    assert [mark in answer for mark, answer in zip(marks, answers[1:], strict=True)] == [True] * 4


def test_a_whole_answer_is_one_write(server: Server, endpoint: str) -> None:
    """Its head is never read before its body is there, too."""
    with connect(server) as connection:
        for _ in range(20):
            connection.sendall(post(server, endpoint))
            head, _, body = connection.recv(65536).partition(b"\r\n\r\n")
            assert f"content-length: {len(body)}\r\n".encode() in head


@pytest.mark.parametrize("stream", [False, True])
def test_an_answered_request_leaves_nothing_to_the_garbage_collector(stream: bool) -> None:
    """A collection holds all callers up; what waits for one is what lies in a circle."""
    assert asyncio.run(_garbage_of_requests(100, stream=stream)) < 100


async def _garbage_of_requests(count: int, *, stream: bool) -> int:
    """The objects that only the garbage collector can free after so many requests to a service in this process."""
    app = ServiceApp(Options(time_scale=0), keys=("key",), alt_port=None)
    app.prepare()
    service = uvicorn.Server(uvicorn.Config(app, http=ServiceProtocol, lifespan="on", log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(service.serve(sockets=[listener]))
        body = json.dumps(minimal_body("chat", stream=stream)).encode()
        head = f"POST {PATHS['chat']} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer key\r\n"
        request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        gc.disable()
        try:
            gc.collect()
            for _ in range(count):
                writer.write(request)
                answer = b""
                while not answer.endswith((b"\r\n0\r\n\r\n", b"}")):
                    answer += await reader.read(65536)
                assert answer.startswith(b"HTTP/1.1 200 OK")
            await asyncio.sleep(0)  # a turn of the loop, in which the last request's tasks end
            return gc.collect()
        finally:
            gc.enable()
            writer.close()
            service.should_exit = True
            await serving


def test_generation_stops_when_a_caller_leaves_who_has_sent_more() -> None:
    """The request that is being answered is given up, though another one came after it on the same connection."""
    body = json.dumps(minimal_body("web", "count to 99999", stream=True, max_new_tokens=99_999)).encode()
    with serve_forked(time_scale=1, concurrency=1) as slow, ServiceClient(slow) as other:
        with connect(slow) as connection:
            connection.sendall(post(slow, "web", body=body) + post(slow, "messages"))
            assert connection.recv(1)
            assert other.ask("chat", model="x").status_code == 429
        wait_until(lambda: other.ask("chat", model="x").status_code == 400)


def test_a_body_is_called_for_only_once_the_key_is_known(server: Server) -> None:
    """`Expect: 100-continue` gets its 100 with the right key, and the 401 at once with a wrong one."""
    with connect(server) as connection:
        request = post(server, "web", "expect: 100-continue", "connection: close")
        head, separator, body = request.partition(b"\r\n\r\n")
        connection.sendall(head + separator)
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert rest(connection).startswith(b"HTTP/1.1 200 OK")
    wrong = post(server, "web", "expect: 100-continue", "connection: close", key="wrong")
    assert raw(server, wrong.partition(b"{")[0]).startswith(b"HTTP/1.1 401")


def test_uvicorn_has_what_this_protocol_builds_on() -> None:
    """None of it is documented: a version of uvicorn that lacks a part is found here, not in a connection."""
    server = uvicorn.Server(uvicorn.Config(Starlette(), log_config=None))
    loop = asyncio.new_event_loop()
    protocol = HttpToolsProtocol(server.config, server.server_state, {}, _loop=loop)
    loop.close()
    attributes = {"cycle", "headers", "loop", "parser", "pipeline", "scope", "server_state", "transport"}
    assert attributes <= vars(protocol).keys()
    methods = ["_unset_keepalive_if_required", "connection_lost", "connection_made", "data_received", "on_header"]
    methods += ["on_headers_complete", "on_message_begin", "on_message_complete", "on_response_complete", "on_url"]
    assert all(callable(getattr(HttpToolsProtocol, name)) for name in [*methods, "send_400_response"])
    protocol.on_message_begin()
    assert (protocol.url, protocol.headers, protocol.scope["state"]) == (b"", [], {})
    cycle = RequestResponseCycle(**dict.fromkeys(inspect.signature(RequestResponseCycle).parameters))
    flags = (cycle.disconnected, cycle.response_started, cycle.chunked_encoding, cycle.expected_content_length)
    assert flags == (False, False, None, 0)
    assert {"message_event", "flow", "transport"} <= vars(cycle).keys()
    assert FlowControl(asyncio.Transport()).write_paused is False
    assert (server.server_state.tasks, server.server_state.default_headers, server.should_exit) == (set(), [], False)
