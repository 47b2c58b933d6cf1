"""Conversations: a tree of turns that grows by asking, on every endpoint; sending is left to the client's steps.

turn ── turn ──┬── turn ── turn      each path from the first turn to a last one is a branch;
               └── turn              a turn that failed is kept among `failures`, and the talk stays where it was

On the responses endpoint a turn names the response before it, which the service has stored; where it has not, and on
every other endpoint, all that was said is sent again.

MERGED: A conversation's turns, and what was said in them as each endpoint's messages; sending them is left to others.
"""

from __future__ import annotations

import dataclasses
import secrets
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Self, TypeAlias

from famnb.client.ask import MOST_ROUNDS, Approve, GivenTools, Steps, Tools, fitting, parsed, rounds, told
from famnb.endpoints import compose
from famnb.errors import APIStatusError, FamnbError, Interrupted, InvalidRequest, NotFoundError
from famnb.reply import Block, Reply
from famnb.request import Request
from famnb.validation import check_index

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


class Talk:
    """What conversations have in common, whether their caller blocks or awaits."""

    def __init__(
        self,
        drive: Callable[[Steps], Any],
        *,
        endpoint: str | None,
        tools: Any,
        labels: Mapping[str, str] | None,
        options: Mapping[str, Any],
        **settings: Any,
    ) -> None:
        self._drive = drive
        self._tools = Tools.among(tools, **options)
        self.endpoint = endpoint or fitting(settings.get("model"), self._tools, None, default="responses")
        """The endpoint's name."""
        self.labels = {"talk": secrets.token_hex(6), **(labels or {})}
        """The labels of its calls in the ledger; `turn` and, with tools, `loop` and `round` are added."""
        self._settings = {"stream": True, **settings, **({} if tools is None else {"tools": tools})}
        self._head: Turn | None = None
        self._leaves: list[Turn] = []
        self._failures: list[Turn] = []
        self._asking = threading.Lock()
        self.losses = compose(self.endpoint, "…", **self._settings).losses
        """What the endpoint cannot carry of the settings, a sentence each."""
        for loss in self.losses:
            warnings.warn(loss, stacklevel=3)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the current branch, the first one first."""
        return self._head.path if self._head else ()

    @property
    def branches(self) -> tuple[tuple[Turn, ...], ...]:
        """Every branch as its turns, in the order in which they were last continued."""
        return tuple(leaf.path for leaf in self._leaves)

    @property
    def branch(self) -> int | None:
        """The index of the current branch among `branches`; None before the first turn."""
        return next((place for place, leaf in enumerate(self._leaves) if leaf is self._head), None)

    @property
    def failures(self) -> tuple[Turn, ...]:
        """Turns that failed, or were stopped before anything came; no branch holds them."""
        return tuple(self._failures)

    def switch(self, branch: int) -> Self:
        """Go on with another of `branches`, by its index."""
        self._head = self._leaves[check_index("branch", branch, len(self._leaves))]
        return self

    def fork(self, *, after: int = -1) -> Self:
        """Another conversation that begins with the turns up to `after` of this one and goes its own way."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._head = self.turns[check_index("after", after, len(self.turns))] if self.turns else None
        twin._leaves, twin._failures = [twin._head] if twin._head else [], []
        twin._asking = threading.Lock()
        twin.labels = {**self.labels, "talk": secrets.token_hex(6)}
        return twin

    def request(self, prompt: Said, *, at: int | None = None, **fields: Any) -> Request:
        """The request that saying this next would send, or in the place of the turn `at`; nothing is sent."""
        return self._requests(prompt, self._before(at), fields)[0]

    def add(self, prompt: Said, reply: Reply, *, at: int | None = None) -> Turn:
        """Take in a turn whose `request` was sent by other means, as `say` would; the turn as it is kept."""
        turn = Turn(prompt, reply, self._before(at))
        self._keep(turn)
        return turn

    def __len__(self) -> int:
        return len(self.turns)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        lines = [f"> {turn.said}\n\n{turn.reply.text}" for turn in self.turns]
        return "\n\n".join(lines)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.endpoint}: {len(self)} turns, {len(self._leaves)} branches>"

    def _before(self, at: int | None) -> Turn | None:
        """The turn that a next one follows, or one in the place of the turn `at`."""
        return self._head if at is None else self.turns[check_index("at", at, len(self.turns))].before

    def _again(self, turn: int, prompt: Said | None, fields: Mapping[str, Any]) -> Steps:
        """The steps that put another turn in the place of one."""
        old = self.turns[check_index("turn", turn, len(self.turns))]
        return self._said(old.said if prompt is None else prompt, old.before, fields)

    def _said(self, prompt: Said, before: Turn | None, fields: Mapping[str, Any]) -> Steps:
        """The steps of one turn: it is kept whatever becomes of it, and the talk goes on from it if it can."""
        fields = dict(fields)
        schema, labels = {**self._settings, **fields}.get("schema"), fields.pop("labels", None) or {}
        place = {**self.labels, **labels, "turn": str(len(before.path) + 1 if before else 1)}
        requests = self._requests(prompt, before, fields)
        tools = self._tools
        if "tools" in fields:
            tools = dataclasses.replace(tools, functions=Tools.among(fields["tools"]).functions)
        if not self._asking.acquire(blocking=False):
            raise InvalidRequest("this conversation is being answered just now: wait for that, or use fork()")
        try:
            reply = yield from answered(requests, place, tools)
            self._keep(Turn(prompt, reply, before))
        except (FamnbError, Interrupted) as failure:
            if failure.reply is not None:
                error = failure if isinstance(failure, FamnbError) else failure.reply.error
                self._keep(Turn(prompt, dataclasses.replace(failure.reply, error=error), before))
            raise
        finally:
            self._asking.release()
        return parsed(reply, schema)

    def _requests(self, prompt: Said, before: Turn | None, fields: Mapping[str, Any]) -> list[Request]:
        """The request for the next turn, and the one to send instead if the service has forgotten the turn before."""
        given = {**self._settings, **fields}
        fresh = compose(self.endpoint, prompt if isinstance(prompt, str) else "…", **given)
        if not isinstance(prompt, str):
            body, field = fresh.body(), fresh.prompt_field
            lead = [] if self.endpoint == "responses" else body[field][:-1]
            told = fresh.replace(**{field: [*lead, asked(self.endpoint, prompt)]})
            fresh = told.with_losses(fresh.losses)
        return continued(fresh, before)

    def _keep(self, turn: Turn) -> None:
        if not turn.goes_on:
            self._failures.append(turn)
            return
        self._leaves = [leaf for leaf in self._leaves if leaf is not turn.before]
        self._leaves.append(turn)
        self._head = turn


