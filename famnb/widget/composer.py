"""The composer: choose an endpoint, fill in its form, send, watch, stop; what was said stays as ordinary output.

Composer ──┬── Editor   the form: what is asked, as a Draft
           ├── Desk     the prompt box above the live view
           └── panels   presets, history, code, JSON body: each has a `title` and a `box`, is told when it is `opened`
                        and when the form has `changed`, and all else it needs when it is made
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import ipywidgets as widgets

from famnb.client import Client, Stream
from famnb.client.asking import fitting
from famnb.client.rounds import Tools
from famnb.errors import FamnbError, InvalidRequest
from famnb.record import Call, Ledger
from famnb.reply import Reply
from famnb.request import Request
from famnb.widget import markup, transcript
from famnb.widget.bodybox import BodyBox
from famnb.widget.codebox import CodeBox
from famnb.widget.desk import Desk
from famnb.widget.draft import Draft, drafted
from famnb.widget.editor import Editor, said
from famnb.widget.folds import Folds
from famnb.widget.given import Given
from famnb.widget.keys import CLASS, Keys
from famnb.widget.pane import known
from famnb.widget.past import Past
from famnb.widget.presetbox import PresetBox
from famnb.widget.shown import Output

_EMPTY = "Replies appear here and are saved with the notebook."
_RELOADED = (
    "This page was reloaded, and a reloaded page cannot change outputs it already has. To save this reply with the "
    "notebook, show the composer in a new cell."
)


class Panel(Protocol):
    """Something beside the form that can be opened."""

    title: str
    """What it is called, on its button and above it."""
    hint: str
    """What it is for, on its button."""
    box: widgets.Widget
    """What it shows."""

    def opened(self) -> None:
        """It has come into view."""

    def changed(self) -> None:
        """The form was edited while it is in view."""


class Composer:
    """A form for all four endpoints that sends, shows the reply as it streams, and keeps every transcript.

    `reply`, `replies` and `request` are for the cells below; `send()` and `stop()` do what the buttons do.
    """

    def __init__(
        self,
        client: Client,
        *,
        endpoint: str | None = None,
        prompt: str = "",
        system: str = "",
        tools: Sequence[Callable[..., Any]] = (),
        schema: Any = None,
    ) -> None:
        """Draw the form; nothing is sent yet.

        `tools` are Python functions and `schema` is a type, such as a pydantic model, that the answer shall be JSON of:
        each is a box to tick, and ticked at first where the endpoint can carry it. Without an `endpoint`, `messages`,
        or the one that can carry these. Raises InvalidRequest for what is no tool, type or endpoint.
        """
        self._client = client
        # Callbacks come on the main thread, on a subshell's, or on the flusher's.
        self._guard = threading.RLock()
        self._stream: Stream | None = None
        self._replies: list[Reply] = []
        self._transcripts: list[tuple[str, transcript.Bundle]] = []
        self._output = Output()
        self.tools = Tools.among(list(tools))
        """The functions that the model may call."""
        self._trouble = widgets.HTML()
        self._desk = Desk(sent=self._guarded(self.send), prompt=prompt)
        self._editor = Editor(
            self._desk,
            endpoint=endpoint or fitting(None, self.tools, schema),
            system=system,
            given=Given(self.tools.functions, schema),
            guarded=self._guarded,
            changed=self._changed,
        )
        self._panels: dict[str, Panel] = {panel.title: panel for panel in self._beside()}
        self._beside_form = Folds(draw=self._opened)
        self._beside_form.arrange(tuple(self._panels), [panel.hint for panel in self._panels.values()])
        folds = [self._beside_form.bar, self._beside_form.box]
        self._box = widgets.VBox([*self._editor.parts, *folds, self._editor.notes, self._desk, self._trouble, Keys()])
        self._box.add_class("famnb-composer")
        self._box.add_class(CLASS)
        self._desk.observe(lambda change: change["new"] and self._guarded(self._reloaded)(), "reloaded")
        self._editor.settle()

    @property
    def request(self) -> Request:
        """The request as the form has it now; raises InvalidRequest, naming the fields, when it is none."""
        reading = self._editor.reading
        if not self._desk.prompt.strip() and not reading.replaced:
            raise InvalidRequest("prompt: nothing is asked yet; write a prompt")
        if reading.request is None:
            raise InvalidRequest("; ".join(map(said, reading.faults.items())))
        return reading.request

    @property
    def reply(self) -> Reply | None:
        """The latest reply, as far as it has come; None before the first."""
        stream = self._stream
        return None if stream is None else stream.reply

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The replies that have ended, in order."""
        return tuple(self._replies)

    def send(self) -> Stream:
        """Send the request and return at once; while a reply streams nothing is sent, and its stream is returned.

        Raises InvalidRequest when the form holds no valid request.
        """
        with self._guard:
            if self._stream is not None and self._desk.busy:
                return self._stream
            self._stream = stream = self._client.start(self.request)
            self._desk.busy = True
        self._trouble.value = ""
        self._desk.watch(stream, stop=False, then=self._guarded(lambda: self._ended(stream)))
        return stream

    def stop(self) -> None:
        """Stop the reply that is streaming, if one is; what has come is kept."""
        stream = self._stream
        if stream is not None:
            stream.stop()

    def open(self, asked: Request | Reply | Call | str) -> None:
        """Have a request in the form, exactly: itself, or that of a reply, of a recorded call, or of a call's id.

        Raises InvalidRequest where there is no request, KeyError for a call that is not in the client's ledger.
        """
        ledger = getattr(self._client, "ledger", None)
        if isinstance(asked, str):
            asked = (ledger if isinstance(ledger, Ledger) else Ledger()).call(asked)
        request = asked if isinstance(asked, Request) else asked.request
        if request is None:
            raise InvalidRequest("request: this reply does not know what was asked; give its call's id")
        self._fill(drafted(request))

    def _ipython_display_(self) -> None:
        self._desk.reloaded = False
        self._trouble.value = ""
        controls = Output()
        controls.show(self._box)
        self._output.captured = controls.captured
        if not controls.captured:
            self._output.show(self._bundle())

    def __repr__(self) -> str:
        return f"<Composer {self._editor.form.endpoint.name}, {len(self._replies)} replies>"

    # What was said

    def _ended(self, stream: Stream) -> None:
        """The reply has ended: its transcript becomes ordinary output, and the live view gives way to it."""
        self._replies.append(stream.reply)
        try:
            reply = known(stream)
            self._transcripts.append((transcript.title(reply), transcript.bundle(reply)))
            self._output.replace(self._bundle())
            if self._desk.reloaded:
                self._reloaded()
            elif not self._output.captured:
                self._desk.hide()
        finally:
            self._desk.busy = False

    def _reloaded(self) -> None:
        if self._replies:
            self._trouble.value = f'<p class="famnb-remark">{_RELOADED}</p>'

    def _bundle(self) -> transcript.Bundle:
        if self._transcripts:
            return transcript.session(self._transcripts)
        return {
            "text/html": f'<p style="{transcript.MUTED}">{_EMPTY}</p>',
            "text/markdown": f"*{_EMPTY}*",
            "text/plain": _EMPTY,
        }

    # What is asked

    def _beside(self) -> list[Panel]:
        """The panels beside the form."""
        ledger = getattr(self._client, "ledger", None)
        return [
            PresetBox(draft=lambda: self._editor.draft, load=self._fill),
            Past(ledger if isinstance(ledger, Ledger) else None, load=self.open),
            CodeBox(self._client, request=lambda: self.request),
            BodyBox(reading=lambda: self._editor.reading),
        ]

    def _fill(self, draft: Draft) -> None:
        with self._guard:
            self._editor.fill(draft)

    def _opened(self, title: str) -> list[widgets.Widget]:
        self._panels[title].opened()
        return [self._panels[title].box]

    def _changed(self) -> None:
        for title, panel in self._panels.items():
            if self._beside_form.opened(title):
                panel.changed()

    def _guarded(self, callback: Callable[[], object]) -> Callable[[], None]:
        """The callback with the guard held; what it raises is shown under the widget, where a log would hide it."""

        def call() -> None:
            with self._guard:
                try:
                    callback()
                except Exception as error:
                    words = str(error) if isinstance(error, FamnbError) else f"{type(error).__name__}: {error}"
                    self._trouble.value = f'<p class="famnb-failure" role="alert">{markup.escape(words)}</p>'

        return call
