"""The live view of the call that a cell waits for; at the end its transcript takes the view's place."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import msgspec

from famnb.client.live_call import Stream
from famnb.widget.html import facts, transcript
from famnb.widget.live.reply_pane import UNFINISHED, PaneView, ReplyPane, StreamLike, reply_so_far
from famnb.widget.runtime.intent import urgent_intent
from famnb.widget.runtime.output import Output, mark_as_shown
from famnb.widget.runtime.tool import RELOADED, BaseTool, Flusher, keep_ended
from famnb.widget.runtime.view import View

# Long enough for a stopped call to be recorded; whoever has pressed Stop waits no longer than that.
GRACE_S = 2.0
"""Seconds for which a cell that is cancelled waits for its stopped call to end."""


class RepliesView(View, frozen=True):
    """The panes of a live view; none while it is hidden."""

    panes: tuple[PaneView, ...]


class ReplyView(BaseTool):
    """A stream under the cell that waits for it."""

    entry = "tools/live.js"
    # The transcript takes the view's place; this is in a file that is saved before.
    note = UNFINISHED

    def __init__(self, stream: StreamLike, *, flusher: Flusher | None = None, **traits: Any) -> None:
        """Show a stream until it ends."""
        self._pane = ReplyPane(stream, key="reply")
        self._is_hidden = False
        super().__init__(flusher=flusher, **traits)
        self.follow([self._pane])

    def view(self) -> RepliesView:
        pane = self._pane.view()
        if self.reloaded and not pane.is_running:
            note = RELOADED.format(what="this reply (client.last, or the variable that holds it)", tool="it")
            pane = msgspec.structs.replace(pane, notes=(*pane.notes, note))
        return RepliesView(panes=() if self._is_hidden else (pane,))

    def on_reload(self) -> None:
        # The output that took the place of a hidden view is not on the new page.
        self._is_hidden = False

    @urgent_intent
    def stop(self, pane: str = "") -> None:  # noqa: ARG002 - there is but one
        """End the call and keep what has arrived."""
        self._pane.stream.stop()

    def hide(self) -> None:
        """Show nothing until the page is reloaded."""
        with self.lock:
            self._is_hidden = True
            self.refresh()


@contextlib.contextmanager
def viewer(stream: Stream) -> Iterator[None]:
    """Show a stream under the cell while the body waits for it, then leave its transcript as ordinary output."""
    view = ReplyView(stream, blocking=True)
    output = Output()
    output.show(view.mime_bundle()[0])
    try:
        yield
    finally:
        view.blocking = False
        # The body of an interrupted or cancelled cell ends before its call does.
        if stream.running:
            stream.stop()
            stream.wait(GRACE_S)
        bundle = transcript.reply_bundle(reply_so_far(stream))
        if output.captured:
            view.hide()
            Output().show(bundle)
        else:
            output.replace(bundle)
            if stream.reply.error is not None:
                stream.reply.error.is_shown = facts.failure(stream.reply) is not None
        mark_as_shown(stream.reply)
        # A reloaded page still has the view in place of the transcript, and asks it for everything.
        keep_ended(view)
