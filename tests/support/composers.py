"""Driving a Composer or a Board as its page and its user do, and waiting for what comes of it."""

import itertools
from typing import Any

from famnb.widget import Composer
from famnb.widget.composer.turns import TurnCallView
from famnb.widget.form.editor import FieldView
from famnb.widget.form_tool import FormTool
from famnb.widget.runtime.tool import BaseTool
from tests.support.waiting import wait_until

_numbers = itertools.count(1)


def receive(tool: BaseTool, intent: str, **arguments: object) -> None:
    """Have a tool receive an intent of its page."""
    message = {"kind": "intent", "id": next(_numbers), "name": intent, "args": arguments}
    tool.receive(message)


def send_prompt(composer: FormTool, prompt: str) -> None:
    """Write a prompt on the page, and send it."""
    receive(composer, "send_prompt", prompt=prompt)


def write_field(composer: Composer, field: str, text: str) -> None:
    """Write a text into the control of a field."""
    receive(composer, "set_field", field=field, text=text)


def choose_endpoint(composer: Composer, name: str) -> None:
    """Choose an endpoint."""
    receive(composer, "choose_endpoint", endpoint=name)


def view_of(composer: FormTool) -> Any:
    """What the page shows."""
    with composer.lock:
        return composer.view()


def fields_of(composer: Composer) -> dict[str, FieldView]:
    """The fields that the page shows, by name."""
    return {field.key: field for group in view_of(composer).form.groups for field in group.fields}


def texts_of(composer: Composer) -> dict[str, str]:
    """The texts that the controls of fields hold."""
    return {name: field.text for name, field in fields_of(composer).items() if field.text}


def faults_of(composer: Composer) -> dict[str, str]:
    """What the page says is wrong, by field."""
    return {name: field.fault for name, field in fields_of(composer).items() if field.fault}


def ticked_boxes(composer: Composer) -> set[str]:
    """The boxes of tools and the answer type that are ticked."""
    return {box.key for group in view_of(composer).form.groups for box in group.boxes if box.is_on}


def panel_of(composer: Composer, panel: str, intent: str = "show_panel", /, **arguments: object) -> Any:
    """What a panel shows, after it was opened or an intent of it."""
    receive(composer, "show_panel", name=panel)
    if intent != "show_panel":
        receive(composer, intent, **arguments)
    return getattr(view_of(composer), panel.lower())


def error_of(composer: BaseTool) -> str:
    """Why the last intent of the page could not be carried out, as the page shows it; empty if it could."""
    sent: list[dict[str, Any]] = []
    composer.comm.send = lambda data=None, **_: sent.append((data or {}).get("content") or {})
    composer.receive({"kind": "ready", "page": "test"})
    return str(sent[-1]["error"])


def calls_of(composer: Composer) -> list[TurnCallView]:
    """The calls of the turns that the page shows."""
    return [call for turn in view_of(composer).turns for call in turn.calls]


def wait_until_idle(composer: Composer, *, replies: int | None = None) -> Composer:
    """Wait until no turn is being answered, and as many replies have ended; returns the composer."""
    wait_until(lambda: not view_of(composer).is_busy and replies in (None, len(composer.replies)))
    return composer


def wait_for_pending_call(composer: Composer) -> TurnCallView:
    """Wait until a tool call waits for approval; returns the call of the turn."""

    def find() -> TurnCallView | None:
        return next((call for call in calls_of(composer) if any(tool.is_pending for tool in call.tools)), None)

    return wait_until(find)
