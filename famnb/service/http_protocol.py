"""One connection of a caller: HTTP as uvicorn speaks it, and what that lacks; what is asked and answered is the app's.

head     at most HEAD_LIMIT bytes are kept of it, and it must have come within `within` seconds
errors   HTTP that cannot be read gets the endpoint's own error body, never in the middle of an answer
1.0      a stream ends with its connection: this version of HTTP knows no chunks
upgrade  an offer to speak HTTP/2 or WebSocket is ignored, as HTTP allows, and the request itself answered
"""

from __future__ import annotations

import asyncio
import http
from typing import Any

import httptools
from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from famnb.service.errors import ServiceError, encode_error, new_request_id
from famnb.service.request_body import HEAD_LIMIT, HEAD_TOO_LARGE, head_too_large

_MOST = 2**20
"""How many bytes of a head are read at all: so far a key may be too long, and yet be answered as a wrong one."""
_REST = 1000
"""How many bytes are left of an address or a header that is too large: enough to say what was wrong with it."""
_LINGER_S = 1.0
"""How long a caller has to read why nothing more is read."""
_UPGRADE = (b"upgrade", b"http2-settings")
"""Headers that offer another protocol."""


class ServiceProtocol(HttpToolsProtocol):
    """Serves the requests of one connection."""

    within: float = 30.0
    """Seconds that a caller has for the head of a request, from the connection or its first byte on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.url = b""
        self._kept = 0
        """The size of what is kept of the head."""
        self._unfinished = 0
        """The size of what came of a head that is not complete."""
        self._in_head = False
        self._running: RequestResponseCycle | None = None
        """The answer under way; uvicorn's `cycle` is the latest request's, which may have to wait for its turn."""
        self._over = False
        """Whether nothing is read any more."""
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._heard()
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self._unset_keepalive_if_required()
        unread = data
        try:
            while unread:
                unread = self._fed(unread)
        except httptools.HttpParserError:
            self.send_400_response("")
            return
        self._unfinished = self._unfinished + len(data) if self._in_head else 0
        if self._unfinished > _MOST:
            self._refuse(head_too_large())
        elif self._running is None:
            self._wait()  # while a request is being answered, its caller owes nothing

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._kept = True, 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url if self._fits(len(url)) else url[:_REST])

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value if self._fits(len(name) + len(value)) else value[:_REST])

    def on_headers_complete(self) -> None:
        self._in_head = False
        if not self.parser.should_upgrade():
            self._heard()
            super().on_headers_complete()
            if not self.pipeline:
                self._running = self.cycle
            if self.scope["http_version"] == "1.0":
                _unchunk(self.cycle)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        following = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        self._running = following

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's own words are no help
        """Answer what cannot be read, in place of uvicorn's plain text."""
        said = "this is no HTTP/1.1 request; check the address (http, not https), the method and the headers"
        self._refuse(ServiceError(400, said, code="invalid_http"))

    def _fed(self, data: bytes) -> bytes:
        """Read some bytes; returns those that are to be read once more, without the offer to upgrade."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offered:
            if self.parser.get_method() == b"CONNECT":
                raise httptools.HttpParserError("this is no proxy") from None
            return self._plain_head() + data[offered.args[0] :]
        return b""

    def _plain_head(self) -> bytes:
        """The head that was read, without its offer to upgrade, for a fresh parser."""
        lines = [b"%b %b HTTP/1.1" % (self.parser.get_method(), self.url)]
        for name, value in self.headers:
            if name == b"connection":
                options = [option.strip().lower() for option in value.split(b",")]
                lines.append(b"connection: " + b", ".join(each for each in options if each not in _UPGRADE))
            elif name not in _UPGRADE:
                lines.append(b"%b: %b" % (name, value))
        self.parser = httptools.HttpRequestParser(self)
        return b"\r\n".join([*lines, b"", b""])

    def _fits(self, size: int) -> bool:
        """Whether a piece of the head can be kept whole; where one cannot, the app is told."""
        if self._kept + size > HEAD_LIMIT:
            self.scope["state"][HEAD_TOO_LARGE] = True
            return False
        self._kept += size
        return True

    def _wait(self) -> None:
        """Give the caller a while for the head; bytes that come one by one do not make it longer."""
        if self._patience is None:
            self._patience = self.loop.call_later(self.within, self._give_up)

    def _heard(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        if self._in_head:
            said = f"the head of the request did not arrive within {self.within:g} s; send it faster"
            self._refuse(ServiceError(408, said))
        else:
            self.transport.close()

    def _leave(self) -> None:
        """Give up the answer under way, as one whose caller is gone."""
        if self._running is not None:
            self._running.disconnected = True
            self._running.message_event.set()

    def _refuse(self, refusal: ServiceError) -> None:
        """Answer in the shape of the endpoint, as far as the path is known, and close the connection.

        Where an answer has begun already, it is broken off: this would become a part of it.
        """
        self._over = True
        begun = self._running is not None and self._running.response_started
        self._leave()
        if begun:
            self.transport.close()
        elif not self.transport.is_closing():
            path = self.url.partition(b"?")[0].decode("latin-1")
            body = encode_error(path, refusal)
            headers = [
                *self.server_state.default_headers,
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
                (b"x-request-id", new_request_id()),
            ]
            status = f"HTTP/1.1 {refusal.status} {http.HTTPStatus(refusal.status).phrase}".encode()
            lines = [status, *(b"%b: %b" % header for header in headers), b"", body]
            self.transport.write(b"\r\n".join(lines))
            # Closed at once, with bytes of the caller's unread, the connection would be reset and the answer lost.
            self.transport.write_eof()
            self.loop.call_later(_LINGER_S, self.transport.close)


def _unchunk(cycle: RequestResponseCycle) -> None:
    """Have a response written as it is, each piece as long as it is, where uvicorn would put it into chunks."""
    write = cycle.send

    async def send(message: Message) -> None:
        cycle.expected_content_length = len(message.get("body", b""))
        await write(message)  # type: ignore[arg-type]  # starlette's words for the same message

    cycle.chunked_encoding = False
    cycle.send = send  # type: ignore[method-assign,assignment]  # the only place where the framing is decided
