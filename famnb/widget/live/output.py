"""The door to the notebook's outputs: puts transcripts there, and keeps a Reply from being shown twice in one cell."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from anywidget import AnyWidget
from IPython import get_ipython
from IPython.display import display as _untyped_display
from ipywidgets import Output as OutputWidget
from ipywidgets.widgets import widget as _registry

from famnb.client.conversation import AsyncConversation, BaseConversation, Conversation
from famnb.reply import Reply
from famnb.widget.html import transcript

_display: Any = _untyped_display
_cell: object = None
_replies: list[Reply] = []


class Output:
    """One output in the notebook, which can be replaced later from any thread."""

    def __init__(self) -> None:
        self.id = uuid.uuid4().hex
        self.captured = False
        """Whether an Output widget took it, which never hears of a replacement."""

    def show(self, value: object, *, placeholder: str = "") -> None:
        """Put it under the cell that runs now: a widget, or a bundle of MIME types.

        `words` are what a file holds of a widget, where nothing replaces it before it is saved.
        """
        self.captured = any(
            isinstance(each, OutputWidget) and each.msg_id for each in list(_registry._instances.values())
        )
        if placeholder and isinstance(value, AnyWidget):
            bundle, _ = value._repr_mimebundle_() or ({}, {})
            value = {**bundle, "text/plain": placeholder}
        _display(value, raw=isinstance(value, Mapping), display_id=self.id)

    def replace(self, bundle: transcript.Bundle) -> None:
        """Have something else stand in its place."""
        _display(bundle, raw=True, display_id=self.id, update=True)


def install(shell: Any) -> None:
    """Have an IPython shell show replies and conversations as transcripts; more than once does no harm."""
    shown = shell.display_formatter.ipython_display_formatter
    shown.for_type(Reply, _show)
    shown.for_type(Conversation, _show_conversation)
    shown.for_type(AsyncConversation, _show_conversation)


def mark_as_shown(reply: Reply) -> None:
    """Remember that a reply is on show already, under the cell that runs now."""
    global _cell
    cell = _running_cell()
    if cell != _cell:
        _cell = cell
        _replies.clear()
    _replies.append(reply)


def _show(reply: Reply) -> None:
    if _running_cell() == _cell and any(_same(reply, each) for each in _replies):
        return
    _display(transcript.reply_bundle(reply), raw=True)


def _same(reply: Reply, other: Reply) -> bool:
    """Whether two replies are of one call; what is added to a reply afterwards makes another object of it."""
    return reply is other or (reply.call_id is not None and reply.call_id == other.call_id)


def _show_conversation(conversation: BaseConversation) -> None:
    _display(transcript.conversation_bundle(conversation.turns), raw=True)


def _running_cell() -> object:
    return getattr(get_ipython(), "execution_count", None)
