"""The composer: choose an endpoint, fill in its form, send, watch, reply; what was said stays as ordinary output.

Composer ──┬── Editor   the form: what is asked, as a Draft
           ├── Desk     the prompt box above the live view
           ├── Talk     the conversation: its turns and branches, tools and their approval
           ├── Saved    what stays in the notebook
           └── panels   presets, history, code, JSON body
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

from famnb.client.ask import MOST_ROUNDS, Tools, fitting
from famnb.client.client import BlockingClient
from famnb.client.conversation import Turn
from famnb.client.stream import Stream
from famnb.errors import InvalidRequest
from famnb.record import Ledger, RecordedCall
from famnb.reply import Reply
from famnb.request import Request
from famnb.widget.composer.conversation import Talk, TalkDesk
from famnb.widget.composer.history_panel import Past
from famnb.widget.composer.notebook_output import Saved
from famnb.widget.composer.panels import BodyBox, CodeBox, Panel, PresetBox
from famnb.widget.form.accordion import Accordion
from famnb.widget.form.draft import Draft, draft_of
from famnb.widget.form.editor import Editor
from famnb.widget.form.tool_picker import ToolPicker
from famnb.widget.live.base import SHORTCUT_CLASS, ShortcutGuard, guard_callbacks
from famnb.widget.live.output import Output

_RELOADED = (
    "This page was reloaded, and a reloaded page cannot change outputs it already has. To save this reply with the "
    "notebook, show the composer in a new cell."
)


class Composer:
    """A form for all four endpoints that sends, shows the reply as it streams, and keeps every transcript.

    A reply can be continued: each turn can be edited and asked again, and every version of it is kept. `reply`,
    `replies`, `turns` and `request` are for the cells below; the methods do what the buttons do.
    """

    def __init__(
        self,
        client: BlockingClient,
        *,
        endpoint: str | None = None,
        prompt: str = "",
        system: str = "",
        tools: Sequence[Callable[..., Any]] = (),
        schema: Any = None,
        auto: bool = False,
        max_rounds: int = MOST_ROUNDS,
    ) -> None:
        """Draw the form; nothing is sent yet.

        `tools` are Python functions and `schema` is a type, such as a pydantic model, that the answer shall be JSON of:
        each is a box to tick, and ticked at first where the endpoint can carry it. What the model calls runs once it is
        approved, or at once with `auto`, for at most `max_rounds` rounds. Without an `endpoint`, `messages`, or the one
        that can carry these. Raises InvalidRequest for what is no tool, type or endpoint.
        """
        self._client = client
        # Callbacks come on the main thread, on a subshell's, or on the flusher's.
        self._guard = threading.RLock()
        self._replies: list[Reply] = []
        self._saved = Saved()
        self._trouble = widgets.HTML()
        guarded = guard_callbacks(self._guard, self._trouble)
        self._desk = TalkDesk(
            on_send=guarded(self.send), told=lambda message: guarded(lambda: self._talk.told(message))(), prompt=prompt
        )
        self._talk = Talk(
            client,
            self._desk,
            functions=tools,
            auto=auto,
            max_rounds=max_rounds,
            fresh=lambda prompt, shown: self._editor.fresh(prompt, shown),
            expected=lambda: given.expected,
            changed=guarded(self._talked),
            ended=guarded(self._ended),
        )
        given = ToolPicker(self.tools.functions, schema)
        self._editor = Editor(
            self._desk,
            endpoint=endpoint or fitting(None, self.tools, schema),
            system=system,
            given=given,
            guarded=guarded,
            changed=self._changed,
        )
        self._panels: dict[str, Panel] = {panel.title: panel for panel in self._beside()}
        self._beside_form = Accordion(draw=self._opened)
        self._beside_form.arrange(tuple(self._panels), [panel.hint for panel in self._panels.values()])
        folds = [self._beside_form.bar, self._beside_form.box]
        self._box = widgets.VBox(
            [*self._editor.parts, *folds, self._editor.notes, self._desk, self._trouble, ShortcutGuard()]
        )
        self._box.add_class("famnb-composer")
        self._box.add_class(SHORTCUT_CLASS)
        # Not guarded: the view holds its own guard just then, which a turn that is being asked may be waiting for.
        self._desk.observe(lambda _: self._reloaded(), "reloaded")
        self._editor.settle()

    @property
    def tools(self) -> Tools:
        """The functions that the model may call."""
        return self._talk.tools

    @property
    def request(self) -> Request:
        """The request as the form has it now; raises InvalidRequest, naming the fields, when it is none."""
        return self._editor.request(self._desk.prompt)

    @property
    def reply(self) -> Reply | None:
        """The latest reply, as far as it has come; None before the first.

        Once it has ended, its `rounds` are the tool calls that led to it, and its `parsed` is the instance of `schema`.
        """
        return self._talk.reply

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The replies that have ended, in order, one for each turn."""
        return tuple(self._replies)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the conversation in view that have ended, the first one first."""
        return tuple(node.turn for node in self._talk.tree.path if node.turn)

    def send(self) -> Stream:
        """Send the request and return at once; a conversation begins with it.

        While a reply streams nothing is sent, and its stream is returned. Raises InvalidRequest when the form holds no
        valid request.
        """
        return self._asked(self._begun)

    def say(self, prompt: str) -> Stream:
        """Continue the conversation in view, with the settings that the form has now; begin one if there is none."""
        return self._asked(lambda: self._talk.say(prompt))

    def edit(self, turn: int, prompt: str) -> Stream:
        """Say something else in the place of a turn; what was there, and followed, stays as another version."""
        return self._asked(lambda: self._talk.edit(turn, prompt))

    def regenerate(self, turn: int = -1) -> Stream:
        """Ask a turn once more, with the settings that the form has now; the answer so far stays as another version."""
        return self._asked(lambda: self._talk.regenerate(turn))

    def switch(self, turn: int, version: int) -> None:
        """Have another version of a turn in view, and what followed it; both count from 0."""
        with self._guard:
            self._talk.switch(turn, version)

    def wait(self, timeout: float | None = None) -> Reply | None:
        """Wait until the turn has ended, tools and all; `reply`, as far as it has come in `timeout` seconds.

        Raises InvalidRequest where a tool call waits for approval, since a cell that waits may keep clicks unheard.
        """
        return self._talk.wait(timeout)

    def stop(self) -> None:
        """Stop the reply that is streaming, if one is, and let no tool run; what has come is kept."""
        self._talk.stop()

    def open(self, asked: Request | Reply | RecordedCall | str) -> None:
        """Have a request in the form, exactly: itself, or that of a reply, of a recorded call, or of a call's id.

        Raises InvalidRequest where there is no request, KeyError for a call that is not in the client's ledger.
        """
        ledger = getattr(self._client, "ledger", None)
        if isinstance(asked, str):
            asked = (ledger if isinstance(ledger, Ledger) else Ledger()).call(asked)
        request = asked if isinstance(asked, Request) else asked.request
        if request is None:
            raise InvalidRequest("request: this reply does not know what was asked; give its call's id")
        self._fill(draft_of(request))

    def _ipython_display_(self) -> None:
        self._desk.reloaded = False
        self._trouble.value = ""
        controls = Output()
        controls.show(self._box)
        self._saved.output.captured = controls.captured
        if not controls.captured:
            self._saved.show(self._talk.tree)

    def __repr__(self) -> str:
        return f"<Composer {self._editor.form.endpoint.name}, {len(self._replies)} replies>"

    # What was said

    def _asked(self, ask: Callable[[], Stream]) -> Stream:
        """Ask something, unless something is being answered."""
        with self._guard:
            stream = self._talk.stream
            if stream is not None and self._desk.busy:
                return stream
            self._trouble.value = ""
            return ask()

    def _begun(self) -> Stream:
        before = self._talk.tree
        stream = self._talk.begin(self.request)
        self._saved.put_by(before)
        return stream

    def _ended(self) -> None:
        """A turn has ended: its transcript becomes ordinary output, and the live view gives way to it."""
        reply = self._talk.reply
        self._replies += [reply] if reply else []
        self._talked()
        self._reloaded()

    def _talked(self) -> None:
        """Another branch is in view, or the one in view has grown."""
        self._saved.renew(self._talk.tree)
        self._talk.show(here=self._saved.output.captured or self._desk.reloaded)

    def _reloaded(self) -> None:
        if self._replies and self._desk.reloaded:
            self._trouble.value = f'<p class="famnb-remark">{_RELOADED}</p>'

    # What is asked

    def _beside(self) -> list[Panel]:
        """The panels beside the form."""
        ledger = getattr(self._client, "ledger", None)
        return [
            PresetBox(draft=lambda: self._editor.draft, load=self._fill),
            Past(ledger if isinstance(ledger, Ledger) else None, load=self.open),
            CodeBox(self._client, request=lambda: self.request),
            BodyBox(reading=lambda: self._editor.reading),
        ]

    def _fill(self, draft: Draft) -> None:
        with self._guard:
            self._editor.fill(draft)

    def _opened(self, title: str) -> list[widgets.Widget]:
        self._panels[title].opened()
        return [self._panels[title].box]

    def _changed(self) -> None:
        for title, panel in self._panels.items():
            if self._beside_form.is_open(title):
                panel.changed()
