"""One recorded call laid open: transcript, raw request and response, every event with its time beside the timeline."""

from __future__ import annotations

import base64
import html
import json
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

import ipywidgets as widgets

from famnb import plot
from famnb.record import Ledger, RecordedCall
from famnb.reply import Reply
from famnb.widget.form import images
from famnb.widget.form.controls import make_control
from famnb.widget.html import sanitize, transcript
from famnb.widget.live.copy_box import COPY_TABS_CLASS, CopyBox

PAGE = 100
"""Events shown at once."""
BESIDE_IN = 6.6
"""Width of the timeline's figure."""
TABS = ("Transcript", "Request", "Response", "Events")
_WRAPPED = widgets.Layout(flex_flow="row wrap", align_items="flex-start")
CELL = "text-align:left;vertical-align:top;padding:1px 10px 1px 0"


class Event(NamedTuple):
    """One event as it came."""

    number: int
    t_s: float
    """When the read came that completed it, in seconds from sending the request."""
    text: str


class Inspector(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """What went over the wire in one call; give a reply, a recorded call, or a call's id."""

    def __init__(self, call: RecordedCall | Reply | str, ledger: Ledger | None = None) -> None:
        """Lay a call open; `ledger` is where it is recorded, the default ledger unless given.

        Raises KeyError for a call that is not in the ledger, ValueError for a reply that was never recorded.
        """
        self._transcript = widgets.HTML()
        self._heads = {name: widgets.HTML() for name in ("Request", "Response")}
        self._raw = {name: CopyBox(f"raw {name.lower()}") for name in self._heads}
        self._copied = CopyBox("events", bare=True)
        self._filter = make_control(
            widgets.Text, title="Filter", help="Show the events that hold this text", placeholder="all events"
        )
        self._earlier = widgets.Button(description="Earlier", tooltip="The events before these")
        self._later = widgets.Button(description="Later", tooltip="The events after these")
        self._events, self._timeline = widgets.HTML(), widgets.VBox()
        self._first = 0
        bar = widgets.HBox([self._filter, self._earlier, self._later, self._copied], layout=_WRAPPED)
        self._events.layout, self._timeline.layout = (widgets.Layout(flex=f"1 1 {width}em") for width in (25, 34))
        events = widgets.VBox([bar, widgets.HBox([self._events, self._timeline], layout=_WRAPPED)])
        pages = [widgets.VBox([self._heads[name], self._raw[name]]) for name in self._heads]
        self._tabs = widgets.Tab([self._transcript, *pages, events], titles=TABS)
        self._filter.observe(lambda _: self._turn(-self._first), "value")
        self._earlier.on_click(lambda _: self._turn(-PAGE))
        self._later.on_click(lambda _: self._turn(PAGE))
        self._tabs.observe(lambda _: self._draw_timeline(), "selected_index")
        super().__init__([self._tabs])
        self.add_class(COPY_TABS_CLASS)
        self.show(recorded(call, ledger))

    @property
    def call(self) -> RecordedCall:
        """The call that is laid open."""
        return self._call

    def show(self, call: RecordedCall) -> None:
        """Lay another call open in the same place."""
        self._call = call
        self._all = _events(call)
        written = transcript.reply_bundle(call.reply)["text/html"]
        self._transcript.value = f'<div class="jp-RenderedHTMLCommon">{written}</div>'
        for name, (said, raw) in {"Request": _request(call), "Response": _response(call)}.items():
            self._heads[name].value = "".join(f"<p>{sanitize.escape(line)}</p>" for line in said if line)
            self._raw[name].show(raw, preview=images.shorten_image_data(raw))
        self._timeline.children = ()
        self._turn(-self._first)
        self._draw_timeline()

    def _turn(self, by: int) -> None:
        """Go some events on or back."""
        wanted = self._filter.value.strip().lower()
        found = [event for event in self._all if wanted in event.text.lower()]
        self._first = min(max(self._first + by, 0), max(len(found) - 1, 0) // PAGE * PAGE)
        self._earlier.disabled = self._first == 0
        self._later.disabled = self._first + PAGE >= len(found)
        self._events.value = _table(found[self._first : self._first + PAGE], found=len(found), of=len(self._all))
        self._copied.show("".join(f"{event.t_s:.6f}\t{event.text}\n" for event in found))

    def _draw_timeline(self) -> None:
        """Draw the timeline beside the events once they are looked at."""
        if self._timeline.children or TABS[self._tabs.selected_index or 0] != "Events":
            return
        figure: Any = plot.timeline(self._call.reply)
        # It gets half of the page: a smaller figure has letters that can be read there.
        figure.set_size_inches(BESIDE_IN, figure.get_figheight())
        image, _ = figure._repr_mimebundle_()
        drawn = base64.b64encode(image["image/png"]).decode()
        source = f'alt="{html.escape(figure.alt)}" src="data:image/png;base64,{drawn}"'
        self._timeline.children = (widgets.HTML(f'<img style="width:100%;max-width:760px" {source}>'),)

    def __repr__(self) -> str:
        return f"<Inspector {self._call!r}>"


def recorded(call: RecordedCall | Reply | str, ledger: Ledger | None = None) -> RecordedCall:
    """The call in the ledger that a reply or an id names."""
    match call:
        case RecordedCall():
            return call
        case Reply(call_id=str(call_id)) | str(call_id):
            return (ledger or Ledger()).call(call_id)
        case Reply():
            raise ValueError("this reply was not recorded, so there is nothing to lay open; use a client with a ledger")
        case _:
            raise TypeError(f"expected a reply, a recorded call or a call's id; got {call!r}")


def failed(error: Exception) -> str:
    """What to show, as HTML, where a callback failed."""
    words = "".join(traceback.format_exception_only(error)).strip()
    return f'<p role="alert" style="color:var(--jp-error-color1,#d32f2f)">{sanitize.escape(words)}</p>'


def _events(call: RecordedCall) -> list[Event]:
    reads = call.reads if _streams(call) else ()
    pieces = [(read.t_ns, data) for read in reads for data in read.data]
    return [Event(place, t_ns / 1e9, data.decode(errors="replace")) for place, (t_ns, data) in enumerate(pieces)]


def _request(call: RecordedCall) -> tuple[Sequence[str], str]:
    """What to say about the request, and its head and body as they were sent, but for the key."""
    facts = f"{call.row['attempts'] or 0} sent, started {call.started_at:%Y-%m-%d %H:%M:%S} UTC"
    head = [f"POST {call.row['url']}", "authorization: Bearer ••••••", "content-type: application/json"]
    return (facts,), _message(head, json.dumps(call.body, indent=2, ensure_ascii=False))


def _response(call: RecordedCall) -> tuple[Sequence[str], str]:
    """What to say about the response, and its head and body as they came."""
    status = call.row["http_status"]
    where = "No response came" if status is None else f"Status {status}"
    said = "" if call.error is None else f"{type(call.error).__name__}: {call.error}"
    head = [] if status is None else [f"HTTP {status}"]
    head += [f"{name}: {value}" for name, value in _headers(call)]
    if _streams(call):
        return (where, said or "An event stream: see Events."), _message(head, "")
    return (where, said), _message(head, _pretty(b"".join(data for read in call.reads for data in read.data)))


def _headers(call: RecordedCall) -> list[tuple[str, str]]:
    """The response's headers, as many as are kept."""
    return [(name, value) for name, value in json.loads(call.row["response_headers"] or "[]")]


def _streams(call: RecordedCall) -> bool:
    """Whether an event stream came: a refusal is none, though a stream was asked for."""
    said = [value for name, value in _headers(call) if name.lower() == "content-type"]
    return any("event-stream" in value for value in said) if said else bool(call.row["streamed"])


def _message(head: Sequence[str], body: str) -> str:
    return sanitize.visible("\n".join([*head, "", body] if body else head))


def _pretty(body: bytes) -> str:
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except ValueError:
        return body.decode(errors="replace")


def _table(events: Sequence[Event], *, found: int, of: int) -> str:
    """The events of one page, each on a line of its own."""
    if not of:
        return "<p>No events: the reply was not an event stream, or nothing came.</p>"
    if not found:
        return f"<p>None of the {of:,} events holds that text.</p>"
    shown = f"Events {events[0].number + 1:,} to {events[-1].number + 1:,}" + (
        f" of {of:,}" if found == of else f"; {found:,} of {of:,} hold the text"
    )
    rows = "".join(
        f'<tr><td style="{CELL}">{event.number + 1}</td><td style="{CELL}">{event.t_s:.3f} s</td>'
        f'<td style="{CELL};overflow-wrap:anywhere"><code>{sanitize.escape(event.text)}</code></td></tr>'
        for event in events
    )
    head = "".join(f'<th scope="col" style="{CELL}">{name}</th>' for name in ("event", "arrived", "data"))
    return (
        f'<p role="status" style="margin:4px 0">{shown}</p><div tabindex="0" role="region" aria-label="events" '
        f'style="max-height:28em;overflow:auto;line-height:1.4"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )
