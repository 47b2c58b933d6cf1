"""Driving a Composer as its page and its user do, and waiting for what comes of it."""

from __future__ import annotations

from typing import Any

from famnb.widget import Composer
from famnb.widget.composer.conversation_view import TurnPane
from tests.support.waiting import wait_until


def receive(composer: Composer, **message: object) -> None:
    """Have the composer receive a message of its page."""
    composer._on_message(composer, message, [])


def write_field(composer: Composer, field: str, text: str) -> None:
    """Write a text into the control of a field."""
    receive(composer, kind="set", field=field, text=text)


def choose_endpoint(composer: Composer, name: str) -> None:
    """Choose an endpoint."""
    receive(composer, kind="endpoint", name=name)


def form_of(composer: Composer) -> dict[str, Any]:
    """What the page shows of the form."""
    form: dict[str, Any] = composer.describe()["form"]
    return form


def panel_of(composer: Composer, **message: object) -> dict[str, Any]:
    """What a panel shows after a message of the page."""
    panel = composer._panels.answer(message)
    assert panel is not None, message
    return panel


def trouble_of(composer: Composer) -> str:
    """What the page shows of the last wish that could not be carried out."""
    return str(composer.describe()["state"]["trouble"])


def shown_panes(composer: Composer) -> list[dict[str, Any]]:
    """The panes that the page shows."""
    return [pane.snapshot() for pane in composer._panes.values()]


def wait_until_idle(composer: Composer, *, replies: int | None = None) -> Composer:
    """Wait until no turn is being answered, and as many replies have ended; returns the composer."""
    wait_until(lambda: not composer._conversation.is_busy and replies in (None, len(composer.replies)))
    return composer


def wait_for_pending_call(composer: Composer) -> TurnPane:
    """Wait until a tool call waits for approval; returns its pane."""
    return wait_until(lambda: next((pane for pane in composer._conversation.panes if pane.pending_call), None))
