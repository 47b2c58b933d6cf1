"""What a peer says by close_notify, and what it does not say by a FIN alone; and which protocol is spoken."""

import asyncio
import contextlib

import httpx
import pytest

from tests.support.fault_server import head, whole
from tests.support.tls_peer import TLSPeer, serve_tls
from tests.support.waiting import wait_until

# Far less than httpx would wait for a FIN that does not come, far more than an answer takes.
SOON_S = 4.0
TO_CLOSE = head(200, content_type="text/plain", connection="close")
HELLO = whole(b"hello", content_type="text/plain")[0]


@contextlib.contextmanager
def answer(certificate, data: bytes, *, then: bytes = b"", notifies: bool = True):
    """Serves the data over TLS, and close_notify; the connection stays open, unless nothing is said of its end."""

    def play(peer: TLSPeer) -> None:
        peer.shake_hands()
        peer.read_head()
        peer.write(data)
        if notifies:
            peer.notify_close(then=then)
            peer.await_end()

    with serve_tls(certificate.server_context(), play) as url:
        yield url


def fetch(over, certificate, url, count=1):
    """The texts of some answers, one after the other; TimeoutError if they do not come soon."""

    async def run():
        texts = []
        async with over(tls=certificate.client_context()) as (client, transport), asyncio.timeout(SOON_S):
            for _ in range(count):
                texts.append((await client.post(url)).text)
                await asyncio.to_thread(wait_until, lambda: transport.connections == 0, timeout=SOON_S)
        return texts

    return asyncio.run(run())


def test_close_notify_ends_a_body(over, certificate):
    with answer(certificate, TO_CLOSE + b"hello") as url:
        assert fetch(over, certificate, url) == ["hello"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("more", [b"\x17", b"\x17\x03\x03\x00\x05hello", b"hello" * 1000])
def test_what_follows_close_notify_is_ignored(over, certificate, more):
    """Anybody on the path can add it."""
    with answer(certificate, TO_CLOSE + b"hello", then=more) as url:
        assert fetch(over, certificate, url) == ["hello"]


def test_close_notify_ends_an_idle_connection(over, certificate):
    with answer(certificate, HELLO) as url:
        assert fetch(over, certificate, url, count=2) == ["hello"] * 2


def test_a_body_that_only_the_fin_ends_is_incomplete(over, certificate):
    """Anybody on the path can send a FIN."""
    incomplete = pytest.raises(httpx.RemoteProtocolError, match="before the body was complete")
    with answer(certificate, TO_CLOSE + b"hel", notifies=False) as url, incomplete:
        fetch(over, certificate, url)


def test_close_notify_ends_a_handshake(over, certificate):
    def play(peer: TLSPeer) -> None:
        peer.sock.recv(65536)
        peer.sock.sendall(b"\x15\x03\x03\x00\x02\x01\x00")
        peer.await_end()

    with serve_tls(certificate.server_context(), play) as url, pytest.raises(httpx.ConnectError):
        fetch(over, certificate, url)


def test_close_notify_ends_a_tunnel(over, certificate):
    def play(peer: TLSPeer) -> None:
        peer.shake_hands()
        peer.read_head()
        peer.notify_close()
        peer.await_end()

    async def run(proxy):
        async with over(tls=certificate.client_context(), proxy=proxy) as (client, _), asyncio.timeout(SOON_S):
            await client.post("https://elsewhere.invalid")

    with serve_tls(certificate.server_context(), play) as url, pytest.raises(httpx.ConnectError, match="closed"):
        asyncio.run(run(url))


def test_only_http1_is_offered(over, certificate):
    protocols = []

    def play(peer: TLSPeer) -> None:
        peer.shake_hands()
        protocols.append(peer.session.selected_alpn_protocol())
        peer.read_head()
        peer.write(HELLO)

    async def run(url):
        context = certificate.client_context()
        context.set_alpn_protocols(["h2", "http/1.1"])
        async with over(tls=context) as (client, _):
            return (await client.post(url)).text

    server = certificate.server_context()
    server.set_alpn_protocols(["h2", "http/1.1"])
    with serve_tls(server, play) as url:
        assert asyncio.run(run(url)) == "hello"
    assert protocols == ["http/1.1"]
