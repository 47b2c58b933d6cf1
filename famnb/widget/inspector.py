"""The inspector: one recorded call with its transcript, raw request and response, every event, and its timeline."""

from __future__ import annotations

import base64
import html
import json
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

import ipywidgets as widgets

from famnb import plot
from famnb.errors import InvalidArgument, InvalidRequest
from famnb.record import Ledger, RecordedCall
from famnb.reply import Reply
from famnb.validation import explain_arguments
from famnb.widget.form import images
from famnb.widget.form.controls import make_control
from famnb.widget.html import facts, sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.live.copy_box import COPY_TABS_CLASS, CopyBox

# Few enough to be drawn without a pause, enough that most replies need few pages.
PAGE_LENGTH = 100
"""Events shown at once."""
# The timeline gets half of the page: a wider figure would be scaled down, letters included.
TIMELINE_WIDTH_IN = 6.6
TABS = ("Transcript", "Request", "Response", "Events")
_WRAP = widgets.Layout(flex_flow="row wrap", align_items="flex-start")
_CELL_STYLE = "text-align:left;vertical-align:top;padding:1px 10px 1px 0"
_HEAD_CELL = SafeHtml(f'<th scope="col" style="{_CELL_STYLE}">{{}}</th>')
_EVENT_ROW = SafeHtml(
    f'<tr><td style="{_CELL_STYLE}">{{number}}</td><td style="{_CELL_STYLE}">{{t_s:.3f}} s</td>'
    f'<td style="{_CELL_STYLE};overflow-wrap:anywhere"><code>{{text}}</code></td></tr>'
)
# A scrolling region takes the focus, so that it can be scrolled by keyboard.
_EVENT_TABLE = SafeHtml(
    '<p role="status" style="margin:4px 0">{summary}</p>'
    '<div tabindex="0" role="region" aria-label="events" style="max-height:28em;overflow:auto;line-height:1.4">'
    "<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
)
_TIMELINE = SafeHtml('<img style="width:100%;max-width:760px" alt="{}" src="data:image/png;base64,{}">')
_PARAGRAPH = SafeHtml("<p>{}</p>")
_TRANSCRIPT = SafeHtml('<div class="jp-RenderedHTMLCommon">{}</div>')
_ERROR = SafeHtml('<p role="alert" style="color:var(--jp-error-color1,#d32f2f)">{}</p>')


class ArrivedEvent(NamedTuple):
    """The data of one event of a stream, as it came."""

    number: int
    """Its index in the stream."""
    t_s: float
    """When the read that completed it arrived, in seconds from sending the request."""
    text: str


