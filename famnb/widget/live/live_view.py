"""Live views of streams in a notebook: one flusher thread sends to all of them what changed.

    stream.events ── Pane.changes ── Flusher, 22 times a second ── LiveView.flush ── one custom message ── front end
                                                                   └ ready, stop ◄───────────────────────┘

A message that is sent before the page has drawn the view is lost, and one may be dropped on the way. So every message
has a number; a page that is new or misses a number says `ready` and gets a snapshot; and a page whose `ready` has not
arrived, because the kernel runs a cell, gets a snapshot once a second anyway. The last message of a stream is always a
snapshot.

A `FormWidget` is a live view with controls: it carries out what its page wishes, one wish at a time, and says why one
could not be carried out.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import traitlets
from IPython import get_ipython

from famnb.errors import InvalidRequest
from famnb.widget.html import notices
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.live.base import FRONT, BaseWidget, join_front
from famnb.widget.live.pane import Change, Pane
from famnb.widget.live.reply_pane import StreamLike
from famnb.widget.runtime.output import Output
from famnb.widget.runtime.tool import FLUSHER, Flusher

# Rare, since a snapshot has all of the text, where a message of changes has only what is new.
UNHEARD_FLUSHES = 20
"""Flushes between two snapshots to a page that never said `ready`: about a second."""

_log = logging.getLogger(__name__)


class LiveView(BaseWidget):
    """Streams, drawn while they run. No trait holds text of a model, so none is saved as widget state."""

    _esm = join_front("live.js")
    _css = FRONT / "style.css"
    kernel_id = traitlets.Unicode(read_only=True).tag(sync=True)
    """The server's id of this kernel, by which the page can have it interrupted; empty if unknown."""
    blocking = traitlets.Bool(False).tag(sync=True)
    """Whether a cell waits for the streams, in which case the kernel may not hear the page's `stop`."""
    sends_final_snapshot = True
    """Whether a snapshot is sent when the last stream has ended; if not, `on_end` must send it."""
    reloaded = traitlets.Bool(False)
    """Whether the page was reloaded since the view was shown; such a page does not follow changes of older outputs."""

    def __init__(self, *, flusher: Flusher | None = None, remark: str = "", **traits: Any) -> None:
        """Show nothing yet. `remark` is shown below a reply that has ended, on a page that was reloaded."""
        super().__init__(**traits)
        self.set_trait("kernel_id", _kernel_id())
        self._flusher = flusher or FLUSHER
        self._remark = remark
        # Callbacks run on the main thread or on a subshell's, flushes on the flusher's.
        self._lock = threading.RLock()
        self._panes: dict[str, Pane] = {}
        self._running: list[str] = []
        """The ids of the panes whose end was not sent yet."""
        self._on_end: Callable[[], object] | None = None
        self._sequence = 0
        """The number of the last message."""
        self._flushes = 0
        """Flushes since `follow`."""
        self._is_heard = False
        """Whether a page has said `ready`."""
        self._page = ""
        """The id of the page that last said `ready`, which a reload changes."""
        self.is_hidden = False
        """Whether it shows nothing, although it has panes."""
        self._is_broken = False
        """Whether drawing has failed, which is logged once."""
        self.on_msg(self._on_message)

    def watch(self, stream: StreamLike, *, on_end: Callable[[], object] | None = None) -> None:
        """Show one stream until it ends; `on_end` is called on the flusher's thread after its last message."""
        self.follow([Pane(stream, id=f"pane{self._sequence}")], on_end=on_end)

    def follow(
        self, panes: Sequence[Pane], *, earlier: Sequence[Pane] = (), on_end: Callable[[], object] | None = None
    ) -> None:
        """Show these panes until their streams have ended; `on_end` is called after the last message of all.

        The `earlier` panes, whose streams have ended, stand above them.
        """
        with self._lock:
            self._panes = {pane.id: pane for pane in (*earlier, *panes)}
            for pane in panes:
                pane.sharers = len(panes)
            self._running = [pane.id for pane in panes]
            self._on_end = on_end
            self.is_hidden = False
            self._flushes = 0
            self._send_snapshot()
        self._flusher.add(self)

    def hide(self) -> None:
        """Show nothing until the next stream or a reload of the page."""
        with self._lock:
            self.is_hidden = True
            self._send_snapshot()

    @property
    def running(self) -> bool:
        """Whether a stream has not ended yet."""
        return bool(self._running)

    @property
    def needs_flush(self) -> bool:
        """Whether the flusher has to come by again."""
        return self.running

    def flush(self) -> None:
        """Send what changed, and call `on_end` when the last stream has ended."""
        with self._lock:
            ended = [id for id in self._running if not self._panes[id].stream.running]
            try:
                self._send_changes(ended)
            # A view that cannot be drawn must keep neither its own stream from ending nor other views from drawing.
            except Exception:
                if not self._is_broken:
                    _log.warning("famnb: a live view cannot be drawn; the call itself goes on", exc_info=True)
                self._is_broken = True
            self._running = [id for id in self._running if id not in ended]
            on_end = self._on_end if ended and not self._running else None
        # Without the lock: `on_end` may wait for a lock of the view's owner, and a callback that holds that lock may
        # wait for this one.
        if on_end is not None:
            on_end()

    def _send_changes(self, ended: Sequence[str]) -> None:
        """Send what streams have added, then the summaries of those that have ended, which take longer to make."""
        redrawn = [id for id in self._running if id in ended or self._panes[id].service_changed]
        added = self._take_changes(self._running)
        # Each flush of the first second too: the page draws the view in that time, and what it got before is lost.
        is_snapshot_due = self._flushes < UNHEARD_FLUSHES or self._flushes % UNHEARD_FLUSHES == 0
        self._flushes += 1
        if not self._is_heard and is_snapshot_due and (added or redrawn):
            self._send_snapshot(whole=True)
            return
        if added:
            self._send_numbered({"kind": "changes", "panes": added})
        if ended and len(ended) == len(self._running) and self.sends_final_snapshot:
            self._send_snapshot()
            return
        others = [id for id in self._running if id not in redrawn]
        for id in redrawn:
            # Changes once more: a block that was closed is rendered one flush after its last text.
            added = self._take_changes([id])
            summary = self._panes[id].summary()
            # Meanwhile others have gone on, whose last words should not wait for the summaries of all.
            added |= self._take_changes(others)
            self._send_numbered({"kind": "changes", "panes": added, "anew": [summary]})

    def _take_changes(self, ids: Sequence[str]) -> dict[str, list[Change]]:
        """Return what panes have to tell, by their place in the last snapshot: ids would be half of a message."""
        places = {id: str(place) for place, id in enumerate(self._panes)}
        return {places[id]: changes for id in ids if (changes := self._panes[id].changes())}

    def describe(self) -> dict[str, Any]:
        """Return what a page needs beside the panes when it is new; nothing here."""
        return {}

    def _send_snapshot(self, *, whole: bool = False) -> None:
        """Send every pane, and with `whole` all else that a new page needs."""
        panes = [] if self.is_hidden else [pane.snapshot() for pane in self._panes.values()]
        if self.reloaded and self._remark:
            panes = [pane if pane["running"] else {**pane, "notes": [*pane["notes"], self._remark]} for pane in panes]
        self._send_numbered({"kind": "snapshot", "panes": panes, **(self.describe() if whole else {})})

    def _send_numbered(self, message: dict[str, Any]) -> None:
        self._sequence += 1
        self.send({**message, "seq": self._sequence})

    def _on_message(self, _widget: object, message: dict[str, Any], _buffers: object) -> None:
        with self._lock:
            match message:
                case {"kind": "ready", "page": str(page)}:
                    self._is_heard = True
                    if self._page not in ("", page):
                        # The output that took the place of a hidden view is not on the new page.
                        self.is_hidden = False
                        self.reloaded = True
                    self._page = page
                    self._send_snapshot(whole=True)
                case {"kind": "stop", "pane": str(id)} if id in self._panes:
                    self.send({"kind": "stopping"})
                    self._panes[id].stream.stop()
                case _:
                    pass


def _kernel_id() -> str:
    """Return the server's id of the kernel, which is in the name of its connection file; "" if unknown."""
    shell = get_ipython()
    path = str(shell.config.get("IPKernelApp", {}).get("connection_file", "")) if shell else ""
    match = re.search(r"kernel-(.+)\.json$", path)
    return match[1] if match else ""


_NOTE_HTML = SafeHtml('<p style="opacity:0.75">{}</p>')


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
