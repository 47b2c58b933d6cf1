"""The transport as httpx's own client uses it: connections made, kept and given up, requests sent whole."""

import asyncio
import contextlib
import socket
import sys
import threading
from pathlib import Path

import httpx
import pytest

from famnb.client.retry import Retries
from famnb.client.transport.tls import default_context
from famnb.errors import ConnectError
from tests.support.fault_server import END, Action, chunked, head, whole
from tests.support.waiting import wait_until
from tests.support.wire_payloads import body, request

HELLO = whole(b"hello", content_type="text/plain")


def send(over, *calls, **options):
    """The outcomes of calls of one httpx client, one after the other: texts, or errors."""

    async def run():
        outcomes = []
        async with over(**options) as (client, _):
            for call in calls:
                try:
                    outcomes.append((await call(client)).text)
                except httpx.HTTPError as error:
                    outcomes.append(error)
        return outcomes

    return asyncio.run(run())


def post(url, **options):
    return lambda client: client.post(url, **options)


def test_requests_of_every_shape_are_answered(serve, over):
    server = serve(HELLO)
    assert send(over, post(server.url, json={"a": 1}), post(server.url)) == ["hello"] * 2
    assert [received.body for received in server.requests] == [b'{"a":1}', b""]
    assert server.connections == 1


def test_an_answer_says_when_it_came(serve, over):
    url = serve(HELLO).url

    async def run():
        pieces = []
        async with over() as (client, transport):
            # The first of a machine may come before the kernel has begun to stamp.
            while (await client.post(url)).extensions["arrival"].late_ns is None and sys.platform == "linux":
                pass
            response = await transport.handle_async_request(httpx.Request("POST", url))
            await response.stream.deliver(lambda piece, arrival: pieces.append((piece, arrival)))
        return response.extensions["arrival"], pieces

    head, [(piece, arrival)] = asyncio.run(run())
    assert (piece, arrival.t_ns >= head.t_ns > 0) == (b"hello", True)
    assert (head.late_ns is not None) == (sys.platform == "linux")


def test_a_trace_follows_the_request(serve, over):
    seen = []

    async def trace(event, details):
        seen.append(event)

    calls = [post(serve(HELLO).url, extensions={"trace": trace})] * 2
    send(over, *calls)
    connecting = ["connection.connect_tcp.started", "connection.connect_tcp.complete"]
    assert seen == [*connecting, "http11.send_request_headers.started", "http11.send_request_headers.started"]


def test_a_connection_that_was_closed_meanwhile_is_not_used(serve, over):
    async def run():
        server, texts = serve([*HELLO, Action.CLOSE]), []
        async with over() as (client, _):
            for _ in range(3):
                texts.append((await client.post(server.url)).text)
                await asyncio.to_thread(wait_until, lambda: server.open == 0)
        return server, texts

    server, texts = asyncio.run(run())
    assert texts == ["hello"] * 3
    assert (server.connections, len(server.requests)) == (3, 3)


@pytest.mark.parametrize("end", [Action.CLOSE, Action.RESET])
def test_a_request_that_was_read_is_not_sent_again(serve, over, end):
    server = serve(HELLO, [end], HELLO, [0.1, end], HELLO, [b"HTTP/1.1 200 O", end])
    outcomes = send(over, *[post(server.url)] * 6)
    assert [type(outcome) for outcome in outcomes] == [str, httpx.ReadError] * 3
    assert len(server.requests) == 6


def test_a_request_that_met_the_end_of_its_connection_is_sent_again(over):
    listener, requests = socket.create_server(("127.0.0.1", 0)), []

    def answer(is_last: bool) -> socket.socket:
        connection, _ = listener.accept()
        requests.append(connection.recv(10_000))
        connection.sendall(HELLO[0])
        if not is_last:
            return connection
        connection.close()
        return connection

    async def run():
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with over() as (client, _):
            first = asyncio.create_task(client.post(url))
            connection = await asyncio.to_thread(answer, False)
            assert (await first).text == "hello"

            async def close_now(event, details):
                # After the last look whether it is closed, and before the request is sent.
                if event == "http11.send_request_headers.started" and connection.fileno() >= 0:
                    connection.close()

            second = asyncio.create_task(client.post(url, extensions={"trace": close_now}))
            await asyncio.to_thread(answer, True)
            return (await second).text

    with listener:
        assert asyncio.run(run()) == "hello"
    assert len(requests) == 2


@pytest.mark.parametrize("garbage", [b"garbage", head(200, content_length="0")])
def test_bytes_that_come_to_an_idle_connection_end_it(serve, over, garbage):
    async def run():
        server = serve([*HELLO, 0.05, garbage, Action.STALL])
        async with over() as (client, transport):
            first = await client.post(server.url)
            await asyncio.to_thread(wait_until, lambda: transport.connections == 0)
            return first.text, (await client.post(server.url)).text, server.connections

    assert asyncio.run(run()) == ("hello", "hello", 2)


