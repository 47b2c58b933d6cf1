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

from famnb.client.transport.connection import Connection, ResponseParser, StaleConnection, encode_head
from famnb.client.transport.kernel_stamps import Readiness, ReceiveBuffer, StampClock, make_reader, request_stamps
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


class StampedTransport(httpx.AsyncBaseTransport):
    """An httpx transport whose answers know when the kernel received them; for one event loop of asyncio.

    `response.extensions["arrival"]` is when the head came, `response.stream` a `Body` that delivers pieces with theirs.
    HTTP/1.1 only, and no HEAD. A request has a body of known length. Of httpx's extensions it may have `trace`, and
    `timeout` for `connect` and `read`; a response has no `network_stream`, and a trace has these events alone:
    `connection.connect_tcp.started` and `.complete`, TLS included, and `http11.send_request_headers.started`.
    """

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        proxy: str | None = None,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """`tls` verifies certificates, and offers HTTP/1.1 from then on, whatever it offered before.

        `proxy` is the address of an HTTP proxy; without it the environment's HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and
        NO_PROXY count, never for this machine itself. `now_ns` is the monotonic clock that times are of. Raises
        ValueError for an invalid proxy.
        """
        self._tls = tls
        self._proxy = None if proxy is None else Proxy.parse(proxy)
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
                head, arrival, body = answer = await connection.request(data, read_s=timeout.get("read"))
            except StaleConnection:
                # The peer had closed it before the request came: once more on a fresh one.
                connection = None
            except BaseException:
                connection.close()
                raise
        return httpx.Response(head.status, headers=head.headers, stream=body, extensions={"arrival": arrival})

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
            is_tls = url.scheme == "https"
            host = url.raw_host.decode("ascii").strip("[]")
            route = Route(host, url.port or (443 if is_tls else 80), is_tls, self._proxy or proxy_for(origin))
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
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                return await self._open_connection(route, trace)
        # ssl.SSLError is an OSError; a host name that cannot be one is a UnicodeError, or another ValueError.
        except (OSError, ValueError) as failure:
            error: httpx.TransportError = httpx.ConnectError(str(failure) or type(failure).__name__)
            # A TimeoutError may also be the kernel's (ETIMEDOUT), which gives up of its own accord.
            if limit.expired():
                error = httpx.ConnectTimeout(f"no connection within {timeout_s:g} s")
        # Outside the handlers: what is chained to the failure says nothing that its message does not.
        raise error

    async def _open_connection(self, route: Route, trace: Trace) -> Connection:
        await trace("connection.connect_tcp.started", {})
        loop, proxy = asyncio.get_running_loop(), route.proxy
        host, port = (proxy.host, proxy.port) if proxy is not None else (route.host, route.port)
        is_proxy_tls = proxy is not None and proxy.is_tls
        # First: without certificates there is no use in connecting.
        context = (self._tls or default_context()) if route.is_tls or is_proxy_tls else None
        async with contextlib.AsyncExitStack() as stack:
            sock = await aiohappyeyeballs.start_connection(
                await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM),
                happy_eyeballs_delay=_NEXT_ADDRESS_S,
                loop=loop,
                socket_factory=_make_socket,
            )
            stack.enter_context(sock)
            channel = _Channel(sock)
            if context is not None and proxy is not None and is_proxy_tls:
                await channel.start_tls(context, proxy.host)
            if proxy is not None and route.is_tls:
                await _open_tunnel(channel, route, proxy)
            if context is not None and route.is_tls:
                await channel.start_tls(context, route.host)
            await trace("connection.connect_tcp.complete", {})
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


async def _open_tunnel(channel: _Channel, route: Route, proxy: Proxy) -> None:
    """Have the proxy connect to the origin, and only pass bytes on. Raises httpx.ProxyError if it refuses."""
    netloc = (f"[{route.host}]:{route.port}" if ":" in route.host else f"{route.host}:{route.port}").encode("ascii")
    await channel.send(encode_head(b"CONNECT", netloc, [(b"Host", netloc), *proxy.headers]))
    # Nothing of the tunnel itself can be in what comes: the client speaks first.
    parser = ResponseParser(has_body=False)
    while parser.head is None:
        if parser.fault is not None:
            raise httpx.ProxyError(f"the proxy {proxy.host} does not speak HTTP: {parser.fault}")
        parser.feed(await channel.receive())
    if not 200 <= parser.head.status < 300:
        reason = parser.head.reason.decode("latin-1")
        raise httpx.ProxyError(f"the proxy {proxy.host} refused: {parser.head.status} {reason}".rstrip())


async def _encode(request: httpx.Request, route: Route) -> bytes:
    """A request as it is sent. Raises httpx.LocalProtocolError."""
    assert isinstance(request.stream, httpx.AsyncByteStream)
    headers, body = request.headers.raw, b"".join([piece async for piece in request.stream])
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    # Two servers that disagree about the end of a request would take what follows for two different ones.
    if b"transfer-encoding" in (name.lower() for name, _ in headers):
        raise httpx.LocalProtocolError("Transfer-Encoding: expected none, since a body is sent whole")
    if lengths != [b"%d" % len(body)] and (lengths or body):
        raise httpx.LocalProtocolError(f"Content-Length: expected {len(body)}, the size of the body, once")
    target = request.url.raw_path
    if route.proxy is not None and not route.is_tls:
        target = b"http://" + request.url.netloc + target
        headers = [*headers, *route.proxy.headers]
    return encode_head(request.method.encode(), target, headers) + body


async def _ignore(_event: str, _details: Mapping[str, Any]) -> None:
    """Trace nothing."""
