"""The connections to one service: the one file that knows httpx and aiohttp; what their bytes mean is left to others.

A redirect is an answer like any other: it is not followed, so the key goes to no other host.

MERGED: Which proxy, if any, stands before a host: the environment's, and none before this machine itself.
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
    """The proxy the environment names for an origin; never one for this machine itself.

    Raises ConnectError, which does not repeat its name and password, for one that cannot be used.
    """
    url = httpx.URL(origin)
    if is_loopback(url.host) or proxy_bypass(url.netloc.decode()):
        return None
    proxies = getproxies()
    named = proxies.get(url.scheme) or proxies.get("all")
    if not named:
        return None
    # As other programs do, a proxy without a scheme is taken for an ordinary one.
    proxy = named if "://" in named else f"http://{named}"
    try:
        parts = urlsplit(proxy)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound:
        raise ConnectError(
            f"the environment's proxy for {url.host} cannot be used: expected an address such as "
            f"http://proxy.example.com:3128 in {url.scheme}_proxy or all_proxy; or name the host in no_proxy"
        )
    return proxy


KEEPALIVE_S = 30.0
"""How long an idle connection is kept for the next call."""
HEADER_BYTES = 65_536
"""The longest header that is read; a proxy's policies and cookies go well beyond aiohttp's own 8 KB."""
_FAILURES = (httpx.RequestError, httpx.StreamError, aiohttp.ClientError, zlib.error, OSError, ValueError)
"""What the libraries raise when a connection fails, mapped or not."""


class Response:
    """A response whose headers have come and whose body has not been read."""

    __slots__ = ("_body", "_host", "_response", "headers", "status")

    def __init__(self, response: httpx.Response, host: str) -> None:
        # httpx has no public way to the response it wraps.
        self._body = _Body(getattr(response.stream, "_aiohttp_response"))  # noqa: B009
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
                body = _gunzipped(self._body)
            case _:
                body = self._response.aiter_bytes()
        words = None
        try:
            async for chunk in body:
                yield chunk
        except _FAILURES as failure:
            words = _words(failure)
        if words is not None:
            raise StreamInterrupted(f"the connection to {self._host} broke off in the body: {words}")


class _Body(httpx.AsyncByteStream):
    """A body read to its very last byte: aiohttp drops what it had received when the connection breaks."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        content, failure = self._response.content, None
        with self._noticing_loss():
            try:
                while chunk := await content.readany():
                    yield chunk
            except _FAILURES as error:
                failure = error
        if failure is not None:
            if rest := content._read_nowait(-1):
                yield rest
            raise failure

    async def aclose(self) -> None:
        self._response.release()
        await self._response.wait_for_close()

    @contextlib.contextmanager
    def _noticing_loss(self) -> Iterator[None]:
        """While the body is read, a lost connection ends it: after a malformed chunk size aiohttp waits for ever."""
        content, connection = self._response.content, self._response.connection
        protocol = None if connection is None else connection.protocol
        lost = None if protocol is None else protocol.closed
        if lost is None:
            yield
            return

        def notice(closed: asyncio.Future[None]) -> None:
            words = str(closed.exception() or "the body is malformed")
            if not content.is_eof() and content.exception() is None:
                content.set_exception(aiohttp.ClientPayloadError(words))

        lost.add_done_callback(notice)
        try:
            yield
        finally:
            lost.remove_done_callback(notice)
            lost.add_done_callback(_heard)


def _heard(closed: asyncio.Future[None]) -> None:
    """Take note of how a connection ended, which asyncio would otherwise complain of on standard error."""
    if not closed.cancelled():
        closed.exception()


