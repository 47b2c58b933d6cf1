"""The composer: a talk with a model, its settings at the side, every turn kept; one widget.

    page ── front/composer.js ── messages ──► Composer ──┬── Editor            what the form holds, as a Draft
                                                         ├── ConversationView  turns, branches, tools, what is saved
      ◄── snapshot, changes ── LiveView ◄────────────────┴── Panels            code, past calls, presets

The page draws what it is told and reports what the user does; nothing is decided there. What it is told is numbered
(see `live_view`), and no trait holds a text of user or model, so that none is saved as widget state.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from famnb.client.ask import MAX_ROUNDS, Tools
from famnb.client.client import BaseClient
from famnb.client.conversation import Turn
from famnb.client.live_call import Stream
from famnb.endpoints import endpoint_able_to
from famnb.errors import InvalidRequest
from famnb.profiles import DEFAULT
from famnb.record import Ledger, RecordedCall
from famnb.reply import Reply
from famnb.request import Request
from famnb.widget.board.experiment_code import variant_fields
from famnb.widget.board.pane_settings import PaneSettings
from famnb.widget.composer.conversation_view import ConversationView
from famnb.widget.composer.panels import Panels
from famnb.widget.default_client import default_client
from famnb.widget.form.draft import UNWRITTEN, Draft, draft_of, read_variable_rows, split_content
from famnb.widget.form.editor import Editor
from famnb.widget.form.hints import RequestEstimator
from famnb.widget.form.images import image_from_url
from famnb.widget.form.tool_picker import ToolPicker
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.live.base import join_front
from famnb.widget.live.live_view import STILL_ANSWERING, Computed, FormWidget
from famnb.widget.live.pane import Pane
from famnb.widget.runtime.output import Output

if TYPE_CHECKING:
    from famnb.widget.board.board import Board

_RELOADED = (
    "This page was reloaded, and a reloaded page cannot change outputs it already has. To save this talk with the "
    "notebook, show the composer in a new cell."
)
_BOARD_ELSEWHERE = "The board is in `composer.board`: show it in a cell of its own."


class Composer(FormWidget):
    """A talk with a model through any endpoint of a client's service: it sends, streams, and keeps all replies.

    Each turn can be edited and asked again, and every version of it is kept. `reply`, `replies`, `turns` and `request`
    are for the cells below, and `reply`, `turns` and `request` can be observed like any trait; the methods do what the
    buttons do: `send()`, `say(prompt)`, `edit(turn, prompt)`, `regenerate(turn)`, `switch(turn, version)`, `stop()`,
    and `wait()`. Each turn uses the settings of the form at that moment, the endpoint included; `reply.rounds` and
    `reply.parsed` are of its tools and its schema. `{city}` in a prompt makes a table of values, sent one row at a time
    or all at once on a Board. Every turn, call and version stays in the saved notebook.
    """

    _esm = join_front("composer.js")
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
        self._editor = Editor(
            endpoints=client.endpoints,
            endpoint=endpoint or default.name,
            prompt=prompt,
            system=system,
            tool_picker=ToolPicker(callable_tools.functions, schema),
        )
        self._client = client
        ledger = getattr(client, "ledger", None)
        self._ledger = ledger if isinstance(ledger, Ledger) else None
        self._replies: list[Reply] = []
        self._estimator = RequestEstimator(self._ledger)
        self._conversation = ConversationView(
            client,
            self,
            self._editor,
            tools=callable_tools,
            on_turn_end=self._on_turn_end,
            on_busy=self.tell_state,
        )
        self._panels = Panels(
            client, self._editor, request=self._request_for_code, fill=self._fill, open_call=self.open
        )
        self._board_places = (Output(), Output())
        self.board: Board | None = None
        """The board that "Run all rows" or "Compare" has opened last."""
        super().__init__()

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

    def send(self, content: Any = None, buffers: Any = None) -> Any:
        """Send the request and return its stream at once; a conversation begins with it.

        While a reply streams nothing is sent, and its stream is returned. Raises InvalidRequest when the form holds no
        valid request. With `content` it is ipywidgets' own `send`: a message to the page.
        """
        if content is not None:
            return super().send(content, buffers)
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
            self.notify("turns", "reply")

    def new_talk(self) -> None:
        """Put the conversation in view among the earlier ones; the next turn begins another. Not while one is answered.

        What was said stays in the saved output.
        """
        with self._guard:
            if self._busy_stream() is None:
                self._conversation.clear()
                self._send_form()
                self.notify("turns")

    def wait(self, timeout: float | None = None) -> Reply | None:
        """Wait until the turn has ended, tools included; returns `reply`, as far as it has come in `timeout` seconds.

        Raises InvalidRequest if a tool call waits for approval: the kernel may not process clicks while a cell waits.
        """
        return self._conversation.wait(timeout)

    def stop(self) -> None:
        """Stop the reply that is streaming, if one is, and let no tool run; what has come is kept."""
        self._conversation.stop()

    def open(self, asked: Request | Reply | RecordedCall | str | None = None) -> None:
        """Fill the form with exactly this request, or with that of a reply, of a recorded call, or of a call's id.

        Raises InvalidRequest for a reply without a request, KeyError for a call that is not in the client's ledger.
        Without an argument it is ipywidgets' own `open`: the channel to the page.
        """
        if asked is None:
            super().open()
            return
        if isinstance(asked, str):
            asked = (self._ledger or Ledger()).call(asked)
        request = asked if isinstance(asked, Request) else asked.request
        if request is None:
            raise InvalidRequest("request: this reply does not know what was asked; give its call's id")
        endpoints = self._client.endpoints
        if request.endpoint not in endpoints:
            raise InvalidRequest(
                f"request: it is for the endpoint {request.endpoint!r}, which this client's profile "
                f"{self._client.profile.name!r} does not have (only {', '.join(endpoints)}); "
                "open it in a composer whose client has it"
            )
        self._fill(draft_of(request, endpoints))

    def run_rows(self) -> Board:
        """Send the request once for each row of the variables' values, side by side on a board; returns the board.

        Raises InvalidRequest if there is no row, or for faults of the form.
        """
        with self._guard:
            board = self._make_board(self._editor.row_requests())
            self._show_board(board)
            board.send()
            return board

    def compare(self) -> Board:
        """Open a board whose panes send what the form would send now, each with other settings; returns the board.

        The settings are those of the form and of the versions of the last turn; if these are the same, another model.
        The board goes on from the talk. Its prompt is that of the form, or else the last one. Raises InvalidRequest for
        faults of the form.
        """
        with self._guard:
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
            board = self._make_board([each for place, each in enumerate(fields) if each not in fields[:place]])
            board.open_with(prompt, pictures=pictures, before=before)
            if len(board.labels) == 1:
                board.add()
            self._show_board(board)
            return board

    def _make_board(self, variants: Any) -> Board:
        # Imported on first use: it needs pandas, which a form alone does without.
        board: Board = importlib.import_module("famnb.widget.board.board").Board(self._client, variants)
        return board

    def _show_board(self, board: Board) -> None:
        self.board = board
        if self._board_places[0].can_be_replaced:
            board.open_in(*self._board_places)
        else:
            self._trouble = _BOARD_ELSEWHERE

    # What is shown

    def show_outputs(self, *, captured: bool) -> None:
        """Put the talk below the widget, and between them the place for a board."""
        self._conversation.output.captured = captured
        if not captured:
            for place in self._board_places:
                place.show({"text/plain": ""})
            self._conversation.display_output()

    def html(self) -> SafeHtml:
        """Return the talk as HTML."""
        return SafeHtml(self._conversation.bundle()["text/html"])

    def __repr__(self) -> str:
        return f"<Composer {self._editor.endpoint.name}, {len(self._replies)} replies>"

    def describe(self) -> dict[str, Any]:
        """Return the form and the state of the composer, for a page that is new."""
        return {
            "fields": self._editor.describe_fields(),
            "form": self._describe_form(),
            "pictures": self._editor.describe_pictures(),
            "state": self.describe_state(),
        }

    def _describe_form(self) -> dict[str, Any]:
        profile = self._client.profile
        form = {**self._editor.describe_values(), "service": "" if profile.name == DEFAULT else profile.title}
        try:
            request = self._conversation.next_request(self._editor.prompt)
            estimate = self._estimator.estimate(request, self._client)
        except InvalidRequest:
            return {**form, "estimate": ["", ""]}
        return {**form, "estimate": list(estimate)}

    def describe_state(self) -> dict[str, Any]:
        remark = _RELOADED if self._replies and self.reloaded else ""
        return {"busy": self._conversation.is_busy, "trouble": self._trouble, "remark": remark}

    def redraw_pane(self, pane: Pane) -> None:
        """Draw one pane anew, if it is in view."""
        with self._lock:
            if pane.id in self._panes:
                self.tell_changes(anew=[pane.snapshot()])

    def _send_form(self, *, fields: bool = False, pictures: bool = False, force: bool = False) -> None:
        """Send what the form holds; with `force` also to a control that is being written in."""
        parts: dict[str, Any] = {"form": {**self._describe_form(), "force": force}}
        if fields:
            parts["fields"] = self._editor.describe_fields()
        if pictures:
            parts["pictures"] = self._editor.describe_pictures()
        if self._panels.open_name == "Code":
            parts["panel"] = self._panels.refresh()
        self.tell_changes(**parts)
        self.notify("request")

    # What the page wishes

    @property
    def code(self) -> str:
        """The code that the panel shows, whole."""
        return self._panels.code

    def stop_pane(self, pane: str) -> None:  # noqa: ARG002 - one turn runs at a time
        """Stop what is streaming."""
        self.stop()

    def act(self, message: dict[str, Any]) -> None:
        """Carry out a message of the page."""
        panel = self._panels.answer(message)
        if panel is not None:
            self.tell_changes(panel=panel)
        elif not self._edit_form(message):
            self._ask(message)

    def _edit_form(self, message: dict[str, Any]) -> bool:
        """Carry out an edit of the form; returns whether the message was one."""
        editor = self._editor
        match message:
            case {"kind": "set", "field": str(name), "text": str(text)}:
                editor.set_text(name, text)
            case {"kind": "prompt", "text": str(text)}:
                self._set_prompt(text)
            case {"kind": "system", "text": str(text)}:
                editor.system = text
            case {"kind": "rows", "rows": rows, "row": int(row)}:
                editor.rows, editor.row = read_variable_rows(rows), row
            case {"kind": "tool", "name": str(name), "on": bool(is_on)}:
                editor.set_tool(name, is_on=is_on)
            case {"kind": "schema", "on": bool(is_on)}:
                editor.set_schema(is_on=is_on)
            case {"kind": "endpoint", "name": str(name)}:
                editor.choose_endpoint(name)
                # Not by force: a prompt may be on its way that was written meanwhile. The new fields are empty anyway.
                self._send_form(fields=True)
                return True
            case {"kind": "image", "url": str(url), "name": str(name)}:
                editor.pictures = (*editor.pictures, image_from_url(url, name=name))
                self._send_form(pictures=True)
                return True
            case {"kind": "remove", "image": int(index)}:
                editor.pictures = tuple(other for place, other in enumerate(editor.pictures) if place != index)
                self._send_form(pictures=True)
                return True
            case _:
                return False
        self._send_form()
        return True

    def _ask(self, message: dict[str, Any]) -> None:
        """Carry out a message about the talk; an unknown one, and most while a turn is being answered, do nothing."""
        match message:
            case {"kind": "decide", "pane": str(pane), "call": int(call), "approved": approved, "rest": rest}:
                # Anything but true declines: what the page sends must not run a tool by accident.
                self._conversation.decide(pane, call, approved=approved is True, rest=rest is True)
            case {"kind": "send"} if self._conversation.is_busy:
                # The page sends nothing meanwhile; if it missed that a turn has begun, its prompt goes back to its box.
                raise InvalidRequest(STILL_ANSWERING)
            case _ if self._conversation.is_busy:
                pass
            case {"kind": "send", "prompt": str(prompt)}:
                # The text comes with the message, since an edit of it may not have been sent.
                self._set_prompt(prompt)
                if self._editor.reading.replaced and not self.turns:
                    self._conversation.begin(self.request)
                else:
                    self._conversation.add_turn(self._editor.prompt)
                self._editor.prompt, self._editor.pictures = "", ()
                self._send_form(pictures=True)
            case {"kind": "edit", "turn": int(turn), "prompt": str(prompt)}:
                self._conversation.edit(turn, prompt)
            case {"kind": "again", "turn": int(turn)}:
                self._conversation.regenerate(turn)
            case {"kind": "version", "turn": int(turn), "version": int(version)}:
                self.switch(turn, version)
            case {"kind": "new"}:
                self.new_talk()
            case {"kind": "run rows"}:
                self.run_rows()
            case {"kind": "compare"}:
                self.compare()
            case _:
                pass

    def _set_prompt(self, text: str) -> None:
        # A text area knows only "\n", so a prompt that differs in nothing but its line ends is kept.
        if text != "\n".join(self._editor.prompt.replace("\r\n", "\n").split("\r")):
            self._editor.prompt = text

    def _busy_stream(self) -> Stream | None:
        """Return the stream of the turn that is being answered: nothing else is asked meanwhile."""
        stream = self._conversation.runner.stream
        return stream if self._conversation.is_busy else None

    def _request_for_code(self) -> Request:
        """Return what would be sent next, the talk included; without a prompt, what was sent last."""
        turns = self.turns
        request = getattr(turns[-1].reply, "request", None) if turns else None
        if isinstance(request, Request) and not self._editor.prompt.strip():
            return request
        return self._conversation.next_request(self._editor.prompt) if turns else self.request

    def _on_turn_end(self) -> None:
        """Draw a turn that has ended, on the page and in the output."""
        with self._guard:
            reply = self._conversation.reply
            self._replies += [reply] if reply else []
            self._estimator.forget()
            self._conversation.redraw()
            self._send_form()
            self.notify("reply", "turns")

    def _fill(self, draft: Draft) -> None:
        with self._guard:
            self._editor.fill(draft)
            self._send_form(fields=True, pictures=True, force=True)
