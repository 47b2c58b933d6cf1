"""The composer: choose an endpoint, fill in its form, send, watch, stop; what was said stays as ordinary output."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets
import pydantic

from famnb.client import Client, Stream
from famnb.endpoints import ENDPOINTS, compose, endpoint
from famnb.errors import FamnbError, InvalidRequest
from famnb.reply import Reply
from famnb.request import Request
from famnb.widget import markup, notes, transcript
from famnb.widget.desk import Desk
from famnb.widget.fields import Path, body, faults_of
from famnb.widget.form import MODEL, Form, boxed, labelled
from famnb.widget.pane import known
from famnb.widget.shown import Output

_EMPTY = "Replies appear here and are saved with the notebook."
_RELOADED = (
    "This page was reloaded, and a reloaded page cannot change outputs it already has. To save this reply with the "
    "notebook, show the composer in a new cell."
)
_APART: frozenset[Path] = frozenset({("system",), ("instructions",)})
"""Drawn once, as the system text, whichever the endpoint."""
_STREAM: Path = ("stream",)


class Composer:
    """A form for all four endpoints that sends, shows the reply as it streams, and keeps every transcript.

    `reply`, `replies` and `request` are for the cells below; `send()` and `stop()` do what the buttons do.
    """

    def __init__(self, client: Client, *, endpoint: str = "messages", prompt: str = "", system: str = "") -> None:
        self._client = client
        # Callbacks come on the main thread, on a subshell's, or on the flusher's.
        self._guard = threading.RLock()
        self._stream: Stream | None = None
        self._replies: list[Reply] = []
        self._transcripts: list[tuple[str, transcript.Bundle]] = []
        self._output = Output()
        self._left: dict[str, dict[Path, str]] = {}
        """What was filled in at the endpoints that were left."""
        self._losses: tuple[str, ...] = ()
        self._controls(endpoint, prompt, system)
        self._arrange(self._drawn(endpoint, {_STREAM: "true"}))

    @property
    def request(self) -> Request:
        """The request as the form has it now; raises InvalidRequest, naming the fields, when it is none."""
        request, faults, _ = self._read()
        if not self._desk.prompt.strip() and not self._desk.replaced:
            raise InvalidRequest("prompt: nothing is asked yet; write a prompt")
        if request is None:
            raise InvalidRequest("; ".join(map(_said, faults.items())))
        return request

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

    def _ipython_display_(self) -> None:
        self._desk.reloaded = False
        self._trouble.value = ""
        controls = Output()
        controls.show(self._box)
        self._output.captured = controls.captured
        if not controls.captured:
            self._output.show(self._bundle())

    def __repr__(self) -> str:
        return f"<Composer {self._form.endpoint.name}, {len(self._replies)} replies>"

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

    def _read(self) -> tuple[Request | None, dict[Path, str], dict[str, Any]]:
        """The request that the form holds, or the faults that keep it from being one; and the body as it stands."""
        form, at = self._form, self._form.endpoint
        made, faults = body(form.fields, form.raw)
        system = self._system.value.strip() or None
        asked = compose(at.name, self._desk.prompt.strip() or "…", system=system).body()
        whole = {**asked, **made}
        if faults:
            return None, faults, whole
        try:
            request = at.request.model_validate(whole)
        except pydantic.ValidationError as error:
            return None, faults_of(form.fields, error), whole
        return request, {}, request.body()

    def _edited(self) -> None:
        """Something was edited: say what is wrong, what may surprise, and what would be sent."""
        request, faults, whole = self._read()
        self._form.show(faults)
        self._desk.replaced = bool(self._form.raw.get((self._form.endpoint.request.prompt_field,)))
        self._desk.fault = next(map(_said, faults.items()), "")
        remarks = list(self._losses)
        if request is not None:
            system = self._system.value.strip()
            remarks += notes.unsent(request, system=system, replaced=self._desk.replaced) + notes.surprises(request)
        self._notes.value = "".join(f'<p class="famnb-remark">{markup.words(remark)}</p>' for remark in remarks)
        text = markup.escape(json.dumps(whole, indent=2, ensure_ascii=False))
        said = f"POST {self._form.endpoint.path}" + (", not valid yet" if faults else "")
        shown = f'<p>{said}</p><pre tabindex="0" role="region" aria-label="JSON body">{text}</pre>'
        self._json.value = shown if self._show_json.value else ""

    def _moved(self) -> None:
        """Another endpoint was chosen: carry over what it can take, and say what it cannot."""
        source, target = self._form.endpoint, endpoint(self._endpoint.value)
        kept, self._losses = notes.carried(self._form.raw, source, target)
        own = {field.path for field in self._form.fields} - {MODEL}
        before = {path: text for path, text in self._left.get(target.name, {}).items() if path not in own}
        left, self._left[source.name] = self._form, dict(self._form.raw)
        self._arrange(self._drawn(target.name, {**before, **kept}))
        left.close()

    # How it looks

    def _controls(self, name: str, prompt: str, system: str) -> None:
        """Make the controls that all endpoints share."""
        self._endpoint = labelled(
            widgets.Dropdown,
            title="Endpoint",
            help="Where to send it",
            options=tuple(ENDPOINTS),
            value=endpoint(name).name,
        )
        self._where = widgets.HTML()
        self._place = boxed(self._endpoint, self._where, kind="endpoint")
        self._system = labelled(
            widgets.Textarea,
            title="System",
            help="How the model shall behave",
            value=system,
            placeholder="not set",
            rows=1,
        )
        self._show_all = widgets.ToggleButton(description="All fields", tooltip="Show every field of this endpoint")
        self._show_json = widgets.ToggleButton(description="JSON body", tooltip="Show exactly what is sent")
        self._first, self._all = widgets.HBox(), widgets.VBox()
        self._json, self._notes, self._trouble = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self._desk = Desk(sent=self._guarded(self.send), prompt=prompt)
        toggles = widgets.HBox([self._show_all, self._show_json])
        for widget, style in (
            (self._first, "row"),
            (self._all, "all"),
            (self._json, "body-json"),
            (toggles, "toggles"),
        ):
            widget.add_class(f"famnb-{style}")
        parts = [
            self._first,
            boxed(self._system, kind="system"),
            toggles,
            self._all,
            self._json,
            self._notes,
            self._desk,
            self._trouble,
        ]
        self._box = widgets.VBox(parts)
        self._box.add_class("famnb-composer")
        self._on(self._endpoint, self._moved)
        self._on(self._show_all, self._unfolded)
        self._on(self._show_json, self._edited)
        self._on(self._system, self._edited)
        self._desk.observe(lambda _: self._guarded(self._edited)(), "prompt")
        self._desk.observe(lambda change: change["new"] and self._guarded(self._reloaded)(), "reloaded")

    def _drawn(self, name: str, raw: dict[Path, str]) -> Form:
        return Form(endpoint(name), raw=raw, apart=_APART, changed=self._guarded(self._edited))

    def _arrange(self, form: Form) -> None:
        """Put a form's controls in their places."""
        self._form = form
        at = form.endpoint
        self._where.value = f'<span class="famnb-help">{at.title}: POST {at.path}</span>'
        self._first.children = [self._place, *form.first]
        self._unfolded()
        self._edited()

    def _unfolded(self) -> None:
        self._all.children = self._form.rest() if self._show_all.value else []

    def _on(self, control: Any, callback: Callable[[], object]) -> None:
        control.observe(lambda _: self._guarded(callback)(), "value")

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


def _said(fault: tuple[Path, str]) -> str:
    path, words = fault
    name = ".".join(path)
    return words if not name or words.startswith(name) else f"{name}: {words}"
