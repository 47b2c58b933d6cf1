"""The composer's view of a conversation: how its turns are drawn, what their buttons do, and what is saved of it.

ConversationView ──┬── ConversationTree    the turns and their branches
                   ├── TurnRunner          asks a turn, one at a time
                   ├── ConversationPage    the widget: a TurnPane a call
                   └── Output              the ordinary output that stays in the notebook
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

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
from famnb.widget.live.pane import Pane, final_block
from famnb.widget.runtime.output import Output

# Short enough that a cell that cannot go on seems to fail at once, and long enough to cost nothing.
APPROVAL_PERIOD_S = 0.05
"""Between two looks at whether a tool call waits for approval, while a cell waits for the turn."""
_EMPTY = "Replies appear here and are saved with the notebook."
# The style sheet hides this class while the widget above draws the same turns, lest each be seen twice.
_SAVED = SafeHtml('<div class="famnb-kept">{}</div>')
_MUTED = SafeHtml(f'<p style="{transcript.MUTED_STYLE}">{{}}</p>')


class TurnPosition(NamedTuple):
    """Where a turn is in its conversation: what the buttons of that turn need."""

    turn: int
    """Its index on the branch in view."""
    version: int
    """Its index among the turns that were asked in the same place."""
    versions: int
    text: str
    """Its prompt, which its Edit button puts into a text box."""


class TurnPane(Pane):
    """A pane of the composer: one call of a turn. The first one has the prompt, the others follow tool calls."""

    def __init__(self, call: TurnCall, *, id: str, prompt: Sequence[Section], has_stop: bool) -> None:
        super().__init__(call.stream, id=id, has_stop=has_stop)
        self.position: TurnPosition | None = None
        """Where its turn is; None on all but the first call of a turn, which has the buttons."""
        self.ending: TurnPosition | None = None
        """Where its turn is; None on all but the last call of a turn that has ended, which has its foot."""
        self.turn_reply: Reply | None = None
        """The reply of the whole turn, on its last call; None before the turn has ended."""
        self._prompt = prompt
        self._verdicts = call.verdicts
        self._results = call.results

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
        return next((call for call in self.reply.tool_calls if self._verdicts.get(call.at) == "pending"), None)

    def final_blocks(self, pieces: Sequence[Section]) -> list[dict[str, Any]]:
        """The blocks of its reply, each tool call followed by the question for approval or by its result."""
        calls = self.stream.reply.tool_calls
        indices = iter(range(len(calls)))
        blocks = []
        for block, rendered in zip(self.stream.reply.blocks, super().final_blocks(pieces), strict=True):
            blocks.append(rendered)
            for index in itertools.islice(indices, block.kind == "tool_call"):
                blocks += self._below_call(block, index, is_last=index == len(calls) - 1)
        return blocks

    def _below_call(self, call: Block, index: int, *, is_last: bool) -> list[dict[str, Any]]:
        """What is drawn below a tool call."""
        if index < len(self._results):
            return [final_block(transcript.result_section(self._results[index]))]
        if self._verdicts.get(call.at) != "pending":
            return []
        label = f"Run {sanitize.visible(call.name)}?"
        block = {"kind": "verdict", "label": label, "open": True, "html": "", "tail": ""}
        return [{**block, "call": index, "last": is_last}]

    def snapshot(self) -> dict[str, Any]:
        """All there is to draw, in the front end's shape."""
        snapshot = super().snapshot()
        is_first = self.position is not None
        losses = [sanitize.visible(loss) for loss in self.stream.exchange.request.losses]
        return {
            **snapshot,
            # Endpoint and model stand once, at the first call of the turn.
            "head": snapshot["head"] if is_first else "",
            "badges": [badge for badge in snapshot["badges"] if badge[1] != "plain" or is_first],
            "asked": [[part.label, sanitize.visible(part.text)] for part in self._prompt],
            "notes": [*losses, *snapshot["notes"]],
            "doing": "" if snapshot["running"] else self._activity(),
            "turn": self.position and list(self.position),
            "ending": self.ending and list(self.ending[:3]),
        }

    def _activity(self) -> str:
        """What the turn does between this call and the next one; empty if nothing."""
        call = self.pending_call
        if call is not None:
            return f"{sanitize.visible(call.name)} waits for your approval"
        calls = () if self.turn_reply else self.reply.tool_calls[len(self._results) :]
        running = [call.name for call in calls if self._verdicts.get(call.at) == "approved"]
        return f"running {sanitize.visible(running[0])} …" if running else ""


class ConversationPage(Protocol):
    """What draws the turns: the composer's widget."""

    def follow(
        self, panes: Sequence[Pane], *, earlier: Sequence[Pane] = (), on_end: Callable[[], object] | None = None
    ) -> None:
        """Draw these panes until their streams have ended, below the `earlier` ones."""

    def redraw_pane(self, pane: Pane) -> None:
        """Draw one pane anew, if it is in view."""


