"""What a request asks, as turns of a conversation, and in which form, whichever endpoint it is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from famnb.request import ChatRequest, MessagesRequest, Request, ResponsesRequest, WebChatRequest
from famnb.request.message_parts import Content, ToolCall, images, plain_text


class MessageText(NamedTuple):
    """Who says what."""

    role: str
    text: str


def message_texts(request: Request | None) -> list[MessageText]:
    """The conversation a request carries, system text first; empty without a request."""
    match request:
        case ChatRequest(messages=messages) | WebChatRequest(messages=messages):
            return [_turn(each.role, each.content, each.tool_calls or ()) for each in messages]
        case ResponsesRequest(instructions=system, input=asked):
            said = (
                [MessageText("user", asked)]
                if isinstance(asked, str)
                else [_turn(item.role, item.content) for item in asked]
            )
            return [*_system(system), *said]
        case MessagesRequest(system=system, messages=messages):
            return [*_system(system), *(_turn(message.role, message.content) for message in messages)]
        case _:
            return []


def wants_json(request: Request | None) -> bool:
    """Whether a request asks for an answer in JSON."""
    match request:
        case ChatRequest(response_format=form) | WebChatRequest(response_format=form):
            return form is not None and form.type != "text"
        case ResponsesRequest(text=options):
            return options is not None and options.format is not None and options.format.type != "text"
        case _:
            return False


def _system(content: Content | None) -> list[MessageText]:
    return [_turn("system", content)] if content else []


def _turn(role: str, content: Content | None, calls: Sequence[ToolCall] = ()) -> MessageText:
    lines = [plain_text(content), *(f"[image: {address[:80]}]" for address in images(content))]
    lines += [f"[calls {call.function.name}({call.function.arguments})]" for call in calls]
    return MessageText(role, "\n".join(line for line in lines if line))
