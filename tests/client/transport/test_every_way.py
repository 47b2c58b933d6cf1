"""The same fault has the same outcome on every route to a service: plain, TLS, through proxies, on a Unix socket."""

import gzip
import itertools

import pytest

from famnb.client.config import Deadlines
from famnb.client.retry import Retries
from famnb.client.transport import StampedTransport
from famnb.errors import (
    AuthenticationError,
    ConnectError,
    DeadlineError,
    FamnbError,
    FirstEventTimeout,
    IdleTimeout,
    ResponseFormatError,
    ServerError,
    StreamDecodeError,
    StreamError,
    StreamInterrupted,
)
from tests.support.fault_server import Action, Script, chunk, chunked, event, head, whole
from tests.support.proxy_server import ProxyServer
from tests.support.waiting import wait_until
from tests.support.wire_payloads import body, closing, delta, evidence, failure, opening, request, sse_stream

STREAM, WHOLE = request("web"), request("web", stream=False)
HEL = [*opening("web"), delta("web", "Hel")]
HELLO = sse_stream("web", "Hel", "lo")
STREAM_HEAD = head(200, content_type="text/event-stream", transfer_encoding="chunked")
TO_CLOSE = head(200, content_type="text/event-stream", connection="close")
PACKED = b"".join(gzip.compress(piece) for piece in HELLO)
CUT_GZIP = b"".join([*map(gzip.compress, HEL), gzip.compress(delta("web", "lo"))[:20]])
CUT = chunked(CUT_GZIP, content_encoding="gzip", end=False)
LONG_HEADER = b"x: " + b"y" * 60_000 + b"\r\n"
SWITCHING = b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"
NO_SIZE = b"".join([*chunked(*HEL, end=False), b"no size\r\n"])
TRICKLE = b"".join(chunked(*HELLO))

