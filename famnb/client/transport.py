"""Transport, the connections to one service: the only module of the client that imports httpx and aiohttp.

A redirect is an answer like any other: it is not followed, so the key goes to no other host.

Private parts of libraries used here, each with its test in tests/client:
  httpx-aiohttp 0.2   the stream's `_aiohttp_response`: httpx has no public way to the response it wraps
  aiohttp 3.14        `StreamReader._read_nowait`: the bytes received before a connection broke
                      `ResponseHandler` and `BaseConnector._factory`: a response head parsed apart from its body
"""

from __future__ import annotations

import asyncio
import contextlib
import encodings.idna  # noqa: F401 - else the first name that is looked up loads it, within the time of the first call
import functools
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator, Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from httpx_aiohttp import AiohttpTransport

from famnb.client.auth import Credential
from famnb.client.config import Deadlines, is_loopback
from famnb.errors import ConnectError, ResponseFormatError, StreamInterrupted


def proxy_for(origin: str) -> str | None:
    """The proxy that the environment names for an origin; None for this machine itself, and where none is named.

    Raises ConnectError, which does not repeat the proxy's name and password, for one that cannot be used.
    """
    url = httpx.URL(origin)
    if is_loopback(url.host) or proxy_bypass(url.netloc.decode()):
        return None
    proxies = getproxies()
    address = proxies.get(url.scheme) or proxies.get("all")
    if not address:
        return None
    # As other programs do, a proxy without a scheme is taken for an ordinary one.
    proxy = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(proxy)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # `port` raises it for one that is no number, or beyond 65535
        is_usable = False
    if not is_usable:
        raise ConnectError(
            f"the environment's proxy for {url.host} cannot be used: expected an address such as "
            f"http://proxy.example.com:3128 in {url.scheme}_proxy or all_proxy; or name the host in no_proxy"
        )
    return proxy


# A choice: long enough for the next cell of somebody at work, short enough that the service has rarely closed it.
KEEPALIVE_S = 30.0
"""How many seconds an idle connection is kept for the next call."""
MAX_CONNECTIONS = 100
"""How many connections to one service may be in use at once, unless the client says otherwise."""
# aiohttp's own 8 KB are too few for the policies and cookies of some proxies.
HEADER_BYTES = 65_536
"""The longest header that is read."""
_FAILURES = (httpx.RequestError, httpx.StreamError, aiohttp.ClientError, zlib.error, OSError, ValueError)
"""What the libraries raise when a connection fails, mapped or not."""


class Response:
    """A response whose headers have come and whose body has not been read."""

    __slots__ = ("_body", "_host", "_response", "headers", "status")

    def __init__(self, response: httpx.Response, host: str) -> None:
        # httpx-aiohttp 0.2 has no public way to the response it wraps; `_Body` reads that one.
        self._body = _Body(getattr(response.stream, "_aiohttp_response"))  # noqa: B009 - mypy knows no such attribute
        self._response = response
        self._response.stream = self._body
        self._host = host
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        """By name in lower case; a header sent twice is joined by commas."""

    @property
    def content_type(self) -> str:
        """The media type alone, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def header_list(self) -> list[tuple[str, str]]:
        """All headers, in order."""
        return list(self._response.headers.multi_items())

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, decoded if it is compressed; StreamInterrupted when it breaks off."""
        body: AsyncIterable[bytes]
        match self.headers.get("content-encoding", "").strip().lower():
            case "" | "identity":
                body = self._body
            case "gzip" | "x-gzip":
                body = _gunzip(self._body)
            case _:
                # We ask for no encoding; whatever comes all the same, httpx decodes.
                body = self._response.aiter_bytes()
        message = None
        try:
            async for chunk in body:
                yield chunk
        except _FAILURES as failure:
            message = _describe(failure)
        # Outside the handler, as in `Transport.send`: a chained error would show the libraries' frames and the key.
        if message is not None:
            raise StreamInterrupted(f"the connection to {self._host} broke off in the body: {message}")


