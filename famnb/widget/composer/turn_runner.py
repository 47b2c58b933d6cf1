"""Asks one turn of the composer's conversation on a thread of its own, with approval of the tools that it calls.

start ── thread: call ── its end is shown ──┬── tool calls ── approval ── tools ── (the next call)
                                            └── no tool calls ── reply ── on_end

The verdict on a tool call:

pending ──┬── approved ── (runs)
          ├── declined
          └── (stopped)
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Literal, TypeAlias, cast

from famnb.client.ask import Result, Send, Steps, Tools, parse_reply, run_steps
from famnb.client.client import BaseClient
from famnb.client.conversation import turn_steps
from famnb.client.live_call import Stream
from famnb.errors import FamnbError, Interrupted, ParseError
from famnb.events import Address
from famnb.reply import Block, Reply
from famnb.request import Request
from famnb.widget.live.reply_pane import StreamLike

Verdict: TypeAlias = Literal["pending", "approved", "declined"]
_NOT_RUN = "stopped: the tools that it called were not all run"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TurnCall:
    """One call of a turn, from the moment at which it is sent."""

    stream: StreamLike
    index: int = 0
    """How many rounds of tools came before it."""
    verdicts: dict[Address, Verdict] = dataclasses.field(default_factory=dict)
    """The verdicts on the tool calls of its reply, by address; one that was not reached yet has none."""
    results: list[Result] = dataclasses.field(default_factory=list)
    """What its tools returned; grows as they run."""
    shown: threading.Event = dataclasses.field(default_factory=threading.Event)
    """Set once it has ended and its end was shown."""


class TurnRunner:
    """Asks one turn at a time."""

    def __init__(
        self,
        tools: Tools,
        *,
        on_call: Callable[[TurnCall], object],
        on_tool_change: Callable[[], object],
        on_end: Callable[[Reply], object],
    ) -> None:
        """`tools` are the functions that the model may call; unless they are `auto`, each call waits for approval.

        `on_call` is told of a call once it is sent, to show it in place of those of its index and after, and to set its
        `shown`. `on_tool_change` is called when a tool call waits, was decided, or has returned; `on_end` with the
        reply of the turn, which has an `error` if the turn failed. They are called on the turn's thread, where they may
        wait for the lock of whoever called `start`; `on_call` of the first call by `start`, `on_tool_change` by
        buttons, too.
        """
        self.tools = dataclasses.replace(
            tools, auto=False, approve=self._approve if tools.functions else None, on_result=self._on_result
        )
        """The functions that the model may call."""
        self.stream: Stream | None = None
        """The call that was sent last; None before the first."""
        self._is_auto = tools.auto
        self._on_call, self._on_tool_change, self._on_end = on_call, on_tool_change, on_end
        self._call: TurnCall | None = None
        """The latest call."""
        self._is_stopped = False
        self._decision = threading.Condition()
        """Notified when a tool call was decided, and when the turn is stopped."""

    def start(
        self, client: BaseClient, requests: Sequence[Request], *, schema: Any, labels: Mapping[str, str]
    ) -> Stream:
        """Ask a turn; returns its first call once that is sent. Raises the error that prevents it.

        `requests` are those of `requests_after`, `schema` is the type that the answer is to be an instance of, or None.
        """
        self._is_stopped = False
        # Carries the first call, or what prevented it, from the turn's thread to this one.
        first_call = Future[TurnCall]()
        steps = turn_steps(list(requests), labels, self.tools)
        # A turn waits for replies, clicks and tools, and the main thread must go on processing messages meanwhile.
        # A daemon, so that a turn whose approval never comes does not keep the kernel from ending.
        arguments = (client, steps, schema, first_call)
        threading.Thread(target=self._run, args=arguments, name="famnb-turn", daemon=True).start()
        call = first_call.result()
        # Here, since the caller may hold the lock that showing it takes, and the turn's thread would wait for that.
        self._on_call(call)
        return cast("Stream", call.stream)

    def stop(self) -> None:
        """Stop what is streaming, and let no tool run and no further call be sent for this turn."""
        # The flag first: between two calls there is neither a stream nor an approval to stop.
        with self._decision:
            self._is_stopped = True
            self._decision.notify_all()
        if self.stream is not None:
            self.stream.stop()

    def decide(self, call: TurnCall, address: Address, *, approved: bool) -> None:
        """Approve or decline the tool call at an address of a call's reply.

        One that is not waiting stays as it is: the click came too late.
        """
        with self._decision:
            if call.verdicts.get(address) != "pending":
                return
            call.verdicts[address] = "approved" if approved else "declined"
            self._decision.notify_all()
        self._on_tool_change()

    def _approve(self, block: Block) -> bool:
        """Wait until a tool call is decided; returns whether it may run. Raises Interrupted if the turn is stopped."""
        assert self._call is not None, "a tool is called by a reply"
        verdicts = self._call.verdicts
        verdicts[block.at] = "approved" if self._is_auto else "pending"
        # Outside of the lock: this draws the pane, and no button should wait for that.
        self._on_tool_change()
        with self._decision:
            self._decision.wait_for(lambda: self._is_stopped or verdicts[block.at] != "pending")
            if self._is_stopped:
                raise Interrupted("stopped while a tool waited for approval")
            return verdicts[block.at] == "approved"

    def _run(self, client: BaseClient, steps: Steps, schema: Any, first_call: Future[TurnCall]) -> None:
        """Carry out the steps of a turn; on its thread."""
        try:
            reply = _parse(run_steps(steps, lambda step: self._send(client, step, first_call)), schema)
        except BaseException as failure:
            # Whatever it is: on a thread of its own it would be printed, and the turn would never end.
            if not first_call.done():
                first_call.set_exception(failure)
                return
            reply = self._reply_of_failure(failure)
        self._on_end(reply)

    def _send(self, client: BaseClient, step: Send, first_call: Future[TurnCall]) -> Reply:
        """Send a request, and wait until its reply has come and is shown; raises the call's error."""
        if self._is_stopped:
            raise Interrupted("stopped between two calls")
        self.stream = stream = client.engine.start(step.request, labels=step.labels)
        self._call = TurnCall(stream=stream, index=len(step.rounds))
        if first_call.done():
            self._on_call(self._call)
        else:
            first_call.set_result(self._call)
        # Without a limit: the flusher sets it even if no page is open.
        self._call.shown.wait()
        if stream.reply.error is not None:
            # Without the frames of the I/O thread, which say nothing to a user.
            raise stream.reply.error.with_traceback(None)
        return stream.reply

    def _on_result(self, result: Result) -> None:
        assert self._call is not None, "a tool is called by a reply"
        self._call.results.append(result)
        self._on_tool_change()

    def _reply_of_failure(self, failure: BaseException) -> Reply:
        """The reply of a turn that failed or was stopped, as far as it came, and why it did."""
        assert self._call is not None, "an error before the first call is raised by `start`"
        reply: Reply = getattr(failure, "reply", None) or self._call.stream.reply
        match failure:
            case Interrupted():
                returned = [f"{result.call.name} had returned {result.content}" for result in self._call.results]
                return dataclasses.replace(reply, warnings=(*reply.warnings, _NOT_RUN, *returned))
            case FamnbError():
                return dataclasses.replace(reply, error=failure)
            case _:
                error = FamnbError(f"the turn could not be carried on: {type(failure).__name__}: {failure}")
                return dataclasses.replace(reply, error=error, warnings=(*reply.warnings, str(error)))


def _parse(reply: Reply, schema: Any) -> Reply:
    """The reply with its answer as an instance of `schema`, or with a warning that says why that failed."""
    try:
        return parse_reply(reply, schema)
    except ParseError as failure:
        return dataclasses.replace(reply, warnings=(*reply.warnings, f"`reply.parsed` is None: {failure.fault}"))
