"""Conversations with a model: a tree of turns, and the requests that continue it on each endpoint.

turn ── turn ──┬── turn ── turn      Each path from the first turn to a last one is a branch.
               └── turn

A turn that failed is kept among `failures`, and the conversation stays where it was. On the responses endpoint a turn
names the response before it, which the service has stored. Where the service has not stored it, and on every other
endpoint, the whole conversation is sent again.
"""

from __future__ import annotations

import dataclasses
import secrets
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Self, TypeAlias, TypeVar

from famnb.client.ask import MAX_ROUNDS, Approve, Steps, Tools, ToolsArgument, parse_reply, round_steps
from famnb.endpoints import ENDPOINTS, Endpoints, compose, endpoint, endpoint_able_to
from famnb.errors import APIStatusError, FamnbError, Interrupted, InvalidRequest, NotFoundError
from famnb.reply import Reply
from famnb.request import Request
from famnb.validation import check_index

UserContent: TypeAlias = str | Sequence[Mapping[str, Any]]
"""The prompt of a turn: a text, or a list of parts as the endpoint takes them."""
Outcome = TypeVar("Outcome")
"""What a client makes of the steps of a turn: its reply, or a coroutine of it."""


@dataclasses.dataclass(slots=True, eq=False)
class Turn:
    """A prompt of the user and the answer of the model.

    Turns are linked backwards, so that branches share what they have in common.
    """

    prompt: UserContent
    """A text, or a list of parts as the endpoint takes them."""
    reply: Reply
    """The answer as far as it came; its `rounds` are the tool calls that led to it."""
    before: Turn | None = None
    """The turn that it follows; None for the first."""
    messages: Sequence[Mapping[str, Any]] = ()
    """How an earlier request wrote it, with its answer; requests of that kind write it so again. Mostly empty."""

    @property
    def path(self) -> tuple[Turn, ...]:
        """The turns up to this one, the first one first."""
        turns = [self]
        while turns[-1].before is not None:
            turns.append(turns[-1].before)
        return tuple(reversed(turns))

    @property
    def can_continue(self) -> bool:
        """Whether another turn can follow: not after a failure, nor after a stop before any text came."""
        return self.reply.error is None and (self.reply.status != "cancelled" or bool(self.reply.text))

    def __repr__(self) -> str:
        content = self.prompt if isinstance(self.prompt, str) else f"{len(self.prompt)} parts"
        return f"<Turn {content[:40]!r} {self.reply!r}>"


class ConversationTree:
    """The turns of one conversation, and which of its branches is in view."""

    def __init__(self, head: Turn | None = None) -> None:
        """Begin with the turns up to `head`, or with none."""
        self.id = secrets.token_hex(6)
        """The label `talk` that the calls of the conversation share in the ledger."""
        self.head = head
        """The last turn of the branch in view, which a next turn follows; None before the first."""
        self._turns = list(self.path)
        """Every turn, in the order in which they were asked."""

    @property
    def path(self) -> tuple[Turn, ...]:
        """The branch in view, its first turn first."""
        return self.head.path if self.head else ()

    @property
    def leaves(self) -> tuple[Turn, ...]:
        """The last turn of every branch, in the order in which the branches were last continued."""
        continued = {turn.before for turn in self._turns}
        return tuple(turn for turn in self._turns if turn not in continued)

    @property
    def other_branches(self) -> tuple[tuple[Turn, ...], ...]:
        """What the branches that are not in view say from where they part: each turn once."""
        seen = set(self.path)
        branches = []
        for turn in self._turns:
            if turn not in seen:
                branch = tuple(other for other in self._latest_leaf(turn).path if other not in seen)
                seen.update(branch)
                branches.append(branch)
        return tuple(branches)

    def add(self, turn: Turn) -> None:
        """Add a turn after its `before`, and have it in view."""
        self._turns.append(turn)
        self.head = turn

    def remove(self, turn: Turn, *, head: Turn | None) -> None:
        """Remove a turn that none follows, and have the branch of `head` in view again."""
        self._turns.remove(turn)
        self.head = head

    def versions(self, turn: Turn) -> tuple[Turn, ...]:
        """The turns that were asked in the same place, this one among them, in the order in which they were asked."""
        return tuple(other for other in self._turns if other.before is turn.before)

    def show(self, turn: Turn) -> None:
        """Have in view, of the branches with this turn, the one that was continued last."""
        self.head = self._latest_leaf(turn)

    def _latest_leaf(self, turn: Turn) -> Turn:
        # The latest of all turns that follow this one has no follower itself: that would be later still.
        return next(other for other in reversed(self._turns) if turn in other.path)


