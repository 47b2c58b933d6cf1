"""Proxies: those of the environment, never before this machine, and those that are given."""

import contextlib
import socket
import threading

import pytest

from famnb.client.retry import Retries
from famnb.client.transport import StampedTransport
from famnb.client.transport.proxy import Proxy, proxy_for
from famnb.errors import ConnectError
from tests.support.client_shells import KEY
from tests.support.fault_server import Action, chunked, whole
from tests.support.proxy_server import ProxyServer
from tests.support.wire_payloads import body, request, sse_stream

WHOLE = request("web", stream=False)
ONCE = Retries(tries=1)


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(serve, connect, monkeypatch):
    proxy, server = serve(whole(b"", 502)), serve(whole(body("web", "Hello")))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    assert connect(server).send(WHOLE).text == "Hello"
    assert proxy.requests == []


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_proxy_of_the_environment_is_used_for_other_hosts(serve, connect, monkeypatch, scheme):
    proxy = serve(whole(body("web", "Hello")))
    monkeypatch.setenv("http_proxy", proxy.url.replace("http://", scheme))
    monkeypatch.delenv("no_proxy", raising=False)
    assert connect("http://elsewhere.invalid").send(WHOLE).text == "Hello"
    assert proxy.requests[0].path.startswith("http://elsewhere.invalid/")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "localhost", "LOCALHOST.", "a.localhost"]
)
def test_this_machine_is_known_by_all_its_names(monkeypatch, host):
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    assert proxy_for(f"http://{host}:8000") is None
    assert proxy_for("http://10.0.0.1:8000") == Proxy("proxy.invalid", 3128, is_tls=False)


@pytest.mark.parametrize("name", ["fd00::1", "[fd00::1]", "[fd00::1]:8000", "FD00::1"])
def test_no_proxy_names_addresses_of_ipv6(monkeypatch, name):
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", f"other.example,{name}")
    assert proxy_for("http://[fd00::1]:8000") is None
    assert proxy_for("http://[fd00::2]:8000") == Proxy("proxy.invalid", 3128, is_tls=False)


@pytest.mark.parametrize(
    "proxy", ["socks5://user:secret@127.0.0.1:1080", "::secret::", "http://user:secret@[x", "http://"]
)
def test_a_proxy_that_cannot_be_used_is_said(connect, monkeypatch, caplog, proxy):
    monkeypatch.setenv("http_proxy", proxy)
    [reply] = connect("http://elsewhere.invalid", retries=ONCE).send_many([WHOLE])
    assert isinstance(reply.error, ConnectError)
    assert "all_proxy" in str(reply.error)
    assert "secret" not in str(reply.error) + caplog.text


def test_a_proxy_is_an_address():
    assert Proxy.parse("proxy.example") == Proxy("proxy.example", 80, is_tls=False)
    proxy = Proxy.parse("https://ada:pass%40word@proxy.example:3128")
    assert (proxy.host, proxy.port, proxy.is_tls) == ("proxy.example", 3128, True)
    assert proxy.headers == ((b"Proxy-Authorization", b"Basic YWRhOnBhc3NAd29yZA=="),)
    assert "Basic" not in repr(proxy)


def test_an_encrypted_address_is_reached_through_a_tunnel(serve, connect, certificate):
    server = serve(whole(body("web", "Hello")), tls=certificate.server_context())
    with ProxyServer(credentials="Basic YWRhOnNlY3JldA==") as proxy:
        address = proxy.url.replace("//", "//ada:secret@")
        client = connect(server, transport=StampedTransport(proxy=address, tls=certificate.client_context()))
        assert [client.send(WHOLE).text for _ in range(2)] == ["Hello"] * 2
        netloc = server.url.removeprefix("https://")
        assert [head.splitlines()[0] for head in proxy.heads] == [f"CONNECT {netloc} HTTP/1.1"]
        assert f"Host: {netloc}" in proxy.heads[0]
        assert KEY not in proxy.heads[0]
    assert "proxy-authorization" not in server.requests[0].headers


def test_a_proxy_may_be_encrypted_itself(serve, connect, certificate):
    context = certificate.server_context()
    server = serve(chunked(*sse_stream("web", "Hel", "lo")), tls=context)
    with ProxyServer(tls=context) as proxy:
        client = connect(server, transport=StampedTransport(proxy=proxy.url, tls=certificate.client_context()))
        assert [client.send(request("web")).text for _ in range(2)] == ["Hello"] * 2
        assert len(proxy.heads) == 1


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        (whole(b"", 407), "407"),
        ([b"this is no HTTP\r\n\r\n", Action.CLOSE], "does not speak HTTP"),
        ([Action.CLOSE], "closed the connection"),
    ],
)
def test_a_proxy_that_refuses_is_said(connect, certificate, refusal, message):
    listener = socket.create_server(("127.0.0.1", 0))

    def refuse():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(10_000)
                    for step in refusal:
                        if isinstance(step, bytes):
                            connection.sendall(step)

    threading.Thread(target=refuse, daemon=True).start()
    address = f"http://ada:secret@127.0.0.1:{listener.getsockname()[1]}"
    client = connect("https://elsewhere.invalid", retries=ONCE, transport=StampedTransport(proxy=address))
    with pytest.raises(ConnectError, match=message) as caught:
        client.send(WHOLE)
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    assert "secret" not in str(caught.value)
