"""What the transport refuses, bounds, and gives back: invalid requests, idle connections, failures."""

import asyncio
import socket
import threading

import httpx
import pytest

import famnb
from famnb.client.retry import Retries
from famnb.client.transport import pool
from famnb.errors import ConnectError
from tests.support.client_shells import KEY
from tests.support.fault_server import Action, whole
from tests.support.wire_payloads import body, request

HELLO = whole(b"hello", content_type="text/plain")
WHOLE = request("web", stream=False)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "GET / HTTP/1.1\r\nx: y\r\n\r\n"},
        {"headers": {"x": "a\r\nb: c"}},
        {"headers": {"content-length": "3"}, "content": b"hello"},
        {"headers": {"content-length": "9"}, "content": b"hello"},
        {"headers": {"content-length": "five"}, "content": b"hello"},
        {"headers": [("content-length", "5"), ("content-length", "6")], "content": b"hello"},
        {"headers": {"transfer-encoding": "chunked"}, "content": b"hello"},
        {"headers": [("transfer-encoding", "chunked"), ("content-length", "5")], "content": b"hello"},
    ],
)
def test_what_would_be_read_as_another_request_is_not_sent(serve, over, options):
    server = serve(HELLO)

    async def run():
        async with over() as (client, transport):
            with pytest.raises(httpx.LocalProtocolError):
                await client.request(**{"method": "POST", "url": server.url, **options})
            return transport.connections

    assert asyncio.run(run()) == 0
    assert (server.requests, server.connections) == ([], 0)


def test_the_read_timeout_begins_when_the_request_is_sent(over):
    """A peer that lets a large body wait for longer than that, and then answers, was not silent."""
    size, listener = 20_000_000, socket.create_server(("127.0.0.1", 0))

    def read_late():
        connection, _ = listener.accept()
        with connection:
            threading.Event().wait(1.5)
            received = 0
            while received < size:
                received += len(connection.recv(1_000_000))
            connection.sendall(HELLO[0])

    async def run():
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with over() as (client, _):
            return (await client.post(url, content=b"y" * size, timeout=httpx.Timeout(30, read=1.0))).text

    thread = threading.Thread(target=read_late, daemon=True)
    thread.start()
    with listener:
        assert asyncio.run(run()) == "hello"
    thread.join()


def test_idle_connections_are_bounded(serve, over):
    server = serve([0.3, *HELLO])

    async def run(count):
        async with over() as (client, transport):
            client.timeout = None
            await asyncio.gather(*[client.post(server.url) for _ in range(count)])
            return transport.connections

    assert asyncio.run(run(130)) == 100


def test_a_peer_that_the_kernel_gives_up_is_an_error_in_words(over, deaf_url, monkeypatch):
    """ETIMEDOUT, which Python calls a TimeoutError, and no time limit of ours has passed."""
    make = pool._make_socket

    def make_impatient(info):
        sock = make(info)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 300)
        return sock

    monkeypatch.setattr(pool, "_make_socket", make_impatient)

    async def run():
        async with over() as (client, _):
            await client.post(deaf_url, timeout=None)

    with pytest.raises(httpx.ConnectError, match="Errno 110"):
        asyncio.run(run())


@pytest.mark.parametrize("host", ["a" * 64 + ".invalid", "a..b.invalid"])
def test_a_host_that_cannot_be_a_name_is_an_error_in_words(over, host):
    async def run():
        async with over() as (client, _):
            await client.post(f"http://{host}")

    with pytest.raises(httpx.ConnectError, match="label"):
        asyncio.run(run())


def test_a_request_that_got_no_answer_is_an_attempt_like_any_other(serve, tmp_path):
    hello = whole(body("web", "Hello"))
    server = serve(hello, [0.3, Action.CLOSE], hello)
    ledger = tmp_path / "calls.sqlite"
    with famnb.Client(base_url=server.url, api_key=KEY, ledger=ledger) as client:
        assert [client.send(WHOLE).text for _ in range(2)] == ["Hello"] * 2
        rows = famnb.calls(client).sort_values("started_at").to_dict("records")
    assert [row["attempts"] for row in rows] == [1, 2]
    assert rows[0]["e2e_s"] < 0.3 < rows[1]["e2e_s"] <= rows[1]["wait_s"]
    assert len(server.requests) == 3
    server = serve(hello, [Action.CLOSE], hello)
    with famnb.Client(base_url=server.url, api_key=KEY, ledger=None, retries=Retries(tries=1)) as client:
        client.send(WHOLE)
        with pytest.raises(ConnectError):
            client.send(WHOLE)
    assert len(server.requests) == 2
