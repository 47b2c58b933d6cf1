"""The composer: a chat with a model, its settings at the side, every turn kept; one widget.

page ── intents ──► Composer ──┬── Editor            what the form holds, as a Draft
                               ├── ConversationView  turns, branches, tools, what is saved
  ◄── patches ── view() ◄──────┴── PanelTool         code, past calls, presets
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from famnb.client.ask import MAX_ROUNDS, Tools
from famnb.client.client import BaseClient
from famnb.client.connected import default_client
from famnb.client.conversation import Turn
from famnb.client.live_call import Stream
from famnb.endpoints import endpoint_able_to
from famnb.errors import InvalidArgument, InvalidRequest
from famnb.profiles import DEFAULT
from famnb.record import RecordedCall
from famnb.reply import Reply
from famnb.request import Request
from famnb.widget.board.board import Board
from famnb.widget.board.experiment_code import variant_fields
from famnb.widget.board.pane_settings import PaneSettings
from famnb.widget.composer.conversation_view import ConversationView, TurnView
from famnb.widget.composer.panels import HistoryView, PanelTool, PresetsView
from famnb.widget.form.draft import MAX_VARIABLE_ROWS, UNWRITTEN, Draft, draft_of, split_content
from famnb.widget.form.editor import Editor
from famnb.widget.form.fields import MODEL
from famnb.widget.form.hints import Estimate
from famnb.widget.form.tool import Computed
from famnb.widget.form.tool_picker import ToolPicker
from famnb.widget.form.views import CodeView, FormView, PromptBoxView
from famnb.widget.html.transcript import Bundle
from famnb.widget.runtime.intent import intent
from famnb.widget.runtime.output import Output
from famnb.widget.runtime.view import View

_BOARD_ELSEWHERE = "The board is in `composer.board`: show it in a cell of its own."


class ComposerView(View, frozen=True):
    """The composer."""

    service: str
    """The service's name, if it is not the document's."""
    model: str
    form: FormView
    system: str
    prompt: PromptBoxView
    turns: tuple[TurnView, ...]
    is_busy: bool
    """Whether a turn is being answered."""
    code: CodeView | None
    history: HistoryView | None
    presets: PresetsView | None


class Composer(PanelTool):
    """A chat with a model through any endpoint of a client's service: it sends, streams, and keeps all replies.

    Each turn can be edited and asked again, and every version of it is kept. `reply`, `replies`, `turns` and `request`
    are for the cells below, and `reply`, `turns` and `request` can be observed like any trait; the methods do what the
    buttons do: `submit()`, `say(prompt)`, `edit(turn, prompt)`, `regenerate(turn)`, `switch(turn, version)`, `stop()`,
    and `wait()`. Each turn uses the settings of the form at that moment, the endpoint included; `reply.rounds` and
    `reply.parsed` are of its tools and its schema. `{city}` in a prompt makes a table of values, sent one row at a time
    or all at once on a Board. Every turn, call and version stays in the saved notebook.
    """

    entry = "tools/composer.js"
    note = "A famnb.Composer: run this cell to use it."

    def __init__(
        self,
        client: BaseClient | None = None,
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
        one of the client's that can carry these; without a `client` it is that of `famnb.connect()`. Raises
        InvalidRequest for a tool, type or endpoint that is not valid.
        """
        client = default_client() if client is None else client
        callable_tools = Tools.from_argument(list(tools), auto=auto, max_rounds=max_rounds)
        default = endpoint_able_to(
            None, tools=bool(callable_tools.functions), schema=schema is not None, endpoints=client.endpoints
        )
        editor = Editor(
            endpoints=client.endpoints,
            endpoint=endpoint or default.name,
            prompt=prompt,
            system=system,
            tool_picker=ToolPicker(callable_tools.functions, schema),
        )
        self._replies: list[Reply] = []
        self._conversation = ConversationView(client, self, editor, tools=callable_tools, on_turn_end=self._on_turn_end)
        self._controls: tuple[FormView, PromptBoxView] | None = None
        """What the page shows of the form; None if it has to be made anew."""
        self._board_outputs = (Output(), Output())
        self.board: Board | None = None
        """The board that "Run all rows" or "Compare" has opened last."""
        super().__init__(client, editor)

    @Computed
    def request(self) -> Request:
        """The request as the form has it now; raises InvalidRequest, naming the fields, if it is not valid."""
        return self._editor.request(self._editor.prompt)

    @Computed
    def reply(self) -> Reply | None:
        """The latest reply, as far as it has come; None before the first.

        Once it has ended, its `rounds` are the tool calls that led to it, and its `parsed` is the instance of `schema`.
        """
        return self._conversation.reply

    @Computed
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the conversation in view that have ended, the first one first."""
        return self._conversation.turns

    @property
    def tools(self) -> Tools:
        """The functions that the model may call."""
        return self._conversation.runner.tools

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The replies that have ended, in order, one for each turn."""
        return tuple(self._replies)

    # What its buttons do

    def submit(self) -> Stream:
        """Send the request and return its stream at once; a conversation begins with it.

        While a reply streams nothing is sent, and its stream is returned. Raises InvalidRequest when the form holds no
        valid request.
        """
        with self.lock:
            return self._busy_stream() or self._conversation.begin(self.request)

    def say(self, prompt: str) -> Stream:
        """Continue the conversation in view, with the settings that the form has now; begin one if there is none."""
        with self.lock:
            return self._busy_stream() or self._conversation.add_turn(prompt)

    def edit(self, turn: int, prompt: str) -> Stream:
        """Ask another prompt in the place of a turn; that turn and what followed it stay as another version."""
        with self.lock:
            return self._busy_stream() or self._conversation.edit(turn, prompt)

    def regenerate(self, turn: int = -1) -> Stream:
        """Ask a turn once more, with the settings that the form has now; the answer so far stays as another version."""
        with self.lock:
            return self._busy_stream() or self._conversation.regenerate(turn)

    def switch(self, turn: int, version: int) -> None:
        """Show another version of a turn, and what followed it; both count from 0."""
        with self.lock:
            self._conversation.switch(turn, version)
            self.notify("turns", "reply")

    @intent
    def new_talk(self) -> None:
        """Put the conversation in view among the earlier ones; the next turn begins another. Not while one is answered.

        What was said stays in the saved output.
        """
        with self.lock:
            if self._busy_stream() is None:
                self._conversation.clear()
                self.form_changed()
                self.notify("turns")

    def wait(self, timeout: float | None = None) -> Reply | None:
        """Wait until the turn has ended, tools included; returns `reply`, as far as it has come in `timeout` seconds.

        Raises InvalidRequest if a tool call waits for approval: the kernel may not process clicks while a cell waits.
        """
        return self._conversation.wait(timeout)

    @intent(is_urgent=True)
    def stop(self, pane: str = "") -> None:  # noqa: ARG002 - one turn runs at a time
        """Stop the reply that is streaming, if one is, and let no tool run; what has come is kept."""
        self._conversation.stop()

    def load(self, call: Request | Reply | RecordedCall | str) -> None:
        """Fill the form with exactly this request, or with that of a reply, of a recorded call, or of a call's id.

        Raises InvalidRequest for a reply without a request, KeyError for a call that is not in the client's ledger.
        """
        request = self.find_request(call)
        endpoints = self._client.endpoints
        if request.endpoint not in endpoints:
            raise InvalidRequest(
                f"request: it is for the endpoint {request.endpoint!r}, which this client's profile "
                f"{self._client.profile.name!r} does not have (only {', '.join(endpoints)}); "
                "load it in a composer whose client has it"
            )
        self.fill(draft_of(request, endpoints))

    def run_rows(self) -> Board:
        """Send the request once for each row of the variables' values, side by side on a board; returns the board.

        Raises InvalidRequest if there is no row, or for faults of the form.
        """
        with self.lock:
            board = Board(self._client, self._editor.row_requests())
            self._show_board(board)
            board.submit()
            return board

    def compare(self) -> Board:
        """Open a board whose panes send what the form would send now, each with other settings; returns the board.

        The settings are those of the form and of the versions of the last turn; if these are the same, another model.
        The board goes on from the talk. Its prompt is that of the form, or else the last one. Raises InvalidRequest for
        faults of the form.
        """
        with self.lock:
            turns, prompt = self.turns, self._editor.prompt
            before, pictures = self._conversation.last_good_turn, self._editor.pictures
            if not prompt.strip() and turns:
                prompt, pictures = split_content(turns[-1].prompt)
                before = turns[-1].before
            requests = [self._editor.request(UNWRITTEN, ()), *self._conversation.last_requests]
            endpoints = self._client.endpoints
            settings = [PaneSettings("", request, endpoints=endpoints) for request in requests]
            fields = [variant_fields(each.request(UNWRITTEN), endpoints) for each in settings]
            # What an earlier turn was chained to is part of its talk.
            fields = [
                {name: value for name, value in each.items() if name != "previous_response_id"} for each in fields
            ]
            board = Board(self._client, [each for index, each in enumerate(fields) if each not in fields[:index]])
            board.open_with(prompt, pictures=pictures, before=before)
            if len(board.labels) == 1:
                board.add()
            self._show_board(board)
            return board

    def _show_board(self, board: Board) -> None:
        self.board = board
        if self._board_outputs[0].can_be_replaced:
            board.show_in(*self._board_outputs)

    def open(self, *request: Any) -> None:
        """Open the channel to the page, as every widget does."""
        if request:
            raise InvalidArgument("open: a Composer fills its form with a request or a call by load()")
        super().open()

    # What is shown

    def view(self) -> ComposerView:
        if self._controls is None:
            self._controls = self._editor.view(), self._view_prompt()
        form, prompt = self._controls
        profile = self._client.profile
        return ComposerView(
            service="" if profile.name == DEFAULT else profile.title,
            model=self._editor.raw.get(MODEL, ""),
            form=form,
            system=self._editor.system,
            prompt=prompt,
            turns=self._conversation.view(),
            is_busy=self.is_busy,
            code=self.code_view(),
            history=self.history_view(),
            presets=self.presets_view(),
        )

    def _view_prompt(self) -> PromptBoxView:
        editor = self._editor
        estimate = Estimate("", "")
        with contextlib.suppress(InvalidRequest):
            request = self._conversation.next_request(editor.prompt)
            estimate = self._estimator.estimate(request, self._client)
        return self.view_box(
            estimate,
            fault=editor.fault,
            has_conversation=editor.reading.replaced,
            remarks=editor.remarks,
            has_answers=bool(self._replies),
            variables=editor.variables,
        )

    def saved(self) -> Bundle:
        return self._conversation.bundle()

    def show_saved(self, *, captured: bool) -> None:
        # Between the widget and its saved output is the place for a board.
        if not captured:
            for output in self._board_outputs:
                output.show({"text/plain": ""})
        super().show_saved(captured=captured)

    def __repr__(self) -> str:
        return f"<Composer {self._editor.endpoint.name}, {len(self._replies)} replies>"

    # What the page asks for: the form

    @intent
    def set_field(self, field: str, text: str) -> None:
        """Write the text of a field."""
        self._editor.set_text(field, text)
        self.form_changed()

    @intent
    def choose_endpoint(self, endpoint: str) -> None:
        """Carry the form over to another endpoint."""
        self._editor.choose_endpoint(endpoint)
        self.form_changed()

    @intent
    def tick(self, box: str, is_on: bool) -> None:
        """Ask for a function or for an answer of the type, or no longer."""
        self._editor.tick(box, is_on=is_on)
        self.form_changed()

    @intent
    def set_system(self, text: str) -> None:
        """Write the system text."""
        self._editor.system = text
        self.form_changed()

    @intent
    def set_rows(self, rows: list[dict[str, str]], row: int) -> None:
        """Write the values of the variables, and which row of them is sent."""
        self._editor.rows, self._editor.row = rows[:MAX_VARIABLE_ROWS], row
        self.form_changed()

    # What the page asks for: the chat

    @intent
    def edit_turn(self, turn: int, prompt: str) -> None:
        """Ask another prompt in the place of a turn."""
        self.edit(turn, prompt)

    @intent
    def retry(self, turn: int) -> None:
        """Ask a turn once more."""
        self.regenerate(turn)

    @intent
    def show_version(self, turn: int, version: int) -> None:
        """Show another version of a turn; not while one is answered."""
        if not self.is_busy:
            self.switch(turn, version)

    @intent
    def decide(self, pane: str, call: int, is_approved: bool, rest: bool) -> None:
        """Approve or decline the tool call of that index in a pane, if it waits; with `rest`, all that follow it."""
        self._conversation.decide(pane, call, approved=is_approved, rest=rest)

    @intent
    def run_all_rows(self) -> None:
        """Open a board with a pane for each row of values, and send it."""
        if not self.is_busy:
            self.run_rows()
            self._check_board()

    @intent
    def open_comparison(self) -> None:
        """Open a board that goes on from here."""
        if not self.is_busy:
            self.compare()
            self._check_board()

    def _check_board(self) -> None:
        if not self._board_outputs[0].can_be_replaced:
            raise InvalidRequest(_BOARD_ELSEWHERE)

    def _busy_stream(self) -> Stream | None:
        """Return the stream of the turn that is being answered: nothing else is asked meanwhile."""
        return self._conversation.runner.stream if self.is_busy else None

    def code_request(self) -> Request:
        """Return what would be sent next, the chat included; without a prompt, what was sent last."""
        turns = self.turns
        request = getattr(turns[-1].reply, "request", None) if turns else None
        if isinstance(request, Request) and not self._editor.prompt.strip():
            return request
        return self._conversation.next_request(self._editor.prompt) if turns else self.request

    def fill(self, draft: Draft) -> None:
        """Fill the form with a draft, and with nothing else."""
        with self.lock:
            self._editor.fill(draft)
            self.form_changed()

    @property
    def is_busy(self) -> bool:
        return self._conversation.is_busy

    def send_box(self) -> None:
        if self._editor.reading.replaced and not self.turns:
            self._conversation.begin(self.request)
        else:
            self._conversation.add_turn(self._editor.prompt)

    def form_changed(self) -> None:
        self._controls = self._shown_code = None
        self.refresh()
        self.notify("request")

    def _on_turn_end(self) -> None:
        """Show and save a turn that has ended."""
        reply = self._conversation.reply
        self._replies += [reply] if reply else []
        self._estimator.forget()
        self.update_saved()
        self.form_changed()
        self.notify("reply", "turns")
