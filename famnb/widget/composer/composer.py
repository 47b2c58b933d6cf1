"""The composer: a chat with a model, its settings at the side, every turn kept; one widget.

page ── intents ──► Composer ──┬── Editor            what the form holds, as a Draft
                               ├── ConversationTree  its turns and their branches
                               ├── TurnRunner        asks a turn, one at a time
  ◄── patches ── view() ◄──────┴── panels            code, past calls, presets
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from famnb.client.ask import MAX_ROUNDS, Tools
from famnb.client.client import BaseClient
from famnb.client.connected import default_client
from famnb.client.conversation import ConversationTree, Turn, requests_after
from famnb.client.exchange import Exchange
from famnb.client.live_call import Stream
from famnb.endpoints import endpoint as find_endpoint
from famnb.endpoints import endpoint_able_to
from famnb.errors import InvalidArgument, InvalidRequest, UnknownName
from famnb.profiles import DEFAULT
from famnb.record import Ledger, RecordedCall
from famnb.record.shared import open_shared, share_calls
from famnb.reply import Reply
from famnb.request import Request
from famnb.validation import check_index
from famnb.widget.board.board import Board
from famnb.widget.composer import presets
from famnb.widget.composer.panels import HistoryView, PresetsView, list_calls, write_body, write_code
from famnb.widget.composer.past_chat import read_chat
from famnb.widget.composer.turns import ChatTurn, TurnCall, TurnPane, TurnRunner, TurnView, chat_output, ended_turns
from famnb.widget.form.draft import (
    UNWRITTEN,
    Draft,
    draft_of,
    last_user_content,
    read_draft,
    read_rows,
    split_content,
)
from famnb.widget.form.editor import Editor, FormView
from famnb.widget.form.fields import MODEL
from famnb.widget.form.images import PromptImage
from famnb.widget.form.python_code import variant_fields
from famnb.widget.form_tool import CodeView, FormTool, PromptBoxView, SharedTool, read_shared
from famnb.widget.html import transcript
from famnb.widget.html.facts import system_text
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle
from famnb.widget.live.reply_pane import EDITED, edit_reply
from famnb.widget.runtime.intent import intent, urgent_intent
from famnb.widget.runtime.tool import Computed
from famnb.widget.runtime.view import View

_PERIOD_S = 0.05
"""Between two looks at whether a tool call waits for approval."""
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


class SharedChat(SharedTool, frozen=True, tag="chat"):
    """What a file holds of a chat."""

    call_id: str
    """The last call, which repeats the others."""
    edited: str | None = None
    """The text that its answer was given by hand."""


class Composer(FormTool):
    """A chat with a model through any endpoint of a client's service: it sends, streams, and keeps all replies.

    Each turn can be edited and asked again, and every version of it is kept. `reply`, `replies`, `turns` and `request`
    are for the cells below, and `reply`, `turns` and `request` can be observed like any trait; the methods do what the
    buttons do: `submit()`, `say(prompt)`, `edit(turn, prompt)`, `regenerate(turn)`, `switch(turn, version)`, `stop()`,
    and `wait()`. Each turn uses the settings of the form at that moment, the endpoint included; `reply.rounds` and
    `reply.parsed` are of its tools and its schema. `{city}` in a prompt makes a table of values, sent one row at a time
    or all at once by `run_rows()`, as a matrix of answers. Every turn, call and version stays in the saved notebook.
    """

    entry = "tools/composer.js"
    note = "A famnb.Composer: run this cell to use it."
    _opened: Ledger | None = None
    """The calls of the file that it was opened from."""

    def __init__(
        self,
        client: BaseClient | None = None,
        *,
        endpoint: str | None = None,
        model: str | None = None,
        prompt: str = "",
        system: str = "",
        rows: Any = (),
        tools: Sequence[Callable[..., Any]] = (),
        schema: Any = None,
        auto: bool = False,
        max_rounds: int = MAX_ROUNDS,
    ) -> None:
        """Draw the form; nothing is sent yet.

        `tools` are Python functions and `schema` is a type, or a JSON Schema, that the answer shall be JSON of:
        each is a check box, ticked at first if the endpoint can carry it. A tool that the model calls runs once it is
        approved, or at once with `auto`, for at most `max_rounds` rounds. Without an `endpoint` it is `messages`, or
        one of the client's that can carry these and serves the `model`; without a `client` it is that of
        `famnb.connect()`. `rows`, a frame or a list of mappings, are the values of variables such as `{city}` in
        `prompt` and `system`. Raises InvalidRequest for a tool, type, endpoint or row that is not valid.
        """
        client = default_client() if client is None else client
        callable_tools = Tools.from_argument(list(tools), auto=auto, max_rounds=max_rounds)
        default = endpoint_able_to(
            model, tools=bool(callable_tools.functions), schema=schema is not None, endpoints=client.endpoints
        )
        editor = Editor(
            endpoints=client.endpoints,
            endpoint=endpoint or default.name,
            # A saved prompt, which says its version, is a text like any other here.
            prompt=str(prompt),
            system=str(system),
            functions=callable_tools.functions,
            schema=schema,
        )
        if model is not None:
            editor.set_text("model", model)
        editor.rows = read_rows(rows)
        self._replies: list[Reply] = []
        self._tree = ConversationTree()
        """The chat in view; its turns are `ChatTurn`s."""
        self._latest: ChatTurn
        """The turn that was asked last, once there is one."""
        self._numbers = itertools.count(1)
        self._runner = TurnRunner(
            callable_tools, on_call=self._on_call, on_tool_change=self._on_tool_change, on_end=self._on_turn_end
        )
        self.board: Board | None = None
        """The board that "Compare" has opened last."""
        self._editor = editor
        self._code_kind = "famnb"
        self._history: HistoryView | None = None
        """Past calls, while their panel is open."""
        self._presets: PresetsView | None = None
        """Presets, while their panel is open."""
        super().__init__(client, editor, tools_below=2)

    @Computed
    def request(self) -> Request:
        """The request that `submit` would send now; raises InvalidRequest, naming the fields, if it is not valid."""
        return requests_after(*self._next_turn(), self._editor.endpoints)[0]

    @Computed
    def reply(self) -> Reply | None:
        """The latest reply, as far as it has come; None before the first.

        Once it has ended, its `rounds` are the tool calls that led to it, and its `parsed` is the instance of `schema`.
        """
        head = self._tree.head
        if isinstance(head, ChatTurn) and head.has_ended:
            return head.reply
        return None if self._runner.stream is None else self._runner.stream.reply

    @Computed
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the conversation in view that have ended, the first one first."""
        return tuple(ended_turns(self._tree.path))

    @property
    def _path(self) -> list[ChatTurn]:
        """The branch in view, its first turn first."""
        return [turn for turn in self._tree.path if isinstance(turn, ChatTurn)]

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The replies that have ended, in order, one for each turn."""
        return tuple(self._replies)

    # What its buttons do

    def submit(self) -> Stream:
        """Send what the form holds and return its stream at once: the chat in view goes on with it, or one begins.

        Without a prompt the last turn is asked once more. While a reply streams nothing is sent, and its stream is
        returned. Raises InvalidRequest when the form holds no valid request.
        """
        with self.lock:
            if stream := self._busy_stream():
                return stream
            editor = self._editor
            if editor.reading.replaced and not self.turns and editor.prompt.strip():
                # The conversation that the settings hold becomes the chat that the prompt goes on with.
                head, rest = read_chat(editor.request(), None, self.past_calls, is_whole=True)
                if head is not None:
                    draft = draft_of(_leave_prompt_open(rest), editor.endpoints)
                    self._open_chat(head)
                    editor.fill(dataclasses.replace(draft, prompt=editor.prompt, pictures=editor.pictures))
            return self._ask(*self._next_turn())

    def say(self, prompt: str) -> Stream:
        """Continue the conversation in view, with the settings that the form has now; begin one if there is none.

        Images of the form stay there: they are sent with its own prompt.
        """
        with self.lock:
            return self._busy_stream() or self._ask(self._last_good_turn, self._turn_request(prompt))

    @intent
    def edit(self, turn: int, prompt: str) -> Stream:
        """Ask another prompt in the place of a turn; that turn and what followed it stay as another version.

        The turn's pictures go along.
        """
        with self.lock:
            if stream := self._busy_stream():
                return stream
            old = self._find_turn(turn)
            return self._ask(old.before, self._turn_request(prompt, split_content(old.prompt)[1]))

    @intent
    def regenerate(self, turn: int = -1) -> Stream:
        """Ask a turn once more, with the settings that the form has now; the answer so far stays as another version."""
        with self.lock:
            return self._busy_stream() or self._ask(*self._repeat(self._find_turn(turn)))

    @intent
    def edit_answer(self, turn: int, text: str) -> None:
        """Have a turn answered with another text, from which the chat goes on; the answer so far stays as a version."""
        with self.lock:
            old = self._find_turn(turn)
            if self.is_busy:
                raise InvalidRequest("an answer is still being written; edit this one once it has ended")
            exchange = old.panes[-1].stream.exchange
            edited = Turn(old.prompt, edit_reply(old.reply, text))
            new = ChatTurn.of_reply(edited, old.before, key=f"edit.{next(self._numbers)}", exchange=exchange)
            new.panes[:0] = old.panes[:-1]
            self._tree.add(new)
            self._chat_changed()

    @intent
    def read_answer(self, turn: int) -> str:
        """Return the text of a turn's answer, as Markdown."""
        return self._find_turn(turn).reply.text

    @intent
    def read_turn(self, turn: int) -> str:
        """Return what was said in a turn as Markdown, tool calls included; empty until it has ended."""
        return self._find_turn(turn).output().get("text/markdown", "")

    @intent
    def switch(self, turn: int, version: int) -> None:
        """Show another version of a turn, and what followed it; both count from 0."""
        with self.lock:
            versions = self._tree.versions(self._find_turn(turn))
            self._tree.show(versions[check_index("version", version, len(versions))])
            self._chat_changed()

    def wait(self, timeout: float | None = None) -> Reply | None:
        """Wait until the turn has ended, tools included; returns `reply`, as far as it has come in `timeout` seconds.

        Raises InvalidRequest if a tool call waits for approval: the kernel may not process clicks while a cell waits.
        """
        period = _PERIOD_S if timeout is None else min(timeout, _PERIOD_S)
        end = time.monotonic() + (math.inf if timeout is None else timeout)
        while not self._idle.wait(period) and time.monotonic() < end:
            with self.lock:
                call = self._latest.panes[-1].pending_call
            if call is not None:
                raise InvalidRequest(
                    f"{call.name} waits for your approval: press Approve or Decline in the composer and run this cell "
                    "again, or make the composer with auto=True"
                )
        return self.reply

    @urgent_intent
    def stop(self) -> None:
        """Stop the reply that is streaming, if one is, and let no tool run; what has come is kept."""
        self._runner.stop()

    def load(self, call: Request | Reply | RecordedCall | str) -> None:
        """Open a call as the chat that it was, ready to go on: a recorded call, its id or its reply.

        Its turns are in view, its settings in the form, and the prompt is empty. A call that failed, like a request,
        has its prompt in the form instead, after the turns that it repeats: what the form sends is exactly that
        request. Raises InvalidRequest for a reply without a request, and while an answer is being written; KeyError
        for a call that is not in the client's ledger.
        """
        self._load(call, self.past_calls)

    def _load(self, call: Request | Reply | RecordedCall | str, ledger: Ledger) -> None:
        """Open a call, whose earlier turns are looked up in a ledger."""
        endpoints = self._client.endpoints
        request, reply = self.find_call(call)
        model = find_endpoint(request.endpoint, endpoints).request
        request = request if type(request) is model else model.from_body(request.body())
        reply = reply if reply and Turn("", reply).can_continue else None
        with self.lock:
            head, rest = read_chat(request, reply, ledger)
            self._open_chat(head)
            self._fill(draft_of(_leave_prompt_open(rest) if reply and head else rest, endpoints))
            with contextlib.suppress(InvalidRequest):
                if (reply and head) or self.request == request:
                    return
            # What turns and a prompt cannot hold, the form's JSON can.
            self.clear_chat()
            self._fill(draft_of(request, endpoints))

    def _fill(self, draft: Draft) -> None:
        """Fill the form with a draft, and with nothing else."""
        self._editor.fill(draft)
        self._editor.rows, self._editor.row = [], 0
        self.form_changed()

    def share(self) -> SharedChat:
        last = self._last_good_turn
        if last is None or self._ledger is None or last.reply.call_id is None:
            raise InvalidRequest("save: nothing has been answered and recorded yet")
        ids = [reply.call_id for turn in last.path for reply in (*(r.reply for r in turn.reply.rounds), turn.reply)]
        return SharedChat(
            call_id=last.reply.call_id,
            edited=last.reply.text if EDITED in last.reply.warnings else None,
            prompt=self._editor.prompt,
            rows=self._editor.rows,
            record=share_calls(self._ledger, filter(None, ids), opened=self._opened),
        )

    @classmethod
    def from_page(cls, data: bytes, client: BaseClient | None = None) -> Composer:
        """Return the chat in the data of a page that `save` wrote: `famnb.open` reads them. Raises InvalidRequest."""
        chat = read_shared(data, SharedChat)
        # Its calls are those of the file, which the client's ledger need not have.
        composer = cls(client)
        composer._opened = ledger = open_shared(chat.record)
        reply = ledger.call(chat.call_id).reply
        composer._load(reply if chat.edited is None else edit_reply(reply, chat.edited), ledger)
        composer._editor.rows = [*chat.rows]
        if chat.prompt:
            composer.set_prompt(chat.prompt)
        return composer

    def variants(self) -> dict[str, dict[str, Any]]:
        editor = self._editor
        return {editor.raw.get(MODEL, "") or editor.endpoint.name: self._settings()}

    @intent
    def compare(self) -> Board:
        """Open a board whose panes send what the form would send now, and the same to another model; returns the board.

        The board goes on from the talk. Its prompt is that of the form, or else the last one. Raises InvalidRequest for
        faults of the form.
        """
        with self.lock:
            turns, prompt = self.turns, self._editor.prompt
            before, pictures = self._last_good_turn, self._editor.pictures
            if not prompt.strip() and turns:
                prompt, pictures = split_content(turns[-1].prompt)
                before = turns[-1].before
            board = Board(self._client, [self._settings()], prompt=prompt, rows=self._editor.rows)
            board.go_on_from(before, pictures)
            board.add()
            self.board, board.below = board, self.below[1:]
            self.show_below(board)
            self.form_changed()
            return board

    def _settings(self) -> dict[str, Any]:
        """Return the settings of the form without prompt and chat, as a variant has them."""
        # What an earlier turn was chained to is part of its chat.
        request = _leave_prompt_open(self._editor.request()).replace(previous_response_id=None)
        return variant_fields(request, self._editor.endpoints)

    def open(self, *request: Any) -> None:
        """Open the channel to the page, as every widget does."""
        if request:
            raise InvalidArgument("open: a Composer fills its form with a request or a call by load()")
        super().open()

    # What is shown

    def view(self) -> ComposerView:
        editor = self._editor
        if self._controls is None:

            def requests() -> list[tuple[Request, BaseClient]]:
                request = self._turn_request(editor.prompt, editor.pictures)
                return [(requests_after(self._last_good_turn, request, editor.endpoints)[-1], self._client)]

            is_elsewhere = self.board is not None and not self.board.is_shown
            box = self.view_box(
                requests,
                fault=editor.fault,
                has_conversation=editor.reading.replaced and not self._tree.head,
                remarks=(*editor.remarks, *((_BOARD_ELSEWHERE,) if is_elsewhere else ())),
                has_answers=bool(self._path),
            )
            self._controls = editor.view(), box, self.view_code()
        form, prompt, code = self._controls
        profile = self._client.profile
        return ComposerView(
            service="" if profile.name == DEFAULT else profile.title,
            model=editor.raw.get(MODEL, ""),
            form=form,
            system=editor.system,
            prompt=prompt,
            turns=tuple(map(self._view_turn, self._path)),
            is_busy=self.is_busy,
            code=code,
            history=self._history,
            presets=self._presets,
        )

    def _view_turn(self, turn: ChatTurn) -> TurnView:
        versions = self._tree.versions(turn)
        return TurnView(
            key=str(len(turn.path) - 1),
            prompt=split_content(turn.prompt)[0],
            version=versions.index(turn),
            version_count=len(versions),
            calls=tuple(pane.call_view() for pane in turn.panes),
        )

    def chat_output(self) -> tuple[str, Bundle] | None:
        return chat_output(self._tree)

    def find_editor(self, pane: str) -> Editor:
        if pane:
            raise UnknownName(f"there is no pane {pane!r}: a Composer has none")
        return self._editor

    def __repr__(self) -> str:
        return f"<Composer {self._editor.endpoint.name}, {len(self._replies)} replies>"

    # What the page asks for: the form

    @intent
    def tick(self, box: str, is_on: bool) -> None:
        """Ask for a function or for an answer of the type, or no longer."""
        self._editor.tick(box, is_on=is_on)
        self.form_changed()

    # What the page asks for: the panels

    @intent
    def show_panel(self, name: Literal["", "Settings", "Code", "History", "Presets"]) -> None:
        """Show a panel in place of the one that is open, with what it shows at first."""
        self._has_code, self._controls = name == "Code", None
        self._history = list_calls(self.past_calls, "") if name == "History" else None
        self._presets = PresetsView(names=presets.names()) if name == "Presets" else None

    @intent
    def set_code_kind(self, kind: str) -> None:
        """Show the code of another library."""
        self._code_kind, self._controls = kind, None

    @intent
    def filter_history(self, text: str) -> None:
        """List the latest calls that hold a text."""
        self._history = list_calls(self.past_calls, text)

    @intent
    def show_call(self, call: str) -> None:
        """Show the transcript of a call."""
        html = SafeHtml(transcript.reply_bundle(self.past_calls.call(call).reply)["text/html"])
        history = self._history or list_calls(self.past_calls, "")
        self._history = msgspec.structs.replace(history, call=call, transcript=html, note=f"Call {call}")

    @intent
    def load_call(self, call: str) -> None:
        """Show the transcript of a call, and put its request into the form."""
        self.load(call)
        self.show_call(call)

    @intent
    def save_preset(self, name: str) -> None:
        """Save the form under a name."""
        name = name.strip()
        presets.save(name, read_draft(self._editor.draft).valid_request(), self._client.profile)
        self._presets = PresetsView(names=presets.names(), selected=name, note=f"“{name}” is saved.")

    @intent
    def load_preset(self, name: str) -> None:
        """Fill the form with a preset."""
        request = presets.load(name, self._client.profile)
        self._fill(draft_of(request, self._client.endpoints))
        self._presets = PresetsView(names=presets.names(), selected=name, note=f"“{name}” is loaded.")

    @intent
    def delete_preset(self, name: str) -> None:
        """Delete a preset."""
        presets.delete(name)
        self._presets = PresetsView(names=presets.names(), note=f"“{name}” is deleted.")

    # What the page asks for: the chat

    @intent
    def decide(self, pane: str, call: int, is_approved: bool) -> None:
        """Approve or decline the tool call of that index in a pane, if it waits."""
        for turn_pane in self._path[-1].panes if self._tree.head else ():
            calls = turn_pane.stream.reply.tool_calls
            if turn_pane.key == pane and 0 <= call < len(calls):
                self._runner.decide(turn_pane.call, calls[call].at, approved=is_approved)

    def _busy_stream(self) -> Stream | None:
        """Return the stream of the turn that is being answered: nothing else is asked meanwhile."""
        return self._runner.stream if self.is_busy else None

    def write_code(self) -> tuple[str, CodeView]:
        try:
            # The one that repeats all turns, wherever the service has stored them.
            request = requests_after(*self._next_turn(), self._editor.endpoints)[-1]
            return write_code(request, self._client, self._code_kind)
        except InvalidRequest as fault:
            note = f"There is no code yet: {fault} · POST {self._editor.endpoint.path}, not valid yet"
            return write_body(self._editor.reading.body, note)

    # Turns

    def _next_turn(self) -> tuple[Turn | None, Request]:
        """Return the turn that what the form holds follows, and what that asks; raises InvalidRequest."""
        editor, path = self._editor, self._path
        if not path and editor.reading.replaced:
            return None, editor.request()
        if path and not editor.prompt.strip():
            return self._repeat(path[-1])
        return self._last_good_turn, self._turn_request(editor.prompt, editor.pictures)

    def _repeat(self, turn: Turn) -> tuple[Turn | None, Request]:
        """Return the turn before another one, and what asks that once more."""
        request = self._turn_request(*split_content(turn.prompt))
        return turn.before, request if isinstance(turn.prompt, str) else request.with_content(turn.prompt)

    def _turn_request(self, prompt: str, pictures: Sequence[PromptImage] = ()) -> Request:
        """Return what asks a prompt by the settings of the form."""
        if not prompt.strip():
            raise InvalidRequest("prompt: nothing is asked yet; write a prompt")
        return self._editor.request(prompt, pictures)

    @property
    def _last_good_turn(self) -> Turn | None:
        """The turn that a next one follows; None if there is none."""
        # A turn that failed stays in view, and the next one takes its place.
        return next((turn for turn in reversed(self.turns) if turn.can_continue), None)

    def _open_chat(self, head: Turn | None) -> None:
        """Have a past chat in view, by its last turn, in place of the one that is."""
        if self.is_busy:
            raise InvalidRequest("an answer is still being written; stop it, or load the call once it has ended")
        self.new_talk()
        before: ChatTurn | None = None
        for turn in head.path if head else ():
            reply = turn.reply
            exchange = Exchange(
                id=reply.call_id or "",
                started_at=datetime.now(UTC),
                request=reply.request,
                endpoint=self._editor.endpoints.get(reply.endpoint, self._editor.endpoint),
                url="",
                profile=reply.profile or self._client.profile.name,
                service=reply.service,
            )
            before = ChatTurn.of_reply(turn, before, key=f"past.{next(self._numbers)}", exchange=exchange)
        self._tree = ConversationTree(before)
        self._chat_changed()

    def clear_chat(self) -> None:
        self._tree = ConversationTree()
        self._chat_changed()

    def _ask(self, before: Turn | None, request: Request) -> Stream:
        """Ask a turn after another one; returns its first call."""
        requests = requests_after(before, request, self._editor.endpoints)
        reply = Reply(endpoint=request.endpoint, status="running")
        turn = ChatTurn(last_user_content(request), reply, before, key=f"{self._tree.id}.{next(self._numbers)}")
        head, self._latest = self._tree.head, turn
        self._tree.add(turn)
        self._idle.clear()
        self.refresh()
        labels = {"talk": self._tree.id, "turn": str(len(turn.path))}
        schema = self._editor.draft.schema if self._editor.endpoint.traits.format else None
        try:
            stream = self._runner.start(self._client, requests, schema=schema, labels=labels)
        except BaseException:
            # Nothing was sent, so the conversation stays as it was.
            self._tree.remove(turn, head=head)
            self._idle.set()
            self.refresh()
            raise
        # A file that is saved before the answer has ended has its prompt.
        self.update_saved()
        return stream

    def _find_turn(self, index: int) -> ChatTurn:
        path = self._path
        return path[check_index("turn", index, len(path))]

    def _chat_changed(self) -> None:
        # What is sent next goes on from the chat.
        self.form_changed()
        self.update_saved()
        self.notify("turns", "reply")

    # What the turn's thread reports

    def _on_call(self, call: TurnCall) -> None:
        with self.lock:
            turn = self._latest
            request = call.stream.exchange.request
            # A call that is sent again in another form takes the place of the one that failed.
            del turn.panes[call.index :]
            prompts = [] if call.index else transcript.prompt_sections(request, whole=turn.before is None)
            turn.panes.append(TurnPane(call, key=f"{turn.key}.{call.index}", prompts=prompts))
            self.follow(turn.panes[-1:], on_end=call.shown.set)

    def _on_tool_change(self) -> None:
        with self.lock:
            self._latest.panes[-1].invalidate()
            self.refresh()

    def _on_turn_end(self, reply: Reply) -> None:
        """Store the reply of a turn, show and save it."""
        with self.lock:
            turn = self._latest
            turn.reply, turn.has_ended = reply, True
            turn.panes[-1].end_turn(reply)
            self._replies.append(reply)
            try:
                self.update_saved()
            finally:
                # Even if something could not be drawn, the next turn can be asked.
                self._idle.set()
                self.form_changed()
            self.notify("reply", "turns")


def _leave_prompt_open(request: Request) -> Request:
    """Return the request with `UNWRITTEN` for its conversation."""
    return request.replace(**request.write_prompt(UNWRITTEN, system_text(request) or None))
