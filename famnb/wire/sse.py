"""Server-sent events: bytes cut anywhere to the `data` of events, and `data` to bytes. Does not decode the JSON inside.

chunk ── lines ── (blank line) ── data
          ├ data: …   one line of the event's data
          ├ : …       a comment: a sign of life, nothing more
          └ others    `event:`, `id:`, `retry:` carry nothing this API means
"""

from __future__ import annotations

from famnb.wire import lenient_json

DONE = b"[DONE]"
"""The terminator some dialects end their streams with."""
_BOM = b"\xef\xbb\xbf"


class Decoder:
    """Splits one stream; the cost of a chunk is linear in the chunk, however the stream is cut."""

    __slots__ = ("_after_cr", "_at_start", "_data", "_line", "signs_of_life")

    def __init__(self) -> None:
        self.signs_of_life = 0
        """Signs of life so far: events, comments and any other field."""
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The `data` of each event that this chunk completes."""
        # Most streams have no CR at all, and then the bytes are not copied.
        if self._after_cr or b"\r" in chunk:
            chunk = self._unify_line_ends(chunk)
        lines, newline, rest = chunk.rpartition(b"\n")
        if newline:
            if self._line:
                lines = b"".join(self._line) + lines
                self._line.clear()
            if rest:
                self._line.append(rest)
            return self._read_lines(lines.split(b"\n"))
        if rest:
            self._line.append(rest)
        return []

    def end(self) -> list[bytes]:
        """The event left over at the end of the stream, if it is whole: `[DONE]`, or JSON."""
        events = self._read_lines([b"".join(self._line)]) if self._line else []
        self._line.clear()
        data = b"\n".join(self._data)
        self._data.clear()
        return [*events, data] if _is_complete_event(data) else events

    def _unify_line_ends(self, chunk: bytes) -> bytes:
        """The chunk with LF line ends; a CR ends its line at once, so an LF right after it is dropped."""
        if not chunk:
            return chunk
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read_lines(self, lines: list[bytes]) -> list[bytes]:
        if self._at_start:
            self._at_start = False
            lines[0] = lines[0].removeprefix(_BOM)
        data = self._data
        events: list[bytes] = []
        for line in lines:
            if not line:
                if data:
                    whole = data[0] if len(data) == 1 else b"\n".join(data)
                    data.clear()
                    self.signs_of_life += 1
                    if whole:
                        events.append(whole)
            elif line.startswith(b"data: "):
                data.append(line[6:])
            elif line.startswith(b"data:"):
                data.append(line[5:])
            elif line == b"data":
                data.append(b"")
            else:
                self.signs_of_life += 1
        return events


def _is_complete_event(data: bytes) -> bool:
    """Whether a left-over block is an event all the same: many servers end without the blank line."""
    if data.strip() == DONE:
        return True
    try:
        lenient_json.decode(data)
    except ValueError:
        return False
    return True


def encode(data: bytes, event: str | None = None) -> bytes:
    """One event as bytes, its blank line included."""
    name = f"event: {event}\n".encode() if event else b""
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(data.splitlines())
    return b"%bdata: %b\n\n" % (name, data)
