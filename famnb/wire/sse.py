"""Server-sent events: splits bytes, cut anywhere, into the `data` of events, and writes events as bytes.

chunk ── lines ── (blank line) ── data
          ├ data: …   one line of the event's data
          ├ : …       a comment, which servers send to keep the connection open
          ├ error: …  not a field of the standard; llama.cpp's server once gave its reason for breaking off so
          ├ {"error"  an error body without a field's name, from whatever stands before the server: an event of its own
          └ others    `event:`, `id:`, `retry:` and unknown fields are ignored

The JSON in `data` is decoded by the dialects. `event:` is ignored because servers leave it out, or write a name that
contradicts the `type` in the JSON, which is what counts.
"""

from __future__ import annotations

import re
from typing import Any

from famnb.wire import lenient_json

# Lines are split on CR, LF and CRLF in the bytes, never with `str.splitlines`: that would also split at U+2028, U+2029
# and U+0085, which may stand unescaped in JSON.

DONE = b"[DONE]"
"""The `data` of the last event of a stream, in the dialects that have a terminator."""
_BOM = b"\xef\xbb\xbf"
_find_plain_events = re.compile(rb"data: (.+)\n\n").findall


class Decoder:
    """Splits one stream into events; the cost of a chunk is linear in the chunk, however the stream is cut."""

    __slots__ = ("_after_cr", "_at_start", "_data", "_line", "ends_with_event", "signs_of_life")

    def __init__(self) -> None:
        self.signs_of_life = 0
        """Events, comments and other fields so far; a stream in which this number stands still is silent."""
        self.ends_with_event = False
        """Whether the last byte so far is the last one of an event."""
        # In pieces, which are joined at its end: appending to one bytes object would copy a long line for each chunk.
        self._line: list[bytes] = []
        """The line that is not finished yet."""
        self._data: list[bytes] = []
        """The `data` lines of the event that is not finished yet."""
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the `data` of each event that this chunk completes."""
        # Most streams have no CR at all, and then the bytes are not copied.
        if chunk and (self._after_cr or b"\r" in chunk):
            # A CR at the end of the chunk before has ended its line already: waiting to see whether an LF follows would
            # hold the event back until the next one comes. If an LF does follow, it belongs to that CR.
            if self._after_cr:
                chunk = chunk.removeprefix(b"\n")
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines, rest = chunk, b""
        if not chunk.endswith(b"\n"):
            end = chunk.rfind(b"\n") + 1
            lines, rest = chunk[:end], chunk[end:]
        if lines and self._line:
            lines = b"".join(self._line) + lines
            self._line.clear()
        if rest:
            self._line.append(rest)
            self.ends_with_event = False
        if not lines:
            return []
        # Nearly all events are one line of data and a blank one, which takes a third of the time of line after line.
        if lines.startswith(b"data: ") and not self._data:
            events = _find_plain_events(lines)
            # `data: ` and two line ends an event: then there is nothing else.
            if sum(map(len, events)) + 8 * len(events) == len(lines):
                self._at_start, self.ends_with_event = False, not rest
                self.signs_of_life += len(events)
                return events
        events = self._read_lines(lines[:-1].split(b"\n"))
        self.ends_with_event = self.ends_with_event and not rest
        return events

    def end(self) -> list[bytes]:
        """Return the event left over at the end of the stream, if it is complete: `[DONE]`, or JSON."""
        # The standard drops an event without its blank line, but many servers end a stream so, and the event that is
        # dropped then is the one with the finish reason. An event that was cut off is not JSON.
        events = self._read_lines([b"".join(self._line)]) if self._line else []
        self._line.clear()
        data = b"\n".join(self._data)
        self._data.clear()
        # Mostly nothing is left over, which the decoder would take long to refuse.
        is_complete = bool(data) and (data.strip() == DONE or _decode(data) is not None)
        return [*events, data] if is_complete else events

    def _read_lines(self, lines: list[bytes]) -> list[bytes]:
        # As the standard says, one byte order mark is dropped, at the start of the stream only.
        if self._at_start:
            self._at_start = False
            lines[0] = lines[0].removeprefix(_BOM)
        data = self._data
        events: list[bytes] = []
        for line in lines:
            self.ends_with_event = False
            if not line:
                if data:
                    payload = data[0] if len(data) == 1 else b"\n".join(data)
                    data.clear()
                    self.signs_of_life += 1
                    # As the standard says, an event with empty data is not dispatched.
                    if payload:
                        self.ends_with_event = True
                        events.append(payload)
            # One space after the colon is dropped, further ones are data.
            elif line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif line == b"data":
                data.append(b"")
            elif line.startswith(b"error:"):
                error = line[6:].strip()
                message = error if _decode(error) is not None else lenient_json.encode(error.decode(errors="replace"))
                data.append(b'{"error":%b}' % message)
            else:
                self.signs_of_life += 1
                # To the standard a field without a meaning, but to ignore an error body would keep the reason of a
                # failure from the user.
                body = _decode(line) if line.startswith(b"{") else None
                if isinstance(body, dict) and body.get("error"):
                    events.append(line)
        return events


def _decode(data: bytes) -> Any:
    """Return the JSON value in `data`; None if it is not JSON."""
    try:
        return lenient_json.decode(data)
    except ValueError:
        return None


def encode(data: bytes, event: str | None = None) -> bytes:
    """Return one event as bytes, its blank line included."""
    name = f"event: {event}\n".encode() if event else b""
    # A line end inside the data would end its field. `bytes.splitlines`, unlike that of `str`, knows CR and LF only.
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(data.splitlines())
    return b"%bdata: %b\n\n" % (name, data)