@pytest.mark.parametrize("kept", [chunked(b"hello"), [*chunked(b"hello", end=False), 0.02, END]])
def test_a_connection_is_kept_once_its_body_is_at_its_end(serve, over, kept):
    server = serve(kept)
    assert send(over, *[post(server.url)] * 3) == ["hello"] * 3
    assert server.connections == 1


def test_a_body_that_nobody_reads_gives_its_connection_up(serve, over):
    async def run():
        server = serve(chunked(b"hello", Action.STALL))
        async with over() as (client, transport):
            async with client.stream("POST", server.url) as response:
                assert (response.status_code, transport.connections) == (200, 1)
            assert transport.connections == 0
        return server

    server = asyncio.run(run())
    wait_until(lambda: server.open == 0)


def test_a_reader_that_is_slow_is_not_buried(serve, over):
    piece = b"x" * 1_000_000

    async def run():
        server = serve([head(200, content_length=str(20 * len(piece))), *[piece] * 20])
        async with over() as (client, _), client.stream("POST", server.url) as response:
            # All that it would hold has come by then.
            await asyncio.sleep(0.3)
            written = len(server.sent)
            return written, sum([len(data) async for data in response.aiter_raw()])

    written, size = asyncio.run(run())
    assert (written < 20, size) == (True, 20_000_000)


def test_an_answer_before_the_end_of_the_request_counts(over):
    listener = socket.create_server(("127.0.0.1", 0))

    def refuse():
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 5\r\n\r\nlarge")
            # Until the peer leaves: a close with bytes unread would reset what was said.
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                while connection.recv(1_000_000):
                    pass

    thread = threading.Thread(target=refuse)
    thread.start()
    with listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert send(over, post(url, content=b"y" * 50_000_000)) == ["large"]
    thread.join()


def test_silence_has_a_limit_of_its_own(serve, over):
    limits = {"timeout": httpx.Timeout(5, read=0.1)}
    for script in ([Action.STALL], [head(200, content_length="9"), b"hello", Action.STALL]):
        [error] = send(over, post(serve(script).url, **limits))
        assert isinstance(error, httpx.ReadTimeout)
    trickle = [head(200, content_length="5"), *[step for byte in b"hello" for step in (0.03, bytes([byte]))]]
    assert send(over, post(serve(trickle).url, timeout=httpx.Timeout(5, read=1.0))) == ["hello"]


def test_another_scheme_is_refused(serve, over):
    server = serve(HELLO)
    [error] = send(over, post(server.url.replace("http", "ftp")))
    assert (type(error), server.requests) == (httpx.UnsupportedProtocol, [])


def test_ipv6(serve, over):
    try:
        server = serve(HELLO, host="::1")
    except OSError:
        pytest.skip("this machine has no IPv6")
    assert send(over, *[post(server.url)] * 2) == ["hello"] * 2
    assert server.connections == 1


def test_a_name_with_several_addresses_is_tried_in_turn(serve, over):
    """`localhost` is ::1 first on many machines, where nobody listens here."""
    server = serve(HELLO)
    assert send(over, post(server.url.replace("127.0.0.1", "localhost"))) == ["hello"]


@pytest.fixture
def trust(monkeypatch):
    """Names the file of the authorities that are trusted; what was loaded of others is forgotten, before and after."""

    def name_certificates(path: Path) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        default_context.cache_clear()

    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    default_context.cache_clear()
    yield name_certificates
    default_context.cache_clear()


ONCE = Retries(tries=1)
WHOLE = request("web", stream=False)


def test_a_certificate_is_verified(serve, connect, trust, certificate):
    server = serve(whole(body("web", "Hello")), tls=certificate.server_context())
    with pytest.raises(ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        connect(server, retries=ONCE).send(WHOLE)
    trust(certificate.file)
    assert connect(server).send(WHOLE).text == "Hello"
    with pytest.raises(ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        connect(server.url.replace("localhost", "127.0.0.1"), retries=ONCE).send(WHOLE)


def test_certificates_that_cannot_be_loaded_are_said(serve, connect, trust, tmp_path):
    broken = tmp_path / "authorities.pem"
    broken.write_text("no certificate")
    trust(broken)
    with pytest.raises(ConnectError, match="SSL_CERT_FILE"):
        connect("https://127.0.0.1:1", retries=ONCE).send(WHOLE)
    assert connect(serve(whole(body("web", "Hello")))).send(WHOLE).text == "Hello"