async def _gunzipped(body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The content of a gzip body, all members of it: httpx forgets what follows the first."""
    member = zlib.decompressobj(wbits=31)
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
        self, origin: str, *, credential: Credential | None, deadlines: Deadlines, silence: float | None = None
    ) -> None:
        """`silence` is how long, in seconds, a connection may say nothing; None for as long as it likes."""
        self.host = httpx.URL(origin).netloc.decode()
        self._origin = origin
        self._credential = credential
        connect = deadlines.finite("connect")
        # aiohttp's `connect`, which httpx calls `pool`, covers the name look-up too; its own pool has no limit here.
        self._timeout = {"connect": connect, "pool": connect, "read": silence}
        self._opened: AiohttpTransport | None = None

    def open(self) -> None:
        """Make ready to send, which takes its time once; ConnectError for a proxy or certificates that are no use."""
        self._ready()

    @contextlib.asynccontextmanager
    async def send(self, url: str, body: bytes | None, *, streams: bool = False) -> AsyncIterator[Response]:
        """The answer to a POST, or to a GET without a body, its own body still to come.

        Raises ConnectError where there is none, ResponseFormatError where it is not HTTP.
        """
        response, words, malformed = None, "", False
        try:
            response = await self._ready().handle_async_request(self._request(url, body, streams=streams))
        except _FAILURES as failure:
            words = self._credential.masked(_words(failure)) if self._credential else _words(failure)
            malformed = isinstance(failure, aiohttp.ClientResponseError)
        # Raised outside the handler: the libraries' frames hold the key, and a chained error would show them.
        if malformed:
            raise ResponseFormatError(f"{self.host} answered with something that is not HTTP: {words:.200}")
        if response is None:
            raise ConnectError(f"no answer from {self.host}: {words}; check the address, the network and the service")
        try:
            yield Response(response, self.host)
        finally:
            await _closed(response)

    def _ready(self) -> AiohttpTransport:
        if self._opened is None:
            proxy = proxy_for(self._origin)
            secure = any(address.startswith("https:") for address in (self._origin, proxy or ""))
            try:
                tls = _tls(secure=secure)
            except OSError as failure:
                raise ConnectError(f"the certificates cannot be loaded: {failure}; see SSL_CERT_FILE") from None
            self._opened = AiohttpTransport(
                verify=tls,
                proxy=None if proxy is None else httpx.Proxy(proxy),
                client=_session(tls),
            )
        return self._opened

    def _request(self, url: str, body: bytes | None, *, streams: bool) -> httpx.Request:
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
        if self._opened is not None:
            await self._opened.aclose()


def origin_of(url: str) -> str:
    """Scheme, host and port of an address."""
    parts = httpx.URL(url)
    return f"{parts.scheme}://{parts.netloc.decode()}"


class _Protocol(ResponseHandler):
    """Has a head parsed apart from what came with it: aiohttp forgets both when there is a fault in one of them."""

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"HTTP/"):
            head, blank, body = data.partition(b"\r\n\r\n")
            if body:
                super().data_received(head + blank)
                data = body
        super().data_received(data)


def _session(tls: ssl.SSLContext) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S, ssl=tls)
    # aiohttp has no public way to choose the protocol; mypy takes a partial of a subclass for something else.
    connector._factory = functools.partial(_Protocol, loop=asyncio.get_running_loop())  # type: ignore[assignment]
    return aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, max_field_size=HEADER_BYTES
    )


@functools.cache
def _tls(*, secure: bool) -> ssl.SSLContext:
    """Certificates are verified, always; loading the authorities takes long enough to do it once, and only if needed.

    Without them a context trusts nobody.
    """
    return httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def _closed(response: httpx.Response) -> None:
    # Whatever goes wrong now, the connection is gone.
    with contextlib.suppress(*_FAILURES):
        await response.aclose()


def _words(failure: Exception) -> str:
    """What a library says happened, in one line; its own class name where it says nothing."""
    cause = failure.__cause__ or failure
    match cause:
        case HttpProcessingError(message=str(words)):
            pass  # its `str` begins with a 400 that no server sent
        case aiohttp.ClientConnectorError(os_error=OSError() as cause):
            words = str(cause)
        case _:
            words = str(cause)
    said = " ".join(words.split())
    return f"{type(cause).__name__}: {said}" if said else type(cause).__name__
