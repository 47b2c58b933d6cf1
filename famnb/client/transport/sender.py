"""RequestSender, which sends a client's requests to one service through any transport of httpx.

A redirect is an answer like any other: it is not followed, so the key goes to no other host.
"""

from __future__ import annotations

import contextlib
import functools
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, TypeAlias

import httpx

from famnb.client.auth import Credential
from famnb.client.config import Deadlines
from famnb.client.transport.connection import Body, Feed
from famnb.client.transport.pool import StampedTransport
from famnb.errors import ConnectError, FamnbError, InvalidRequest, ResponseFormatError, StreamInterrupted
from famnb.timing import Arrival

MAX_CONNECTIONS = 100
"""How many connections to one service may be in use at once, unless the client says otherwise."""
_FAILURES = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, zlib.error, OSError, ValueError)
"""What transports and decoders raise, mapped to httpx's errors or not."""
_OWN_ENCODINGS = ("", "identity", "gzip")
"""Content encodings that are not left to httpx."""
OnSent: TypeAlias = Callable[[int | None], object]
"""Called just before a request is handed to the kernel, with the nanoseconds that connecting took, if it was done."""


class Response:
    """A response whose headers have come and whose body has not been read."""

    __slots__ = ("_chunks", "_encoding", "_host", "_now_ns", "_response", "arrival", "headers", "status")

    def __init__(self, response: httpx.Response, host: str, now_ns: Callable[[], int]) -> None:
        self._response = response
        self._now_ns = now_ns
        self._chunks: AsyncGenerator[bytes, None] | None = None
        self._host = host
        self._encoding = response.headers.get("content-encoding", "").strip().lower().replace("x-gzip", "gzip")
        self.arrival: Arrival = response.extensions.get("arrival") or self._arrive_now()
        """When the headers came."""
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

    async def deliver(self, feed: Feed) -> None:
        """Have `feed` called for every piece of the body, decoded, as it comes, until the end or until it returns True.

        Raises what `feed` raises, and StreamInterrupted if the body breaks off.
        """
        body = self._response.stream
        if not isinstance(body, Body) or self._encoding not in _OWN_ENCODINGS:
            self._chunks = self.chunks()
            async for chunk in self._chunks:
                arrival = body.arrival if isinstance(body, Body) else None
                if feed(chunk, arrival or self._arrive_now()) is True:
                    return
            return
        message = None
        try:
            await body.deliver(_unpacking(feed) if self._encoding == "gzip" else feed)
        except (httpx.HTTPError, zlib.error) as failure:
            message = _describe(failure)
        # Outside the handler, as in `RequestSender.send`: a chained error would show the libraries' frames and the key.
        if message is not None:
            raise self._interruption(message)

    async def drain(self) -> None:
        """Read what is left of the body, and forget it; StreamInterrupted when it breaks off."""
        body = self._response.stream
        if isinstance(body, Body):
            with contextlib.suppress(httpx.HTTPError):
                await body.deliver(_forget)
        elif self._chunks is not None:
            async for _ in self._chunks:
                pass

    async def aclose(self) -> None:
        """Give up what is left of the body; a connection whose body was read to its end can be used again."""
        # Whatever goes wrong now, the connection is gone.
        with contextlib.suppress(*_FAILURES):
            if self._chunks is not None:
                await self._chunks.aclose()
            await self._response.aclose()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, decoded if it is compressed; StreamInterrupted when it breaks off."""
        message = None
        try:
            async with aclosing(self._decode()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except _FAILURES as failure:
            message = _describe(failure)
        # Outside the handler, as above.
        if message is not None:
            raise self._interruption(message)

    async def _decode(self) -> AsyncGenerator[bytes, None]:
        response, body = self._response, self._response.stream
        unpack = _Gunzip().unpack if self._encoding == "gzip" else _keep
        if isinstance(body, Body) and self._encoding in _OWN_ENCODINGS:
            while chunk := await body.read():
                for content in unpack(chunk):
                    yield content
        # A transport for tests may have the whole body, which httpx has decoded then.
        elif self._encoding in _OWN_ENCODINGS and not response.is_stream_consumed:
            async for chunk in response.aiter_raw():
                for content in unpack(chunk):
                    yield content
        else:
            # We ask for no encoding; whatever comes all the same, httpx decodes.
            async for chunk in response.aiter_bytes():
                yield chunk

    def _arrive_now(self) -> Arrival:
        """The arrival of what a transport hands on that does not say when it came."""
        return Arrival(self._now_ns(), None)

    def _interruption(self, message: str) -> StreamInterrupted:
        return StreamInterrupted(f"the connection to {self._host} broke off in the body: {message}")


class _Gunzip:
    """Unpacks a gzip body, all members of it: httpx (0.28) forgets what follows the first."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)  # 31: a gzip header and the largest window

    def unpack(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the content of the next bytes, in one piece if there is any; then raises zlib.error for a fault."""
        content, fault = [], None
        # What follows a member is another one, or zeros that fill up.
        rest = chunk.lstrip(b"\0") if self._member.eof else chunk
        while rest and fault is None:
            if self._member.eof:
                self._member = zlib.decompressobj(wbits=31)
            before = self._member.copy()
            try:
                content.append(self._member.decompress(rest))
            except zlib.error as error:
                fault = error
                content += _unpack_before_fault(before, rest)
            rest = self._member.unused_data.lstrip(b"\0")
        if joined := b"".join(content):
            yield joined
        if fault is not None:
            raise fault


def _unpack_before_fault(member: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Yield what precedes a fault byte by byte: it is lost with the call that meets the fault."""
    with contextlib.suppress(zlib.error):
        for place in range(len(data)):
            yield member.decompress(data[place : place + 1])


def _keep(chunk: bytes) -> Iterator[bytes]:
    """Unpack what is not packed."""
    yield chunk


def _unpacking(feed: Feed) -> Feed:
    """Feed what a packed body holds."""
    unpack = _Gunzip().unpack

    def feed_content(chunk: bytes, arrival: Arrival) -> bool:
        return any(feed(content, arrival) is True for content in unpack(chunk))

    return feed_content


class RequestSender:
    """Sends requests to one origin; used on one event loop alone."""

    def __init__(
        self,
        origin: str,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        credential: Credential | None,
        deadlines: Deadlines,
        headers: Mapping[str, str] = MappingProxyType({}),
        query: Mapping[str, str] = MappingProxyType({}),
        silence: float | None = None,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """`transport` carries the requests; None for one of its own. `headers` and `query` go with each of them.

        `silence` is how long, in seconds, a connection may say nothing; None for as long as it likes. `now_ns` is the
        clock of the times.
        """
        self.host = httpx.URL(origin).netloc.decode()
        self._transport = transport or StampedTransport(now_ns=now_ns)
        self._now_ns = now_ns
        self._credential = credential
        self._headers = headers
        self._query = query
        self._timeout = {"connect": deadlines.finite("connect"), "read": silence, "write": None, "pool": None}

    @contextlib.asynccontextmanager
    async def send(
        self, url: str, body: bytes | None, *, streams: bool = False, on_sent: OnSent | None = None
    ) -> AsyncIterator[Response]:
        """The response to a POST, or to a GET if there is no `body`; its own body is still to come.

        Raises ConnectError if there is none, ResponseFormatError if it is not HTTP.
        """
        response, message, is_malformed = None, "", False
        try:
            request = self._make_request(url, body, streams=streams)
            if on_sent is not None:
                request.extensions["trace"] = _SendTrace(on_sent, self._now_ns)
            response = await self._transport.handle_async_request(request)
        except FamnbError:
            raise
        except _FAILURES as failure:
            message = self._credential.mask(_describe(failure)) if self._credential else _describe(failure)
            # httpcore (1.0), below httpx's own transport, calls a connection that was closed without an answer so, too.
            is_malformed = isinstance(failure, httpx.RemoteProtocolError) and "disconnected" not in message
        # Raised outside the handler: the libraries' frames hold the key, and a chained error would show them.
        if is_malformed:
            raise ResponseFormatError(f"{self.host} answered with something that is not HTTP: {message:.200}")
        if response is None:
            raise ConnectError(f"no answer from {self.host}: {message}; check the address, the network and the service")
        async with aclosing(Response(response, self.host, self._now_ns)) as opened:
            yield opened

    def _make_request(self, url: str, body: bytes | None, *, streams: bool) -> httpx.Request:
        headers = {
            "accept": "text/event-stream, application/json" if streams else "application/json",
            # A compressing proxy holds events back until it has enough to compress.
            "accept-encoding": "identity",
            "user-agent": "famnb",
            **self._headers,
            **(self._credential.headers() if self._credential else {}),
        }
        if body is not None:
            headers["content-type"] = "application/json"
        query = {**self._query, **(self._credential.query() if self._credential else {})}
        method = "GET" if body is None else "POST"
        return _Request(
            method,
            _parse_url(url),
            params=query or None,
            headers=headers,
            content=body,
            extensions={"timeout": self._timeout},
        )

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()


class _Request(httpx.Request):
    """A request that shows no query, which may hold a key, where a traceback shows the variables of its frames."""

    def __repr__(self) -> str:
        return f"<Request({self.method!r}, {str(self.url.copy_with(query=None))!r})>"


def check_transport(transport: object) -> None:
    """Raise InvalidRequest unless it is a transport of httpx for event loops."""
    if not isinstance(transport, httpx.AsyncBaseTransport):
        raise InvalidRequest(
            "transport: expected an httpx.AsyncBaseTransport, such as httpx.AsyncHTTPTransport(http2=True) or "
            f"famnb.StampedTransport(uds='/run/service.sock'), got {transport!r:.80}"
        )


class _SendTrace:
    """Learns from a transport's trace, by the names that httpcore (1.0) gives, when a request is sent."""

    def __init__(self, on_sent: OnSent, now_ns: Callable[[], int]) -> None:
        self._on_sent = on_sent
        self._now_ns = now_ns
        self._connecting_ns: int | None = None
        self._connect_ns: int | None = None

    async def __call__(self, event: str, _details: Mapping[str, Any]) -> None:
        if event.startswith("connection."):
            now_ns = self._now_ns()
            # From the first to the last of them: httpcore has several, of TCP, tunnel and TLS.
            if self._connecting_ns is None:
                self._connecting_ns = now_ns
            self._connect_ns = now_ns - self._connecting_ns
        elif event.endswith("send_request_headers.started"):
            self._on_sent(self._connect_ns)


# A client calls a few addresses again and again, and to parse one (httpx 0.28) takes 60 µs.
@functools.lru_cache
def _parse_url(url: str) -> httpx.URL:
    return httpx.URL(url)


def origin_of(url: str) -> str:
    """Scheme, host and port of an address."""
    parts = _parse_url(url)
    return f"{parts.scheme}://{parts.netloc.decode()}"


def _forget(_chunk: bytes, _arrival: Arrival) -> None:
    """Take a piece of a body that nobody needs."""


def _describe(failure: Exception) -> str:
    """What a library says happened, in one line; its class name if it says nothing."""
    return " ".join(str(failure.__cause__ or failure).split()) or type(failure).__name__