@dataclasses.dataclass(slots=True, eq=False)
class TurnView:
    """What the composer draws and saves of a turn."""

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
        page: ConversationPage,
        editor: Editor,
        *,
        tools: Tools,
        on_turn_end: Callable[[], object],
        on_busy: Callable[[], object],
    ) -> None:
        """`editor` makes a request of a prompt.

        `on_turn_end` is called on any thread when a turn has ended, before another one can be asked; `on_busy`
        whenever `is_busy` has changed.
        """
        self._page, self._editor = page, editor
        self._on_turn_end, self._on_busy = on_turn_end, on_busy
        self._idle = threading.Event()
        """Set while no turn is being answered."""
        self._idle.set()
        self.runner = TurnRunner(client, self, tools=tools)
        self.tree = ConversationTree()
        """The conversation in view."""
        self._views: dict[Turn, TurnView] = {}
        self._numbers = itertools.count(1)
        self._latest: TurnView | None = None
        """The turn that was asked last."""
        self.output = Output()
        self._earlier: list[tuple[str, Bundle]] = []
        """The conversations before this one as output, with their titles."""

    @property
    def reply(self) -> Reply | None:
        """The latest reply of the branch in view, as far as it has come; None before the first."""
        head = self.tree.head
        if head is not None and self._views[head].has_ended:
            return head.reply
        return None if self.runner.stream is None else self.runner.stream.reply

    @property
    def turn_views(self) -> list[TurnView]:
        """The branch in view, its first turn first."""
        return [self._views[turn] for turn in self.tree.path]

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the branch in view that have ended, the first one first."""
        return tuple(view.turn for view in self.turn_views if view.has_ended)

    @property
    def is_busy(self) -> bool:
        """Whether a turn is being answered; nothing else is asked meanwhile."""
        return not self._idle.is_set()

    # What its buttons do

    def begin(self, request: Request) -> Stream:
        """Send a request as the first turn of another conversation; returns its first call."""
        tree, views = self.tree, self._views
        self.tree, self._views = ConversationTree(), {}
        # Archived only once the new one is sent: what cannot be sent leaves the conversation in view as it was.
        try:
            stream = self._ask(request, None)
        except BaseException:
            self.tree, self._views = tree, views
            raise
        self._archive(tree, views)
        return stream

    def clear(self) -> None:
        """Put the conversation in view among the earlier ones, so that the next turn begins another."""
        self._archive(self.tree, self._views)
        self.tree, self._views = ConversationTree(), {}
        self.redraw()

    def _archive(self, tree: ConversationTree, views: Mapping[Turn, TurnView]) -> None:
        if _outputs(tree.path, views):
            self._earlier.append(_conversation_output(tree, views))

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
        self.redraw()

    def stop(self) -> None:
        """Stop what is streaming, and let no tool run and no further call be sent for this turn."""
        self.runner.stop()

    def decide(self, pane_id: str, call: int, *, approved: bool, rest: bool) -> None:
        """Approve or decline the tool call of that index in a pane, if it waits; with `rest`, all that follow it."""
        for pane in self.turn_views[-1].panes if self.tree.head else ():
            calls = pane.stream.reply.tool_calls
            if pane.id == pane_id and 0 <= call < len(calls):
                self.runner.approval.decide(calls[call].at, approved=approved, rest=rest)

    def wait(self, timeout: float | None) -> Reply | None:
        """Wait until the turn has ended, at most `timeout` seconds; returns the reply as far as it has come.

        Raises InvalidRequest if a tool call waits for approval: the kernel may not process clicks while a cell runs.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._idle.wait(_remaining(deadline, at_most=APPROVAL_PERIOD_S)):
            for pane in self.turn_views[-1].panes if self.tree.head else ():
                if pane.pending_call is not None:
                    raise InvalidRequest(
                        f"{pane.pending_call.name} waits for your approval: press Approve or Decline in the composer "
                        "and run this cell again, or make the composer with auto=True"
                    )
            if deadline is not None and time.monotonic() >= deadline:
                break
        return self.reply

    # What is drawn

    def display_output(self) -> None:
        """Put the output under the cell that runs now."""
        self.output.show(self.bundle())

    def redraw(self) -> None:
        """Draw the branch in view, on the page and in the output."""
        self.output.replace(self.bundle())
        self._page.follow([], earlier=self.panes)

    def bundle(self) -> Bundle:
        """All conversations as one notebook output."""
        if not _outputs(self.tree.path, self._views):
            return transcript.stack_bundles(self._earlier) if self._earlier else _empty_output()
        title, latest = _conversation_output(self.tree, self._views)
        html = _SAVED.format(SafeHtml(latest["text/html"]))
        return transcript.stack_bundles([*self._earlier, (title, {**latest, "text/html": html})])

    @property
    def panes(self) -> list[TurnPane]:
        """The panes of the branch in view, each with its position."""
        panes = []
        for index, view in enumerate(self.turn_views):
            versions = self.tree.versions(view.turn)
            text = split_content(view.turn.prompt)[0] if view.has_ended else ""
            position = TurnPosition(index, versions.index(view.turn), len(versions), text)
            for pane in view.panes:
                pane.position = position if pane is view.panes[0] else None
                pane.ending = position if view.has_ended and pane is view.panes[-1] else None
            panes += view.panes
        return panes

    def on_call(self, call: TurnCall, *, on_shown: Callable[[], object]) -> None:
        """Draw a call of the turn that is being asked."""
        view = self._running_view()
        request = call.stream.exchange.request
        # A call that is sent again in another form takes the place of the one that failed.
        del view.panes[call.index :]
        pane = TurnPane(
            call,
            id=f"{view.id}.{call.index}",
            prompt=[] if call.index else transcript.prompt_sections(request, whole=view.turn.before is None),
            # The prompt box, which is always in view, has the button for it.
            has_stop=False,
        )
        view.panes.append(pane)
        self._page.follow([pane], earlier=[other for other in self.panes if other is not pane], on_end=on_shown)

    def on_tool_change(self) -> None:
        """Draw that a tool call waits for approval, was decided, or has returned."""
        if self.tree.head is not None and self.turn_views[-1].panes:
            self._page.redraw_pane(self.turn_views[-1].panes[-1])

    def on_end(self, reply: Reply) -> None:
        """Store the reply of a turn, and draw it."""
        view = self._running_view()
        view.turn.reply = view.panes[-1].turn_reply = reply
        view.has_ended = True
        try:
            view.output = transcript.turn_bundle(view.turn)
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
        self._views[turn] = self._latest = TurnView(f"{self.tree.id}.{next(self._numbers)}", turn)
        self._idle.clear()
        self._on_busy()
        labels = {"talk": self.tree.id, "turn": str(len(turn.path))}
        try:
            return self.runner.start(requests, schema=self._editor.answer_type, labels=labels)
        except BaseException:
            # Nothing was sent, so the conversation stays as it was.
            self.tree.remove(turn, head=head)
            del self._views[turn]
            self._set_idle()
            raise

    def _set_idle(self) -> None:
        self._idle.set()
        self._on_busy()

    def _running_view(self) -> TurnView:
        assert self._latest is not None, "a turn runs only once it was asked"
        return self._latest

    def _turn(self, index: int) -> Turn:
        path = self.tree.path
        return path[check_index("turn", index, len(path))]

    def _find_ended_turn(self, index: int) -> Turn:
        """The turn of that index on the branch in view; raises InvalidRequest while it is being answered."""
        turn = self._turn(index)
        if not self._views[turn].has_ended:
            raise InvalidRequest("this turn is being answered: wait for that, or stop it")
        return turn


