"""The turns of a composer's chat: what the page shows of each call, and what is saved of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import msgspec

from famnb.client.conversation import ConversationTree, Turn
from famnb.client.exchange import Exchange
from famnb.reply import Block, Reply
from famnb.widget.composer.turn_runner import TurnCall
from famnb.widget.form.draft import split_content
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.live.reply_pane import BlockView, EndedStream, PaneView, ReplyPane, final_block
from famnb.widget.runtime.view import View


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
        self.turn_reply: Reply | None = None
        """The reply of the whole turn, on its last call; None before the turn has ended."""
        self.call = call
        self._results: list[BlockView] = []
        self._call_view: TurnCallView | None = None

    @property
    def reply(self) -> Reply:
        """The reply, with the warnings and the instance of a schema that the turn has added."""
        reply, turn_reply = super().reply, self.turn_reply
        if turn_reply is None:
            return reply
        return dataclasses.replace(reply, warnings=turn_reply.warnings, parsed=turn_reply.parsed)

    @property
    def pending_call(self) -> Block | None:
        """The tool call that waits for approval; None if none does."""
        return next((call for call in self.reply.tool_calls if self.call.verdicts.get(call.at) == "pending"), None)

    def invalidate(self) -> None:
        """Have the view made anew: a tool call or the turn has changed."""
        self._view = None

    def call_view(self) -> TurnCallView:
        """Return the pane and what stands below its tool calls, the same object until it changes."""
        pane = self.view()
        if self._call_view is None or self._call_view.pane is not pane:
            tools = () if pane.is_running else self._tool_views(pane)
            self._call_view = TurnCallView(key=self.key, pane=pane, tools=tools)
        return self._call_view

    def _tool_views(self, pane: PaneView) -> tuple[ToolCallView, ...]:
        results = self.call.results
        for result in results[len(self._results) :]:
            self._results.append(final_block(transcript.result_section(result), None, key="result"))
        blocks = zip(self.stream.reply.blocks, pane.blocks, strict=True)
        calls = [(block, view.key) for block, view in blocks if block.kind == "tool_call"]
        return tuple(
            ToolCallView(
                key=key,
                name=sanitize.visible(call.name),
                is_pending=self.call.verdicts.get(call.at) == "pending",
                result=self._results[number] if number < len(self._results) else None,
            )
            for number, (call, key) in enumerate(calls)
        )

    def _make_view(self) -> PaneView:
        view = super()._make_view()
        is_first = self.call.index == 0
        return msgspec.structs.replace(
            view,
            # Endpoint and model stand once, at the first call of the turn.
            head=view.head if is_first else "",
            badges=tuple(badge for badge in view.badges if badge.tone != "plain" or is_first),
            status=view.status if view.is_running else self._describe_activity(),
        )

    def _describe_activity(self) -> str:
        """Return what the turn does between this call and the next one; empty if nothing."""
        call = self.pending_call
        if call is not None:
            return f"{sanitize.visible(call.name)} waits for your approval"
        calls = () if self.turn_reply else self.reply.tool_calls[len(self.call.results) :]
        running = [call.name for call in calls if self.call.verdicts.get(call.at) == "approved"]
        return f"running {sanitize.visible(running[0])} …" if running else ""


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
        """Return the turn as notebook output; empty until it has ended."""
        if not self._output and self.has_ended:
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
    """Return the branch in view as notebook output, with a title and the others folded below; None before an end."""
    if not (outputs := _outputs(tree.path)):
        return None
    branches = []
    for branch in tree.other_branches:
        title = f"another version of turn {len(branch[0].path)}: {_title(branch)}"
        note = transcript.render([Section("note", title)])
        branches.append((title, transcript.join_bundles([note, *_outputs(branch)])))
    return _title(tree.path), transcript.stack_bundles([*branches, ("", transcript.join_bundles(outputs))])


def _title(turns: Sequence[Turn]) -> str:
    """Return one line for folded turns: the title of the first, and how many there are; empty if none has ended."""
    titles = [transcript.title(turn.panes[0].reply) for turn in turns if isinstance(turn, ChatTurn) and turn.has_ended]
    if not titles:
        return ""
    return titles[0] + (f" · {len(titles)} turns" if len(titles) > 1 else "")


def _outputs(turns: Sequence[Turn]) -> list[Bundle]:
    return [turn.output() for turn in turns if isinstance(turn, ChatTurn) and turn.has_ended]
