"""A request that repeats a chat, and its reply, read as the turns of that chat again.

Where the ledger has the calls of earlier turns they are the turns; else they are what the request says of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from famnb.client.conversation import Turn
from famnb.errors import InvalidRequest, UnknownName
from famnb.record import Ledger
from famnb.reply import Block, Reply
from famnb.request import Request
from famnb.request.message_parts import TEXT_TYPES
from famnb.widget.form.draft import last_user_content


def read_chat(
    request: Request, reply: Reply | None, ledger: Ledger, *, is_whole: bool = False
) -> tuple[Turn | None, Request]:
    """Return the last turn that a request repeats, None if there is none, and the request without those turns.

    With the `reply` to the request its prompt is a turn, too; if it `is_whole`, so is its last prompt with the messages
    that follow. Otherwise a request that does not end with a prompt is returned as it is.
    """
    field = request.prompt_field
    conversation = request.body()[field]
    messages = [request.user_message(conversation)] if isinstance(conversation, str) else conversation
    starts = [index for index, message in enumerate(messages) if _is_prompt(message)]
    is_question = bool(starts) and starts[-1] == len(messages) - 1
    if not starts or not (reply or is_whole or is_question):
        return None, request
    lead = list(itertools.takewhile(lambda message: message.get("role") in ("system", "developer"), messages))
    groups = [messages[start:end] for start, end in itertools.pairwise([*starts, len(messages)])]
    head = _find_stored(request.continues, ledger)
    if head is not None:
        request = request.replace(previous_response_id=None)
    recorded = _read_recorded(reply, ledger)
    for number, (prompt, *answer) in enumerate(groups):
        is_last = number == len(groups) - 1
        if is_last and not reply and not is_whole:
            break
        # The system text stands at the first turn alone, as it was sent.
        turn_request = request
        if not isinstance(conversation, str):
            turn_request = request.replace(**{field: [*([] if number else lead), prompt]})
        opening = [] if number else messages[len(lead) : starts[0]]
        turn_messages: Sequence[Mapping[str, Any]] = [*opening, prompt, *answer]
        turn_reply = _read_answer(answer, turn_request)
        if is_last and reply:
            # A reply to the results of tools: its turn has them, too.
            has_more = len(turn_messages) > 1 and not reply.rounds
            turn_messages = [*turn_messages, *request.answer_messages(reply)] if has_more else ()
            turn_reply = reply
        else:
            candidates = recorded.get(number + 1, [])
            same = [other for other in candidates if other.text and turn_reply.text.endswith(other.text)]
            turn_reply = dataclasses.replace(same[-1], request=turn_request) if same else turn_reply
        head = Turn(last_user_content(turn_request), turn_reply, head, messages=tuple(turn_messages))
    if not isinstance(conversation, str):
        request = request.replace(**{field: [*lead, groups[-1][0]]})
    return head, request


def _is_prompt(message: Mapping[str, Any]) -> bool:
    """Return whether the user says it: some dialects send the results of tools as messages of the user, too."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return message.get("role") == "user" and not any(part.get("type") == "tool_result" for part in parts)


def _find_stored(reply_id: str | None, ledger: Ledger) -> Turn | None:
    """Return the last turn of the chat that ended with a reply which the service has stored; None if it is unknown."""
    rows = ledger.select("reply_id = ?", [reply_id], limit=1) if reply_id else []
    for row in rows:
        with contextlib.suppress(InvalidRequest):
            call = ledger.call(row["id"])
            return read_chat(call.request, call.reply, ledger)[0]
    return None


def _read_recorded(reply: Reply | None, ledger: Ledger) -> dict[int, list[Reply]]:
    """Return the replies of the conversation that a reply belongs to by the number of their turn, from 1."""
    replies: dict[int, list[Reply]] = {}
    with contextlib.suppress(UnknownName):
        talk = ledger.call(reply.call_id).labels.get("talk") if reply and reply.call_id else None
        rows = ledger.select("json_extract(labels, '$.talk') = ?", [talk]) if talk else []
        for call in ledger.each([row["id"] for row in rows]):
            number = call.labels.get("turn", "")
            if number.isdecimal():
                replies.setdefault(int(number), []).append(call.reply)
    return replies


def _read_answer(messages: Sequence[Mapping[str, Any]], request: Request) -> Reply:
    """Return what messages say of an answer as a reply: its texts, its thinking and the tools that it called."""
    blocks: list[Block] = []

    def add(kind: str, text: str, name: str = "") -> None:
        blocks.append(Block(at=(0, len(blocks)), kind=kind, text=text, name=name, closed=True))

    for message in messages:
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in [*(parts or ()), *(message.get("tool_calls") or ()), message]:
            match part:
                case {"type": str(kind), "text": str(text)} if kind in TEXT_TYPES and message.get("role") != "tool":
                    add("text", text)
                case {"type": "thinking", "thinking": str(text)}:
                    add("thinking", text)
                case {"type": "tool_use", "name": str(name), "input": arguments}:
                    add("tool_call", json.dumps(arguments, ensure_ascii=False), name)
                case {"function": {"name": str(name), "arguments": str(text)}} | {
                    "type": "function_call",
                    "name": str(name),
                    "arguments": str(text),
                }:
                    add("tool_call", text, name)
    return Reply(blocks=tuple(blocks), status="completed", complete=True, endpoint=request.endpoint, request=request)