class _Body(httpx.AsyncByteStream):
    """A body read to its very last byte: aiohttp (3.14) drops what it had received when the connection breaks."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        content, failure = self._response.content, None
        with self._end_on_lost_connection():
            try:
                while chunk := await content.readany():
                    yield chunk
            except _FAILURES as error:
                failure = error
        if failure is not None:
            # Private: once there is an exception, every public method of the reader raises it (aiohttp 3.14).
            if rest := content._read_nowait(-1):
                yield rest
            raise failure

    async def aclose(self) -> None:
        # Released, not closed: a body read to its end leaves a connection for the next call.
        self._response.release()
        await self._response.wait_for_close()

    @contextlib.contextmanager
    def _end_on_lost_connection(self) -> Iterator[None]:
        """While the body is read, a lost connection ends it: after a malformed chunk size aiohttp (3.14) waits on."""
        content, connection = self._response.content, self._response.connection
        protocol = None if connection is None else connection.protocol
        lost = None if protocol is None else protocol.closed
        if lost is None:
            yield
            return

        def end_body(closed: asyncio.Future[None]) -> None:
            message = str(closed.exception() or "the body is malformed")
            if not content.is_eof() and content.exception() is None:
                content.set_exception(aiohttp.ClientPayloadError(message))

        lost.add_done_callback(end_body)
        try:
            yield
        finally:
            lost.remove_done_callback(end_body)
            lost.add_done_callback(_retrieve_exception)


def _retrieve_exception(closed: asyncio.Future[None]) -> None:
    """Retrieve how a connection ended: asyncio complains on standard error of an exception that nobody looked at."""
    if not closed.cancelled():
        closed.exception()


async def _gunzip(body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The content of a gzip body, all members of it: httpx (0.28) forgets what follows the first."""
    member = zlib.decompressobj(wbits=31)  # 31: a gzip header and the largest window
    async for chunk in body:
        # What follows a member is another one, or zeros that fill up.
        rest = chunk.lstrip(b"\0") if member.eof else chunk
        while rest:
            if member.eof:
                member = zlib.decompressobj(wbits=31)
            if content := member.decompress(rest):
                yield content
            rest = member.unused_data.lstrip(b"\0")