class Inspector(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """What went over the wire in one call; give a reply, a recorded call, or a call's id."""

    @explain_arguments
    def __init__(self, call: RecordedCall | Reply | str, ledger: Ledger | None = None) -> None:
        """Show a call; `ledger` is where it is recorded, the default ledger unless given.

        Raises KeyError for a call that is not in the ledger, ValueError for a reply that was never recorded.
        """
        self._transcript = widgets.HTML()
        self._descriptions = {name: widgets.HTML() for name in ("Request", "Response")}
        self._raw = {name: CopyBox(f"raw {name.lower()}") for name in self._descriptions}
        self._copy_button = CopyBox("events", bare=True)
        self._filter = make_control(
            widgets.Text, title="Filter", help="Show the events that hold this text", placeholder="all events"
        )
        self._earlier = widgets.Button(description="Earlier", tooltip="The events before these")
        self._later = widgets.Button(description="Later", tooltip="The events after these")
        self._table, self._timeline = widgets.HTML(), widgets.VBox()
        self._first = 0
        """The index of the first event in view, among those that the filter lets through."""
        bar = widgets.HBox([self._filter, self._earlier, self._later, self._copy_button], layout=_WRAP)
        self._table.layout, self._timeline.layout = (widgets.Layout(flex=f"1 1 {width}em") for width in (25, 34))
        events = widgets.VBox([bar, widgets.HBox([self._table, self._timeline], layout=_WRAP)])
        raw_pages = [widgets.VBox([self._descriptions[name], self._raw[name]]) for name in self._raw]
        self._tabs = widgets.Tab([self._transcript, *raw_pages, events], titles=TABS)
        self._filter.observe(lambda _: self._turn_page(-self._first), "value")
        self._earlier.on_click(lambda _: self._turn_page(-PAGE_LENGTH))
        self._later.on_click(lambda _: self._turn_page(PAGE_LENGTH))
        self._tabs.observe(lambda _: self._draw_timeline(), "selected_index")
        super().__init__([self._tabs])
        self.add_class(COPY_TABS_CLASS)
        self.show(find_call(call, ledger))

    @property
    def call(self) -> RecordedCall:
        """The call that is shown."""
        return self._call

    def show(self, call: RecordedCall) -> None:
        """Show another call in the same place."""
        self._call = call
        self._events = _read_events(call)
        self._transcript.value = _TRANSCRIPT.format(SafeHtml(transcript.reply_bundle(call.reply)["text/html"]))
        for name, (lines, raw) in {"Request": _describe_request(call), "Response": _describe_response(call)}.items():
            self._descriptions[name].value = SafeHtml().join(_PARAGRAPH.format(line) for line in lines if line)
            self._raw[name].show(raw, preview=images.shorten_image_data(raw))
        self._timeline.children = ()
        self._turn_page(-self._first)
        self._draw_timeline()

    def _turn_page(self, offset: int) -> None:
        """Show the events that contain the filter's text, from `offset` further on."""
        text = self._filter.value.strip().lower()
        matches = [event for event in self._events if text in event.text.lower()]
        last_page = max(len(matches) - 1, 0) // PAGE_LENGTH * PAGE_LENGTH
        self._first = min(max(self._first + offset, 0), last_page)
        self._earlier.disabled = self._first == 0
        self._later.disabled = self._first + PAGE_LENGTH >= len(matches)
        page = matches[self._first : self._first + PAGE_LENGTH]
        self._table.value = _events_html(page, matches=len(matches), total=len(self._events))
        self._copy_button.show("".join(f"{event.t_s:.6f}\t{event.text}\n" for event in matches))

    def _draw_timeline(self) -> None:
        """Draw the timeline when its tab is first opened: drawing takes longer than everything else here."""
        if self._timeline.children or TABS[self._tabs.selected_index or 0] != "Events":
            return
        figure: Any = plot.timeline(self._call.reply)
        figure.set_size_inches(TIMELINE_WIDTH_IN, figure.get_figheight())
        bundle, _ = figure._repr_mimebundle_()
        image = base64.b64encode(bundle["image/png"]).decode()
        # In an attribute nothing is typeset as a formula, and no tag can keep it from being so.
        self._timeline.children = (widgets.HTML(_TIMELINE.format(SafeHtml(html.escape(figure.alt)), image)),)

    def __repr__(self) -> str:
        return f"<Inspector {self._call!r}>"


def find_call(call: RecordedCall | Reply | str, ledger: Ledger | None = None) -> RecordedCall:
    """The recorded call of a reply or of a call's id."""
    match call:
        case RecordedCall():
            return call
        case Reply(call_id=str(call_id)) | str(call_id):
            return (ledger or Ledger()).call(call_id)
        case Reply():
            raise InvalidRequest(
                "this reply was not recorded, so there is nothing to lay open; use a client with a ledger"
            )
        case _:
            raise InvalidArgument(f"expected a reply, a recorded call or a call's id; got {call!r}")


def error_html(error: Exception) -> SafeHtml:
    """The error of a callback as HTML."""
    return _ERROR.format("".join(traceback.format_exception_only(error)).strip())


def _read_events(call: RecordedCall) -> list[ArrivedEvent]:
    reads = call.reads if _is_event_stream(call) else ()
    arrivals = [(read.t_ns, data) for read in reads for data in read.data]
    return [
        ArrivedEvent(index, t_ns / 1e9, data.decode(errors="replace")) for index, (t_ns, data) in enumerate(arrivals)
    ]


def _describe_request(call: RecordedCall) -> tuple[Sequence[str], str]:
    """What to know about the request, a line each, and its head and body as they were sent, without the key."""
    summary = f"{call.row['attempts'] or 0} sent, started {call.started_at:%Y-%m-%d %H:%M:%S} UTC"
    # The ledger does not hold the key.
    head = [f"POST {call.row['url']}", "authorization: Bearer ••••••", "content-type: application/json"]
    return (summary,), _http_message(head, json.dumps(call.body, indent=2, ensure_ascii=False))


def _describe_response(call: RecordedCall) -> tuple[Sequence[str], str]:
    """What to know about the response, a line each, and its head and body as they came."""
    status = call.row["http_status"]
    summary = "No response came" if status is None else f"Status {status}"
    error = "" if call.error is None else f"{type(call.error).__name__}: {call.error}"
    head = [] if status is None else [f"HTTP {status}"]
    head += [f"{name}: {value}" for name, value in _response_headers(call)]
    clock = facts.describe_clock(call.timing) or ""
    if _is_event_stream(call):
        return (summary, error or "An event stream: see Events.", clock), _http_message(head, "")
    body = b"".join(data for read in call.reads for data in read.data)
    return (summary, error, clock), _http_message(head, _indent_json(body))


def _response_headers(call: RecordedCall) -> list[tuple[str, str]]:
    """The response's headers, as many as are recorded."""
    return [(name, value) for name, value in json.loads(call.row["response_headers"] or "[]")]


def _is_event_stream(call: RecordedCall) -> bool:
    """Whether the response is an event stream; an error is none, even if a stream was asked for."""
    types = [value for name, value in _response_headers(call) if name.lower() == "content-type"]
    # Calls recorded without headers say only whether their body was read as a stream.
    return any("event-stream" in value for value in types) if types else bool(call.row["streamed"])


def _http_message(head: Sequence[str], body: str) -> str:
    return sanitize.visible("\n".join([*head, "", body] if body else head))


def _indent_json(body: bytes) -> str:
    """A JSON body indented; any other as text."""
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except ValueError:
        return body.decode(errors="replace")


def _events_html(page: Sequence[ArrivedEvent], *, matches: int, total: int) -> SafeHtml:
    """One page of the events that match the filter as a table, or why there is none."""
    if not total:
        return SafeHtml("<p>No events: the reply was not an event stream, or nothing came.</p>")
    if not matches:
        return _PARAGRAPH.format(f"None of the {total:,} events holds that text.")
    summary = f"Events {page[0].number + 1:,} to {page[-1].number + 1:,}"
    summary += f" of {total:,}" if matches == total else f"; {matches:,} of {total:,} hold the text"
    rows = SafeHtml().join(_EVENT_ROW.format(number=event.number + 1, t_s=event.t_s, text=event.text) for event in page)
    head = SafeHtml().join(map(_HEAD_CELL.format, ("event", "arrived", "data")))
    return _EVENT_TABLE.format(summary=summary, head=head, rows=rows)
