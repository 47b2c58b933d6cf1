"""HTTP/1 on one connection: uvicorn's protocol, and what it lacks.

head     at most HEAD_LIMIT bytes are kept of it, and it must have arrived within `head_timeout` seconds
errors   HTTP that cannot be read gets the endpoint's own error body, never in the middle of an answer
1.0      a stream ends with its connection: this version of HTTP has no chunks
upgrade  an offer to speak HTTP/2 or WebSocket is ignored, as HTTP allows, and the request itself answered
chunks   written without the checks of `send` for each
head     of a whole answer written together with its body
record   what cannot be read is counted and logged as requests are, though no application sees it

uvicorn (0.54) does none of this: it keeps heads of any size for any time, answers unreadable HTTP with plain text, also
inside a running answer, sends chunks to HTTP/1.0, and loses the body of a request that offers to upgrade. It has no
documented interface below ASGI, so this builds on `HttpToolsProtocol`; `test_http_protocol.py` lists what it uses.
"""

from __future__ import annotations

import asyncio
import functools
import http
import time
from typing import Any

import httptools
from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from famnb.service.errors import ServiceError, encode_error, endpoint_for_path, new_request_id
from famnb.service.metrics import Metrics
from famnb.service.request_body import HEAD_LIMIT, head_too_large_error
from famnb.service.request_log import DISCONNECTED, RequestRecord, name_path
from famnb.service.request_state import (
    HEAD_TIMEOUT,
    HEAD_TOO_LARGE,
    HOLD_HEAD,
    METRICS,
    SHUTDOWN,
    UNREADABLE,
    WRITE_BLOCK,
)

# More than HEAD_LIMIT, so that a request with an oversize key is read to its end and answered as a wrong key (401).
_MAX_HEAD = 2**20
"""How many bytes of a head are read."""
# Enough to tell the endpoint, whose error format is used, and to be shown in a message.
_KEPT_OF_LARGE_FIELD = 1000
"""How many bytes are kept of an address or a header that is too large."""
# Balances a slow caller, who should get the error, and one who goes on sending, who holds a connection meanwhile.
_LINGER_S = 1.0
"""How long a caller has to read an error before the connection is closed."""
_UPGRADE_HEADERS = (b"upgrade", b"http2-settings")
"""Headers that offer another protocol."""


