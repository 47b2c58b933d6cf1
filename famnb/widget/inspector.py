"""The inspector: one recorded call with its transcript, raw request and response, every event, and its timeline."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from famnb.errors import InvalidArgument, InvalidRequest, LedgerError, UnknownName
from famnb.profiles import DEFAULT, find_profile, is_known
from famnb.record import Ledger, RecordedCall
from famnb.record.ledger import connected_ledger
from famnb.record.writer import written_files
from famnb.reply import Reply
from famnb.widget.form import images
from famnb.widget.html import facts, sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.runtime.intent import intent
from famnb.widget.runtime.tool import BaseTool
from famnb.widget.runtime.view import View

# Few enough to be drawn without a pause, enough that most replies need few pages.
PAGE_LENGTH = 100
"""Events shown at once."""
# The timeline gets half of the page: a wider figure would be scaled down, letters included.
TIMELINE_WIDTH_IN = 6.6


class ArrivedEvent(NamedTuple):
    """The data of one event of a stream, as it came."""

    number: int
    """Its place in the stream, from 1 on."""
    t_s: float
    """When the read that completed it arrived, in seconds from sending the request."""
    text: str


class RawView(View, frozen=True):
    """Head and body of a request or a response, and what to know of it, a line each."""

    lines: tuple[str, ...]
    text: str


class EventView(View, frozen=True):
    """One event of a stream; its key is its number."""

    key: str
    time: str
    text: str


class EventsView(View, frozen=True):
    """The events in view, those that hold the filter's text, or why there is none."""

    filter: str
    summary: str
    rows: tuple[EventView, ...]
    has_earlier: bool
    has_later: bool


class TimelineView(View, frozen=True):
    """A picture of when the events came, and what it shows in words."""

    url: str
    alt: str


class CallView(View, frozen=True):
    """One recorded call laid open."""

    id: str
    transcript: SafeHtml
    request: RawView
    response: RawView
    events: EventsView
    timeline: TimelineView | None


class InspectorView(View, frozen=True):
    """The inspector."""

    call: CallView


CallPart: TypeAlias = Literal["request", "response", "events"]


