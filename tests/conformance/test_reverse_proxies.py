"""The client behind the reverse proxies of the field, plain and through TLS: every text arrives, and none late.

    pytest -m conformance tests/conformance/test_reverse_proxies.py

A proxy that is not installed is skipped; Debian's packages are called as they are here, uvicorn is there anyway.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import famnb
from famnb.client.transport import StampedTransport
from famnb.errors import ConnectError, FamnbError, ServerError, StreamInterrupted
from famnb.service import Server, serve
from tests.client.transport.certificates import Certificate, make_certificate
from tests.conformance.reverse_proxies import PROXIES, ReverseProxy, run_reverse_proxy
from tests.support.fault_server import Action, FaultServer, Received, Script, chunked, head
from tests.support.wire_payloads import ENDPOINTS, delta, opening, request, sse_stream

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]

KEY = "sk-proxied-0123456789abcdef"
# An answer is there at once, or within two seconds on a machine with much else to do.
PUNCTUAL = famnb.Deadlines(total=4)
"""By which no call is two seconds late."""
ONCE = famnb.Retries(tries=1)
WORDS = [f"{number} " for number in range(10)]
TEXT = "".join(WORDS)
STREAM = b"".join(chunked(*sse_stream("web", *WORDS)))
DRIPPED = [STREAM[start : start + 11] for start in range(0, len(STREAM), 11)]
TO_CLOSE = head(200, content_type="text/event-stream", connection="close")
CUT = chunked(*opening("web"), delta("web", "Hel"), end=False)
# A proxy says 502, or it closes in its turn, as haproxy and apache do where the handler's connection was a kept one: so
# they leave it to the client whether to send again.
NO_ANSWER = (ServerError, ConnectError)

SCRIPTS: dict[str, tuple[Script, type[FamnbError] | tuple[type[FamnbError], ...] | None]] = {
    "words in one write": ([STREAM], None),
    "words with pauses": (chunked(*(step for event in sse_stream("web", *WORDS) for step in (0.01, event))), None),
    "eleven bytes a write": ([step for piece in DRIPPED for step in (0.0005, piece)], None),
    "closed at its end": ([TO_CLOSE, *sse_stream("web", *WORDS), Action.CLOSE], None),
    "half closed at its end": ([TO_CLOSE, *sse_stream("web", *WORDS), Action.HALF_CLOSE], None),
    "closed after each answer": ([*chunked(*sse_stream("web", *WORDS), connection="close"), Action.CLOSE], None),
    "closed in the body": ([*CUT, 0.1, Action.CLOSE], StreamInterrupted),
    "reset in the body": ([*CUT, 0.1, Action.RESET], StreamInterrupted),
    "a length too long": (
        [head(200, content_length="9999"), delta("web", "Hel"), 0.1, Action.CLOSE],
        StreamInterrupted,
    ),
    "closed without an answer": ([Action.CLOSE], NO_ANSWER),
    "reset without an answer": ([Action.RESET], NO_ANSWER),
}
"""By the prompt that asks for it: what the handler behind the proxy does, and what it is for the client."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def service() -> Iterator[Server]:
    with serve(time_scale=0) as server:
        yield server


@pytest.fixture(scope="module")
def handlers() -> Iterator[FaultServer]:
    """Does what the prompt says."""

    def choose(received: Received) -> Script:
        return next(script for prompt, (script, _) in SCRIPTS.items() if prompt.encode() in received.body)

    with FaultServer(choose=choose) as server:
        yield server


