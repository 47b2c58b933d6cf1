"""One connection that speaks HTTP/1.1: a request out, its answer in, each piece of it with the time at which it came.

idle ── request ── waiting for the head ── body ─┬─ idle     its end, and both sides keep the connection
                                                 └─ closed   at any time: a fault, either side, nobody wants the rest

`encode_head` and `ResponseParser` know HTTP as bytes alone and open no socket; `Connection` moves these bytes.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import httptools
import httpx
import msgspec

from famnb.client.transport.kernel_stamps import Readiness, SocketReader, read_tcp_counters
from famnb.client.transport.tls import TLSLayer
from famnb.timing import Arrival

# Policies and cookies of some proxies take tens of kilobytes; this is what browsers read.
HEAD_BYTES = 262_144
"""How many bytes a head, a trailer or the extensions of a chunk may take."""
# As RFC 9110 has them; bytes beyond ASCII in a value are its "obsolete text".
_is_token = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+").fullmatch
_is_target = re.compile(rb"[!-~]+").fullmatch
_is_value = re.compile(rb"(?:[^\0\s]+(?:[ \t]+[^\0\s]+)*)?").fullmatch


def encode_head(method: bytes, target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the head of a request as it is sent. Raises httpx.LocalProtocolError if it would not be one."""
    # A line end in any of them would add a header, or a request.
    if not _is_token(method):
        raise httpx.LocalProtocolError(f"the method {method!r:.80} is not a word")
    if not _is_target(target):
        raise httpx.LocalProtocolError("the target of the request has a space, a control character or no ASCII in it")
    lines = [method + b" " + target + b" HTTP/1.1"]
    for name, value in headers:
        if not _is_token(name):
            raise httpx.LocalProtocolError(f"the name of the header {name!r:.80} is not a word")
        if not _is_value(value):
            raise httpx.LocalProtocolError(
                f"the value of the header {name.decode()!r} has a line end or a NUL in it, or a space at an end"
            )
        lines.append(name + b": " + value)
    return b"\r\n".join([*lines, b"", b""])


class Head(msgspec.Struct):
    """The head of an answer."""

    status: int
    reason: bytes
    headers: list[tuple[bytes, bytes]]
    """In order, as they came."""


