"""ResponseReader: chunks of bytes and their times in; reads, typed events and a reply out. Opens no socket or file."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

from famnb.endpoints import Endpoint
from famnb.errors import Cancelled, FamnbError, ResponseFormatError, StreamError, StreamInterrupted
from famnb.events import Event, Status
from famnb.reply import Reply, ReplyBuilder
from famnb.timing import Read, Stopwatch
from famnb.wire import lenient_json, sse

_SSE_STARTS = (b":", b"data", b"event:", b"id:", b"retry:")
"""How a body begins that is an event stream, whatever its content type says."""


class ResponseReader:
    """Reads one response, from a socket (`feed`, `end`, `close`) or from a record (`feed_read`, `close`)."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        streamed: bool,
        headers_ns: int | None = None,
        connect_ns: int | None = None,
        events: list[Event] | None = None,
        mask: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self.endpoint = endpoint
        self.streamed = streamed
        """Whether the response is an event stream; cleared at the end of one that turns out to be a single body."""
        self.reads: list[Read] = []
        self.events: list[Event] = [] if events is None else events
        """The typed events; a list that is given is appended to."""
        self.builder = ReplyBuilder()
        self.stopwatch = Stopwatch()
        self.stopwatch.headers_ns = headers_ns
        self.stopwatch.connect_ns = connect_ns
        self._mask = mask
        """Takes secrets out of an event or a body before anything else sees it."""
        # A retry appends to the list of the attempt before, whose events its caller may already have seen.
        self._first_event = len(self.events)
        self._decoder = sse.Decoder()
        self._dialect_reader = endpoint.dialect.reader()
        self._chunks: list[bytes] = []
        """The body so far; of a stream only until its first event, in case it turns out to be a single body."""
        self._closed = False
        self._last: tuple[int, int | None, bool] = (0, None, False)
        """When the last chunk came."""

    @property
    def activity(self) -> int:
        """How many signs of life have come: whole events and comments of a stream, chunks of a body."""
        return self._decoder.signs_of_life if self.streamed else len(self._chunks)

    @property
    def is_finished(self) -> bool:
        """Whether nothing of meaning can follow: the terminator, a terminal event or a failure has come."""
        ended = self.builder.ended
        return self.builder.done or (ended is not None and ended.status is not None)

    @property
    def is_consumed(self) -> bool:
        """Whether it is too late to try again: a stream's content has been seen, a whole reply has been generated."""
        return self.builder.content_deltas > 0 or not self.streamed

    def feed(
        self, chunk: bytes, t_ns: int, late_ns: int | None = None, *, blurred: bool = False, merged: bool = False
    ) -> bool:
        """Read one chunk from the socket, which came as `Read` says; return whether it completed an event.

        With `merged`, that is known of the last byte of the chunk alone.
        """
        self._last = (t_ns, late_ns, blurred)
        if not self.streamed:
            self._chunks.append(chunk)
            return False
        if not self.reads:
            self._chunks.append(chunk)
        data = self._decoder.feed(chunk)
        if not data:
            return False
        is_blurred = blurred or (merged and not self._decoder.ends_with_event)
        self.feed_read(self._make_read(data, t_ns, late_ns, is_blurred))
        return True

    def feed_read(self, read: Read) -> None:
        """Read the events of one read, or the body of a whole reply."""
        builder, reads, data = self.builder, self.reads, read.data
        before_ns = reads[-1].t_ns if reads else self.stopwatch.headers_ns or 0
        if not reads and before_ns >= read.t_ns:
            # The headers came with it, and so have no time of their own.
            before_ns = 0
        content, answer, thinking = builder.content_deltas, builder.answer_deltas, builder.thinking_deltas
        ended = builder.ended
        # What stands so before the last event is brought by the last event.
        last_content, last_ended, was_done = content, ended, False
        reads.append(read)
        try:
            if self.streamed:
                if len(data) > 1:
                    self._add_stream_events(data[:-1])
                    last_content, last_ended, was_done = builder.content_deltas, builder.ended, builder.done
                self._add_stream_events(data[-1:])
            else:
                try:
                    body = lenient_json.decode(data[0])
                except ValueError:
                    raise self._format_error(f"is not JSON: {lenient_json.excerpt(data[0])}") from None
                self._add(self.endpoint.dialect.read(body))
        finally:
            # Also when an event cannot be read: what the events before it brought has been seen.
            if builder.content_deltas > content:
                # A chunk is an event, however many pieces of blocks it brings.
                is_one = last_content == content
                self.stopwatch.note_content(
                    read.t_ns,
                    None if is_one and not read.blurred else before_ns,
                    is_end_exact=builder.content_deltas > last_content and not read.blurred,
                    chunks=1 if is_one else builder.content_deltas - content,
                    answer=builder.answer_deltas > answer,
                    thinking=builder.thinking_deltas > thinking,
                )
            if builder.done or builder.ended is not ended:
                # The terminator is the end where there is one, also if the evidence came with it.
                is_last = not was_done if builder.done else last_ended is ended
                self.stopwatch.note_end(read.t_ns, None if is_last and not read.blurred else before_ns)

    def end(self, t_ns: int) -> None:
        """The body ended in order: read what is left over; raises unless there is evidence of a complete reply."""
        if self.streamed:
            rest = self._decoder.end()
            if rest:
                self.feed_read(self._make_read(rest, *self._last))
            # A proxy may begin a body with a byte order mark or blank lines, which say nothing of what it is.
            if not self.reads:
                self.streamed = b"".join(self._chunks).lstrip(b"\xef\xbb\xbf \r\n").startswith(_SSE_STARTS)
        if not self.streamed:
            read = self._make_read([b"".join(self._chunks)], *self._last)
            if not read.data[0].strip():
                raise self._format_error("is empty")
            self.feed_read(read)
        # Before `failure`: what the dialect held back may be the evidence of the end.
        self.close(t_ns)
        if failure := self.failure():
            raise failure

    def close(self, t_ns: int) -> None:
        """Read what was held back and stop the clock: nothing more will come. Later calls do nothing."""
        if self._closed:
            return
        self._closed = True
        if not self.streamed and not self.reads and self._chunks:
            # A body that broke off is kept, and read as far as it can be.
            with contextlib.suppress(FamnbError):
                self.feed_read(self._make_read([b"".join(self._chunks)], *self._last))
        self._add(self._dialect_reader.end())
        if self.stopwatch.end_ns is None:
            self.stopwatch.note_end(t_ns)

    def failure(self) -> StreamError | StreamInterrupted | None:
        """Why what came is no complete reply: the service reported a failure, or nothing proves the end."""
        ended = self.builder.ended
        if ended is not None and ended.fault is not None:
            return StreamError(ended.fault.message, type=ended.fault.type, code=ended.fault.code)
        if ended is None and not self.builder.done:
            seen = len(self.events) - self._first_event
            if self.builder.notes and not self.builder.content_deltas:
                return StreamInterrupted(self.builder.notes[-1])
            if not self.streamed:
                return StreamInterrupted("the reply does not say how it ended; `.reply` has what came")
            return StreamInterrupted(
                f"the stream ended after {seen} {'event' if seen == 1 else 'events'} without a finish reason, "
                "a stop reason or a terminal event; `.reply` has what came"
            )
        return None

    def reply(self) -> Reply:
        """The reply so far, with its timing."""
        reply = self.builder.reply()
        latencies = [block.latency_ms for block in reply.blocks if block.latency_ms is not None]
        timing = self.stopwatch.timing(
            self.reads,
            streamed=self.streamed,
            output_tokens=reply.usage.output_tokens,
            reasoning_tokens=reply.usage.reasoning_tokens,
            thinking_latency_ms=sum(latencies) if latencies else None,
        )
        return dataclasses.replace(reply, endpoint=self.endpoint.name, streamed=self.streamed, timing=timing)

    def outcome(self, error: FamnbError | None) -> Reply:
        """The reply once the call is over, with everything that came; `error` is what ended it, if anything did."""
        reply = self.reply()
        status: Status = reply.status if error is None else "failed"
        if isinstance(error, Cancelled | StreamInterrupted):
            status = "cancelled" if isinstance(error, Cancelled) else "interrupted"
        return dataclasses.replace(
            reply,
            status=status,
            complete=reply.complete if error is None else False,
            error=error,
            reads=tuple(self.reads),
            events=tuple(self.events[self._first_event :]),
        )

    def _make_read(self, data: Sequence[bytes], t_ns: int, late_ns: int | None, blurred: bool) -> Read:
        return Read(t_ns, tuple(map(self._mask, data)), late_ns, blurred)

    def _add_stream_events(self, data: tuple[bytes, ...]) -> None:
        self._chunks.clear()
        for event_data in data:
            # What follows in the same read means as little as what follows in a later one, which is not read.
            if self.is_finished:
                break
            self._add(self._dialect_reader.read(event_data))

    def _format_error(self, fault: str) -> ResponseFormatError:
        return ResponseFormatError(f"the body {fault}; expected a reply of {self.endpoint.name!r}")

    def _add(self, events: Sequence[Event]) -> None:
        self.events.extend(events)
        for event in events:
            self.builder.add(event)


def reply_from_reads(
    endpoint: Endpoint,
    *,
    streamed: bool,
    reads: Sequence[Read],
    headers_ns: int | None,
    end_ns: int | None,
    connect_ns: int | None = None,
) -> Reply:
    """The reply that recorded reads add up to, read as when they came.

    What only the live call knew, a deadline or the caller's stop, is not in the bytes: such a reply is `interrupted`.
    """
    reader = ResponseReader(endpoint, streamed=streamed, headers_ns=headers_ns, connect_ns=connect_ns)
    error: FamnbError | None = None
    try:
        for read in reads:
            reader.feed_read(read)
    except FamnbError as fault:
        error = fault
    reader.close(end_ns or 0)
    error = error or reader.failure()
    # What was measured then counts, also where today's reader sees the end in another read.
    if end_ns != reader.stopwatch.end_ns:
        reader.stopwatch.note_end(end_ns)
    return reader.outcome(error)