ANSWERED: dict[str, Script] = {
    "a stream": chunked(*HELLO),
    "a stream with pauses": chunked(*[step for piece in HELLO for step in (0.01, piece)]),
    "head and body in one write": [b"".join(chunked(*HELLO))],
    "seven bytes a write": [TRICKLE[start : start + 7] for start in range(0, len(TRICKLE), 7)],
    "no length, closed": [TO_CLOSE, *HELLO, Action.CLOSE],
    "no length, half closed": [TO_CLOSE, *HELLO, Action.HALF_CLOSE],
    "interim answers": [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: a\r\n\r\n", *chunked(*HELLO)],
    "a trailer": [STREAM_HEAD, *map(chunk, HELLO), b"0\r\nx-sum: 1\r\n\r\n"],
    "gzip of several members": chunked(PACKED, content_encoding="gzip"),
    "an answer to nobody behind it": [b"".join([*chunked(*HELLO), head(200, content_length="0")])],
    "rubbish behind it": [b"".join([*chunked(*HELLO), b"rubbish"])],
    "silence after the end": chunked(*HELLO, Action.STALL),
    "a reset after the evidence": [*chunked(*HEL, delta("web", "lo"), evidence("web"), end=False), Action.RESET],
    "no JSON for a stream": whole(body("web", "Hello")),
    "comments": chunked(b": wait\n\n", *HEL, b": wait\n\n", delta("web", "lo"), *closing("web")),
    "a megabyte of comments": chunked(b": wait\n\n" * 120_000, *HELLO),
}

FAILED: dict[str, tuple[Script, type[FamnbError], str]] = {
    "closed without an answer": ([Action.CLOSE], ConnectError, ""),
    "reset without an answer": ([Action.RESET], ConnectError, ""),
    "closed in the head": ([b"HTTP/1.1 200 O", Action.CLOSE], ConnectError, ""),
    "no HTTP": ([b"\0\1 no HTTP\r\n\r\n", Action.CLOSE], ResponseFormatError, ""),
    "a head without end": ([head(200)[:-2], *[LONG_HEADER] * 5, Action.STALL], ResponseFormatError, ""),
    "another protocol": ([SWITCHING, Action.CLOSE], ResponseFormatError, ""),
    "an error body": (whole({"error": {"message": "no"}}, 401), AuthenticationError, ""),
    "an error body that breaks off": ([head(500, content_length="99"), b"the engine", Action.CLOSE], ServerError, ""),
    "no events": ([STREAM_HEAD, Action.STALL], FirstEventTimeout, ""),
    "silence": (chunked(*HEL, Action.STALL), IdleTimeout, "Hel"),
    "closed in the body": ([*chunked(*HEL, end=False), Action.CLOSE], StreamInterrupted, "Hel"),
    "half closed in the body": ([*chunked(*HEL, end=False), Action.HALF_CLOSE], StreamInterrupted, "Hel"),
    "reset in the body": ([*chunked(*HEL, end=False), Action.RESET], StreamInterrupted, "Hel"),
    "a wrong chunk size": ([*chunked(*HEL, end=False), 0.02, b"no size\r\n", Action.STALL], StreamInterrupted, "Hel"),
    "all of that in one write": ([NO_SIZE, Action.STALL], StreamInterrupted, "Hel"),
    "a length that is too long": ([head(200, content_length="9999"), *HEL, Action.CLOSE], StreamInterrupted, "Hel"),
    "no evidence": (chunked(*HEL), StreamInterrupted, "Hel"),
    "no length, no evidence": ([TO_CLOSE, *HEL, Action.CLOSE], StreamInterrupted, "Hel"),
    "no gzip": (chunked(*HELLO, content_encoding="gzip"), StreamInterrupted, ""),
    "gzip that breaks off": ([*CUT, Action.CLOSE], StreamInterrupted, "Hel"),
    "no JSON": (chunked(*HEL, event(b"{"), *closing("web")), StreamDecodeError, "Hel"),
    "an error in the stream": (chunked(*HEL, *failure("web")), StreamError, "Hel"),
    "nothing": (whole(b""), ResponseFormatError, ""),
}


ROUTES = ("plain", "tls")
OTHER_ROUTES = ("forwarded", "tunnel")
SILENCE = Deadlines(first_event=3, idle=3)


def with_routes(names):
    """Each name over a plain connection, over TLS, and over one of the other routes in turn."""
    params = []
    for route, name in itertools.product(ROUTES, names):
        # Silence is waited for once by default.
        is_long = route == "tls" and name in ("no events", "silence")
        params.append(pytest.param(route, name, id=f"{route}-{name}", marks=pytest.mark.full if is_long else ()))
    for route, name in zip(itertools.cycle(OTHER_ROUTES), names, strict=False):
        params.append(pytest.param(route, name, id=f"{route}-{name}", marks=pytest.mark.full))
    return params


@pytest.fixture(params=[*ROUTES, *(pytest.param(route, marks=pytest.mark.full) for route in OTHER_ROUTES)])
def reach(request, serve, connect, certificate):
    """Serves scripts and makes a client that reaches them by the route; returns both, and the transport."""
    route = request.param
    proxy = ProxyServer() if route in ("forwarded", "tunnel") else None

    def start(*scripts: Script, **options):
        is_encrypted = route in ("tls", "tunnel")
        server = serve(*scripts, tls=certificate.server_context() if is_encrypted else None)
        transport = StampedTransport(
            tls=certificate.client_context() if is_encrypted else None,
            proxy=proxy.url if proxy else None,
        )
        client = connect(server, transport=transport, **options)
        return server, client, transport

    yield start
    if proxy is not None:
        proxy.close()


def ends_clean(server, client, transport) -> bool:
    """Whether no connection is left open once the client is closed, on either side."""
    client.close()
    wait_until(lambda: server.open == 0)
    return transport.connections == 0


@pytest.mark.parametrize(("reach", "name"), with_routes(ANSWERED), indirect=["reach"])
def test_an_answer_is_read(reach, name):
    server, client, transport = reach(ANSWERED[name])
    for _ in range(2):
        reply = client.send(STREAM)
        assert (reply.text, reply.complete, reply.status) == ("Hello", True, "completed")
    assert ends_clean(server, client, transport)


@pytest.mark.parametrize(("reach", "name"), with_routes(FAILED), indirect=["reach"])
def test_a_fault_is_an_error_with_what_had_come(reach, name):
    script, error, text = FAILED[name]
    # Only for what is silent on purpose: a loaded machine takes seconds for what is not.
    limits = SILENCE if issubclass(error, DeadlineError) else Deadlines()
    server, client, transport = reach(script, chunked(*HELLO), retries=Retries(tries=1), deadlines=limits)
    with pytest.raises(error) as caught:
        client.send(STREAM)
    assert (type(caught.value), caught.value.reply.text) == (error, text)
    assert client.send(STREAM).text == "Hello"
    assert ends_clean(server, client, transport)


def test_a_kept_connection_that_closed_under_a_request(reach):
    good = chunked(*HELLO)
    server, client, transport = reach(good, [Action.CLOSE], good, [Action.RESET], good)
    assert [client.send(STREAM).text for _ in range(3)] == ["Hello"] * 3
    assert len(client.pauses) == 2
    assert ends_clean(server, client, transport)


def test_a_large_request_and_a_large_answer(reach):
    text = "é" * 1_000_000
    server, client, transport = reach(whole(body("web", text)))
    question = request("web", stream=False).replace(messages=[{"role": "user", "content": text}])
    assert client.send(question).text == text
    assert text.encode() in server.requests[0].body
    assert ends_clean(server, client, transport)
