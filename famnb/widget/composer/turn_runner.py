"""How the composer asks a turn: in a thread of its own, which waits for replies, for approvals and for tools.

start ── (thread: call ── shown to its end ── approval ── tools ── call …) ── Turn ── ended
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from famnb.client.ask import Result, Send, Steps, Tools, driven, parsed
from famnb.client.client import BlockingClient
from famnb.client.conversation import Said, Turn, answered
from famnb.client.stream import Stream
from famnb.errors import FamnbError, Interrupted, ParseError
from famnb.reply import Reply
from famnb.request import Request
from famnb.widget.composer.approval import Approval
from famnb.widget.composer.turn_pane import TurnPane
from famnb.widget.composer.turn_tree import Node
from famnb.widget.html import transcript

_UNRUN = "stopped: the tools that it called were not all run"


class Stage(Protocol):
    """Where a turn is shown while it is asked; called on the turn's thread."""

    def begun(self, pane: TurnPane, over: Callable[[], object]) -> None:
        """A call has begun: show it, and call `over` once it has ended and its last word is shown."""

    def decided(self) -> None:
        """A tool waits for approval, no longer does, or has returned."""

    def ended(self) -> None:
        """The turn has ended."""


class Asker:
    """Asks one turn at a time."""

    def __init__(
        self,
        client: BlockingClient,
        stage: Stage,
        *,
        functions: Sequence[Callable[..., Any]],
        auto: bool,
        max_rounds: int,
    ) -> None:
        self._client, self._stage = client, stage
        self._approval = Approval(auto=auto, changed=stage.decided)
        decides = {"approve": self._approval.ask} if functions else {"auto": auto}
        self.tools = Tools.among(list(functions), max_rounds=max_rounds, ran=self._ran, **decides)
        """The functions that the model may call."""
        self.stream: Stream | None = None
        """The call that was made last."""
        self._results: list[Result] = []
        """What the tools have returned that the latest reply called."""
        self._stopped = False

    def start(
        self, node: Node, requests: Sequence[Request], *, said: Said, schema: Any, labels: Mapping[str, str]
    ) -> Stream:
        """Ask the turn; its first call, once that is on its way. Raises what keeps it from being sent."""
        self._stopped = False
        first = Future[Stream]()
        steps = answered(list(requests), labels, self.tools)
        work = (node, steps, said, schema, first)
        threading.Thread(target=self._carry, args=work, name="famnb-turn", daemon=True).start()
        return first.result()

    def stop(self, node: Node) -> None:
        """Stop what is streaming, and let no tool run and no further call be made for this turn."""
        self._stopped = True
        self._approval.stop()
        for pane in node.panes:
            pane.stream.stop()

    def decide(self, node: Node, pane: str, call: int, *, approved: bool, rest: bool) -> None:
        """Approve or decline the call that waits, by its pane and its place there; with `rest`, all that follow it."""
        for each in node.panes:
            calls = each.stream.reply.tool_calls
            if each.id == pane and 0 <= call < len(calls):
                self._approval.decide(calls[call].at, approved=approved, rest=rest)

    def _carry(self, node: Node, steps: Steps, said: Said, schema: Any, first: Future[Stream]) -> None:
        """Carry out the steps of a turn, and keep what comes of them."""
        try:
            reply = _read(driven(steps, lambda step: self._sent(node, step, first)), schema)
        except BaseException as failure:
            if not first.done():
                first.set_exception(failure)
                return
            reply = _left(node, failure, self._results)
        node.panes[-1].outcome = reply
        node.turn = turn = Turn(said, reply, node.before.turn if node.before else None)
        try:
            node.written = transcript.turn_bundle(turn)
        finally:
            self._stage.ended()

    def _sent(self, node: Node, step: Send, first: Future[Stream]) -> Reply:
        """Send a request, and wait until its reply has come and is shown; raises the call's error."""
        if self._stopped:
            raise Interrupted("stopped between two calls")
        rounds = step.rounds
        # Another try of a round takes the place of the one that failed.
        del node.panes[len(rounds) :]
        self._results = []
        self.stream = stream = self._client.start(step.request, labels=step.labels)
        pane = TurnPane(
            stream,
            id=f"{node.id}.{len(rounds)}",
            asked=[] if rounds else transcript.prompt_sections(step.request, whole=node.before is None),
            verdicts=self._approval.begin(),
            results=self._results,
            stop=bool(rounds or node.before),
        )
        node.panes.append(pane)
        over = threading.Event()
        self._stage.begun(pane, over.set)
        if not first.done():
            first.set_result(stream)
        over.wait()
        if stream.reply.error is not None:
            raise stream.reply.error.with_traceback(None)
        return stream.reply

    def _ran(self, result: Result) -> None:
        self._results.append(result)
        self._stage.decided()


def _left(node: Node, failure: BaseException, results: Sequence[Result]) -> Reply:
    """What a turn leaves that failed or was stopped."""
    reply: Reply = getattr(failure, "reply", None) or node.panes[-1].stream.reply
    match failure:
        case Interrupted():
            returned = [f"{result.call.name} had returned {result.content}" for result in results]
            return dataclasses.replace(reply, warnings=(*reply.warnings, _UNRUN, *returned))
        case FamnbError():
            return dataclasses.replace(reply, error=failure)
        case _:
            error = FamnbError(f"the turn could not be carried on: {type(failure).__name__}: {failure}")
            return dataclasses.replace(reply, error=error, warnings=(*reply.warnings, str(error)))


def _read(reply: Reply, schema: Any) -> Reply:
    """The reply with an instance of the type that was asked for, or with a warning that its answer is none."""
    try:
        return parsed(reply, schema)
    except ParseError as failure:
        return dataclasses.replace(reply, warnings=(*reply.warnings, f"`reply.parsed` is None: {failure.fault}"))