class Conversation(Talk):
    """A conversation with a client that blocks; `client.conversation(…)` makes one."""

    def say(self, prompt: Said, **fields: Any) -> Reply:
        """Say something and wait for the answer, as `ask` does; `fields` hold for this turn alone.

        A failure is raised, kept among `failures`, and leaves the conversation where it was.
        """
        return self._reply(self._said(prompt, self._head, fields))

    def edit(self, turn: int, prompt: Said, **fields: Any) -> Reply:
        """Say something else in the place of a turn; what followed stays as another branch."""
        return self._reply(self._again(turn, prompt, fields))

    def regenerate(self, turn: int = -1, **fields: Any) -> Reply:
        """Ask a turn once more, the last one unless said; the answer so far stays as another branch."""
        return self._reply(self._again(turn, None, fields))

    def _reply(self, steps: Steps) -> Reply:
        reply: Reply = self._drive(steps)
        return reply


class AsyncConversation(Talk):
    """The same with coroutines for methods."""

    async def say(self, prompt: Said, **fields: Any) -> Reply:
        """`Conversation.say`, awaited."""
        return await self._reply(self._said(prompt, self._head, fields))

    async def edit(self, turn: int, prompt: Said, **fields: Any) -> Reply:
        """`Conversation.edit`, awaited."""
        return await self._reply(self._again(turn, prompt, fields))

    async def regenerate(self, turn: int = -1, **fields: Any) -> Reply:
        """`Conversation.regenerate`, awaited."""
        return await self._reply(self._again(turn, None, fields))

    def _reply(self, steps: Steps) -> Coroutine[Any, Any, Reply]:
        coroutine: Coroutine[Any, Any, Reply] = self._drive(steps)
        return coroutine


def answered(requests: Sequence[Request], labels: Mapping[str, str], tools: Tools) -> Steps:
    """The steps of one turn: the first request, or a second where the service has not stored what came before."""
    first, *other = requests
    try:
        return (yield from rounds(first, labels, tools))
    except APIStatusError as failure:
        if not other or not (failure.code == "previous_response_not_found" or isinstance(failure, NotFoundError)):
            raise
    said = "the service has not stored the turn before: the whole conversation is sent again"
    warnings.warn(said, stacklevel=2)
    return (yield from rounds(other[0].with_losses((*other[0].losses, said)), labels, tools))


def talk_settings(
    endpoint: str | None,
    *,
    tools: GivenTools = None,
    auto: bool = False,
    approve: Approve | None = None,
    max_rounds: int = MOST_ROUNDS,
    labels: Mapping[str, str] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """The settings of a conversation, as `Talk` takes them."""
    options = {"auto": auto, "approve": approve, "max_rounds": max_rounds}
    return {"endpoint": endpoint, "tools": tools, "labels": labels, "options": options, **settings}
