"""A live view with controls: it carries out what its page wishes, one wish at a time, and says why one could not be."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import traitlets

from famnb.errors import InvalidRequest
from famnb.widget.html import notices
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.live.live_view import LiveView
from famnb.widget.live.output import Output

STILL_ANSWERING = "prompt: it was not sent, since an answer is still being written; send it again once that has ended"
_NOTE_HTML = SafeHtml('<p style="opacity:0.75">{}</p>')
Value = TypeVar("Value")


class Computed(traitlets.TraitType[Value, Value]):
    """A trait whose value is computed whenever it is read; `FormWidget.notify` tells its observers."""

    def __init__(self, function: Callable[[Any], Value]) -> None:
        super().__init__(read_only=True, help=function.__doc__)
        self._function = function
        self.__doc__ = function.__doc__

    def get(self, obj: Any, cls: Any = None) -> Value:  # noqa: ARG002 - traitlets gives the class as well
        """Return the value."""
        return self._function(obj)


class FormWidget(LiveView):
    """A widget with controls around its live panes.

    A tool says what is to be drawn (`describe`, `describe_state`), what is saved (`html`, `show_outputs`), and carries
    out messages of the page (`act`, `stop_pane`).
    """

    note = ""
    """What stands in the place of the widget where no kernel is."""

    def __init__(self) -> None:
        # Callbacks come on the main thread, on an ipykernel subshell's, on the live view's flusher, or on a turn's own.
        # Reentrant, since what a callback does may notify observers who take the lock again. Whoever holds it may wait
        # for the view's own lock, never the other way round.
        self._guard = threading.RLock()
        self._trouble = ""
        """Why the last wish could not be carried out; empty if it could."""
        super().__init__()
        self.observe(lambda _: self.tell_state(), "reloaded")

    # What a tool defines

    @property
    def code(self) -> str:
        """The code that its page asks to copy."""
        raise NotImplementedError

    def act(self, message: dict[str, Any]) -> None:
        """Carry out a message of the page; the error that it raises is shown there."""
        raise NotImplementedError

    def stop_pane(self, pane: str) -> None:
        """Stop the pane of that id, or all that runs if it is empty. It must not wait for a lock."""
        raise NotImplementedError

    def describe_state(self) -> dict[str, Any]:
        """Return what the page needs to know of the tool after every wish."""
        raise NotImplementedError

    def html(self) -> SafeHtml:
        """Return what a saved notebook shows of the tool, without its note."""
        raise NotImplementedError

    def show_outputs(self, *, captured: bool) -> None:
        """Put the ordinary outputs below the widget; `captured` ones, inside an Output widget, cannot be replaced."""
        raise NotImplementedError

    # Messages

    def tell_changes(self, **parts: Any) -> None:
        """Send what has changed beside the panes."""
        with self._lock:
            self._send_numbered({"kind": "changes", "panes": {}, **parts})

    def tell_state(self) -> None:
        """Send the state."""
        self.tell_changes(state=self.describe_state())

    def notify(self, *names: str) -> None:
        """Tell observers of computed traits that they have changed; a request that is not valid is None to them."""
        for name in names:
            if not self._trait_notifiers.get(name):
                continue
            try:
                value = getattr(self, name)
            except InvalidRequest:
                value = None
            change = {"name": name, "old": None, "new": value, "owner": self, "type": "change"}
            self.notify_change(traitlets.Bunch(change))

    def _on_message(self, widget: object, message: dict[str, Any], buffers: object) -> None:
        match message:
            case {"kind": "ready"}:
                super()._on_message(widget, message, buffers)
            case {"kind": "stop"}:
                # Without the lock: whoever holds it may be about to send, and Stop waits for nobody.
                LiveView.send(self, {"kind": "stopping"})
                self.stop_pane(str(message.get("pane", "")))
            case {"kind": "copy"}:
                LiveView.send(self, {"kind": "copied", "text": self.code})
            case _:
                with self._guard:
                    is_done = self._carry_out(message)
                # The page keeps its buttons locked until this arrives, so that two clicks send one request.
                LiveView.send(self, {"kind": "taken", "ok": is_done})

    def _carry_out(self, message: dict[str, Any]) -> bool:
        """Do what a message asks for; returns whether that succeeded, and shows why not."""
        had_trouble, self._trouble = bool(self._trouble), ""
        try:
            self.act(message)
        # ipywidgets would only log it, where nobody looks.
        except Exception as error:
            self._trouble = notices.error_text(error)
        if had_trouble or self._trouble:
            self.tell_state()
        return not self._trouble

    # What is saved

    def _ipython_display_(self) -> None:
        self.reloaded = False
        self._trouble = ""
        controls = Output()
        controls.show(self.controls_bundle())
        # An Output widget that captures the controls captures the output below them too.
        self.show_outputs(captured=controls.captured)
        with self._lock:
            self._send_snapshot(whole=True)

    def controls_bundle(self) -> dict[str, Any]:
        """Return the widget as an output that stands above an ordinary one with what was said."""
        bundle, _ = self._bundle(_NOTE_HTML.format(f"{self.note} What was said stands below."))
        return bundle

    def _repr_mimebundle_(self, **_options: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the widget, and for who has no kernel what was said so far and how to get the widget back."""
        return self._bundle(self.html() + _NOTE_HTML.format(self.note))

    def _bundle(self, html: SafeHtml) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_() or ({}, {})
        return {**data, "text/html": html, "text/plain": self.note}, metadata
