"""Live views in a notebook: one flusher thread sends what changed, and a cell shows a stream while it waits for it.

    stream.events ── Pane.changes ── Flusher, 20 times a second ── LiveView.flush ── one custom message ── front end
                                                                   └ ready, stop ◄───────────────────────┘

A message sent before a view exists is lost, and one may be dropped on the way. So every message has a number, a view
that is new or misses a number says `ready` and gets everything, and a view that cannot be heard, because the kernel
runs a cell, gets everything once a second anyway. The last message is always everything.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import traitlets
from IPython import get_ipython

from famnb.client.live_call import Stream
from famnb.widget.html import transcript
from famnb.widget.live import output as shown
from famnb.widget.live.base import FRONT, BaseWidget
from famnb.widget.live.pane import Pane, Streaming, reply_so_far

PERIOD_S = 0.055
"""Between two looks at the streams: the eye is content, and the server drops nothing."""
UNHEARD_LOOKS = 20
"""How many looks apart everything is sent to a view that was never heard."""
GRACE_S = 2.0
"""How long a cell that is cancelled waits for its stopped call."""
REMEMBERED = 8
"""How many finished live views stay open for a page that was reloaded meanwhile."""

UNFINISHED = "A reply was streaming here when this was saved: famnb.calls() has what came of it."
"""What a file says that was saved too early."""
_RELOADED = (
    "This page was reloaded, and a reloaded page cannot change outputs it already has: to save this reply with the "
    "notebook, show it in a new cell (client.last, or the variable that holds it)."
)

_log = logging.getLogger(__name__)


class LiveView(BaseWidget):
    """Streams, drawn while they run; holds no model text in any trait, so none is saved as widget state."""

    _esm = FRONT / "famnb.js"
    _css = FRONT / "famnb.css"
    kernel_id = traitlets.Unicode(read_only=True).tag(sync=True)
    """The server's id of this kernel, by which the page can have it interrupted; empty if unknown."""
    blocking = traitlets.Bool(False).tag(sync=True)
    """Whether a cell waits for the streams, so that the kernel may not hear that they shall stop."""
    sends_final_snapshot = True
    """Whether everything is sent when the last stream has ended; else `then` must see to it."""
    reloaded = traitlets.Bool(False)
    """Whether the page was reloaded since: it no longer follows changes to outputs that it had before."""

    def __init__(self, *, flusher: Flusher | None = None, remark: str = "", **traits: Any) -> None:
        """`remark` is said of a reply that has ended, on a page that was reloaded."""
        super().__init__(**traits)
        self.set_trait("kernel_id", _kernel_id())
        self._flusher = flusher or FLUSHER
        self._remark = remark
        # Callbacks come on the main thread or on a subshell's, looks on the flusher's.
        self._guard = threading.RLock()
        self._panes: dict[str, Pane] = {}
        self._running: list[str] = []
        """The panes whose stream has not ended, as far as anyone was told."""
        self._on_end: Callable[[], object] = bool
        """What to call when the last of them has ended."""
        self._sequence = 0
        self._looks = 0
        self._heard = False
        self._page = ""
        self._hidden = False
        self._broken = False
        self.on_msg(self._on_message)

    def watch(self, stream: Streaming, *, stop: bool = True, on_end: Callable[[], object] = bool) -> None:
        """Show a stream until it ends, alone; `then` is called on the flusher's thread after its last message."""
        self.follow([Pane(stream, id=f"pane{self._sequence}", stop=stop)], on_end=on_end)

    def follow(self, panes: Sequence[Pane], *, after: Sequence[Pane] = (), on_end: Callable[[], object] = bool) -> None:
        """Show these panes until their streams have ended; `then` is called after the last message of all.

        They stand below those they come `after`, which have ended before.
        """
        with self._guard:
            self._panes = {pane.id: pane for pane in (*after, *panes)}
            self._running = [pane.id for pane in panes]
            self._on_end = on_end
            self._hidden = False
            self._looks = 0
            self._send_snapshot()
        self._flusher.add(self)

    def hide(self) -> None:
        """Show nothing, until the next stream or a reload of the page."""
        with self._guard:
            self._hidden = True
            self._send_snapshot()

    @property
    def running(self) -> bool:
        """Whether there is more to come."""
        return bool(self._running)

    def flush(self) -> None:
        """Send what changed, and tell of a stream that has ended."""
        with self._guard:
            over = [id for id in self._running if not self._panes[id].stream.running]
            try:
                self._look(over)
            except Exception:  # a view that cannot be drawn must keep neither its stream from ending nor other views
                if not self._broken:
                    _log.warning("famnb: a live view cannot be drawn; the call itself goes on", exc_info=True)
                self._broken = True
            self._running = [id for id in self._running if id not in over]
            end = self._on_end if over and not self._running else None
        if end is not None:
            end()

    def _look(self, over: Sequence[str]) -> None:
        """Send what streams have added, then what else is to be said of those that have ended, which takes longer."""
        anew = [id for id in self._running if id in over or self._panes[id].service_changed]
        made = {id: changes for id in self._running if (changes := self._panes[id].changes())}
        unheard = not self._heard and (self._looks < UNHEARD_LOOKS or self._looks % UNHEARD_LOOKS == 0)
        self._looks += 1
        if unheard and (made or anew):
            self._send_snapshot()
            return
        if made:
            self._send_numbered({"kind": "changes", "panes": made})
        if over and len(over) == len(self._running) and self.sends_final_snapshot:
            self._send_snapshot()
        elif anew:
            made = {id: changes for id in anew if (changes := self._panes[id].changes())}
            self._send_numbered({"kind": "changes", "panes": made, "anew": [self._panes[id].summary() for id in anew]})

    def _send_snapshot(self) -> None:
        panes = [] if self._hidden else [pane.snapshot() for pane in self._panes.values()]
        if self.reloaded and self._remark:
            panes = [pane if pane["running"] else {**pane, "notes": [*pane["notes"], self._remark]} for pane in panes]
        self._send_numbered({"kind": "snapshot", "panes": panes})

    def _send_numbered(self, message: dict[str, Any]) -> None:
        self._sequence += 1
        self.send({**message, "seq": self._sequence})

    def _on_message(self, _widget: object, message: dict[str, Any], _buffers: object) -> None:
        with self._guard:
            match message:
                case {"kind": "ready", "page": str(page)}:
                    self._heard = True
                    if self._page not in ("", page):
                        self._hidden = False
                        self.reloaded = True
                    self._page = page
                    self._send_snapshot()
                case {"kind": "stop", "pane": str(id)} if id in self._panes:
                    self.send({"kind": "stopping"})
                    self._panes[id].stream.stop()
                case _:
                    pass


