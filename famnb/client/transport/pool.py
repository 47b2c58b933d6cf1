"""StampedTransport, which carries requests of httpx over kept connections and says when each piece of an answer came.

request ── route (proxy, TLS) ── kept connection, else: name ── socket ── (tunnel) ── (TLS) ── connection ── response
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import aiohappyeyeballs
import httpx
import msgspec

from famnb.client.transport.connection import (
    Connection,
    MalformedRequest,
    ResponseParser,
    StaleConnection,
    encode_head,
)
from famnb.client.transport.kernel_stamps import (
    Readiness,
    ReceiveBuffer,
    StampClock,
    make_reader,
    request_stamps,
)
from famnb.client.transport.proxy import Proxy, proxy_for
from famnb.client.transport.tls import TLSLayer, default_context

# Choices. 30 s are long enough for the next cell of somebody at work, and the service has rarely closed it by then.
MAX_IDLE, IDLE_S = 100, 30.0
"""How many idle connections are kept at most, and for how many seconds."""
# The vendors' SDKs have these, so that a peer that is gone is noticed during a long silence.
_TCP_KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 60, "TCP_KEEPCNT": 5}
"""After how many seconds, and how often, the kernel asks whether the peer is still there; some systems lack some."""
# RFC 8305 recommends it.
_NEXT_ADDRESS_S = 0.25
"""After how many seconds the next address of a host is tried beside the one before."""
_CHUNK_BYTES = 65_536
Trace: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[None]]
"""Called as httpcore calls the extension of this name: with what happens, and details."""


class Route(msgspec.Struct, frozen=True):
    """The way to an origin: requests of one route may use one connection."""

    host: str
    port: int
    is_tls: bool
    proxy: Proxy | None = None

    @property
    def has_tunnel(self) -> bool:
        """Whether the proxy only passes bytes on."""
        return self.proxy is not None and self.is_tls

    def netloc(self) -> bytes:
        """Host and port as a tunnel is asked for."""
        return (f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}").encode("ascii")


class StampedTransport(httpx.AsyncBaseTransport):
    """An httpx transport whose answers know when the kernel received them; for one event loop of asyncio.

    `response.extensions["arrival"]` is when the head came, `response.stream` a `Body` that delivers pieces with theirs.
    HTTP/1.1 only. A request is sent once all of its body is there. Of httpx's extensions it may have `trace`, and
    `timeout` for `connect` and `read`; a response has no `network_stream`, and a trace has these events alone:
    `connection.connect_tcp.started` and `.complete`, TLS included, and `http11.send_request_headers.started`.
    """

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """`tls` verifies certificates, and offers HTTP/1.1 from then on, whatever it offered before.

        `proxy` is the address of an HTTP proxy; without it, with `trust_env`, the environment's HTTP_PROXY,
        HTTPS_PROXY, ALL_PROXY and NO_PROXY count, never for this machine itself. `now_ns` is the monotonic clock that
        times are of. Raises ValueError for an invalid proxy.
        """
        self._tls = tls
        self._proxy = None if proxy is None else Proxy.parse(proxy)
        self._trust_env = trust_env
        self._clock = StampClock(now_ns)
        self._buffer = ReceiveBuffer()
        self._readiness: Readiness | None = None
        """Made for the first connection, which is on the event loop."""
        self._routes: dict[str, Route] = {}
        self._open: set[Connection] = set()
        self._idle: dict[Connection, Route] = {}
        """Those of them that wait for a request, the one that was used last at the end."""

    @property
    def connections(self) -> int:
        """How many connections are open, idle ones included."""
        return len(self._open)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its answer, whose body is still to come. Raises httpx.TransportError."""
        timeout: Mapping[str, float | None] = request.extensions.get("timeout", {})
        trace: Trace = request.extensions.get("trace", _ignore)
        route = self._find_route(request.url)
        data, answer = await _encode(request, route), None
        connection = self._take(route)
        while answer is None:
            if connection is None:
                connection = await self._connect(route, timeout.get("connect"), trace)
            try:
                await trace("http11.send_request_headers.started", {"request": request})
                answer = await connection.request(data, has_body=request.method != "HEAD", read_s=timeout.get("read"))
            except StaleConnection:
                # The peer had closed it before the request came: once more on a fresh one.
                connection = None
            except BaseException:
                connection.close()
                raise
        head = answer.head
        return httpx.Response(
            head.status,
            headers=head.headers,
            stream=answer.body,
            extensions={
                "http_version": head.http_version.encode("ascii"),
                "reason_phrase": head.reason,
                "arrival": answer.arrival,
            },
        )

    async def aclose(self) -> None:
        """Close every connection."""
        for connection in list(self._open):
            connection.close()
        if self._readiness is not None:
            self._readiness.close()
            self._readiness = None

    def _find_route(self, url: httpx.URL) -> Route:
        """The way to an address, found once an origin."""
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        route = self._routes.get(origin)
        if route is None:
            if url.scheme not in ("http", "https"):
                raise httpx.UnsupportedProtocol(f"Request URL has an unsupported protocol '{url.scheme}://'.")
            proxy, is_tls = self._proxy, url.scheme == "https"
            if proxy is None and self._trust_env and (address := proxy_for(origin)):
                proxy = Proxy.parse(address)
            host = url.raw_host.decode("ascii").strip("[]")
            route = Route(host, url.port or (443 if is_tls else 80), is_tls, proxy)
            self._routes[origin] = route
        return route

    def _take(self, route: Route) -> Connection | None:
        """A kept connection, the one that was used last."""
        for connection in [connection for connection, kept in self._idle.items() if kept == route][::-1]:
            if not connection.is_stale():
                del self._idle[connection]
                if connection.expiry is not None:
                    connection.expiry.cancel()
                return connection
        return None

    def _keep(self, route: Route, connection: Connection) -> None:
        """Keep a connection that has brought its answer."""
        self._idle[connection] = route
        connection.expiry = asyncio.get_running_loop().call_later(IDLE_S, connection.close)
        if len(self._idle) > MAX_IDLE:
            next(iter(self._idle)).close()

    def _forget(self, connection: Connection) -> None:
        """Forget a connection that is closed."""
        self._open.discard(connection)
        self._idle.pop(connection, None)

    async def _connect(self, route: Route, timeout_s: float | None, trace: Trace) -> Connection:
        """Return a fresh connection. Raises httpx.ConnectError, ConnectTimeout or ProxyError."""
        await trace("connection.connect_tcp.started", {})
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                connection = await self._open_connection(route)
        # ssl.SSLError is an OSError; a host name that cannot be one is a UnicodeError, or another ValueError.
        except (OSError, ValueError) as failure:
            error: httpx.TransportError = httpx.ConnectError(str(failure) or type(failure).__name__)
            # A TimeoutError may also be the kernel's (ETIMEDOUT), which gives up of its own accord.
            if limit.expired():
                error = httpx.ConnectTimeout(f"no connection within {timeout_s:g} s")
        else:
            try:
                await trace("connection.connect_tcp.complete", {})
            except BaseException:
                connection.close()
                raise
            return connection
        # Outside the handlers: what is chained to the failure says nothing that its message does not.
        raise error

    async def _open_connection(self, route: Route) -> Connection:
        is_proxy_tls = route.proxy is not None and route.proxy.is_tls
        # First: without certificates there is no use in connecting.
        context = self._context() if route.is_tls or is_proxy_tls else None
        async with contextlib.AsyncExitStack() as stack:
            sock = stack.enter_context(await _open_socket(route))
            channel = _Channel(sock)
            if context is not None and route.proxy is not None and is_proxy_tls:
                await channel.start_tls(context, route.proxy.host)
            if route.has_tunnel:
                await _open_tunnel(channel, route)
            if context is not None and route.is_tls:
                await channel.start_tls(context, route.host)
            self._readiness = self._readiness or Readiness()
            connection = Connection(
                sock,
                make_reader(sock, self._buffer, self._clock, channel.received),
                channel.layers,
                self._readiness,
                on_idle=lambda connection: self._keep(route, connection),
                on_close=self._forget,
            )
            stack.pop_all()  # from here on the connection closes it
        self._open.add(connection)
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._tls is not None:
            return self._tls
        try:
            return default_context()
        except OSError as failure:
            raise OSError(f"the certificates cannot be loaded: {failure}; see SSL_CERT_FILE") from None


