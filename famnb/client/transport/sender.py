"""RequestSender, which sends a client's requests to one service through any transport of httpx.

A redirect is an answer like any other: it is not followed, so the key goes to no other host.
"""

from __future__ import annotations

import contextlib
import dataclasses
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
from famnb.client.transport.connection import Body, Feed, blur_merged, iterate_pieces
from famnb.client.transport.pool import StampedTransport, Trace
from famnb.errors import ConnectError, FamnbError, ResponseFormatError, StreamInterrupted
from famnb.timing import Arrival

MAX_CONNECTIONS = 100
"""How many connections to one service may be in use at once, unless the client says otherwise."""
_FAILURES = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, zlib.error, OSError, ValueError)
"""What transports and decoders raise, mapped to httpx's errors or not."""
# A gigabyte of zeros fits into a megabyte.
MAX_UNPACKED_BYTES = 100_000_000
"""What a compressed body may unpack to."""
OnSent: TypeAlias = Callable[[int | None], object]
"""Called just before a request is handed to the kernel, with the nanoseconds that connecting took, if it was done."""


class Response:
    """A response whose headers have come and whose body has not been read."""

    def __init__(self, response: httpx.Response, host: str, now_ns: Callable[[], int]) -> None:
        self._response = response
        self._now_ns = now_ns
        self._pieces: AsyncIterator[bytes] | None = None
        """The body of a transport other than our own, as it is read."""
        self._host = host
        # Nobody asked for it, but some proxies compress all the same; httpx has unpacked what a transport has read.
        self._encoding = response.headers.get("content-encoding", "").strip().lower()
        self._is_packed = self._encoding not in ("", "identity") and not response.is_stream_consumed
        self._member = zlib.decompressobj(wbits=47)  # 32: a header of gzip or zlib; 15: the largest window
        self._left = MAX_UNPACKED_BYTES
        self.arrival: Arrival = response.extensions.get("arrival") or Arrival(self._now_ns(), None)
        """When the headers came."""
        self.status = response.status_code
        self.headers = response.headers
        """By name in any case; a header sent twice is joined by commas."""
        self.content_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        """The media type alone, in lower case."""

    async def deliver(self, feed: Feed) -> None:
        """Have `feed` called for every piece of the body, decoded, as it comes, until the end or until it returns True.

        Can be called again, for the rest. Raises what `feed` raises, and StreamInterrupted if the body breaks off.
        """
        body, message = self._response.stream, None
        assert isinstance(body, httpx.AsyncByteStream)

        def feed_unpacked(chunk: bytes, arrival: Arrival) -> bool:
            # All of them, also after the first that is enough: the rest would be lost.
            return True in [feed(content, blur_merged(arrival)) is True for content in self._unpack(chunk)]

        consume = feed_unpacked if self._is_packed else feed
        try:
            if isinstance(body, Body):
                await body.deliver(consume)
                return
            if self._pieces is None:
                self._pieces = self._response.aiter_bytes() if self._response.is_stream_consumed else aiter(body)
            async for chunk in self._pieces:
                if consume(chunk, Arrival(self._now_ns(), None)) is True:
                    return
        except (httpx.HTTPError, httpx.StreamError, zlib.error, OSError) as failure:
            message = _describe(failure)
        # Outside the handler, as in `RequestSender.send`: a chained error would show the libraries' frames and the key.
        if message is not None:
            raise StreamInterrupted(f"the connection to {self._host} broke off in the body: {message}")

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, decoded; StreamInterrupted when it breaks off."""
        return iterate_pieces(self.deliver)

    async def aclose(self) -> None:
        """Give up what is left of the body; a connection whose body was read to its end can be used again."""
        # Whatever goes wrong now, the connection is gone.
        with contextlib.suppress(*_FAILURES):
            if isinstance(self._pieces, AsyncGenerator):
                await self._pieces.aclose()
            await self._response.aclose()

    def _unpack(self, data: bytes) -> Iterator[bytes]:
        """Yield what is packed in the next bytes, in gzip, all members of it, or deflate, piece by piece.

        Raises zlib.error for a fault, or beyond the limit.
        """
        if self._encoding not in ("gzip", "x-gzip", "deflate"):
            raise zlib.error(f"it is encoded as {self._encoding!r:.40}, which nobody asked for")
        while data:
            if self._member.eof:
                # What follows a member is another one, or zeros that fill up.
                data = data.lstrip(b"\0")
                if not data:
                    return
                self._member = zlib.decompressobj(wbits=47)
            content = self._member.decompress(data, 65_536)
            self._left -= len(content)
            if self._left < 0:
                raise zlib.error(f"it unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
            if content:
                yield content
            data = self._member.unconsumed_tail or self._member.unused_data


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class RequestSender:
    """Sends requests to one origin; used on one event loop alone."""

    origin: str
    credential: Credential | None
    deadlines: Deadlines
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    query: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """They go with each request."""
    silence: float | None = None
    """How long, in seconds, a connection may say nothing; None for as long as it likes."""
    now_ns: Callable[[], int] = time.perf_counter_ns
    """The clock of the times."""
    transport: httpx.AsyncBaseTransport | None = None
    """Carries the requests; None for one of its own."""

    def __post_init__(self) -> None:
        self.host = httpx.URL(self.origin).netloc.decode()
        self._transport = self.transport or StampedTransport(now_ns=self.now_ns)
        self._timeout = {"connect": self.deadlines.finite("connect"), "read": self.silence}

    @contextlib.asynccontextmanager
    async def send(
        self,
        url: str,
        body: bytes | None,
        *,
        streams: bool = False,
        features: Mapping[str, str] = MappingProxyType({}),
        on_sent: OnSent | None = None,
    ) -> AsyncIterator[Response]:
        """The response to a POST, or to a GET if there is no `body`; its own body is still to come.

        `features` are headers for this request alone; their values follow those of the caller's own of the same name.
        Raises ConnectError if there is none, ResponseFormatError if it is not HTTP.
        """
        response, message, is_malformed = None, "", False
        try:
            request = self._make_request(url, body, features, streams=streams)
            if on_sent is not None:
                request.extensions["trace"] = _make_trace(on_sent, self.now_ns)
            response = await self._transport.handle_async_request(request)
        except FamnbError:
            raise
        except _FAILURES as failure:
            message = self.credential.mask(_describe(failure)) if self.credential else _describe(failure)
            # httpcore (1.0), below httpx's own transport, calls a connection that was closed without an answer so, too.
            is_malformed = isinstance(failure, httpx.RemoteProtocolError) and "disconnected" not in message
        # Raised outside the handler: the libraries' frames hold the key, and a chained error would show them.
        if is_malformed:
            raise ResponseFormatError(f"{self.host} answered with something that is not HTTP: {message:.200}")
        if response is None:
            raise ConnectError(f"no answer from {self.host}: {message}; check the address, the network and the service")
        async with aclosing(Response(response, self.host, self.now_ns)) as opened:
            yield opened

    def _make_request(
        self, url: str, body: bytes | None, features: Mapping[str, str], *, streams: bool
    ) -> httpx.Request:
        headers = {
            "accept": "text/event-stream, application/json" if streams else "application/json",
            # A compressing proxy holds events back until it has enough to compress.
            "accept-encoding": "identity",
            "user-agent": "famnb",
            **{name.lower(): value for name, value in self.headers.items()},
            **(self.credential.headers() if self.credential else {}),
        }
        for name, value in features.items():
            given = filter(None, headers.get(name, "").split(","))
            headers[name] = ",".join(dict.fromkeys([*given, *value.split(",")]))
        if body is not None:
            headers["content-type"] = "application/json"
        method = "GET" if body is None else "POST"
        return _Request(
            method,
            _parse_url(url),
            params={**self.query, **(self.credential.query() if self.credential else {})} or None,
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


def _make_trace(on_sent: OnSent, now_ns: Callable[[], int]) -> Trace:
    """Learns from a transport's trace, by the names that httpcore (1.0) gives, when a request is sent."""
    connecting_ns: int | None = None
    connect_ns: int | None = None

    async def trace(event: str, _details: Mapping[str, Any]) -> None:
        nonlocal connecting_ns, connect_ns
        if event.startswith("connection."):
            moment_ns = now_ns()
            # From the first to the last of them: httpcore has several, of TCP, tunnel and TLS.
            connecting_ns = moment_ns if connecting_ns is None else connecting_ns
            connect_ns = moment_ns - connecting_ns
        elif event.endswith("send_request_headers.started"):
            on_sent(connect_ns)

    return trace


# A client calls a few addresses again and again, and to parse one (httpx 0.28) takes 60 µs.
@functools.lru_cache
def _parse_url(url: str) -> httpx.URL:
    return httpx.URL(url)


def origin_of(url: str) -> str:
    """Scheme, host and port of an address."""
    parts = _parse_url(url)
    return f"{parts.scheme}://{parts.netloc.decode()}"


def _describe(failure: Exception) -> str:
    """What a library says happened, in one line; its class name if it says nothing."""
    return " ".join(str(failure.__cause__ or failure).split()) or type(failure).__name__
