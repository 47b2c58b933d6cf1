"""The prompt box: a text area for the prompt with Send and Stop, above the live view of the reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from famnb.widget.live.base import join_front
from famnb.widget.live.live_view import LiveView


class PromptBox(LiveView):
    """The prompt and the buttons Send and Stop; the keys Ctrl+Enter and Esc do the same."""

    _esm = join_front("board.js")
    prompt = traitlets.Unicode("").tag(sync=True)
    """The text of the prompt."""
    busy = traitlets.Bool(False).tag(sync=True)
    """Whether a reply is streaming."""
    fault = traitlets.Unicode("").tag(sync=True)
    """Why the form cannot be sent as it is; empty if it can."""
    replaced = traitlets.Bool(False).tag(sync=True)
    """Whether the form holds a whole conversation, which is sent instead of the prompt."""

    def __init__(self, *, on_send: Callable[[], object], **traits: Any) -> None:
        """`on_send` is called when the page sends the prompt, which is in `prompt` by then."""
        super().__init__(**traits)
        self._on_send = on_send

    def _on_message(self, widget: object, message: dict[str, Any], buffers: object) -> None:
        match message:
            case {"kind": "send", "prompt": str(prompt)}:
                # The text comes with the message, since the trait's own update may still be on its way. A text area
                # knows only "\n", so a prompt that differs in nothing but its line ends is kept.
                if prompt != "\n".join(self.prompt.replace("\r\n", "\n").split("\r")):
                    self.prompt = prompt
                self._on_send()
                # The page keeps its Send button locked until this arrives, so that two clicks send one request.
                self.send({"kind": "taken"})
            case _:
                super()._on_message(widget, message, buffers)
