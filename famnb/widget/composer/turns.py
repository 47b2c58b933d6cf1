"""The turns of a composer's chat: asked one at a time, shown call by call, approved tools included, and saved.

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

import msgspec

from famnb.client.ask import Result, Send, Steps, Tools, parse_reply, run_steps
from famnb.client.client import BaseClient
from famnb.client.conversation import ConversationTree, Turn, turn_steps
from famnb.client.exchange import Exchange
from famnb.client.live_call import Stream
from famnb.errors import FamnbError, Interrupted, ParseError
from famnb.events import Address
from famnb.reply import Block, Reply
from famnb.request import Request
from famnb.widget.form.draft import split_content
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.live.reply_pane import (
    UNFINISHED,
    BlockView,
    EndedStream,
    PaneView,
    ReplyPane,
    StreamLike,
    final_block,
)
from famnb.widget.runtime.view import View

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


class ToolCallView(View, frozen=True):
    """What stands below a tool call: the question whether it may run, or what it returned."""

    key: str
    """The key of the block that it stands below; they stand in the order of the reply."""
    name: str
    is_pending: bool
    """Whether it waits for approval."""
    result: BlockView | None


class TurnCallView(View, frozen=True):
    """A call of a turn."""

    key: str
    pane: PaneView
    tools: tuple[ToolCallView, ...]


class TurnView(View, frozen=True):
    """A turn, by its place in the conversation: versions of it follow one another in the same place of the page."""

    key: str
    prompt: str
    """The text that its Edit button puts into a box."""
    version: int
    """Its index among the turns in the same place."""
    version_count: int
    calls: tuple[TurnCallView, ...]


class TurnPane(ReplyPane):
    """A pane of the composer: one call of a turn. The first one has the prompt, the others follow tool calls."""

    def __init__(self, call: TurnCall, *, key: str, prompts: Sequence[Section]) -> None:
        # The prompt box, which is always in view, has the button that stops it.
        super().__init__(call.stream, key=key, prompts=prompts, has_stop=False)
        self.call = call
        self._results: list[BlockView] = []

    @property
    def pending_call(self) -> Block | None:
        """The tool call that waits for approval; None if none does."""
        return next((call for call in self.reply.tool_calls if self.call.verdicts.get(call.at) == "pending"), None)

    def invalidate(self) -> None:
        """Have the view made anew: a tool call has changed."""
        self._view = None

    def end_turn(self, reply: Reply) -> None:
        """Show the reply of the whole turn, whose last call this is: with its warnings and the instance of a schema."""
        self.stream, self._view = EndedStream(reply, self.stream.exchange), None

    def call_view(self) -> TurnCallView:
        """Return the pane and what stands below its tool calls."""
        pane = self.view()
        for result in self.call.results[len(self._results) :]:
            self._results.append(final_block(transcript.result_section(result), None, key="result"))
        # Log probabilities are a note of the pane.
        blocks = [block for block in self.call.stream.reply.blocks if block.kind != "logprobs"]
        pairs = () if pane.is_running else zip(blocks, pane.blocks, strict=True)
        calls = [(block, view.key) for block, view in pairs if block.kind == "tool_call"]
        tools = tuple(
            ToolCallView(
                key=key,
                name=sanitize.visible(call.name),
                is_pending=self.call.verdicts.get(call.at) == "pending",
                result=self._results[number] if number < len(self._results) else None,
            )
            for number, (call, key) in enumerate(calls)
        )
        return TurnCallView(key=self.key, pane=pane, tools=tools)

    def _make_view(self) -> PaneView:
        view = super()._make_view()
        is_first, status = self.call.index == 0, view.status
        if not view.is_running:
            # What the turn does between this call and the next one.
            has_ended = isinstance(self.stream, EndedStream)
            calls = () if has_ended else self.reply.tool_calls[len(self.call.results) :]
            running = [call.name for call in calls if self.call.verdicts.get(call.at) == "approved"]
            status = f"running {sanitize.visible(running[0])} …" if running else ""
            if (call := self.pending_call) is not None:
                status = f"{sanitize.visible(call.name)} waits for your approval"
        return msgspec.structs.replace(
            view,
            # Endpoint and model stand once, at the first call of the turn.
            head=view.head if is_first else "",
            badges=tuple(badge for badge in view.badges if badge.tone != "plain" or is_first),
            status=status,
        )


@dataclasses.dataclass(slots=True, eq=False)
class ChatTurn(Turn):
    """A turn, and what the composer shows and saves of it."""

    key: str = ""
    """Different for every turn of every chat."""
    has_ended: bool = False
    panes: list[TurnPane] = dataclasses.field(default_factory=list)
    """Its calls: one, and another for each round of tools."""
    _output: Bundle = dataclasses.field(default_factory=dict)

    def output(self) -> Bundle:
        """Return the turn as notebook output; until it has ended, its prompt and where its answer will be found."""
        if not self.has_ended:
            prompt = Section("prompt", split_content(self.prompt)[0], "user")
            return transcript.render([prompt, Section("note", UNFINISHED)])
        if not self._output:
            self._output = transcript.turn_bundle(self)
        return self._output

    @classmethod
    def of_reply(cls, turn: Turn, before: Turn | None, *, key: str, exchange: Exchange) -> ChatTurn:
        """Return a turn that has ended by itself after another one, such as one of a recorded call."""
        stream = EndedStream(turn.reply, exchange)
        prompts = transcript.prompt_sections(turn.reply.request, whole=before is None)
        if before is not None and turn.messages:
            # The last message of its request may be the results of tools.
            prompts = [Section("prompt", split_content(turn.prompt)[0], "user")]
        panes = [TurnPane(TurnCall(stream=stream), key=f"{key}.0", prompts=prompts)]
        return cls(turn.prompt, turn.reply, before, turn.messages, key=key, has_ended=True, panes=panes)


def chat_output(tree: ConversationTree) -> tuple[str, Bundle] | None:
    """Return the branch in view as notebook output, with a title and the others folded below; None before a call."""
    turns = [turn for turn in tree.path if isinstance(turn, ChatTurn) and turn.panes]
    if not turns:
        return None
    branches = []
    for branch in tree.other_branches:
        ended = ended_turns(branch)
        title = f"another version of turn {len(branch[0].path)}: {_title(ended) if ended else ''}"
        note = transcript.render([Section("note", title)])
        branches.append((title, transcript.join_bundles([note, *(turn.output() for turn in ended)])))
    outputs = transcript.join_bundles([turn.output() for turn in turns])
    return _title(turns), transcript.stack_bundles([*branches, ("", outputs)])


def ended_turns(turns: Sequence[Turn]) -> list[ChatTurn]:
    """Return those that have ended."""
    return [turn for turn in turns if isinstance(turn, ChatTurn) and turn.has_ended]


def _title(turns: Sequence[ChatTurn]) -> str:
    """Return one line for folded turns: the title of the first, and how many there are."""
    title = transcript.title(turns[0].panes[0].reply)
    return f"{title} · {len(turns)} turns" if len(turns) > 1 else title


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
        reply of the turn, which has an `error` if the turn failed. They may wait for the lock of whoever called
        `start`: they are called on the turn's thread, or by that caller and by buttons, which hold it.
        """
        self.tools = dataclasses.replace(
            tools, auto=False, approve=self._approve if tools.functions else None, on_result=self._on_result
        )
        """The functions that the model may call."""
        self.stream: Stream | None = None
        """The call that was sent last; None before the first."""
        self._is_auto = tools.auto
        self._on_call, self._on_tool_change, self._on_end = on_call, on_tool_change, on_end
        self._call: TurnCall
        """The latest call, once there is one."""
        self._stop_event = threading.Event()
        self._decision = threading.Condition()
        """Notified when a tool call was decided, and when the turn is stopped."""

    def start(
        self, client: BaseClient, requests: Sequence[Request], *, schema: Any, labels: Mapping[str, str]
    ) -> Stream:
        """Ask a turn; returns its first call once that is sent. Raises the error that prevents it.

        `requests` are those of `requests_after`, `schema` is the type that the answer is to be an instance of, or None.
        """
        self._stop_event.clear()
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
            self._stop_event.set()
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
        verdicts = self._call.verdicts
        verdicts[block.at] = "approved" if self._is_auto else "pending"
        # Outside of the lock: this draws the pane, and no button should wait for that.
        self._on_tool_change()
        with self._decision:
            self._decision.wait_for(lambda: self._stop_event.is_set() or verdicts[block.at] != "pending")
            if self._stop_event.is_set():
                raise Interrupted("stopped while a tool waited for approval")
            return verdicts[block.at] == "approved"

    def _run(self, client: BaseClient, steps: Steps, schema: Any, first_call: Future[TurnCall]) -> None:
        """Carry out the steps of a turn; on its thread."""
        try:
            reply = run_steps(steps, lambda step: self._send(client, step, first_call))
            try:
                reply = parse_reply(reply, schema)
            except ParseError as failure:
                warning = f"`reply.parsed` is None: {failure.fault}"
                reply = dataclasses.replace(reply, warnings=(*reply.warnings, warning))
        except BaseException as failure:
            # Whatever it is: on a thread of its own it would be printed, and the turn would never end.
            if not first_call.done():
                first_call.set_exception(failure)
                return
            reply = getattr(failure, "reply", None) or self._call.stream.reply
            match failure:
                case Interrupted():
                    returned = [f"{result.call.name} had returned {result.content}" for result in self._call.results]
                    reply = dataclasses.replace(reply, warnings=(*reply.warnings, _NOT_RUN, *returned))
                case FamnbError():
                    reply = dataclasses.replace(reply, error=failure)
                case _:
                    error = FamnbError(f"the turn could not be carried on: {type(failure).__name__}: {failure}")
                    reply = dataclasses.replace(reply, error=error, warnings=(*reply.warnings, str(error)))
        self._on_end(reply)

    def _send(self, client: BaseClient, step: Send, first_call: Future[TurnCall]) -> Reply:
        """Send a request, and wait until its reply has come and is shown; raises the call's error."""
        if self._stop_event.is_set():
            raise Interrupted("stopped between two calls")
        self.stream = stream = client.engine.start(step.request, labels=step.labels)
        if self._stop_event.is_set():
            stream.stop()  # `stop` may have seen the stream before
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
        self._call.results.append(result)
        self._on_tool_change()