def _conversation_output(tree: ConversationTree, views: Mapping[Turn, TurnView]) -> tuple[str, Bundle]:
    """The title of a conversation, and its branch in view as notebook output, with the other branches folded below."""
    branches = []
    for branch in tree.other_branches:
        title = f"another version of turn {len(branch[0].path)}: {_title(branch, views)}"
        note = transcript.render([Section("note", title)])
        branches.append((title, transcript.join_bundles([note, *_outputs(branch, views)])))
    return _title(tree.path, views), transcript.stack_bundles(
        [*branches, ("", transcript.join_bundles(_outputs(tree.path, views)))]
    )


def _title(turns: Sequence[Turn], views: Mapping[Turn, TurnView]) -> str:
    """One line for folded turns: the title of the first, and how many there are; empty if none has ended."""
    titles = [transcript.title(views[turn].panes[0].reply) for turn in turns if views[turn].output]
    if not titles:
        return ""
    return titles[0] + (f" · {len(titles)} turns" if len(titles) > 1 else "")


def _outputs(turns: Sequence[Turn], views: Mapping[Turn, TurnView]) -> list[Bundle]:
    return [views[turn].output for turn in turns if views[turn].output]


def _empty_output() -> Bundle:
    return {
        "text/html": _SAVED.format(_MUTED.format(_EMPTY)),
        "text/markdown": f"*{_EMPTY}*",
        "text/plain": _EMPTY,
    }


def _remaining(deadline: float | None, *, at_most: float) -> float:
    """Seconds until the deadline, from 0 to `at_most`."""
    return at_most if deadline is None else max(0.0, min(at_most, deadline - time.monotonic()))
