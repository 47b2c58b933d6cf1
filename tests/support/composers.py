"""Driving a Composer as its page and its user do, and waiting for what comes of it."""

from __future__ import annotations

from typing import Any

from famnb.widget import Composer
from famnb.widget.composer.conversation_view import TurnPane
from tests.support.waiting import wait_until


def list_widgets(composer: Composer) -> list[Any]:
    """Every widget that is in view."""
    found = [composer._box]
    for widget in found:
        found += getattr(widget, "children", ())
    return found


def find_control(composer: Composer, name: str) -> Any:
    """The control with a label, wherever it is drawn; a button may say how many of its fields are set."""
    for widget in list_widgets(composer):
        if getattr(widget, "description", "").partition(" · ")[0] == name:
            return widget
    raise LookupError(name)


def click(composer: Composer, name: str) -> None:
    """Click a button."""
    find_control(composer, name).click()


def receive(composer: Composer, **message: object) -> None:
    """Have the composer receive a message of its page."""
    composer._prompt_box._on_message(composer._prompt_box, message, [])


def wait_until_idle(composer: Composer, *, replies: int | None = None) -> Composer:
    """Wait until no turn is being answered, and as many replies have ended; returns the composer."""
    wait_until(lambda: not composer._prompt_box.busy and replies in (None, len(composer.replies)))
    return composer


def wait_for_pending_call(composer: Composer) -> TurnPane:
    """Wait until a tool call waits for approval; returns its pane."""
    return wait_until(lambda: next((pane for pane in composer._conversation.panes if pane.pending_call), None))
