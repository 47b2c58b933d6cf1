"""The composer's conversation: what its buttons do, and which of its turns are shown; asking one is the asker's.

MERGED: The composer's desk: its prompt box, the turns of a conversation, and what their buttons ask for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import traitlets

from famnb.client.ask import Tools
from famnb.client.client import BlockingClient
from famnb.client.conversation import Turn, continued
from famnb.client.stream import Stream
from famnb.errors import InvalidRequest
from famnb.reply import Reply
from famnb.request import Request
from famnb.validation import check_index
from famnb.widget.composer.turn_pane import Place, TurnPane
from famnb.widget.composer.turn_runner import Asker
from famnb.widget.composer.turn_tree import Branches, Node
from famnb.widget.form.draft import last_user_content, split_content
from famnb.widget.form.images import PromptImage
from famnb.widget.live.prompt_box import PromptBox


class TalkDesk(PromptBox):
    """A prompt box with a conversation below; what is done with either is told to others."""

    turns = traitlets.Int(0).tag(sync=True)
    """How many turns there are to look at."""
    talking = traitlets.Bool(False).tag(sync=True)
    """Whether they are shown, each with its buttons, and a box for the next one."""

    def __init__(self, *, told: Callable[[dict[str, Any]], object], **traits: Any) -> None:
        super().__init__(**traits)
        self._told = told

    def show(self, panes: Sequence[TurnPane]) -> None:
        """Show these panes, all of which have ended."""
        self.follow([], after=panes)

    def redraw(self, pane: TurnPane) -> None:
        """Draw one pane anew, if it is shown."""
        with self._guard:
            if pane.id in self._panes and not self._hidden:
                self._send_numbered({"kind": "changes", "panes": {}, "anew": [pane.snapshot()]})

    def _on_message(self, widget: object, message: dict[str, Any], buffers: object) -> None:
        match message:
            case {"kind": "talk" | "reply" | "edit" | "again" | "version" | "decide"}:
                self._told(message)
                self.send({"kind": "taken"})
            case {"kind": "stop"}:
                super()._on_message(widget, message, buffers)
                self._told(message)
            case _:
                super()._on_message(widget, message, buffers)


LOOK_S = 0.05
"""Between two looks at whether a tool call waits, while a cell waits for the turn."""


class Talk:
    """One conversation after another, shown on a desk."""

    def __init__(
        self,
        client: BlockingClient,
        desk: TalkDesk,
        *,
        functions: Sequence[Callable[..., Any]],
        auto: bool,
        max_rounds: int,
        fresh: Callable[[str, tuple[PromptImage, ...] | None], Request],
        expected: Callable[[], Any],
        changed: Callable[[], object],
        ended: Callable[[], object],
    ) -> None:
        """`fresh` makes a prompt and pictures (None: the form's) a request with the form's settings, and `expected`
        says of which type its answer is to be. `changed` is called when another branch is to be shown, `ended`, on any
        thread, when a turn has ended.
        """
        self._desk = desk
        self._fresh, self._expected = fresh, expected
        self._changed, self._told_end = changed, ended
        self._asker = Asker(client, self, functions=functions, auto=auto, max_rounds=max_rounds)
        self._over = threading.Event()
        """Set while no turn is being answered."""
        self._over.set()
        self.tree = Branches()
        """The conversation."""

    @property
    def tools(self) -> Tools:
        """The functions that the model may call."""
        return self._asker.tools

    @property
    def stream(self) -> Stream | None:
        """The call that was made last."""
        return self._asker.stream

    @property
    def reply(self) -> Reply | None:
        """The latest reply of the branch in view, as far as it has come."""
        head = self.tree.head
        if head is not None and head.turn is not None:
            return head.turn.reply
        return None if self.stream is None else self.stream.reply

    # What its buttons do

    def told(self, message: dict[str, Any]) -> None:
        """Do what a button asks for."""
        match message:
            case {"kind": "talk", "on": bool(on)}:
                self._desk.talking = on
                if not self._desk.busy:
                    self._changed()
            case {"kind": "decide", "pane": str(pane), "call": int(call), "approved": approved, "rest": rest}:
                self.decide(pane, call, approved=approved is True, rest=rest is True)
            case {"kind": "stop"}:
                self.stop()
            case _ if self._desk.busy:
                pass
            case {"kind": "reply", "prompt": str(prompt)}:
                self.say(prompt)
            case {"kind": "edit", "turn": int(turn), "prompt": str(prompt)}:
                self.edit(turn, prompt)
            case {"kind": "again", "turn": int(turn)}:
                self.regenerate(turn)
            case {"kind": "version", "turn": int(turn), "version": int(version)}:
                self.switch(turn, version)
            case _:
                pass

    def begin(self, request: Request) -> Stream:
        """Ask something as the first turn of another conversation."""
        before, self.tree = self.tree, Branches()
        try:
            return self._ask(request, None)
        except BaseException:
            self.tree = before
            raise

    def say(self, prompt: str) -> Stream:
        """Ask something as the next turn; pictures that an earlier turn had do not go along once more."""
        head = self.tree.head
        known = [picture.url for node in self.tree.path if node.turn for picture in split_content(node.turn.said)[1]]
        request = self._fresh(prompt, None)
        shown = split_content(last_user_content(request))[1]
        left = tuple(picture for picture in shown if picture.url not in known)
        return self._ask(request if left == shown else self._fresh(prompt, left), head.end if head else None)

    def edit(self, turn: int, prompt: str) -> Stream:
        """Ask something else in the place of a turn; its pictures go along."""
        node = self._node(turn)
        return self._ask(self._fresh(prompt, split_content(_ended(node).said)[1]), node.before)

    def regenerate(self, turn: int) -> Stream:
        """Ask a turn once more, with the settings that the form has now."""
        node = self._node(turn)
        return self._ask(self._fresh(*split_content(_ended(node).said)), node.before)

    def switch(self, turn: int, version: int) -> None:
        """Look at another version of a turn, and at what followed it."""
        versions = self.tree.versions(self._node(turn))
        if not 0 <= version < len(versions):
            raise InvalidRequest(f"version: there is no {version} of turn {turn}; it has {len(versions)}, from 0")
        self.tree.choose(versions[version])
        self._changed()

    def stop(self) -> None:
        """Stop what is streaming, and let no tool run and no further call be made for this turn."""
        if self.tree.head is not None:
            self._asker.stop(self.tree.head)

    def decide(self, pane: str, call: int, *, approved: bool, rest: bool) -> None:
        """Approve or decline the tool call that waits."""
        if self.tree.head is not None:
            self._asker.decide(self.tree.head, pane, call, approved=approved, rest=rest)

    def wait(self, timeout: float | None) -> Reply | None:
        """Wait until the turn has ended, but never for a click; the reply as far as it has come."""
        due = None if timeout is None else time.monotonic() + timeout
        while not self._over.wait(LOOK_S if due is None else max(0.0, min(LOOK_S, due - time.monotonic()))):
            head = self.tree.head
            for call in (pane.waits for pane in (head.panes if head else [])):
                if call is not None:
                    raise InvalidRequest(
                        f"{call.name} waits for your approval: press Approve or Decline in the composer and run this "
                        "cell again, or make the composer with auto=True"
                    )
            if due is not None and time.monotonic() >= due:
                break
        return self.reply

    # What is shown

    def show(self, *, here: bool) -> None:
        """Show the branch in view, unless it can be read elsewhere and nobody wants to go on with it."""
        self._desk.turns = len(self.tree.path)
        if here or self._desk.talking:
            self._desk.show(self._panes())
        else:
            self._desk.hide()

    def begun(self, pane: TurnPane, over: Callable[[], object]) -> None:
        """Show a call of the turn that is asked."""
        self._desk.turns = len(self.tree.path)
        earlier = [each for each in self._panes() if each is not pane]
        self._desk.follow([pane], after=earlier, on_end=over)

    def decided(self) -> None:
        """Show that a tool call waits, and what became of those before."""
        head = self.tree.head
        if head is not None and head.panes:
            self._desk.redraw(head.panes[-1])

    def ended(self) -> None:
        """Show what came of a turn."""
        try:
            self._told_end()
        finally:
            self._free()

    def _ask(self, fresh: Request, before: Node | None) -> Stream:
        """Ask something after that turn."""
        requests = continued(fresh, before.turn if before else None)
        head, node = self.tree.head, self.tree.grow(before)
        self._desk.busy = True
        self._over.clear()
        labels = {"talk": self.tree.id, "turn": str(len(node.path))}
        try:
            return self._asker.start(
                node, requests, said=last_user_content(fresh), schema=self._expected(), labels=labels
            )
        except BaseException:
            self.tree.drop(node, head)
            self._free()
            raise

    def _free(self) -> None:
        self._desk.busy = False
        self._over.set()

    def _panes(self) -> list[TurnPane]:
        """The panes of the branch in view, each with its place."""
        panes = []
        for number, node in enumerate(self.tree.path):
            versions = self.tree.versions(node)
            text = split_content(node.turn.said)[0] if node.turn else ""
            node.panes[0].place = Place(number, versions.index(node), len(versions), text)
            panes += node.panes
        return panes

    def _node(self, turn: int) -> Node:
        path = self.tree.path
        return path[check_index("turn", turn, len(path))]


def _ended(node: Node) -> Turn:
    """What came of a turn; raises InvalidRequest while it is being answered."""
    if node.turn is None:
        raise InvalidRequest("this turn is being answered: wait for that, or stop it")
    return node.turn