@pytest.fixture(scope="module")
def address(
    certificate: Certificate, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[ReverseProxy, bool, str], str]]:
    """Gives the address of a proxy in front of an upstream; it is started when it is first asked for."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def start(proxy: ReverseProxy, upstream: str) -> Any:
            folder = tmp_path_factory.mktemp("proxy")
            return stack.enter_context(run_reverse_proxy(proxy, upstream, certificate, folder))

        def find(proxy: ReverseProxy, is_encrypted: bool, upstream: str) -> str:
            ports = start(proxy, upstream)
            return f"https://localhost:{ports['tls']}" if is_encrypted else f"http://127.0.0.1:{ports['plain']}"

        yield find


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def connect(
    request: pytest.FixtureRequest, address: Callable[..., str], certificate: Certificate, tmp_path: Path
) -> Iterator[Callable[..., famnb.Client]]:
    """Makes a client that reaches an upstream through a proxy, plain or encrypted."""
    with contextlib.ExitStack() as stack:

        def make(proxy: ReverseProxy, upstream: str, key: str, **options: Any) -> famnb.Client:
            url = address(proxy, request.param, upstream)
            transport = StampedTransport(tls=certificate.client_context() if request.param else None)
            ledger = tmp_path / "ledger.sqlite"
            options = {"deadlines": PUNCTUAL, **options}
            return stack.enter_context(
                famnb.Client(base_url=url, api_key=key, ledger=ledger, transport=transport, **options)
            )

        yield make


through_each_proxy = pytest.mark.parametrize(
    "proxy",
    [
        pytest.param(
            proxy,
            id=proxy.name,
            marks=pytest.mark.skipif(not proxy.is_installed, reason=f"{proxy.command[0]} is not installed"),
        )
        for proxy in PROXIES
    ],
)


@through_each_proxy
def test_texts_of_the_service_are_the_same_behind_a_proxy(proxy, service, connect):
    """On each endpoint, whole and streamed, eight at once, on fresh and on kept connections."""
    requests = [
        famnb.compose(endpoint, f"{subject} in three sentences.", stream=stream)
        for subject in ("Rivers", "Clouds", "Stones")
        for endpoint in ENDPOINTS
        for stream in (False, True)
    ]
    with famnb.Client(
        base_url=service.url, api_key=service.key, ledger=None, transport=httpx.AsyncHTTPTransport()
    ) as direct:
        texts = [direct.send(request).text for request in requests]
    client = connect(proxy, service.url, service.key, retries=ONCE)
    for _ in range(3):
        assert [reply.error or reply.text for reply in client.send_many(requests, concurrency=8)] == texts
    assert all(texts)


@through_each_proxy
@pytest.mark.parametrize("prompt", SCRIPTS)
def test_what_a_handler_does_is_the_same_behind_a_proxy(prompt, proxy, handlers, connect):
    """An answer is complete, a broken one says so, and the next call is answered."""
    client, (_, error) = connect(proxy, handlers.url, KEY, retries=ONCE), SCRIPTS[prompt]
    for _ in range(3):
        if error is None:
            assert client.send(request("web", prompt)).text == TEXT
        else:
            with pytest.raises(error) as caught:
                client.send(request("web", prompt))
            if error is StreamInterrupted:
                assert caught.value.reply.text == "Hel"
        assert client.send(request("web", "words in one write")).text == TEXT


@through_each_proxy
def test_a_connection_that_a_proxy_has_closed_is_not_used_again(proxy, handlers, connect):
    client = connect(proxy, handlers.url, KEY, retries=ONCE)
    for _ in range(3):
        assert client.send(request("web", "words in one write")).text == TEXT
        time.sleep(1.5)


@through_each_proxy
def test_a_call_at_the_moment_of_an_idle_close_is_answered_and_every_request_is_counted(proxy, handlers, connect):
    client, before = connect(proxy, handlers.url, KEY), len(handlers.requests)
    requests = [request("web", "words in one write")] * 8
    for turn in range(8):
        assert {reply.text for reply in client.send_many(requests, concurrency=8)} == {TEXT}
        time.sleep(0.98 + turn * 0.005)
    # Some do not reach the handler: the proxy closed the connection instead.
    assert famnb.calls(client)["attempts"].sum() >= len(handlers.requests) - before
