"""Outputs of the notebook: showing and replacing them, and how a cell shows a Reply or a conversation."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from IPython import get_ipython
from IPython.display import display as _untyped_display
from ipywidgets import Output as OutputWidget
from ipywidgets.widgets import widget as widget_module

from famnb.client.conversation import Conversation
from famnb.reply import Reply
from famnb.widget.html import transcript

_display: Any = _untyped_display
# A call shows its reply live and returns it, so a cell whose last line is `client.ask(…)` would show it twice.
_shown_replies: list[Reply] = []
"""The replies that a cell has shown already."""
_shown_in: object = None
"""The execution count of that cell."""


class Output:
    """One output in the notebook, which can be replaced later, from any thread."""

    def __init__(self) -> None:
        self.id = uuid.uuid4().hex
        self._is_shown = False
        self.captured = False
        """Whether an Output widget holds it. Such an output cannot be replaced (ipywidgets 8.1)."""

    def show(self, bundle: Mapping[str, Any]) -> None:
        """Show a bundle of MIME types, which may be that of a widget, under the cell that runs now."""
        # `_instances` is private to ipywidgets (8.1), whose public `Widget.widgets` is deprecated. An Output
        # widget has a `msg_id` while it captures. Copied, since other threads make widgets meanwhile.
        self.captured = any(
            isinstance(widget, OutputWidget) and widget.msg_id for widget in list(widget_module._instances.values())
        )
        _display(bundle, raw=True, display_id=self.id)
        self._is_shown = True

    @property
    def can_be_replaced(self) -> bool:
        """Whether it is in the notebook itself; a widget inside another is drawn without outputs of its own."""
        return self._is_shown and not self.captured

    def replace(self, bundle: Mapping[str, Any]) -> None:
        """Put another bundle in its place, which only an output that `can_be_replaced` has."""
        _display(bundle, raw=True, display_id=self.id, update=True)


def install(shell: Any) -> None:
    """Make an IPython shell show replies and conversations as transcripts; calling it again changes nothing."""
    # Of IPython's formatters only this one can show nothing, which a reply needs that the cell has shown already.
    formatter = shell.display_formatter.ipython_display_formatter
    formatter.for_type(Reply, _show)
    formatter.for_type(Conversation, lambda talk: _display(transcript.conversation_bundle(talk.turns), raw=True))


def mark_as_shown(reply: Reply) -> None:
    """Remember that the cell that runs now shows a reply already, so that its last line does not show it again."""
    global _shown_in
    cell = _running_cell()
    if cell != _shown_in:
        _shown_in = cell
        _shown_replies.clear()
    _shown_replies.append(reply)


def _show(reply: Reply) -> None:
    # Each addition to a reply, such as `parsed`, makes a new object.
    is_shown = any(
        reply is other or (reply.call_id is not None and reply.call_id == other.call_id) for other in _shown_replies
    )
    if _running_cell() == _shown_in and is_shown:
        return
    _display(transcript.reply_bundle(reply), raw=True)


def _running_cell() -> object:
    return getattr(get_ipython(), "execution_count", None)