class _Channel:
    """A socket while its connection is made: bytes through the TLS sessions that there are so far."""

    def __init__(self, sock: socket.socket) -> None:
        self.layers: list[TLSLayer] = []
        self.received = 0
        """How many bytes came so far, as they were sent."""
        self._sock = sock
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        for layer in reversed(self.layers):
            data = layer.encrypt(data)
        if data:
            await self._loop.sock_sendall(self._sock, data)

    async def receive(self) -> bytes:
        """What comes next. Raises ConnectionResetError at the end, ssl.SSLError."""
        while not any(layer.is_closed for layer in self.layers):
            data = await self._loop.sock_recv(self._sock, _CHUNK_BYTES)
            if not data:
                break
            self.received += len(data)
            for layer in self.layers:
                data = layer.decrypt(data)
                if layer.fault is not None:
                    raise layer.fault
            if data:
                return data
        raise ConnectionResetError("the peer closed the connection while it was being made")

    async def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Begin a TLS session with a host, within those that there are."""
        layer, data = TLSLayer(context, host), b""
        try:
            while not layer.shake_hands(data):
                await self.send(layer.take_outgoing())
                data = await self.receive()
        except ssl.SSLError:
            # The peer is told why, if it still listens.
            with contextlib.suppress(OSError):
                await self.send(layer.take_outgoing())
            raise
        await self.send(layer.take_outgoing())
        self.layers.append(layer)


async def _open_socket(route: Route) -> socket.socket:
    """Connect to an origin, or to its proxy: to the first of its addresses that answers."""
    loop = asyncio.get_running_loop()
    host, port = (route.host, route.port) if route.proxy is None else (route.proxy.host, route.proxy.port)
    return await aiohappyeyeballs.start_connection(
        await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM),
        happy_eyeballs_delay=_NEXT_ADDRESS_S,
        loop=loop,
        socket_factory=_make_socket,
    )


def _make_socket(info: aiohappyeyeballs.AddrInfoType) -> socket.socket:
    family, kind, protocol, *_ = info
    sock = socket.socket(family, kind, protocol)
    # A request is written at once, and nothing of it may wait for an acknowledgement.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _TCP_KEEPALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
    request_stamps(sock)
    return sock


async def _open_tunnel(channel: _Channel, route: Route) -> None:
    """Have the proxy connect to the origin. Raises httpx.ProxyError if it refuses."""
    assert route.proxy is not None
    netloc = route.netloc()
    await channel.send(encode_head(b"CONNECT", netloc, [(b"Host", netloc), *route.proxy.headers()]))
    # Nothing of the tunnel itself can be in what comes: the client speaks first.
    parser = ResponseParser(has_body=False)
    while parser.head is None:
        if parser.fault is not None:
            raise httpx.ProxyError(f"the proxy {route.proxy.host} does not speak HTTP: {parser.fault}")
        parser.feed(await channel.receive())
    if not 200 <= parser.head.status < 300:
        reason = parser.head.reason.decode("latin-1")
        raise httpx.ProxyError(f"the proxy {route.proxy.host} refused: {parser.head.status} {reason}".rstrip())


async def _encode(request: httpx.Request, route: Route) -> bytes:
    """A request as it is sent. Raises httpx.LocalProtocolError."""
    assert isinstance(request.stream, httpx.AsyncByteStream)
    headers, body = request.headers.raw, b"".join([piece async for piece in request.stream])
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    # Two servers that disagree about the end of a request would take what follows for two different ones.
    if codings and (codings != [b"chunked"] or lengths):
        raise httpx.LocalProtocolError("Transfer-Encoding: expected `chunked`, and no Content-Length beside it")
    if codings:
        body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
    elif lengths != [b"%d" % len(body)] and (lengths or body):
        raise httpx.LocalProtocolError(f"Content-Length: expected {len(body)}, the size of the body, once")
    target = request.url.raw_path
    if route.proxy is not None and not route.has_tunnel:
        target = b"http://" + request.url.netloc + target
        headers = [*headers, *route.proxy.headers()]
    try:
        return encode_head(request.method.encode(), target, headers) + body
    except MalformedRequest as fault:
        raise httpx.LocalProtocolError(str(fault)) from None


async def _ignore(_event: str, _details: Mapping[str, Any]) -> None:
    """Trace nothing."""