class Flusher:
    """One thread that has every running view send what changed, at a pace that page and server can follow."""

    def __init__(self, *, period_s: float = PERIOD_S) -> None:
        self._period_s = period_s
        self._views: list[LiveView] = []
        self._some = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, view: LiveView) -> None:
        """Take care of a view until it has nothing more to come."""
        with self._some:
            if view not in self._views:
                self._views.append(view)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="famnb-live", daemon=True)
                self._thread.start()
            self._some.notify()

    def _run(self) -> None:
        while True:
            with self._some:
                self._some.wait_for(lambda: self._views)
                views = list(self._views)
            for view in views:
                view.flush()
            with self._some:
                # A view may have been given another stream since: so it is asked here, where `add` waits.
                self._views = [view for view in self._views if view.running]
            time.sleep(self._period_s)


FLUSHER = Flusher()
"""The process's own."""
_open_views: collections.deque[LiveView] = collections.deque()


@contextlib.contextmanager
def viewer(stream: Stream) -> Iterator[None]:
    """Shows a stream under the cell while the body waits for it, then leaves its transcript as ordinary output."""
    view = LiveView(blocking=True, remark=_RELOADED)
    output = shown.Output()
    output.show(view, placeholder=UNFINISHED)
    view.watch(stream)
    try:
        yield
    finally:
        view.blocking = False
        if stream.running:  # an awaiting cell was cancelled, which does not wait for the call to end
            stream.stop()
            stream.wait(GRACE_S)
        made = transcript.reply_bundle(reply_so_far(stream))
        if output.captured:
            view.hide()
            shown.Output().show(made)
        else:
            output.replace(made)
        shown.mark_as_shown(stream.reply)
        _open_views.append(view)
        while len(_open_views) > REMEMBERED:
            _open_views.popleft().close()


def _kernel_id() -> str:
    """The id in the name of the kernel's connection file, which is the server's id of the kernel."""
    shell = get_ipython()
    path = str(shell.config.get("IPKernelApp", {}).get("connection_file", "")) if shell else ""
    found = re.search(r"kernel-(.+)\.json$", path)
    return found[1] if found else ""
