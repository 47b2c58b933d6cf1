"""What the bytes of one answer amount to, as a pure core: chunks and their times in, reads, events and a reply out."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Sequence

from famnb.endpoints import Endpoint
from famnb.errors import Cancelled, FamnbError, ResponseFormatError, StreamError, StreamInterrupted
from famnb.events import Event, Status
from famnb.reply import Reply, ReplyBuilder
from famnb.timing import Read, Stopwatch
from famnb.wire import lenient_json, sse

_FIELDS = (b":", b"data", b"event:", b"id:", b"retry:")
"""How a body begins that is an event stream, whatever its content type says."""


class ResponseReader:
    """Takes in one answer; the same for bytes from a socket and for bytes from a record."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        streamed: bool,
        headers_ns: int | None = None,
        events: list[Event] | None = None,
        mask: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self.endpoint = endpoint
        self.streamed = streamed
        """Whether the answer is an event stream; one that turns out to be a single body is none."""
        self.reads: list[Read] = []
        self.events: list[Event] = [] if events is None else events
        """The typed events; a list that is given is appended to."""
        self.folding = ReplyBuilder()
        self.stopwatch = Stopwatch()
        self.stopwatch.headers_ns = headers_ns
        self._mask = mask
        """Takes secrets out of an event or a body before anything else sees it."""
        self._first = len(self.events)
        self._decoder = sse.Decoder()
        self._reader = endpoint.dialect.reader()
        self._unread: list[bytes] = []
        self._closed = False

    @property
    def signs(self) -> int:
        """Signs of life so far: whole events and comments of a stream, chunks of a body."""
        return self._decoder.signs if self.streamed else len(self._unread)

    @property
    def finished(self) -> bool:
        """Whether nothing of meaning can follow: the terminator, a terminal event or a failure has come."""
        ended = self.folding.ended
        return self.folding.done or (ended is not None and ended.status is not None)

    @property
    def spent(self) -> bool:
        """Whether it is too late to ask again: a stream's content has been seen, a whole reply has been made."""
        return self.folding.contents > 0 or not self.streamed

    def feed(self, chunk: bytes, t_ns: int) -> bool:
        """Take in one chunk as it came from the socket; True when it completed an event."""
        if not self.streamed:
            self._unread.append(chunk)
            return False
        if not self.reads:
            self._unread.append(chunk)
        data = self._decoder.feed(chunk)
        if not data:
            return False
        self.take(self._read(t_ns, data))
        return True

    def take(self, read: Read) -> None:
        """Take in the events of one read, or the body of a whole reply."""
        folding = self.folding
        known, contents, answers, thoughts = folding.ended, folding.contents, folding.answers, folding.thoughts
        self.reads.append(read)
        try:
            if self.streamed:
                self._stream(read.data)
            else:
                self._add(self._whole(read.data[0]))
        finally:
            if folding.contents > contents:
                answer, thinking = folding.answers > answers, folding.thoughts > thoughts
                self.stopwatch.content(read.t_ns, answer=answer, thinking=thinking)
            if folding.done or folding.ended is not known:
                self.stopwatch.end_ns = read.t_ns

    def end(self, t_ns: int) -> None:
        """The answer ended in order: read what is left over; raises when that does not prove a complete reply."""
        if self.streamed:
            left = self._decoder.end()
            if left:
                self.take(self._read(t_ns, left))
            if not self.reads:
                self.streamed = b"".join(self._unread).lstrip(b"\xef\xbb\xbf \r\n").startswith(_FIELDS)
        if not self.streamed:
            read = self._read(t_ns, [b"".join(self._unread)])
            if not read.data[0].strip():
                raise self._misfit("is empty")
            self.take(read)
        self.close(t_ns)
        self.prove()

    def close(self, t_ns: int) -> None:
        """Nothing more will come, in order or not: what was held back counts, and the clock stops."""
        if self._closed:
            return
        self._closed = True
        if not self.streamed and not self.reads and self._unread:
            # A body that broke off is kept, and read as far as it can be.
            with contextlib.suppress(FamnbError):
                self.take(self._read(t_ns, [b"".join(self._unread)]))
        self._add(self._reader.end())
        if self.stopwatch.end_ns is None:
            self.stopwatch.end_ns = t_ns

    def prove(self) -> None:
        """Raise unless there is evidence of a complete reply."""
        ended = self.folding.ended
        if ended is not None and ended.fault is not None:
            raise StreamError(ended.fault.message, type=ended.fault.type, code=ended.fault.code)
        if ended is None and not self.folding.done:
            seen = len(self.events) - self._first
            raise StreamInterrupted(
                f"the stream ended after {seen} {'event' if seen == 1 else 'events'} without a finish reason, "
                "a stop reason or a terminal event; `.reply` has what came"
            )

    def reply(self) -> Reply:
        """The reply so far, with its timing."""
        reply = self.folding.reply()
        latencies = [block.latency_ms for block in reply.blocks if block.latency_ms is not None]
        timing = self.stopwatch.timing(
            streamed=self.streamed,
            output_tokens=reply.usage.output_tokens,
            reasoning_tokens=reply.usage.reasoning_tokens,
            thinking_latency_ms=sum(latencies) if latencies else None,
        )
        return dataclasses.replace(reply, endpoint=self.endpoint.name, streamed=self.streamed, timing=timing)

    def outcome(self, error: FamnbError | None) -> Reply:
        """The reply once the call is over, with everything that came; `error` is what ended it, if anything did."""
        reply = self.reply()
        return dataclasses.replace(
            reply,
            status=reply.status if error is None else status_of(error),
            complete=reply.complete if error is None else False,
            error=error,
            reads=tuple(self.reads),
            events=tuple(self.events[self._first :]),
        )

    def _read(self, t_ns: int, data: Iterable[bytes]) -> Read:
        return Read(t_ns, tuple(map(self._mask, data)))

    def _stream(self, data: tuple[bytes, ...]) -> None:
        if self._unread:
            self._unread.clear()
        folding, events, read = self.folding, self.events, self._reader.read
        for each in data:
            if folding.done:
                break
            for event in read(each):
                events.append(event)
                folding.add(event)

    def _whole(self, body: bytes) -> list[Event]:
        try:
            decoded = lenient_json.decode(body)
        except ValueError:
            raise self._misfit(f"is not JSON: {lenient_json.shown(body)}") from None
        return self.endpoint.dialect.read(decoded)

    def _misfit(self, found: str) -> ResponseFormatError:
        return ResponseFormatError(f"the body {found}; expected a reply of {self.endpoint.name!r}")

    def _add(self, events: Sequence[Event]) -> None:
        self.events.extend(events)
        for event in events:
            self.folding.add(event)


def status_of(error: FamnbError) -> Status:
    """The status of a call that ended with an error."""
    match error:
        case Cancelled():
            return "cancelled"
        case StreamInterrupted():
            return "interrupted"
        case _:
            return "failed"


def replayed(
    endpoint: Endpoint, *, streamed: bool, reads: Sequence[Read], headers_ns: int | None, end_ns: int | None
) -> Reply:
    """The reply that recorded reads amount to, through the same core as when they came.

    What only the live call knew, a deadline or the caller's stop, is not in the bytes: such a reply is `interrupted`.
    """
    intake = ResponseReader(endpoint, streamed=streamed, headers_ns=headers_ns)
    error: FamnbError | None = None
    try:
        for read in reads:
            intake.take(read)
        intake.close(end_ns or 0)
        intake.prove()
    except FamnbError as fault:
        error = fault
        intake.close(end_ns or 0)
    intake.stopwatch.end_ns = end_ns
    return intake.outcome(error)
