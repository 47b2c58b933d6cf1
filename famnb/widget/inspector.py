"""The inspector: one recorded call with its transcript, raw request and response, every event, and its timeline."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

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

# The timeline gets half of the page: a wider figure would be scaled down, letters included.
TIMELINE_WIDTH_IN = 6.6


class RawView(View, frozen=True):
    """Head and body of a request or a response, and what to know of it, a line each."""

    lines: tuple[str, ...]
    text: str


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
    event_count: int
    timeline: TimelineView | None


CallPart: TypeAlias = Literal["request", "response", "events"]


class CallPages:
    """What is shown of one call; all tools that open calls show the same pages."""

    def __init__(self, call: RecordedCall) -> None:
        self.call = call
        (request_lines, request), (response_lines, response) = _describe_request(call), _describe_response(call)
        reads = call.reads if _is_event_stream(call) else ()
        arrivals = [(read.t_ns / 1e9, data.decode(errors="replace")) for read in reads for data in read.data]
        lines = [f"{t_s:.6f}\t{sanitize.visible(data)}".replace("\n", "␊") for t_s, data in arrivals]
        events = [f"{number}\t{line}" for number, line in enumerate(lines, start=1)]
        self.texts: dict[CallPart, str] = {"request": request, "response": response, "events": "\n".join(events)}
        """The whole texts; those of events a line each: its number, seconds from sending the request, its data."""
        self.view = CallView(
            id=call.call_id,
            transcript=SafeHtml(transcript.reply_bundle(call.reply)["text/html"]),
            request=RawView(lines=request_lines, text=images.shorten_image_data(request)),
            response=RawView(lines=response_lines, text=images.shorten_image_data(response)),
            event_count=len(events),
            timeline=None,
        )
        """What the page shows."""


class CallTool(BaseTool):
    """A tool that lays a call open: the intents of front/parts/call.js."""

    pages: CallPages | None = None
    """The call that is shown, if any."""

    @intent
    def read_part(self, part: CallPart) -> str:
        """Return a whole text, since the page has only the beginnings of images, and events once they are looked at."""
        return "" if self.pages is None else self.pages.texts[part]

    @intent
    def draw_timeline(self, dark: bool) -> None:
        """Draw the timeline of the call for a light or a dark page."""
        # Imported on first use: a dashboard, which opens calls too, does without it.
        from famnb import plot

        if self.pages is not None:
            figure: Any = plot.timeline(self.pages.call.reply)
            figure.set_size_inches(TIMELINE_WIDTH_IN, figure.get_figheight())
            timeline = TimelineView(url=figure.to_uri(dark=dark), alt=figure.alt)
            self.pages.view = msgspec.structs.replace(self.pages.view, timeline=timeline)

    @intent
    def close_call(self) -> None:
        """Close the call that is open."""
        self.pages = None


class Inspector(CallTool):
    """What went over the wire in one call; give a reply, a recorded call, or a call's id."""

    entry = "tools/inspector.js"
    note = "A famnb.Inspector: run this cell to use it."

    def __init__(self, call: RecordedCall | Reply | str, ledger: Ledger | None = None) -> None:
        """Show a call that is recorded in `ledger`; unless given, that of the latest `famnb.connect()` is looked in.

        Then any other that this process records in. Raises KeyError if the call is not in the ledger, ValueError if the
        reply was never recorded.
        """
        self.pages = self._pages = CallPages(find_call(call, ledger))
        super().__init__()

    @property
    def call(self) -> RecordedCall:
        """The call that is shown."""
        return self._pages.call

    def view(self) -> CallView:
        return self._pages.view

    def saved(self) -> Bundle:
        view = self._pages.view
        notes = [Section("note", line) for line in (f"Call {view.id}", *view.request.lines, *view.response.lines)]
        return transcript.join_bundles([transcript.reply_bundle(self.call.reply), transcript.render(notes)])

    def __repr__(self) -> str:
        return f"<Inspector {self.call!r}>"


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
        for path in written_files() if ledger is None else ():
            with contextlib.suppress(UnknownName, LedgerError):
                return Ledger(path).call(call_id)
        raise UnknownName(f"{error}; if it is in another file, pass `ledger=famnb.Ledger(path)`") from None


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
        f"POST {call.row['url'] or call.endpoint.path}",
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
    head += [f"{name}: {value}" for name, value in json.loads(call.row["response_headers"] or "[]")]
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


def _is_event_stream(call: RecordedCall) -> bool:
    """Return whether the response is an event stream; an error is not one, even if a stream was asked for."""
    headers = json.loads(call.row["response_headers"] or "[]")
    types = [value for name, value in headers if name.lower() == "content-type"]
    # Calls recorded without headers say only whether their body was read as a stream.
    return any("event-stream" in value for value in types) if types else bool(call.row["streamed"])


def _http_message(head: Sequence[str], body: str) -> str:
    return sanitize.visible("\n".join([*head, "", body] if body else head))
