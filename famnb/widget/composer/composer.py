"""The composer: choose an endpoint, fill in its form, send, watch, reply; the conversation stays as ordinary output.

Composer ──┬── Editor            the form: endpoint, fields, tools and pictures, as a Draft
           ├── ConversationBox   the prompt box above the live view
           ├── ConversationView  the turns and branches, approval of tools, and the output that is saved
           └── panels            presets, history, code, JSON body
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

from famnb.client.ask import MAX_ROUNDS, Tools
from famnb.client.client import BlockingClient
from famnb.client.conversation import Turn
from famnb.client.live_call import Stream
from famnb.endpoints import endpoint_able_to
from famnb.errors import InvalidRequest
from famnb.record import Ledger, RecordedCall
from famnb.reply import Reply
from famnb.request import Request
from famnb.widget.composer.conversation_view import ConversationBox, ConversationView
from famnb.widget.composer.panels import BodyPanel, CodePanel, HistoryPanel, Panel, PresetPanel
from famnb.widget.form.accordion import Accordion
from famnb.widget.form.draft import Draft, draft_of
from famnb.widget.form.editor import Editor
from famnb.widget.form.tool_picker import ToolPicker
from famnb.widget.html import notices
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
        max_rounds: int = MAX_ROUNDS,
    ) -> None:
        """Draw the form; nothing is sent yet.

        `tools` are Python functions and `schema` is a type, such as a pydantic model, that the answer shall be JSON of:
        each is a check box, ticked at first if the endpoint can carry it. A tool that the model calls runs once it is
        approved, or at once with `auto`, for at most `max_rounds` rounds. Without an `endpoint` it is `messages`, or
        one that can carry these. Raises InvalidRequest for a tool, type or endpoint that is not valid.
        """
        callable_tools = Tools.from_argument(list(tools), auto=auto, max_rounds=max_rounds)
        self._client = client
        # Callbacks come on the main thread, on an ipykernel subshell's, on the live view's flusher, or on a turn's own.
        # Reentrant, since a callback may set a trait whose observer takes the lock again.
        self._guard = threading.RLock()
        self._replies: list[Reply] = []
        self._trouble = widgets.HTML()
        guarded = guard_callbacks(self._guard, self._trouble)
        self._prompt_box = ConversationBox(
            on_send=guarded(self.send),
            on_button=lambda message: guarded(lambda: self._conversation.on_button(message))(),
            prompt=prompt,
        )
        picker = ToolPicker(callable_tools.functions, schema)
        default = endpoint_able_to(None, tools=bool(callable_tools.functions), schema=schema is not None)
        self._editor = Editor(
            self._prompt_box,
            endpoint=endpoint or default.name,
            system=system,
            tool_picker=picker,
            guard=guarded,
            on_change=self._on_edit,
        )
        self._conversation = ConversationView(
            client, self._prompt_box, self._editor, picker, tools=callable_tools, on_turn_end=guarded(self._on_turn_end)
        )
        self._panels = {panel.title: panel for panel in self._make_panels()}
        self._accordion = Accordion(draw=self._open_panel)
        self._accordion.arrange(tuple(self._panels), [panel.hint for panel in self._panels.values()])
        self._box = widgets.VBox(
            [
                *self._editor.parts,
                self._accordion.bar,
                self._accordion.box,
                self._editor.notes,
                self._prompt_box,
                self._trouble,
                ShortcutGuard(),
            ]
        )
        self._box.add_class("famnb-composer")
        self._box.add_class(SHORTCUT_CLASS)
        # Not guarded: the view holds its own lock at that moment, and a turn that is being asked may hold this lock
        # while it waits for the view's.
        self._prompt_box.observe(lambda _: self._explain_reload(), "reloaded")
        self._editor.listen()

    @property
    def tools(self) -> Tools:
        """The functions that the model may call."""
        return self._conversation.runner.tools

    @property
    def request(self) -> Request:
        """The request as the form has it now; raises InvalidRequest, naming the fields, if it is not valid."""
        return self._editor.request(self._prompt_box.prompt)

    @property
    def reply(self) -> Reply | None:
        """The latest reply, as far as it has come; None before the first.

        Once it has ended, its `rounds` are the tool calls that led to it, and its `parsed` is the instance of `schema`.
        """
        return self._conversation.reply

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The replies that have ended, in order, one for each turn."""
        return tuple(self._replies)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the conversation in view that have ended, the first one first."""
        return self._conversation.turns

    def send(self) -> Stream:
        """Send the request and return at once; a conversation begins with it.

        While a reply streams nothing is sent, and its stream is returned. Raises InvalidRequest when the form holds no
        valid request.
        """
        with self._guard:
            return self._busy_stream() or self._conversation.begin(self.request)

    def say(self, prompt: str) -> Stream:
        """Continue the conversation in view, with the settings that the form has now; begin one if there is none."""
        with self._guard:
            return self._busy_stream() or self._conversation.add_turn(prompt)

    def edit(self, turn: int, prompt: str) -> Stream:
        """Ask another prompt in the place of a turn; that turn and what followed it stay as another version."""
        with self._guard:
            return self._busy_stream() or self._conversation.edit(turn, prompt)

    def regenerate(self, turn: int = -1) -> Stream:
        """Ask a turn once more, with the settings that the form has now; the answer so far stays as another version."""
        with self._guard:
            return self._busy_stream() or self._conversation.regenerate(turn)

    def switch(self, turn: int, version: int) -> None:
        """Show another version of a turn, and what followed it; both count from 0."""
        with self._guard:
            self._conversation.switch(turn, version)

    def wait(self, timeout: float | None = None) -> Reply | None:
        """Wait until the turn has ended, tools included; returns `reply`, as far as it has come in `timeout` seconds.

        Raises InvalidRequest if a tool call waits for approval: the kernel may not process clicks while a cell waits.
        """
        return self._conversation.wait(timeout)

    def stop(self) -> None:
        """Stop the reply that is streaming, if one is, and let no tool run; what has come is kept."""
        self._conversation.stop()

    def open(self, asked: Request | Reply | RecordedCall | str) -> None:
        """Fill the form with exactly this request, or with that of a reply, of a recorded call, or of a call's id.

        Raises InvalidRequest for a reply without a request, KeyError for a call that is not in the client's ledger.
        """
        ledger = getattr(self._client, "ledger", None)
        if isinstance(asked, str):
            asked = (ledger if isinstance(ledger, Ledger) else Ledger()).call(asked)
        request = asked if isinstance(asked, Request) else asked.request
        if request is None:
            raise InvalidRequest("request: this reply does not know what was asked; give its call's id")
        self._fill(draft_of(request))

    def _ipython_display_(self) -> None:
        self._prompt_box.reloaded = False
        self._trouble.value = ""
        controls = Output()
        controls.show(self._box)
        # An Output widget that captures the controls captures the conversation below them too.
        self._conversation.output.captured = controls.captured
        if not controls.captured:
            self._conversation.display_output()

    def __repr__(self) -> str:
        return f"<Composer {self._editor.form.endpoint.name}, {len(self._replies)} replies>"

    def _busy_stream(self) -> Stream | None:
        """Return the stream of the turn that is being answered: nothing else is asked meanwhile.

        If there is none, something is about to be asked, and the last message of trouble no longer holds.
        """
        stream = self._conversation.runner.stream
        if stream is not None and self._prompt_box.busy:
            return stream
        self._trouble.value = ""
        return None

    def _on_turn_end(self) -> None:
        """Draw a turn that has ended, in the output and, where that cannot change, in the live view."""
        reply = self._conversation.reply
        self._replies += [reply] if reply else []
        self._conversation.redraw()
        self._explain_reload()

    def _explain_reload(self) -> None:
        if self._replies and self._prompt_box.reloaded:
            self._trouble.value = notices.remark(_RELOADED)

    def _fill(self, draft: Draft) -> None:
        with self._guard:
            self._editor.fill(draft)

    # The panels beside the form

    def _make_panels(self) -> list[Panel]:
        ledger = getattr(self._client, "ledger", None)
        return [
            PresetPanel(draft=lambda: self._editor.draft, load=self._fill),
            HistoryPanel(ledger if isinstance(ledger, Ledger) else None, load=self.open),
            CodePanel(self._client, request=lambda: self.request),
            BodyPanel(reading=lambda: self._editor.reading),
        ]

    def _open_panel(self, title: str) -> list[widgets.Widget]:
        self._panels[title].on_open()
        return [self._panels[title].box]

    def _on_edit(self) -> None:
        """Have the open panels follow the form."""
        for title, panel in self._panels.items():
            if self._accordion.is_open(title):
                panel.on_edit()