def requests_after(before: Turn | None, request: Request, endpoints: Endpoints = ENDPOINTS) -> list[Request]:
    """Return the requests that ask `request`, which begins a conversation, after the turn `before` instead.

    One request repeats all turns. Where the service has stored the turn before, as far as the client knows,
    there are two: the first names that response, and the second, which repeats all turns, is to be sent
    if the service turns out not to have it.
    """
    if before is None:
        return [request]
    messages, losses = turn_messages(request.endpoint, before.path, endpoints)
    repeated = request.with_earlier(messages)
    repeated = repeated.with_losses((*request.losses, *repeated.losses, *losses))
    reply = before.reply
    # What was stopped or failed is not stored: the service stores a response once it has ended by itself.
    is_stored = (
        isinstance(reply.request, Request)
        and reply.request.stores_reply
        and reply.status in ("completed", "incomplete")
    )
    chained = request.continue_stored(reply.id) if is_stored and reply.id else None
    return [repeated] if chained is None else [chained.with_losses(request.losses), repeated]


def turn_messages(
    endpoint_name: str, turns: Iterable[Turn], endpoints: Endpoints = ENDPOINTS
) -> tuple[list[dict[str, Any]], list[str]]:
    """Turns as messages, or input items, of an endpoint, and what of them the endpoint cannot carry."""
    target = endpoint(endpoint_name, endpoints)
    carriers = [other.name for other in endpoints.values() if other.traits.returns_thinking]
    messages: list[dict[str, Any]] = []
    losses: list[str] = []
    for number, turn in enumerate(turns):
        if turn.messages and type(turn.reply.request) is target.request:
            messages += map(dict, turn.messages)
            continue
        messages.append(target.request.user_message(turn.prompt))
        answer = target.request.answer_messages(turn.reply)
        messages += answer
        if not answer:
            losses.append(f"the answer of turn {number} is left out: it is empty")
        if turn.reply.thinking and not target.traits.returns_thinking and not target.request.read_opaque(turn.reply):
            losses.append(
                f"the thinking of turn {number} is left out: {target.name} cannot carry it (only {', '.join(carriers)})"
            )
    return messages, losses


def turn_steps(requests: Sequence[Request], labels: Mapping[str, str], tools: Tools) -> Steps:
    """The steps of one turn: the first of `requests_after`, or its substitute if the service has not stored the turn
    before.
    """
    first, *substitutes = requests
    try:
        return (yield from round_steps(first, labels, tools))
    except APIStatusError as failure:
        # Services differ: some have a code for it, others answer 404.
        is_forgotten = failure.code == "previous_response_not_found" or isinstance(failure, NotFoundError)
        if not substitutes or not is_forgotten:
            raise
    loss = "the service has not stored the turn before: the whole conversation is sent again"
    warnings.warn(loss, stacklevel=2)
    substitute = substitutes[0].with_losses((*substitutes[0].losses, loss))
    return (yield from round_steps(substitute, labels, tools))


