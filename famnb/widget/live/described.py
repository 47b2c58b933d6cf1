"""Widgets that Python describes part by part: dashboard, inspector, ballot and the view of a run.

    describe() ── snapshot, changes: numbered ──► front/described.js ── draws
    handle()   ◄── what the user does ───────────────────┘

The rules of the messages are those of `live_view`: a page that is new or misses a number says `ready` and gets
everything again. No trait holds what is drawn, so none of it is saved as widget state.
"""

from __future__ import annotations

import threading
from typing import Any

from famnb.widget.html import notices, sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import MUTED_STYLE, Bundle
from famnb.widget.live.base import FRONT, BaseWidget
from famnb.widget.runtime.output import Output

# The class is what style.css hides for as long as the widget above shows the same.
_KEPT = SafeHtml('<div class="famnb-kept">{}</div>')
_NOTE = SafeHtml(f'<p style="{MUTED_STYLE}">{{}}</p>')


class DescribedWidget(BaseWidget):
    """A widget whose page draws what `describe` returns, and whose saved output is what `snapshot` returns."""

    _css = FRONT / "style.css"

    def __init__(self, **traits: Any) -> None:
        # Callbacks come on the main thread or on an ipykernel subshell's, changes from a thread that watches something.
        self._lock = threading.RLock()
        self._sequence = 0
        """The number of the last message."""
        self._is_heard = False
        """Whether a page has said `ready`."""
        self._page = ""
        """The id of the page that last said `ready`, which a reload changes."""
        self._is_reloaded = False
        """Whether the page was reloaded since the widget was shown; such a page cannot change its outputs."""
        self._trouble = ""
        self._output: Output | None = None
        """The output that keeps the snapshot; None before the widget is shown."""
        super().__init__(**traits)
        self.on_msg(self._on_message)

    # What a tool says of itself

    def describe(self) -> dict[str, Any]:
        """Return everything that is drawn, by part; a part that is bytes reaches the page as a DataView."""
        raise NotImplementedError

    def handle(self, message: dict[str, Any]) -> None:
        """Do what the page asks for; what it raises is shown under the widget."""
        raise NotImplementedError

    def snapshot(self) -> Bundle:
        """Return what is left without a kernel, as ordinary output."""
        raise NotImplementedError

    # What is sent

    def send_changes(self, **parts: Any) -> None:
        """Send the parts that have changed; all of them to a page that may not have got any."""
        with self._lock:
            if self._is_heard:
                self._send_numbered({"kind": "changes", **parts})
            else:
                self._send_everything()

    def report(self, error: Exception | None) -> None:
        """Show an error under the widget, or take it away."""
        with self._lock:
            trouble = "" if error is None else sanitize.visible(notices.error_text(error))
            if trouble != self._trouble:
                self._trouble = trouble
                self.send_changes(trouble=trouble)

    def _send_everything(self) -> None:
        self._send_numbered({"kind": "snapshot", **self.describe(), "trouble": self._trouble})

    def _send_numbered(self, message: dict[str, Any]) -> None:
        self._sequence += 1
        # JSON has no bytes: they go beside it, and their names tell the page which is which.
        binary = {name: part for name, part in message.items() if isinstance(part, bytes)}
        words = {name: part for name, part in message.items() if name not in binary}
        if binary:
            self.send({**words, "binary": list(binary), "seq": self._sequence}, list(binary.values()))
        else:
            self.send({**words, "seq": self._sequence})

    def _on_message(self, _widget: object, message: dict[str, Any], _buffers: object) -> None:
        with self._lock:
            try:
                match message:
                    case {"kind": "ready", "page": str(page)}:
                        self._is_heard = True
                        if self._page not in ("", page) and not self._is_reloaded:
                            self._is_reloaded = True
                            self.on_reload()
                        self._page = page
                        self._send_everything()
                    case _:
                        self.handle(message)
                        self.report(None)
            # ipywidgets would only log it, where nobody looks.
            except Exception as error:
                self.report(error)

    def on_reload(self) -> None:
        """Called when the page turns out to be reloaded."""

    # What is shown and saved

    @property
    def can_replace_output(self) -> bool:
        """Whether what is saved is in an output of its own that this page can change."""
        return self._output is not None and not self._output.captured and not self._is_reloaded

    def keep_snapshot(self) -> None:
        """Bring the saved output up to date."""
        if self._output is not None and self.can_replace_output:
            self._output.replace(self._kept_bundle())

    def _kept_bundle(self) -> Bundle:
        bundle = self.snapshot()
        return {**bundle, "text/html": _KEPT.format(SafeHtml(bundle["text/html"]))}

    def _ipython_display_(self) -> None:
        with self._lock:
            widget, self._output = Output(), Output()
            self._is_reloaded, self._page = False, ""
            bundle, _ = self._bundle({"text/html": _NOTE.format(self._note()), "text/plain": self._note()})
            widget.show(bundle)
            # Before the snapshot, which may take a while to draw.
            self._send_everything()
            # An Output widget that captures the widget captures what is kept below it too.
            self._output.captured = widget.captured
            if not widget.captured:
                self._output.show(self._kept_bundle())

    def _repr_mimebundle_(self, **_options: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the widget, and for who has no kernel the snapshot and how to get the widget back."""
        note = {"text/html": _NOTE.format(self._note()), "text/plain": self._note(), "text/markdown": ""}
        return self._bundle(transcript.join_bundles([self.snapshot(), note]))

    def _bundle(self, fallback: Bundle) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the widget with what shows where there is no kernel."""
        data, metadata = super()._repr_mimebundle_() or ({}, {})
        return {**data, **{kind: fallback[kind] for kind in ("text/html", "text/plain")}}, metadata

    def _note(self) -> str:
        return f"A famnb.{type(self).__name__}: run this cell to use it."