class ServiceProtocol(HttpToolsProtocol):
    """Serves the requests of one connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.head_timeout: float = self.app_state[HEAD_TIMEOUT]
        self._metrics: Metrics = self.app_state[METRICS]
        self.url = b""  # uvicorn sets it with the first request; errors may come before that
        self._head_size = 0
        """The bytes of the current head that are kept."""
        self._unfinished_size = 0
        """The bytes that arrived of a head that is not complete."""
        self._is_in_head = False
        self._head_since = time.monotonic()
        self._current: RequestResponseCycle | None = None
        """The answer under way; uvicorn's `cycle` is the latest request's, which may be waiting for its turn."""
        self._ignores_input = False
        """Whether an error was sent: what arrives after it is dropped."""
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_head_timer()
        self._abandon_answer()
        if self._is_in_head and not self._ignores_input:
            self._record_unreadable(new_request_id(), None, DISCONNECTED)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End the answer under way in order: uvicorn calls this before it waits for it."""
        self.app_state[SHUTDOWN].begin()
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        """Replaces uvicorn's method, which answers errors itself and loses what follows an offer to upgrade."""
        if self._ignores_input:
            return
        # uvicorn 0.54's own first step; without it an idle connection's timer would close it inside the next answer.
        self._unset_keepalive_if_required()
        unread = data
        try:
            while unread:
                unread = self._feed_parser(unread)
        except httptools.HttpParserError:
            self.send_400_response("")
            return
        self._unfinished_size = self._unfinished_size + len(data) if self._is_in_head else 0
        if self._unfinished_size > _MAX_HEAD:
            self._send_error_and_close(head_too_large_error())
        elif self._current is None:
            self._start_head_timer()  # not while a request is being answered: its caller may take any time

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head, self._head_size = True, 0
        self._head_since = time.monotonic()

    def on_url(self, url: bytes) -> None:
        super().on_url(url if self._reserve_head(len(url)) else url[:_KEPT_OF_LARGE_FIELD])

    def on_header(self, name: bytes, value: bytes) -> None:
        fits = self._reserve_head(len(name) + len(value))
        super().on_header(name, value if fits else value[:_KEPT_OF_LARGE_FIELD])

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        # A request that offers to upgrade comes here again, read anew without the offer.
        if not self.parser.should_upgrade():
            self._cancel_head_timer()
            super().on_headers_complete()
            if not self.pipeline:
                self._current = self.cycle
            self.scope["state"][HOLD_HEAD] = functools.partial(_hold_head, self.cycle)
            if self.scope["http_version"] == "1.0":
                _disable_chunks(self.cycle)
            else:
                self.scope["state"][WRITE_BLOCK] = functools.partial(_write_chunk, self.cycle)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        # uvicorn takes the next request off the pipeline and starts it.
        next_cycle = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        self._current = next_cycle

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's own message is no help
        """Answer HTTP that cannot be read, in place of uvicorn's plain text."""
        message = "this is no HTTP/1.1 request; check the address (http, not https), the method and the headers"
        self._send_error_and_close(ServiceError(400, message, code="invalid_http"))

    def _feed_parser(self, data: bytes) -> bytes:
        """Parse some bytes; returns those to be parsed next, where the request offered to upgrade."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self.parser.get_method() == b"CONNECT":
                raise httptools.HttpParserError("this is no proxy") from None
            # The parser stops at the offer: it gets the head again without it, then the bytes after the head.
            head = self._head_without_upgrade()
            self.parser = httptools.HttpRequestParser(self)
            return head + data[upgrade.args[0] :]
        return b""

    def _head_without_upgrade(self) -> bytes:
        """Return the head that was read, without its offer to upgrade."""
        lines = [b"%b %b HTTP/1.1" % (self.parser.get_method(), self.url)]
        for name, value in self.headers:
            if name == b"connection":
                options = [option.strip().lower() for option in value.split(b",")]
                lines.append(b"connection: " + b", ".join(opt for opt in options if opt not in _UPGRADE_HEADERS))
            elif name not in _UPGRADE_HEADERS:
                lines.append(b"%b: %b" % (name, value))
        return b"\r\n".join([*lines, b"", b""])

    def _reserve_head(self, size: int) -> bool:
        """Whether a piece of the head can be kept whole; if it cannot, the request is marked as too large."""
        if self._head_size + size > HEAD_LIMIT:
            self.scope["state"][HEAD_TOO_LARGE] = True
            return False
        self._head_size += size
        return True

    def _start_head_timer(self) -> None:
        # Never restarted: bytes that come one by one do not make the time longer.
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_timeout, self._on_head_timeout)

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_head_timeout(self) -> None:
        self._head_timer = None
        if self._is_in_head:
            message = f"the head of the request did not arrive within {self.head_timeout:g} s; send it faster"
            self._send_error_and_close(ServiceError(408, message))
        else:
            self.transport.close()

    def _abandon_answer(self) -> None:
        """Have the application see a disconnect; uvicorn tells it to the latest request only."""
        if self._current is not None:
            self._current.disconnected = True
            self._current.message_event.set()

    def _send_error_and_close(self, error: ServiceError) -> None:
        """Answer in the format of the endpoint, as far as the path is known, and close the connection.

        An answer that has begun is broken off instead: the error would become a part of it.
        """
        self._ignores_input = True
        has_begun = self._current is not None and self._current.response_started
        path = self.url.partition(b"?")[0].decode("latin-1")
        code = error.to_fault(endpoint_for_path(path)).code or ""
        id_ = new_request_id()
        if self._current is None:
            self._record_unreadable(id_, error.status, code)
        else:
            state = self._current.scope["state"]
            state[UNREADABLE] = None if has_begun else error.status, code, id_.decode()
        self._abandon_answer()
        if has_begun:
            self.transport.close()
        elif not self.transport.is_closing():
            body = encode_error(path, error)
            headers = [
                *self.server_state.default_headers,
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
                (b"x-request-id", id_),
            ]
            status_line = f"HTTP/1.1 {error.status} {http.HTTPStatus(error.status).phrase}".encode()
            lines = [status_line, *(b"%b: %b" % header for header in headers), b"", body]
            self.transport.write(b"\r\n".join(lines))
            # Closed at once, with unread bytes of the caller's, the connection would be reset and the answer lost.
            self.transport.write_eof()
            self.loop.call_later(_LINGER_S, self.transport.close)

    def _record_unreadable(self, id_: bytes, status: int | None, code: str) -> None:
        """Count and log a request of which the application knows nothing."""
        path = self.url.partition(b"?")[0].decode("latin-1")
        record = RequestRecord(id_.decode(), "", name_path(path), self._head_since, status, error=code)
        record.ended = time.monotonic()
        self._metrics.begin(record)
        self._metrics.end(record)
        record.log()


def _write_chunk(cycle: RequestResponseCycle, block: bytes) -> bool:
    """Write a chunk of a body if that can be done at once: uvicorn's `send` takes four times as long."""
    if cycle.disconnected or cycle.flow.write_paused or not cycle.chunked_encoding:
        return False
    cycle.transport.write(b"%x\r\n%b\r\n" % (len(block), block))
    return True


def _hold_head(cycle: RequestResponseCycle) -> None:
    """Have the head of an answer, which uvicorn would write by itself, wait for the first piece of the body."""
    cycle.transport = _HeadHolder(cycle)  # type: ignore[assignment]  # all of a transport that `send` uses


class _HeadHolder:
    """Stands for the transport of an answer until the first piece of its body comes, and writes both at once."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._transport = cycle.transport
        self._head = b""

    def write(self, data: bytes) -> None:
        """Keep the head, or write it with what follows."""
        if not self._head:
            self._head = data
        else:
            self._cycle.transport = self._transport
            self._transport.write(self._head + data)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


def _disable_chunks(cycle: RequestResponseCycle) -> None:
    """Have a response body written as it is; uvicorn 0.54 would use chunks, which HTTP/1.0 does not have."""
    send_chunk = cycle.send

    async def send(message: Message) -> None:
        # Without chunks uvicorn wants to know the length beforehand: every piece is exactly as long as it is.
        cycle.expected_content_length = len(message.get("body", b""))
        await send_chunk(message)  # type: ignore[arg-type]  # starlette's type of the same message

    cycle.chunked_encoding = False
    cycle.send = send  # type: ignore[method-assign,assignment]  # the only place where uvicorn decides the framing