class Conversation(Generic[Outcome]):
    """A conversation with a model; `client.conversation(…)` makes one.

    With a `Client`, `say`, `edit` and `regenerate` return the reply; with an `AsyncClient` a coroutine of it.
    """

    def __init__(
        self,
        run_steps: Callable[[Steps], Outcome],
        endpoint: str | None,
        *,
        tools: ToolsArgument = None,
        auto: bool = False,
        approve: Approve | None = None,
        max_rounds: int = MAX_ROUNDS,
        labels: Mapping[str, str] | None = None,
        endpoints: Endpoints = ENDPOINTS,
        **settings: Any,
    ) -> None:
        """`run_steps` carries out the steps of a turn and returns its reply, or a coroutine of it.

        `endpoints` are those of the client's service. All others are the settings of `Client.ask`, which hold for every
        turn.
        """
        self._run_steps = run_steps
        self._tools = Tools.from_argument(tools, auto=auto, approve=approve, max_rounds=max_rounds)
        self._endpoints = endpoints
        default = endpoint_able_to(
            settings.get("model"),
            tools=bool(self._tools.functions),
            keep_conversation=True,
            endpoints=endpoints,
        )
        self.endpoint = endpoint or default.name
        """The endpoint's name."""
        self._tree = ConversationTree()
        self.labels = {"talk": self._tree.id, **(labels or {})}
        """The labels of its calls in the ledger; `turn` and, with tools, `loop` and `round` are added."""
        self._settings = {"stream": True, **settings, **({} if tools is None else {"tools": tools})}
        self._failures: list[Turn] = []
        self._answering = threading.Lock()
        """Held while a turn is being answered."""
        # Composed with any prompt, so that a mistake in the settings is raised here and not at the first turn.
        self.losses = compose(self.endpoint, "…", endpoints=endpoints, **self._settings).losses
        """What the endpoint cannot carry of the settings, a sentence each."""
        for loss in self.losses:
            warnings.warn(loss, stacklevel=3)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the current branch, the first one first."""
        return self._tree.path

    @property
    def branches(self) -> tuple[tuple[Turn, ...], ...]:
        """Every branch as its turns, in the order in which they were last continued."""
        return tuple(leaf.path for leaf in self._tree.leaves)

    @property
    def branch(self) -> int | None:
        """The index of the current branch among `branches`; None before the first turn."""
        head = self._tree.head
        return None if head is None else self._tree.leaves.index(head)

    @property
    def failures(self) -> tuple[Turn, ...]:
        """Turns that failed, or were stopped before anything came; no branch holds them."""
        return tuple(self._failures)

    def say(self, prompt: UserContent, **fields: Any) -> Outcome:
        """Say something and wait for the answer, as `ask` does; `fields` hold for this turn alone.

        A failure is raised, kept among `failures`, and leaves the conversation where it was.
        """
        return self._run_steps(self._steps(lambda: (prompt, self._tree.head), fields))

    def edit(self, turn: int, prompt: UserContent, **fields: Any) -> Outcome:
        """Say something else in the place of a turn; what followed stays as another branch."""
        return self._run_steps(self._steps(lambda: (prompt, self._turn(turn).before), fields))

    def regenerate(self, turn: int = -1, **fields: Any) -> Outcome:
        """Ask a turn once more, the last one by default; the answer so far stays as another branch."""
        return self._run_steps(self._steps(lambda: (self._turn(turn).prompt, self._turn(turn).before), fields))

    def switch(self, branch: int) -> Self:
        """Go on with another of `branches`, by its index."""
        leaves = self._tree.leaves
        self._tree.head = leaves[check_index("branch", branch, len(leaves))]
        return self

    def fork(self, *, after: int = -1) -> Self:
        """Another conversation that begins with the turns up to `after` of this one and goes its own way."""
        fork = object.__new__(type(self))
        fork.__dict__.update(self.__dict__)
        head = self.turns[check_index("after", after, len(self.turns))] if self.turns else None
        fork._tree = ConversationTree(head)
        fork._failures = []
        fork._answering = threading.Lock()
        fork.labels = {**self.labels, "talk": fork._tree.id}
        return fork

    def request(self, prompt: UserContent, *, at: int | None = None, **fields: Any) -> Request:
        """The request that saying this next would send, or in the place of the turn `at`; nothing is sent."""
        return self._requests(prompt, self._turn_before(at), fields)[0]

    def add(self, prompt: UserContent, reply: Reply, *, at: int | None = None) -> Turn:
        """Add a turn whose `request` was sent by other means, as `say` would; returns the turn."""
        turn = Turn(prompt, reply, self._turn_before(at))
        self._add(turn)
        return turn

    def __len__(self) -> int:
        return len(self.turns)

    def __bool__(self) -> bool:
        # Without this a conversation before its first turn would be false, since its length is 0.
        return True

    def __str__(self) -> str:
        return "\n\n".join(f"> {turn.prompt}\n\n{turn.reply.text}" for turn in self.turns)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.endpoint}: {len(self)} turns, {len(self._tree.leaves)} branches>"

    def _turn(self, index: int, name: str = "turn") -> Turn:
        """A turn of the branch in view by its index."""
        return self.turns[check_index(name, index, len(self.turns))]

    def _turn_before(self, at: int | None) -> Turn | None:
        """The turn that a next one follows, or that one in the place of the turn `at` follows."""
        return self._tree.head if at is None else self._turn(at, "at").before

    def _steps(self, find_place: Callable[[], tuple[UserContent, Turn | None]], fields: Mapping[str, Any]) -> Steps:
        """The steps of one turn, which is kept whether it succeeds or fails.

        Its prompt and the turn that it follows are found once the steps begin: a coroutine may be awaited late.
        """
        prompt, before = find_place()
        fields = dict(fields)
        schema = {**self._settings, **fields}.get("schema")
        own_labels = fields.pop("labels", None) or {}
        labels = {**self.labels, **own_labels, "turn": str(len(before.path) + 1 if before else 1)}
        requests = self._requests(prompt, before, fields)
        tools = self._tools
        if "tools" in fields:
            tools = dataclasses.replace(tools, functions=Tools.from_argument(fields["tools"]).functions)
        # Two turns at once would both follow the same one, and which branch is current would be chance.
        if not self._answering.acquire(blocking=False):
            raise InvalidRequest("this conversation is being answered just now: wait for that, or use fork()")
        try:
            reply = yield from turn_steps(requests, labels, tools)
            self._add(Turn(prompt, reply, before))
        except (FamnbError, Interrupted) as failure:
            if failure.reply is not None:
                error = failure if isinstance(failure, FamnbError) else failure.reply.error
                self._add(Turn(prompt, dataclasses.replace(failure.reply, error=error), before))
            raise
        finally:
            self._answering.release()
        return parse_reply(reply, schema)

    def _requests(self, prompt: UserContent, before: Turn | None, fields: Mapping[str, Any]) -> list[Request]:
        """The requests of `requests_after` for a prompt, with the settings and the fields of this turn."""
        fields = {**self._settings, **fields}
        text = prompt if isinstance(prompt, str) else "…"
        request = compose(self.endpoint, text, endpoints=self._endpoints, **fields)
        if not isinstance(prompt, str):
            with_content = request.with_content(prompt)
            request = with_content.with_losses((*request.losses, *with_content.losses))
        return requests_after(before, request, self._endpoints)

    def _add(self, turn: Turn) -> None:
        if turn.can_continue:
            self._tree.add(turn)
        else:
            self._failures.append(turn)
