"""The way to a service: proxies of the environment, never before this machine, and certificates, always verified."""

from __future__ import annotations

import http.server
import json
import shutil
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

from famnb.client.retry import Retries
from famnb.client.transport.proxy import proxy_for
from famnb.client.transport.tls import default_context
from famnb.errors import ConnectError
from tests.support.fault_server import whole
from tests.support.wire_payloads import body, request

WHOLE = request("web", stream=False)
ONCE = Retries(tries=1)


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(serve, connect, monkeypatch):
    """Loopback is reached directly, whatever HTTP_PROXY says."""
    proxy, server = serve(whole(b"", 502)), serve(whole(body("web", "Hello")))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    assert connect(server).send(WHOLE).text == "Hello"
    assert proxy.requests == []


def test_a_proxy_of_the_environment_is_used_for_other_hosts(serve, connect, monkeypatch):
    """A host that is not this machine is asked for through the proxy."""
    proxy = serve(whole(body("web", "Hello")))
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.delenv("no_proxy", raising=False)
    assert connect("http://elsewhere.invalid").send(WHOLE).text == "Hello"
    assert proxy.requests[0].path.startswith("http://elsewhere.invalid/")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "localhost", "LOCALHOST.", "a.localhost"]
)
def test_this_machine_is_known_by_all_its_names(monkeypatch, host):
    """However loopback is written, no proxy stands before it."""
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    assert proxy_for(f"http://{host}:8000") is None
    assert proxy_for("http://10.0.0.1:8000") == "http://proxy.invalid:3128"


def test_a_proxy_without_a_scheme_is_an_ordinary_one(serve, connect, monkeypatch):
    """As curl takes it."""
    proxy = serve(whole(body("web", "Hello")))
    monkeypatch.setenv("http_proxy", proxy.url.removeprefix("http://"))
    assert connect("http://elsewhere.invalid").send(WHOLE).text == "Hello"


@pytest.mark.parametrize(
    "proxy", ["socks5://user:secret@127.0.0.1:1080", "::secret::", "http://user:secret@[x", "http://"]
)
def test_a_proxy_that_cannot_be_used_is_said(connect, monkeypatch, caplog, proxy):
    """A ConnectError with what to set, recorded like any other; the proxy's own password is not repeated."""
    monkeypatch.setenv("http_proxy", proxy)
    [reply] = connect("http://elsewhere.invalid", retries=ONCE).send_many([WHOLE])
    assert isinstance(reply.error, ConnectError)
    assert "all_proxy" in str(reply.error)
    assert "secret" not in str(reply.error) + caplog.text


@pytest.fixture
def secure(tmp_path):
    """An address with TLS whose certificate nobody but its own file vouches for, and that file."""
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *names, *files]
    subprocess.run(made, check=True, capture_output=True)
    server = http.server.HTTPServer(("127.0.0.1", 0), Answering)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://localhost:{server.server_port}", certificate
    server.shutdown()
    server.server_close()


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers every request with one reply."""

    def do_POST(self) -> None:
        answer = json.dumps(body("web", "Hello")).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def trust(monkeypatch):
    """Names the file of the authorities that are trusted; what was loaded of others is forgotten, before and after."""

    def named(path: Path) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        default_context.cache_clear()

    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    default_context.cache_clear()
    yield named
    default_context.cache_clear()


def test_a_certificate_is_verified(connect, trust, secure):
    """One that nobody vouches for, or of another host, is refused; SSL_CERT_FILE names who may vouch."""
    url, certificate = secure
    with pytest.raises(ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        connect(url, retries=ONCE).send(WHOLE)
    trust(certificate)
    assert connect(url).send(WHOLE).text == "Hello"
    with pytest.raises(ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        connect(url.replace("localhost", "127.0.0.1"), retries=ONCE).send(WHOLE)


def test_certificates_that_cannot_be_loaded_are_said(serve, connect, trust, tmp_path):
    """A ConnectError that names the variable; a plain connection needs none and does not mind."""
    broken = tmp_path / "authorities.pem"
    broken.write_text("no certificate")
    trust(broken)
    with pytest.raises(ConnectError, match="SSL_CERT_FILE"):
        connect("https://127.0.0.1:1", retries=ONCE).send(WHOLE)
    assert connect(serve(whole(body("web", "Hello")))).send(WHOLE).text == "Hello"
