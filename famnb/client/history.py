"""A conversation's turns, and what was said in them as each endpoint's messages; sending them is left to others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from famnb.client.rounds import told
from famnb.reply import Block, Reply
from famnb.request import Request

Said: TypeAlias = str | Sequence[Mapping[str, Any]]
"""What the user says: a text, or a list of parts as the endpoint takes them."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """What was said and what came back; turns are linked backwards, so branches share what they have in common."""

    said: Said
    """What the user said."""
    reply: Reply
    """The answer as far as it came; its `rounds` are the tool calls that led to it."""
    before: Turn | None = None
    """The turn that it follows; None for the first."""

    @property
    def path(self) -> tuple[Turn, ...]:
        """The turns up to this one, the first one first."""
        turns = [self]
        while turns[-1].before is not None:
            turns.append(turns[-1].before)
        return tuple(reversed(turns))

    @property
    def goes_on(self) -> bool:
        """Whether the conversation can go on from here: not after a failure, nor where nothing came before a stop."""
        return self.reply.error is None and (self.reply.status != "cancelled" or bool(self.reply.text))

    def __repr__(self) -> str:
        said = self.said if isinstance(self.said, str) else f"{len(self.said)} parts"
        return f"<Turn {said[:40]!r} {self.reply!r}>"


def continued(fresh: Request, before: Turn | None) -> list[Request]:
    """A request that begins a conversation as one that goes on after a turn.

    Where the service has, as far as one can know, stored that turn, the first request names it, and a second one is to
    be sent if the service has not: in that one, as in all others, everything is said again.
    """
    if before is None:
        return [fresh]
    said = fresh.body()[fresh.prompt_field]
    lead, last = ([], asked(fresh.endpoint, said)) if isinstance(said, str) else (said[:-1], said[-1])
    turns, losses = earlier(fresh.endpoint, before.path)
    whole = fresh.replace(**{fresh.prompt_field: [*lead, *turns, last]}).with_losses((*fresh.losses, *losses))
    if fresh.endpoint != "responses" or not _stored(before):
        return [whole]
    chained = fresh.replace(input=said if isinstance(said, str) else [last], previous_response_id=before.reply.id)
    return [chained.with_losses(fresh.losses), whole]


def asked(endpoint: str, said: Said) -> dict[str, Any]:
    """What the user says, as a message or input item of an endpoint; parts become those that the endpoint knows."""
    if not isinstance(said, str):
        said = [_part(endpoint, part) for part in said]
    match endpoint:
        case "responses":
            content: Any = {"type": "input_text", "text": said} if isinstance(said, str) else list(said)
        case "messages":
            content = [{"type": "text", "text": said}] if isinstance(said, str) else list(said)
        case _:
            content = said if isinstance(said, str) else list(said)
    return {"role": "user", "content": content}


def earlier(endpoint: str, turns: Iterable[Turn]) -> tuple[list[dict[str, Any]], list[str]]:
    """Earlier turns as messages or input items of an endpoint, and what of them it cannot carry."""
    made: list[dict[str, Any]] = []
    losses: list[str] = []
    for number, turn in enumerate(turns):
        made.append(asked(endpoint, turn.said))
        answers = _answers(endpoint, turn.reply)
        made += answers
        if not answers:
            losses.append(f"the answer of turn {number} is left out: it said nothing")
        if turn.reply.thinking and endpoint != "messages":
            losses.append(f"the thinking of turn {number} is left out: {endpoint} cannot carry it (only messages)")
    return made, losses


def _part(endpoint: str, part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of a message under the names that an endpoint has for it; one that is not known stays as it is."""
    match part, endpoint:
        case {"type": "text", "text": text}, "responses":
            return {"type": "input_text", "text": text}
        case {"type": "image_url", "image_url": {"url": url}}, "responses":
            return {"type": "input_image", "image_url": url}
        case {"type": "input_text", "text": text}, "chat" | "web" | "messages":
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": str(url)}, "chat" | "web" | "messages":
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            return part


def _stored(turn: Turn) -> bool:
    """Whether the service has, as far as one can know, stored a turn's response for others to continue."""
    reply, request = turn.reply, turn.reply.request
    stored = reply.endpoint == "responses" and bool(getattr(request, "store", False))
    return stored and bool(reply.id) and reply.status in ("completed", "incomplete")


def _answers(endpoint: str, reply: Reply) -> list[dict[str, Any]]:
    match endpoint:
        case "web" | "chat":
            before = [message for each in reply.rounds for message in told(each.reply, each.results)]
            return [*before, *told(reply)]
        case "responses":
            content: Any = {"type": "output_text", "text": reply.text} if reply.text else None
        case _:
            content = [part for block in reply.blocks for part in _parts(block)]
    return [{"role": "assistant", "content": content}] if content else []


def _parts(block: Block) -> list[dict[str, Any]]:
    """A block of an answer as the messages endpoint takes it back: thinking as it was, with its signature."""
    match block.kind:
        case "thinking":
            signed = {"signature": block.signature} if block.signature else {}
            return [{"type": "thinking", "thinking": block.text, **signed}]
        case "redacted_thinking":
            return [{"type": "redacted_thinking", "data": block.signature}]
        case _:
            return [{"type": "text", "text": block.text}] if block.text and block.kind == "text" else []
