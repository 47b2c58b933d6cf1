"""What the transport refuses, bounds, and gives back: requests that are none, uploads, idle connections, failures."""

import asyncio
import contextlib
import socket
import threading

import httpx
import pytest

import famnb
from famnb.client.retry import Retries
from famnb.client.transport import StampedTransport, pool
from famnb.errors import ConnectError
from tests.support.client_shells import KEY
from tests.support.fault_server import Action, whole
from tests.support.waiting import wait_until
from tests.support.wire_payloads import body, request

HELLO = whole(b"hello", content_type="text/plain")
WHOLE = request("web", stream=False)


async def pieces(*parts: bytes):
    for part in parts:
        yield part


@pytest.mark.parametrize(
    "options",
    [
        {"method": "GET / HTTP/1.1\r\nx: y\r\n\r\n"},
        {"headers": {"x": "a\r\nb: c"}},
        {"headers": {"content-length": "3"}, "content": b"hello"},
        {"headers": {"content-length": "9"}, "content": b"hello"},
        {"headers": {"content-length": "five"}, "content": b"hello"},
        {"headers": [("content-length", "5"), ("content-length", "6")], "content": b"hello"},
        {"headers": {"transfer-encoding": "gzip"}, "content": b"hello"},
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


def test_an_upload_is_sent_as_it_comes(serve, over):
    listener, has_begun = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve_one():
        connection, _ = listener.accept()
        with connection:
            data = connection.recv(10_000)
            while b"first" not in data:
                data += connection.recv(10_000)
            has_begun.set()
            while b"last" not in data:
                data += connection.recv(10_000)
            connection.sendall(HELLO[0])
            received.append(data)

    async def upload():
        yield b"first"
        assert await asyncio.to_thread(has_begun.wait, 5)
        yield b"-last"

    async def run(**headers):
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with over() as (client, _):
            return (await client.post(url, content=upload(), headers=headers)).text

    received: list[bytes] = []
    with listener:
        for headers, sent in [({}, b"5\r\nfirst\r\n5\r\n-last\r\n"), ({"content-length": "10"}, b"\r\n\r\nfirst-last")]:
            has_begun.clear()
            thread = threading.Thread(target=serve_one)
            thread.start()
            assert asyncio.run(run(**headers)) == "hello"
            thread.join()
            assert sent in received[-1]


def test_an_upload_of_another_length_is_an_error(serve, over):
    server = serve(HELLO)

    async def run(length):
        async with over() as (client, transport):
            with pytest.raises(httpx.LocalProtocolError, match="Content-Length"):
                await client.post(server.url, content=pieces(b"hel", b"lo"), headers={"content-length": length})
            return transport.connections

    assert [asyncio.run(run(length)) for length in ("4", "6")] == [0, 0]


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


def test_a_peer_that_takes_nothing_is_a_write_timeout(over):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url, body = f"http://127.0.0.1:{listener.getsockname()[1]}", b"y" * 20_000_000

        async def run(content):
            async with over() as (client, _):
                await client.post(url, content=content, timeout=httpx.Timeout(30, write=0.1))

        for content in (body, pieces(body, b"z")):
            with pytest.raises(httpx.WriteTimeout):
                asyncio.run(run(content))


def test_connections_in_use_are_limited(serve, over):
    first, other = serve([0.5, *HELLO]), serve(HELLO)

    async def run():
        async with over(limits=httpx.Limits(max_connections=1)) as (client, transport):
            running = asyncio.create_task(client.post(first.url))
            await asyncio.to_thread(wait_until, lambda: first.requests)
            with pytest.raises(httpx.PoolTimeout):
                await client.post(other.url, timeout=httpx.Timeout(5, pool=0.05))
            texts = [(await client.post(other.url)).text, (await running).text]
            return texts, transport.connections

    assert asyncio.run(run()) == (["hello"] * 2, 1)


def test_idle_connections_are_bounded(serve, over):
    server = serve([0.3, *HELLO])

    async def run(count, **options):
        async with over(**options) as (client, transport):
            client.timeout = None
            await asyncio.gather(*[client.post(server.url) for _ in range(count)])
            return transport.connections

    assert asyncio.run(run(130)) == 100
    assert asyncio.run(run(5, limits=httpx.Limits(max_keepalive_connections=2))) == 2


def test_a_transport_that_is_closed_while_it_connects_leaves_nothing(over, certificate):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        async def run():
            transport = StampedTransport(tls=certificate.client_context())
            url = f"https://localhost:{listener.getsockname()[1]}"
            task = asyncio.create_task(transport.handle_async_request(httpx.Request("POST", url)))
            connection, _ = await asyncio.to_thread(listener.accept)
            await transport.aclose()
            with pytest.raises(httpx.ConnectError, match="closed"):
                await asyncio.wait_for(task, 4)
            return connection, transport.connections

        connection, count = asyncio.run(run())
        with connection:
            connection.settimeout(4)
            while connection.recv(65536):
                pass
        assert count == 0


def test_a_peer_that_the_kernel_gives_up_is_an_error_in_words(over, monkeypatch):
    """ETIMEDOUT, which Python calls a TimeoutError, and no time limit of ours has passed."""
    make = pool._make_socket

    def make_impatient(info):
        sock = make(info)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 300)
        return sock

    monkeypatch.setattr(pool, "_make_socket", make_impatient)
    # A listener whose queue is full takes no more connections.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as stack:
        address = listener.getsockname()
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)

        async def run():
            async with over() as (client, _):
                await client.post(f"http://127.0.0.1:{address[1]}", timeout=None)

        with pytest.raises(httpx.ConnectError, match="Errno 110"):
            asyncio.run(run())


@pytest.mark.parametrize("host", ["a" * 64 + ".invalid", "a..b.invalid"])
def test_a_host_that_cannot_be_a_name_is_an_error_in_words(over, host):
    async def run():
        async with over() as (client, _):
            await client.post(f"http://{host}")

    with pytest.raises(httpx.ConnectError, match="label"):
        asyncio.run(run())


def test_other_event_loops_say_what_is_needed(serve):
    transport, sent = StampedTransport(), httpx.Request("POST", serve(HELLO).url)
    with pytest.raises(RuntimeError, match="trio"):
        transport.handle_async_request(sent).send(None)

    class Proactor(asyncio.SelectorEventLoop):
        def add_reader(self, *_args):
            raise NotImplementedError

        add_writer = add_reader

    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        loop = runner.get_loop()
        loop.add_reader = Proactor.add_reader
        with pytest.raises(RuntimeError, match="SelectorEventLoop"):
            runner.run(transport.handle_async_request(sent))


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