class Transport:
    """The connections to one origin; made and used on the I/O thread alone."""

    def __init__(
        self,
        origin: str,
        *,
        credential: Credential | None,
        deadlines: Deadlines,
        connections: int = MAX_CONNECTIONS,
        silence: float | None = None,
    ) -> None:
        """`connections` is how many `reserve` gives at once.

        `silence` is how long, in seconds, a connection may say nothing; None for as long as it likes.
        """
        self.host = httpx.URL(origin).netloc.decode()
        self._origin = origin
        self._credential = credential
        connect = deadlines.finite("connect")
        # aiohttp's `connect`, which httpx calls `pool`, covers the name look-up too; its own pool has no limit here.
        self._timeout = {"connect": connect, "pool": connect, "read": silence}
        # Not aiohttp's own limit, which would count the wait for a connection as connecting: it is another deadline.
        self._free = asyncio.Semaphore(connections)
        self.in_use = 0
        """How many connections are reserved just now."""
        self._library_transport: AiohttpTransport | None = None

    @contextlib.asynccontextmanager
    async def reserve(self) -> AsyncIterator[None]:
        """Wait for one of the connections, first come first served, and keep it for the body."""
        async with self._free:
            self.in_use += 1
            try:
                yield
            finally:
                self.in_use -= 1

    def open(self) -> None:
        """Make ready to send, which takes time once. Raises ConnectError for an unusable proxy or certificate."""
        self._get_library_transport()

    @contextlib.asynccontextmanager
    async def send(self, url: str, body: bytes | None, *, streams: bool = False) -> AsyncIterator[Response]:
        """The response to a POST, or to a GET if there is no `body`; its own body is still to come.

        Raises ConnectError if there is none, ResponseFormatError if it is not HTTP.
        """
        response, message, is_malformed = None, "", False
        try:
            request = self._make_request(url, body, streams=streams)
            response = await self._get_library_transport().handle_async_request(request)
        except _FAILURES as failure:
            message = self._credential.mask(_describe(failure)) if self._credential else _describe(failure)
            is_malformed = isinstance(failure, aiohttp.ClientResponseError)
        # Raised outside the handler: the libraries' frames hold the key, and a chained error would show them.
        if is_malformed:
            raise ResponseFormatError(f"{self.host} answered with something that is not HTTP: {message:.200}")
        if response is None:
            raise ConnectError(f"no answer from {self.host}: {message}; check the address, the network and the service")
        try:
            yield Response(response, self.host)
        finally:
            await _close(response)

    def _get_library_transport(self) -> AiohttpTransport:
        if self._library_transport is None:
            proxy = proxy_for(self._origin)
            uses_tls = any(address.startswith("https:") for address in (self._origin, proxy or ""))
            try:
                tls = _tls_context(verify=uses_tls)
            except OSError as failure:
                raise ConnectError(f"the certificates cannot be loaded: {failure}; see SSL_CERT_FILE") from None
            self._library_transport = AiohttpTransport(
                verify=tls,
                proxy=None if proxy is None else httpx.Proxy(proxy),
                client=_make_session(tls),
            )
        return self._library_transport

    def _make_request(self, url: str, body: bytes | None, *, streams: bool) -> httpx.Request:
        headers = {
            "accept": "text/event-stream, application/json" if streams else "application/json",
            # A compressing proxy holds events back until it has enough to compress.
            "accept-encoding": "identity",
            "user-agent": "famnb",
        }
        if self._credential:
            headers["authorization"] = self._credential.authorization()
        if body is not None:
            headers["content-type"] = "application/json"
        method = "GET" if body is None else "POST"
        return httpx.Request(method, url, headers=headers, content=body, extensions={"timeout": self._timeout})

    async def aclose(self) -> None:
        """Close every connection."""
        if self._library_transport is not None:
            await self._library_transport.aclose()


def origin_of(url: str) -> str:
    """Scheme, host and port of an address."""
    parts = httpx.URL(url)
    return f"{parts.scheme}://{parts.netloc.decode()}"


class _Protocol(ResponseHandler):
    """Has a head parsed apart from what came with it: aiohttp (3.14) forgets both when there is a fault in one."""

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"HTTP/"):
            head, blank, body = data.partition(b"\r\n\r\n")
            if body:
                super().data_received(head + blank)
                data = body
        super().data_received(data)


def _make_session(tls: ssl.SSLContext) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S, ssl=tls)
    # aiohttp 3.14 has no public way to choose the protocol; mypy takes a partial of a subclass for something else.
    connector._factory = functools.partial(_Protocol, loop=asyncio.get_running_loop())  # type: ignore[assignment]
    return aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, max_field_size=HEADER_BYTES
    )


@functools.cache
def _tls_context(*, verify: bool) -> ssl.SSLContext:
    """A context that verifies certificates; without `verify`, for plain HTTP, one that trusts nobody.

    Loading the authorities takes long enough to do it once, and only if needed.
    """
    return httpx.create_ssl_context() if verify else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def _close(response: httpx.Response) -> None:
    # Whatever goes wrong now, the connection is gone.
    with contextlib.suppress(*_FAILURES):
        await response.aclose()


def _describe(failure: Exception) -> str:
    """What a library says happened, in one line; its class name alone if it says nothing."""
    cause = failure.__cause__ or failure
    match cause:
        case HttpProcessingError(message=str(text)):
            pass  # its `str` begins with a 400 that no server sent
        case aiohttp.ClientConnectorError(os_error=OSError() as cause):
            text = str(cause)
        case _:
            text = str(cause)
    message = " ".join(text.split())
    return f"{type(cause).__name__}: {message}" if message else type(cause).__name__
