"""HTTP/1.1 as bytes: requests written, answers parsed however they are cut. Opens no socket."""

from __future__ import annotations

import re
from collections.abc import Iterable

import httptools
import msgspec

# Policies and cookies of some proxies take tens of kilobytes; this is what browsers read.
HEAD_BYTES = 262_144
"""How many bytes a head, a trailer or the extensions of a chunk may take."""
_FORBIDDEN = re.compile(rb"[\r\n\0]")


class MalformedRequest(ValueError):
    """A request that would be read as another one."""


def encode_request(method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bytes:
    """Return a request as it is sent. Raises MalformedRequest for a line end within a header."""
    lines = [method.encode("ascii") + b" " + target + b" HTTP/1.1"]
    for name, value in headers:
        # Whoever has a line end in a header adds a header, or a request, of their own.
        if _FORBIDDEN.search(name) or _FORBIDDEN.search(value):
            raise MalformedRequest(f"the header {name.decode('latin-1')!r} has a line end or a NUL in it")
        lines.append(name + b": " + value)
    return b"\r\n".join([*lines, b"", body])


class Head(msgspec.Struct):
    """The head of an answer."""

    status: int
    reason: bytes
    http_version: str
    headers: list[tuple[bytes, bytes]]
    """In order, as they came."""


class ResponseParser:
    """Parses one answer, cut anywhere.

    waiting for a head ─┬─ (1xx) ── waiting for a head
                        └─ `head` ── content of the body ─┬─ `is_complete`
                                                          └─ `fault`
    """

    __slots__ = (
        "_content",
        "_ends_with_connection",
        "_has_body",
        "_headers",
        "_parser",
        "_pending_bytes",
        "_reason",
        "fault",
        "has_bytes",
        "head",
        "is_complete",
        "is_reusable",
    )

    def __init__(self, *, has_body: bool = True) -> None:
        """`has_body` is False for the answer to a HEAD, which has none whatever its head says."""
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
        if not self._content:
            return b""
        content = self._content[0] if len(self._content) == 1 else b"".join(self._content)
        self._content.clear()
        return content

    def feed_end(self) -> None:
        """The connection has ended: so has a body without a length; any other is broken off."""
        if self.is_complete or self.fault is not None:
            return
        if self.head is not None and self._ends_with_connection:
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
        self.head = Head(status, self._reason, f"HTTP/{self._parser.get_http_version()}", self._headers)
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