class ResponseParser:
    """Parses one answer, cut anywhere.

    waiting for a head ─┬─ (1xx) ── waiting for a head
                        └─ `head` ── content of the body ─┬─ `is_complete`
                                                          └─ `fault`
    """

    def __init__(self, *, has_body: bool = True) -> None:
        """`has_body` is False for the answer to a CONNECT, which has none whatever its head says."""
        self.head: Head | None = None
        """The head, once all of it has come; that of an interim answer (1xx) is skipped."""
        self.is_complete = False
        """Whether the answer has ended; bytes that follow are not part of it."""
        self.is_reusable = False
        """Whether the connection can take another request, once the answer has ended."""
        self.fault: str | None = None
        """Why what came is no HTTP; what came before it counts."""
        self.has_bytes = False
        """Whether anything came at all."""
        self._has_body = has_body
        self._ends_with_connection = False
        self._reason = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._content: list[bytes] = []
        self._pending_bytes = 0
        """Bytes since the last that were content or ended a head."""
        parser = httptools.HttpResponseParser(self)
        # What other clients forgive too: bare line feeds, odd bytes in a header, spaces after the size of a chunk.
        parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._parser: httptools.HttpResponseParser | None = parser

    def feed(self, data: bytes | memoryview) -> bytes:
        """Parse what came next and return the content of the body in it; then see the attributes."""
        if self._parser is None:
            return b""
        self.has_bytes = True
        self._pending_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.fault = "it switches to another protocol, which nobody asked for"
        except httptools.HttpParserError as error:
            # After the end of the answer it is somebody else's bytes that are malformed.
            if not self.is_complete:
                self.fault = str(error) or type(error).__name__
        if self._pending_bytes > HEAD_BYTES and self.fault is None and not self.is_complete:
            self.fault = f"a head or a trailer has more than {HEAD_BYTES:,} bytes"
        if self.is_complete or self.fault is not None:
            # It holds this object's methods, and so would keep both alive until the garbage is collected.
            self._parser = None
        content = b"".join(self._content)
        self._content.clear()
        return content

    def feed_end(self, *, is_truncated: bool = False) -> None:
        """The connection has ended: so has a body without a length; any other is broken off.

        `is_truncated` says that anybody on the path may have ended it.
        """
        if self.is_complete or self.fault is not None:
            return
        if self.head is not None and self._ends_with_connection and not is_truncated:
            self.is_complete = True
        elif self.head is None:
            self.fault = (
                f"the connection was closed {'in the middle of the head' if self.has_bytes else 'without an answer'}"
            )
        else:
            self.fault = "the connection was closed before the body was complete"

    # The parser's callbacks.

    def on_message_begin(self) -> None:
        if self.is_complete:
            self.is_reusable = False  # a second answer, to a request that nobody sent

    def on_status(self, status: bytes) -> None:
        self._reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head is None:
            self._headers.append((name, value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        self._pending_bytes = 0
        if 100 <= status < 200 or self.is_complete:
            return
        # The parser passes it on, since it forgives other odd bytes.
        if any(b"\0" in value for _, value in self._headers):
            self.fault = "a header has a NUL in it"
            return
        self.head = Head(status, self._reason, self._headers)
        self.is_reusable = self._parser.should_keep_alive()
        self._ends_with_connection = not _has_own_end(self.head)
        self.is_complete = not self._has_body

    def on_body(self, content: bytes) -> None:
        if not self.is_complete:
            self._content.append(content)
            self._pending_bytes = 0

    def on_message_complete(self) -> None:
        if self.head is None:
            self._reason, self._headers = b"", []  # of an interim answer
        else:
            self.is_complete = True


def _has_own_end(head: Head) -> bool:
    """Whether an answer says where it ends; else it ends with its connection."""
    if head.status in (204, 304):
        return True
    headers = {name.lower(): value for name, value in head.headers}
    codings = headers.get(b"transfer-encoding")
    if codings is not None:
        return codings.rpartition(b",")[2].strip().lower() == b"chunked"
    return b"content-length" in headers


def blur_merged(arrival: Arrival) -> Arrival:
    """Return the arrival of bytes that are followed by others, which may have been merged with them."""
    return Arrival(arrival.t_ns, arrival.late_ns, blurred=True) if arrival.merged else arrival


Feed: TypeAlias = Callable[[bytes, Arrival], object]
"""Takes a piece of a body and when it came; returns True for no more. What it raises ends the delivery."""


async def iterate_pieces(deliver: Callable[[Feed], Awaitable[None]]) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of a body as `deliver` brings them, until its end."""
    pieces: list[bytes] = []

    def take(content: bytes, _arrival: Arrival) -> bool:
        pieces.append(content)
        return True

    while True:
        await deliver(take)
        if not pieces:
            return
        for piece in pieces:
            yield piece
        pieces.clear()


# A reader that is slower than the network must not fill the memory.
HELD_BYTES = 262_144
"""Beyond how many bytes of a body that nobody takes its connection is not read."""


class StaleConnection(httpx.ReadError):
    """A kept connection that had been closed before the request reached the peer, as the kernel shows."""


class Body(httpx.AsyncByteStream):
    """A body on its way: delivered by the callback that reads it, or iterated; it keeps what nobody takes yet."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pieces: collections.deque[tuple[bytes, Arrival]] = collections.deque()
        self._held_bytes = 0
        self._feed: Feed | None = None
        self._waiter: asyncio.Future[bool] | None = None
        self._has_ended = False
        self._failure: Exception | None = None

    async def deliver(self, feed: Feed) -> None:
        """Have `feed` called for every piece, the moment it is read, until the body ends or `feed` returns True.

        Raises what `feed` raises, and httpx.TransportError if the body breaks off.
        """
        while self._pieces:
            content, arrival = self._pieces.popleft()
            self._held_bytes -= len(content)
            if not self._pieces and not self._has_ended:
                self._connection.resume()
            if feed(content, arrival) is True:
                return
        if not self._has_ended:
            self._feed, self._waiter = feed, asyncio.get_running_loop().create_future()
            try:
                is_enough = await self._waiter
            finally:
                self._feed = self._waiter = None
            if is_enough:
                return
        if self._failure is not None:
            raise self._failure

    def __aiter__(self) -> AsyncIterator[bytes]:
        return iterate_pieces(self.deliver)

    async def aclose(self) -> None:
        """Give up the rest, and with it the connection, if there is any."""
        if not self._has_ended:
            self._connection.close()

    def add(self, content: bytes, arrival: Arrival) -> None:
        """A piece was read."""
        if self._feed is None:
            self._pieces.append((content, arrival))
            self._held_bytes += len(content)
            if self._held_bytes > HELD_BYTES:
                self._connection.pause()
            return
        try:
            if self._feed(content, arrival) is True:
                self._feed = None
                self._wake(is_enough=True)
        except Exception as error:  # raised to whoever waits for the delivery
            self._feed = None
            self._wake(error)

    def end(self, failure: Exception | None = None) -> None:
        """Nothing more comes: the body is complete, or broke off."""
        if not self._has_ended:
            self._has_ended = True
            self._failure = failure
            self._wake()

    def _wake(self, error: Exception | None = None, *, is_enough: bool = False) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        if error is None:
            waiter.set_result(is_enough)
        else:
            waiter.set_exception(error)


_NOTHING = memoryview(b"")


class Connection:
    """A connected socket on the running event loop, which answers one request after the other."""

    def __init__(
        self,
        sock: socket.socket,
        reader: SocketReader,
        layers: Sequence[TLSLayer],
        readiness: Readiness,
        *,
        on_idle: Callable[[Connection], object],
        on_close: Callable[[Connection], object],
    ) -> None:
        """`layers` are the TLS sessions in the socket, the outermost first.

        `on_idle` is called when it can take another request, after an answer; `on_close` when it is closed.
        """
        self.is_open = True
        self.answers = 0
        """How many answers it has brought."""
        self.expiry: asyncio.TimerHandle | None = None
        """Closes it while it is idle; for whoever keeps it."""
        self._sock = sock
        self._reader = reader
        self._layers = layers
        self._readiness = readiness
        self._on_idle = on_idle
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        self._parser: ResponseParser | None = None
        """Of the answer that is awaited; None while it is idle."""
        self._head: asyncio.Future[Arrival] | None = None
        self._body = Body(self)
        self._unsent = _NOTHING
        self._is_writing = False
        self._has_sent = False
        """Whether the kernel took any of the present request."""
        self._acknowledged = 0
        """How many bytes the peer had acknowledged before the present request; 0 if the kernel does not say."""
        self._read_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_reading = False
        # Also while it is idle, so that a peer that closes it is noticed.
        self.resume()

    def is_stale(self) -> bool:
        """Whether the peer has closed it, or said something unasked, which the loop had no time to notice yet."""
        # TLS says something unasked when it begins, so only reading shows whether the connection can be used.
        self._on_readable()
        return not self.is_open

    async def request(self, data: bytes, *, read_s: float | None = None) -> tuple[Head, Arrival, Body]:
        """Send a request and wait for the head of its answer; return it, when it was complete, and the body to come.

        At no time may the peer be silent for `read_s` seconds once all is sent. Raises StaleConnection; ReadError if
        the connection breaks before the head is complete, RemoteProtocolError if it is not HTTP, ReadTimeout. Whoever
        waits no longer has to close it.
        """
        parser = self._parser = ResponseParser()
        body = self._body = Body(self)
        self._head = self._loop.create_future()
        self._read_s, self._has_sent = read_s, False
        if self.answers:
            self._acknowledged, _, _ = read_tcp_counters(self._sock)
        self._reader.begin()
        self._send(data)
        self._await_progress()
        arrival = await self._head
        assert parser.head is not None
        return parser.head, arrival, body

    def close(self) -> None:
        """Close it; an answer that is not complete breaks off."""
        self._fail(httpx.ReadError("the connection was closed on this side"))

    def pause(self) -> None:
        """Read no more for now."""
        if self._is_reading:
            self._is_reading = False
            self._readiness.ignore(self._sock)
            self._await_progress()

    def resume(self) -> None:
        """Read on."""
        if not self._is_reading and self.is_open:
            self._is_reading = True
            self._readiness.watch(self._sock, self._on_readable)
            self._await_progress()

    def _on_readable(self) -> None:
        try:
            segments = self._reader.read()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        if self._read_s is not None:
            self._await_progress()
        receive = self._receive_encrypted if self._layers else self._receive
        for data, arrival in segments:
            receive(data, arrival)
        if self._reader.is_at_end:
            # Within TLS anybody on the path can end a connection; the peer itself says so before.
            self._on_end(is_truncated=bool(self._layers))

    def _receive_encrypted(self, data: bytes | memoryview, arrival: Arrival) -> None:
        has_rest = False
        for depth, layer in enumerate(self._layers):
            data = layer.decrypt(data)
            has_rest = has_rest or layer.has_rest
            if reply := layer.take_outgoing():
                self._send(reply, below=depth)
        if data:
            self._receive(data, blur_merged(arrival) if has_rest else arrival)
        for layer in self._layers:
            if layer.fault is not None:
                self._lose(layer.fault)
            elif layer.is_closed:
                self._on_end()

    def _receive(self, data: bytes | memoryview, arrival: Arrival) -> None:
        """Read plain bytes that came."""
        parser = self._parser
        if parser is None:
            # Nobody asked for it, and the next answer must not begin with it.
            self.close()
            return
        content = parser.feed(data)
        if parser.head is not None and self._head is not None and not self._head.done():
            self._head.set_result(arrival)
        if content:
            # What frames the body may have come after it.
            if arrival.merged and content[-8:] != data[-8:]:
                arrival = blur_merged(arrival)
            self._body.add(content, arrival)
        if parser.is_complete:
            self._finish(parser)
        elif parser.fault is not None:
            self._fail(httpx.RemoteProtocolError(parser.fault))

    def _finish(self, parser: ResponseParser) -> None:
        """The answer is complete."""
        self._parser = None
        self.answers += 1
        self._cancel_timer()
        self._body.end()
        if parser.is_reusable and not self._unsent and self.is_open:
            self.resume()
            self._on_idle(self)
        else:
            self.close()

    def _on_end(self, *, is_truncated: bool = False) -> None:
        """The peer sends no more."""
        parser = self._parser
        if parser is None:  # as it is when the connection is closed
            self.close()
            return
        parser.feed_end(is_truncated=is_truncated)
        if parser.is_complete:
            self._finish(parser)
        elif parser.head is not None:
            self._fail(httpx.RemoteProtocolError(parser.fault or ""))
        else:
            acknowledged, _, _ = read_tcp_counters(self._sock)
            self._lose(ConnectionResetError(parser.fault), is_unread=acknowledged == self._acknowledged > 0)

    def _lose(self, error: OSError, *, is_unread: bool = False) -> None:
        """The connection broke; for one that is closed, nothing.

        A peer may close a kept connection while a request is on its way. To send that again is safe only if the kernel
        shows that nobody can have acted on it: the kernel did not even take it, or the peer ended the connection in
        order and had acknowledged none of it (`is_unread`), for an orderly end acknowledges all that came before it. A
        reset does not: what was read just before it need not have been acknowledged.
        """
        parser = self._parser
        is_kept = self.answers > 0 and parser is not None and not parser.has_bytes
        kind = StaleConnection if is_kept and (is_unread or not self._has_sent) else httpx.ReadError
        self._fail(kind(str(error) or type(error).__name__))

    def _fail(self, error: Exception) -> None:
        """Close it; whoever waits for the answer gets the error."""
        if not self.is_open:
            return
        self.is_open = False
        self._parser = None
        self._cancel_timer()
        if self.expiry is not None:
            self.expiry.cancel()
        self.pause()
        self._stop_writing()
        self._unsent = _NOTHING
        with contextlib.suppress(OSError):
            # A session within another is not worth the trouble.
            if len(self._layers) == 1:
                self._sock.send(self._layers[0].close())
        self._sock.close()
        self._on_close(self)
        self._body.end(error)
        if self._head is not None and not self._head.done():
            self._head.set_exception(error)
            # Nobody may be waiting any more, of which asyncio would complain.
            self._head.exception()

    def _send(self, data: bytes, *, below: int | None = None) -> None:
        """Send through the TLS sessions; `below` leaves out that one and those in it."""
        try:
            for layer in reversed(self._layers[:below]):
                data = layer.encrypt(data)
        except OSError as error:  # ssl.SSLError is one
            self._lose(error)
            return
        self._unsent = memoryview(bytes(self._unsent) + data if self._unsent else data)
        self._flush()

    def _flush(self) -> None:
        """Send what the kernel takes, the rest when it takes more."""
        try:
            sent = self._sock.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._unsent = _NOTHING
            self._stop_writing()
            # The peer may have answered before it closed: what it said counts more than that it listens no more.
            self._loop.call_soon(self._after_failed_send, error)
            return
        self._has_sent = self._has_sent or sent > 0
        if sent == len(self._unsent):
            # Not an empty slice, which would keep the request, and the key in it, for as long as the connection lives.
            self._unsent = _NOTHING
            if self._is_writing:
                self._stop_writing()
                self._await_progress()
        else:
            self._unsent = self._unsent[sent:]
            if not self._is_writing:
                self._is_writing = True
                self._loop.add_writer(self._sock, self._flush)

    def _stop_writing(self) -> None:
        if self._is_writing:
            self._is_writing = False
            self._loop.remove_writer(self._sock)

    def _after_failed_send(self, error: OSError) -> None:
        if self.is_open:
            self._on_readable()
        if self.is_open and self._parser is not None and self._parser.head is None:
            self._lose(error)

    def _await_progress(self) -> None:
        """From now on the peer must say something in time; one that has not taken all of the request is not silent."""
        self._cancel_timer()
        if self._read_s is not None and self._parser is not None and self._is_reading and not self._unsent:
            error = httpx.ReadTimeout(f"nothing came for {self._read_s:g} s")
            self._timer = self._loop.call_later(self._read_s, self._fail, error)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
