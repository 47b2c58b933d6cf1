"""The composer's view of a conversation: what its page shows of the turns, what their buttons do, what is saved of it.

ConversationView ──┬── ConversationTree    the turns and their branches
                   ├── TurnRunner          asks a turn, one at a time
                   └── TurnPane            a call of a turn
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from famnb.client.ask import Tools
from famnb.client.client import BaseClient
from famnb.client.conversation import ConversationTree, Turn, requests_after
from famnb.client.live_call import Stream
from famnb.errors import InvalidRequest
from famnb.reply import Block, Reply
from famnb.request import Request
from famnb.validation import check_index
from famnb.widget.composer.turn_runner import TurnCall, TurnRunner
from famnb.widget.form.draft import last_user_content, split_content
from famnb.widget.form.editor import Editor
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.live.reply_pane import BlockView, PaneView, PromptView, ReplyPane, final_block
from famnb.widget.runtime.tool import BaseTool
from famnb.widget.runtime.view import View

# Short enough that a cell that cannot go on seems to fail at once, and long enough to cost nothing.
APPROVAL_PERIOD_S = 0.05
"""Between two looks at whether a tool call waits for approval, while a cell waits for the turn."""
_EMPTY = "Replies appear here and are saved with the notebook."
_MUTED = SafeHtml(f'<p style="{transcript.MUTED_STYLE}">{{}}</p>')


class ToolCallView(View, frozen=True):
    """What stands below a tool call: the question whether it may run, or what it returned."""

    key: str
    """The key of the block that it stands below."""
    number: int
    """Its index among the tool calls of its reply."""
    name: str
    is_pending: bool
    """Whether it waits for approval."""
    is_last: bool
    """Whether no call of the reply follows it."""
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
        super().__init__(call.stream, key=key, has_stop=False)
        self.turn_reply: Reply | None = None
        """The reply of the whole turn, on its last call; None before the turn has ended."""
        self._call = call
        self._prompts = tuple(
            PromptView(label="" if section.label == "user" else section.label, text=sanitize.visible(section.text))
            for section in prompts
        )
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
        return next((call for call in self.reply.tool_calls if self._call.verdicts.get(call.at) == "pending"), None)

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
        results = self._call.results
        for result in results[len(self._results) :]:
            self._results.append(final_block(transcript.result_section(result), None, key="result"))
        blocks = zip(self.stream.reply.blocks, pane.blocks, strict=True)
        calls = [(block, view.key) for block, view in blocks if block.kind == "tool_call"]
        return tuple(
            ToolCallView(
                key=key,
                number=number,
                name=sanitize.visible(call.name),
                is_pending=self._call.verdicts.get(call.at) == "pending",
                is_last=number == len(calls) - 1,
                result=self._results[number] if number < len(self._results) else None,
            )
            for number, (call, key) in enumerate(calls)
        )

    def _make_view(self) -> PaneView:
        view = super()._make_view()
        is_first = self._call.index == 0
        losses = (sanitize.visible(loss) for loss in self.stream.exchange.request.losses)
        return msgspec.structs.replace(
            view,
            # Endpoint and model stand once, at the first call of the turn.
            head=view.head if is_first else "",
            badges=tuple(badge for badge in view.badges if badge.tone != "plain" or is_first),
            prompts=self._prompts,
            notes=(*losses, *view.notes),
            status=view.status if view.is_running else self._describe_activity(),
        )

    def _describe_activity(self) -> str:
        """Return what the turn does between this call and the next one; empty if nothing."""
        call = self.pending_call
        if call is not None:
            return f"{sanitize.visible(call.name)} waits for your approval"
        calls = () if self.turn_reply else self.reply.tool_calls[len(self._call.results) :]
        running = [call.name for call in calls if self._call.verdicts.get(call.at) == "approved"]
        return f"running {sanitize.visible(running[0])} …" if running else ""


@dataclasses.dataclass(slots=True, eq=False)
class TurnRecord:
    """What the composer shows and saves of a turn."""

    id: str
    """Different for every turn of every conversation."""
    turn: Turn
    has_ended: bool = False
    panes: list[TurnPane] = dataclasses.field(default_factory=list)
    """Its calls: one, and another for each round of tools."""
    output: Bundle = dataclasses.field(default_factory=dict)
    """The turn as notebook output; empty until it has ended."""


class ConversationView:
    """One conversation after another: asks their turns, draws them on a page, and keeps their output.

    In the output the latest conversation stands open, those before it are folded below.
    """

    def __init__(
        self,
        client: BaseClient,
        tool: BaseTool,
        editor: Editor,
        *,
        tools: Tools,
        on_turn_end: Callable[[], object],
    ) -> None:
        """`editor` makes a request of a prompt; all but `wait` and `stop` is called with the lock of `tool`.

        `on_turn_end` is called with that lock, on any thread, when a turn has ended, before another one can be asked.
        """
        self._tool, self._editor = tool, editor
        self._on_turn_end = on_turn_end
        self._idle = threading.Event()
        """Set while no turn is being answered."""
        self._idle.set()
        self.runner = TurnRunner(client, self, tools=tools)
        self.tree = ConversationTree()
        """The conversation in view."""
        self._records: dict[Turn, TurnRecord] = {}
        self._numbers = itertools.count(1)
        self._latest: TurnRecord | None = None
        """The turn that was asked last."""
        self._earlier: list[tuple[str, Bundle]] = []
        """The conversations before this one as output, with their titles."""

    @property
    def reply(self) -> Reply | None:
        """The latest reply of the branch in view, as far as it has come; None before the first."""
        head = self.tree.head
        if head is not None and self._records[head].has_ended:
            return head.reply
        return None if self.runner.stream is None else self.runner.stream.reply

    @property
    def records(self) -> list[TurnRecord]:
        """The branch in view, its first turn first."""
        return [self._records[turn] for turn in self.tree.path]

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the branch in view that have ended, the first one first."""
        return tuple(record.turn for record in self.records if record.has_ended)

    @property
    def is_busy(self) -> bool:
        """Whether a turn is being answered; nothing else is asked meanwhile."""
        return not self._idle.is_set()

    # What its buttons do

    def begin(self, request: Request) -> Stream:
        """Send a request as the first turn of another conversation; returns its first call."""
        tree, records = self.tree, self._records
        self.tree, self._records = ConversationTree(), {}
        # Archived only once the new one is sent: what cannot be sent leaves the conversation in view as it was.
        try:
            stream = self._ask(request, None)
        except BaseException:
            self.tree, self._records = tree, records
            raise
        self._archive(tree, records)
        return stream

    def clear(self) -> None:
        """Put the conversation in view among the earlier ones, so that the next turn begins another."""
        self._archive(self.tree, self._records)
        self.tree, self._records = ConversationTree(), {}
        self._show()

    def _archive(self, tree: ConversationTree, records: Mapping[Turn, TurnRecord]) -> None:
        if _outputs(tree.path, records):
            self._earlier.append(_conversation_output(tree, records))

    def next_request(self, prompt: str) -> Request:
        """Return what `add_turn` would send in one piece, all turns repeated; raises InvalidRequest for faults."""
        return requests_after(self.last_good_turn, self._editor.turn_request(prompt), self._editor.endpoints)[-1]

    @property
    def last_good_turn(self) -> Turn | None:
        """The turn that a next one follows; None if there is none."""
        # A turn that failed stays in view, and the next one takes its place.
        return next((turn for turn in reversed(self.turns) if turn.can_continue), None)

    @property
    def last_requests(self) -> list[Request]:
        """The requests of all versions of the last turn."""
        versions = self.tree.versions(self.turns[-1]) if self.turns else ()
        requests = [version.reply.request for version in versions]
        return [request for request in requests if isinstance(request, Request)]

    def add_turn(self, prompt: str) -> Stream:
        """Ask the next turn of the branch in view."""
        request = self._editor.turn_request(prompt)
        pictures = split_content(last_user_content(request))[1]
        # The form keeps its pictures after a turn. One that an earlier turn had is sent again as part of that turn, so
        # it must not be in the new prompt too.
        sent = {picture.url for turn in self.turns for picture in split_content(turn.prompt)[1]}
        unsent = tuple(picture for picture in pictures if picture.url not in sent)
        if unsent != pictures:
            request = self._editor.turn_request(prompt, unsent)
        return self._ask(request, self.last_good_turn)

    def edit(self, turn: int, prompt: str) -> Stream:
        """Ask something else in the place of a turn, with that turn's pictures."""
        old = self._find_ended_turn(turn)
        return self._ask(self._editor.turn_request(prompt, split_content(old.prompt)[1]), old.before)

    def regenerate(self, turn: int) -> Stream:
        """Ask a turn once more, with the settings that the form has now."""
        old = self._find_ended_turn(turn)
        return self._ask(self._editor.turn_request(*split_content(old.prompt)), old.before)

    def switch(self, turn: int, version: int) -> None:
        """Show another version of a turn, and what followed it."""
        versions = self.tree.versions(self._turn(turn))
        if not 0 <= version < len(versions):
            raise InvalidRequest(f"version: there is no {version} of turn {turn}; it has {len(versions)}, from 0")
        self.tree.show(versions[version])
        self._show()

    def stop(self) -> None:
        """Stop what is streaming, and let no tool run and no further call be sent for this turn."""
        self.runner.stop()

    def decide(self, pane_key: str, call: int, *, approved: bool, rest: bool) -> None:
        """Approve or decline the tool call of that index in a pane, if it waits; with `rest`, all that follow it."""
        for pane in self.records[-1].panes if self.tree.head else ():
            calls = pane.stream.reply.tool_calls
            if pane.key == pane_key and 0 <= call < len(calls):
                self.runner.approval.decide(calls[call].at, approved=approved, rest=rest)

    def wait(self, timeout: float | None) -> Reply | None:
        """Wait until the turn has ended, at most `timeout` seconds; returns the reply as far as it has come.

        Raises InvalidRequest if a tool call waits for approval: the kernel may not process clicks while a cell runs.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._idle.wait(_remaining(deadline, at_most=APPROVAL_PERIOD_S)):
            for pane in self.records[-1].panes if self.tree.head else ():
                if pane.pending_call is not None:
                    raise InvalidRequest(
                        f"{pane.pending_call.name} waits for your approval: press Approve or Decline in the composer "
                        "and run this cell again, or make the composer with auto=True"
                    )
            if deadline is not None and time.monotonic() >= deadline:
                break
        return self.reply

    def _show(self) -> None:
        self._tool.refresh()
        self._tool.update_saved()

    # What is shown

    def view(self) -> tuple[TurnView, ...]:
        """Return the turns of the branch in view."""
        views = []
        for index, record in enumerate(self.records):
            versions = self.tree.versions(record.turn)
            views.append(
                TurnView(
                    key=str(index),
                    prompt=split_content(record.turn.prompt)[0],
                    version=versions.index(record.turn),
                    version_count=len(versions),
                    calls=tuple(pane.call_view() for pane in record.panes),
                )
            )
        return tuple(views)

    def bundle(self) -> Bundle:
        """Return all conversations as one notebook output."""
        if not _outputs(self.tree.path, self._records):
            return transcript.stack_bundles(self._earlier) if self._earlier else _EMPTY_OUTPUT
        return transcript.stack_bundles([*self._earlier, _conversation_output(self.tree, self._records)])

    # What the turn's thread reports

    def on_call(self, call: TurnCall, *, on_shown: Callable[[], object]) -> None:
        """Show a call of the turn that is being asked."""
        with self._tool.lock:
            record = self._running_record()
            request = call.stream.exchange.request
            # A call that is sent again in another form takes the place of the one that failed.
            del record.panes[call.index :]
            prompts = [] if call.index else transcript.prompt_sections(request, whole=record.turn.before is None)
            pane = TurnPane(call, key=f"{record.id}.{call.index}", prompts=prompts)
            record.panes.append(pane)
            self._tool.follow([pane], on_end=on_shown)

    def on_tool_change(self) -> None:
        """Show that a tool call waits for approval, was decided, or has returned."""
        with self._tool.lock:
            if self.tree.head is not None and self.records[-1].panes:
                self.records[-1].panes[-1].invalidate()
                self._tool.refresh()

    def on_end(self, reply: Reply) -> None:
        """Store the reply of a turn, and show it."""
        with self._tool.lock:
            record = self._running_record()
            record.turn.reply = record.panes[-1].turn_reply = reply
            record.panes[-1].invalidate()
            record.has_ended = True
            try:
                record.output = transcript.turn_bundle(record.turn)
            finally:
                try:
                    self._on_turn_end()
                finally:
                    # Even if something could not be drawn, the next turn can be asked.
                    self._set_idle()

    def _ask(self, request: Request, before: Turn | None) -> Stream:
        """Ask a turn after another one; returns its first call."""
        requests = requests_after(before, request, self._editor.endpoints)
        turn = Turn(last_user_content(request), Reply(endpoint=request.endpoint, status="running"), before)
        head = self.tree.head
        self.tree.add(turn)
        self._records[turn] = self._latest = TurnRecord(f"{self.tree.id}.{next(self._numbers)}", turn)
        self._idle.clear()
        self._tool.refresh()
        labels = {"talk": self.tree.id, "turn": str(len(turn.path))}
        try:
            return self.runner.start(requests, schema=self._editor.answer_type, labels=labels)
        except BaseException:
            # Nothing was sent, so the conversation stays as it was.
            self.tree.remove(turn, head=head)
            del self._records[turn]
            self._set_idle()
            raise

    def _set_idle(self) -> None:
        self._idle.set()
        self._tool.refresh()

    def _running_record(self) -> TurnRecord:
        assert self._latest is not None, "a turn runs only once it was asked"
        return self._latest

    def _turn(self, index: int) -> Turn:
        path = self.tree.path
        return path[check_index("turn", index, len(path))]

    def _find_ended_turn(self, index: int) -> Turn:
        """The turn of that index on the branch in view; raises InvalidRequest while it is being answered."""
        turn = self._turn(index)
        if not self._records[turn].has_ended:
            raise InvalidRequest("this turn is being answered: wait for that, or stop it")
        return turn


def _conversation_output(tree: ConversationTree, records: Mapping[Turn, TurnRecord]) -> tuple[str, Bundle]:
    """The title of a conversation, and its branch in view as notebook output, with the other branches folded below."""
    branches = []
    for branch in tree.other_branches:
        title = f"another version of turn {len(branch[0].path)}: {_title(branch, records)}"
        note = transcript.render([Section("note", title)])
        branches.append((title, transcript.join_bundles([note, *_outputs(branch, records)])))
    return _title(tree.path, records), transcript.stack_bundles(
        [*branches, ("", transcript.join_bundles(_outputs(tree.path, records)))]
    )


def _title(turns: Sequence[Turn], records: Mapping[Turn, TurnRecord]) -> str:
    """One line for folded turns: the title of the first, and how many there are; empty if none has ended."""
    titles = [transcript.title(records[turn].panes[0].reply) for turn in turns if records[turn].output]
    if not titles:
        return ""
    return titles[0] + (f" · {len(titles)} turns" if len(titles) > 1 else "")


def _outputs(turns: Sequence[Turn], records: Mapping[Turn, TurnRecord]) -> list[Bundle]:
    return [records[turn].output for turn in turns if records[turn].output]


_EMPTY_OUTPUT: Bundle = {"text/html": _MUTED.format(_EMPTY), "text/markdown": f"*{_EMPTY}*", "text/plain": _EMPTY}


def _remaining(deadline: float | None, *, at_most: float) -> float:
    """Seconds until the deadline, from 0 to `at_most`."""
    return at_most if deadline is None else max(0.0, min(at_most, deadline - time.monotonic()))
