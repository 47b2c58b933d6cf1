"""The conversation of a request as texts to show, whichever endpoint it is for."""

from __future__ import annotations

from typing import NamedTuple

from famnb.request import Request
from famnb.request.neutral import PromptTurn


class MessageText(NamedTuple):
    """Who says what."""

    role: str
    text: str


def message_texts(request: Request | None) -> list[MessageText]:
    """The conversation a request carries, system text first; empty without a request."""
    if not isinstance(request, Request):
        return []
    system = [request.system_turn] if request.system_turn else []
    return [_message_text(turn) for turn in (*system, *request.turns())]


def wants_json(request: Request | None) -> bool:
    """Whether a request asks for an answer in JSON."""
    return isinstance(request, Request) and request.settings().answer_format.json


def _message_text(turn: PromptTurn) -> MessageText:
    lines = [turn.text, *(f"[image: {address[:80]}]" for address in turn.images)]
    lines += [f"[calls {call.name}({call.arguments})]" for call in turn.tool_calls]
    return MessageText(turn.role, "\n".join(line for line in lines if line))
