"""UpstreamReader: the bytes of an upstream's reply in, typed events out; what has been passed on is not kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from famnb.endpoints import UPSTREAM
from famnb.errors import ResponseFormatError
from famnb.events import Event
from famnb.wire import lenient_json, sse

# Some two million tokens of text: no reply is as long, and no server puts as much into one event.
MAX_UNREAD_BYTES = 8_000_000
"""How many bytes may come without a whole event, or as a whole reply; beyond that the reply is refused."""
_STREAM_STARTS = (b":", b"data", b"event:", b"id:", b"retry:", b"error:")
"""How a body begins that is an event stream, whatever its content type says."""


class UpstreamReader:
    """Reads one reply. `mask` takes secrets out of each event, or the whole body, before anything else sees it."""

    def __init__(self, *, streamed: bool, mask: Callable[[bytes], bytes] = bytes) -> None:
        self.streamed = streamed
        """Whether the reply is an event stream; cleared at the end of one that turns out to be a single object."""
        self._mask = mask
        self._decoder = sse.Decoder()
        self._dialect_reader = UPSTREAM.dialect.reader()
        self._has_events = False
        self._body: list[bytes] = []
        """The body of a whole reply; of a stream what came before its first event, should it turn out to be one."""
        self._unread_bytes = 0
        """How many bytes came since the last event."""

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that a chunk completes.

        Raises ResponseFormatError beyond `MAX_UNREAD_BYTES`, StreamDecodeError after the events before an unreadable
        one.
        """
        self._unread_bytes += len(chunk)
        if self._unread_bytes > MAX_UNREAD_BYTES:
            raise ResponseFormatError(f"the upstream sent more than {MAX_UNREAD_BYTES:,} bytes without a whole event")
        if not self._has_events:
            self._body.append(chunk)
        if self.streamed and (data := self._decoder.feed(chunk)):
            self._unread_bytes = 0
            yield from self._read_events(data)

    def end(self) -> Iterator[Event]:
        """Yield the events left over at the end of the body. Raises ResponseFormatError for one that is no reply."""
        if self.streamed:
            yield from self._read_events(self._decoder.end())
            # A proxy may begin a body with a byte order mark or blank lines, which say nothing of what it is.
            if not self._has_events:
                self.streamed = b"".join(self._body).lstrip(b"\xef\xbb\xbf \r\n").startswith(_STREAM_STARTS)
        if not self.streamed:
            yield from self._read_whole(self._mask(b"".join(self._body)))
        yield from self._dialect_reader.end()

    def _read_events(self, data: list[bytes]) -> Iterator[Event]:
        if data and not self._has_events:
            self._has_events = True
            self._body.clear()
        for event_data in data:
            yield from self._dialect_reader.read(self._mask(event_data))

    def _read_whole(self, body: bytes) -> list[Event]:
        try:
            return UPSTREAM.dialect.read(lenient_json.decode(body))
        except ValueError:
            raise ResponseFormatError(f"the upstream's body is not JSON: {lenient_json.excerpt(body)}") from None