class CallPages:
    """What is shown of one call, and how far its events are turned; all tools that open calls show the same pages."""

    def __init__(self, call: RecordedCall) -> None:
        self.call = call
        self._events = _read_events(call)
        (request_lines, request), (response_lines, response) = _describe_request(call), _describe_response(call)
        self._texts = {"request": request, "response": response}
        self._filter = ""
        self._first = 0
        """The index of the first event in view, among those that the filter lets through."""
        self._view = CallView(
            id=call.call_id,
            transcript=SafeHtml(transcript.reply_bundle(call.reply)["text/html"]),
            request=RawView(lines=request_lines, text=images.shorten_image_data(request)),
            response=RawView(lines=response_lines, text=images.shorten_image_data(response)),
            events=self._view_events(),
            timeline=None,
        )

    def view(self) -> CallView:
        """Return what the page shows."""
        return self._view

    def filter_events(self, text: str) -> None:
        """Show the events that hold a text."""
        self._filter, self._first = text.strip().lower(), 0
        self._view = msgspec.structs.replace(self._view, events=self._view_events())

    def turn_events(self, step: Literal[1, -1]) -> None:
        """Show the events after those in view, or before them."""
        self._first = max(self._first + step * PAGE_LENGTH, 0)
        self._view = msgspec.structs.replace(self._view, events=self._view_events())

    def draw_timeline(self, *, dark: bool) -> None:
        """Draw the timeline for a light or a dark page."""
        # Imported on first use: a dashboard, which opens calls too, does without it.
        from famnb import plot

        figure: Any = plot.timeline(self.call.reply)
        figure.set_size_inches(TIMELINE_WIDTH_IN, figure.get_figheight())
        url = figure.to_uri(dark=dark)
        self._view = msgspec.structs.replace(self._view, timeline=TimelineView(url=url, alt=figure.alt))

    def text_of(self, part: CallPart) -> str:
        """Return the whole text that is copied; of the events those that the filter lets through, a line each."""
        if part == "events":
            return "".join(f"{event.t_s:.6f}\t{event.text}\n" for event in self._matches())
        return self._texts[part]

    def _matches(self) -> list[ArrivedEvent]:
        return [event for event in self._events if self._filter in event.text.lower()]

    def _view_events(self) -> EventsView:
        """Return one page of the events that hold the filter's text, or why there is none."""
        matches, total = self._matches(), len(self._events)
        self._first = min(self._first, max(len(matches) - 1, 0) // PAGE_LENGTH * PAGE_LENGTH)
        page = matches[self._first : self._first + PAGE_LENGTH]
        if not total:
            summary = "No events: the reply was not an event stream, or nothing came."
        elif not matches:
            summary = f"None of the {total:,} events holds that text."
        else:
            summary = f"Events {page[0].number:,} to {page[-1].number:,}"
            count = len(matches)
            summary += f" of {total:,}" if count == total else f"; {count:,} of {total:,} hold the text"
        return EventsView(
            filter=self._filter,
            summary=summary,
            rows=tuple(
                EventView(key=f"{event.number:,}", time=f"{event.t_s:.3f} s", text=sanitize.visible(event.text))
                for event in page
            ),
            has_earlier=self._first > 0,
            has_later=self._first + PAGE_LENGTH < len(matches),
        )


class CallTool(BaseTool):
    """A tool that lays a call open: the intents of front/parts/call.js."""

    pages: CallPages | None
    """The call that is shown, if any."""

    @intent
    def read_part(self, part: CallPart) -> str:
        """Return the whole text that is copied; of the events those that the filter lets through."""
        return "" if self.pages is None else self.pages.text_of(part)

    @intent
    def filter_events(self, text: str) -> None:
        """Show the events that hold a text."""
        if self.pages is not None:
            self.pages.filter_events(text)

    @intent
    def turn_events(self, step: Literal[1, -1]) -> None:
        """Show the events after those in view, or before them."""
        if self.pages is not None:
            self.pages.turn_events(step)

    @intent
    def draw_timeline(self, dark: bool) -> None:
        """Draw the timeline of the call."""
        if self.pages is not None:
            self.pages.draw_timeline(dark=dark)


class Inspector(CallTool):
    """What went over the wire in one call; give a reply, a recorded call, or a call's id."""

    entry = "tools/inspector.js"
    note = "A famnb.Inspector: run this cell to use it."

    def __init__(self, call: RecordedCall | Reply | str, ledger: Ledger | None = None) -> None:
        """Show a call; `ledger` is where it is recorded.

        Unless given, that of the latest `famnb.connect()` is looked in, then any other that this process records in.

        Raises KeyError if the call is not in the ledger, ValueError if the reply was never recorded.
        """
        self.pages = self._pages = CallPages(find_call(call, ledger))
        super().__init__()

    @property
    def call(self) -> RecordedCall:
        """The call that is shown."""
        return self._pages.call

    def show(self, call: RecordedCall) -> None:
        """Show another call in the same place."""
        with self.lock:
            self.pages = self._pages = CallPages(call)
            self.refresh()
            self.update_saved()

    def view(self) -> InspectorView:
        return InspectorView(call=self._pages.view())

    def saved(self) -> Bundle:
        return call_bundle(self.call)

    def __repr__(self) -> str:
        return f"<Inspector {self.call!r}>"


def call_bundle(call: RecordedCall) -> Bundle:
    """Return a call as ordinary notebook output: what was said, and what to know of request and response."""
    lines = [line for describe in (_describe_request, _describe_response) for line in describe(call)[0]]
    sections = [Section("note", line) for line in (f"Call {call.call_id}", *lines)]
    return transcript.join_bundles([transcript.reply_bundle(call.reply), transcript.render(sections)])


def find_call(call: RecordedCall | Reply | str, ledger: Ledger | None = None) -> RecordedCall:
    """Return the recorded call of a reply or of a call's id; `Inspector` says where it is looked for."""
    if isinstance(call, RecordedCall):
        return call
    if isinstance(call, Reply) and call.call_id is None:
        raise InvalidRequest("this reply was not recorded, so there is nothing to lay open; use a client with a ledger")
    call_id = call.call_id if isinstance(call, Reply) else call
    if not isinstance(call_id, str):
        raise InvalidArgument(f"expected a reply, a recorded call or a call's id; got {call!r}")
    try:
        return (ledger or connected_ledger()).call(call_id)
    except UnknownName as error:
        if ledger is not None:
            raise
        for path in written_files():
            with contextlib.suppress(UnknownName, LedgerError):
                return Ledger(path).call(call_id)
        raise UnknownName(f"{error}; of another file, pass `ledger=famnb.Ledger(path)`") from None


def _read_events(call: RecordedCall) -> list[ArrivedEvent]:
    reads = call.reads if _is_event_stream(call) else ()
    arrivals = [(read.t_ns, data) for read in reads for data in read.data]
    return [
        ArrivedEvent(number, t_ns / 1e9, data.decode(errors="replace"))
        for number, (t_ns, data) in enumerate(arrivals, start=1)
    ]


def _describe_request(call: RecordedCall) -> tuple[tuple[str, ...], str]:
    """Return what to know about the request, a line each, and its head and body as they were sent, without the key."""
    summary = f"{call.row['attempts'] or 0} sent, started {call.started_at:%Y-%m-%d %H:%M:%S} UTC"
    name = call.row["profile"]
    profile = find_profile(name if is_known(name) else DEFAULT)
    # The ledger does not hold the key.
    prefix = "Bearer " if profile.key_header == "authorization" else ""
    condition = "" if profile.needs_key else " (if the client had a key)"
    headers = [(profile.key_header, f"{prefix}••••••{condition}"), *profile.headers.items()]
    head = [
        f"POST {call.row['url']}",
        *(f"{name}: {value}" for name, value in headers),
        "content-type: application/json",
    ]
    return (summary,), _http_message(head, json.dumps(call.body, indent=2, ensure_ascii=False))


def _describe_response(call: RecordedCall) -> tuple[tuple[str, ...], str]:
    """Return what to know about the response, a line each, and its head and body as they came."""
    status = call.row["http_status"]
    summary = "No response came" if status is None else f"Status {status}"
    error = "" if call.error is None else f"{type(call.error).__name__}: {call.error}"
    head = [] if status is None else [f"HTTP {status}"]
    head += [f"{name}: {value}" for name, value in _response_headers(call)]
    body = ""
    if not _is_event_stream(call):
        data = b"".join(data for read in call.reads for data in read.data)
        try:
            body = json.dumps(json.loads(data), indent=2, ensure_ascii=False)
        except ValueError:
            body = data.decode(errors="replace")
    elif not error:
        error = "An event stream: see Events."
    lines = (summary, error, facts.describe_clock(call.timing) or "")
    return tuple(filter(None, lines)), _http_message(head, body)


def _response_headers(call: RecordedCall) -> list[tuple[str, str]]:
    """Return the response's headers, as many as are recorded."""
    return [(name, value) for name, value in json.loads(call.row["response_headers"] or "[]")]


def _is_event_stream(call: RecordedCall) -> bool:
    """Return whether the response is an event stream; an error is none, even if a stream was asked for."""
    types = [value for name, value in _response_headers(call) if name.lower() == "content-type"]
    # Calls recorded without headers say only whether their body was read as a stream.
    return any("event-stream" in value for value in types) if types else bool(call.row["streamed"])


def _http_message(head: Sequence[str], body: str) -> str:
    return sanitize.visible("\n".join([*head, "", body] if body else head))
