"""A request of any endpoint as text: its messages with their roles, and whether it asks for JSON."""

from __future__ import annotations

from typing import NamedTuple

from famnb.request import Request
from famnb.request.neutral import PromptTurn


class MessageText(NamedTuple):
    """The text of one message of a request, images and tool calls included by name."""

    role: str
    text: str


def message_texts(request: Request | None) -> list[MessageText]:
    """Return the messages of a request, the system text first; an empty list without a request."""
    # `Reply.request` is typed Any: it may hold whatever a caller put there.
    if not isinstance(request, Request):
        return []
    system = [request.system_turn] if request.system_turn else []
    return [_message_text(turn) for turn in (*system, *request.turns())]


def wants_json(request: Request | None) -> bool:
    """Return whether a request asks for an answer in JSON."""
    return isinstance(request, Request) and request.settings().answer_format.json


def _message_text(turn: PromptTurn) -> MessageText:
    # An image that was uploaded is a data URL of megabytes; 80 characters are enough to tell an address.
    lines = [turn.text, *(f"[image: {address[:80]}]" for address in turn.images)]
    lines += [f"[calls {call.name}({call.arguments})]" for call in turn.tool_calls]
    return MessageText(turn.role, "\n".join(line for line in lines if line))
