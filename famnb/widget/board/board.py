"""The board: one prompt to several variants at once, side by side while they stream, when they have ended, when saved.

page ── intents ──► Board ──┬── BoardPane     a pane's settings as edited
      ◄── patches ── view() ◄───┴── BoardRound    a prompt and the answers of each pane

A round goes on from the turns that each pane has had: every pane has a chat of its own.
"""

from __future__ import annotations

import itertools
import json
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec

from famnb.client.client import BaseClient
from famnb.client.connected import default_client
from famnb.client.conversation import Turn, requests_after
from famnb.client.live_call import Stream
from famnb.endpoints import endpoint_able_to
from famnb.errors import InvalidArgument, InvalidRequest, UnknownName
from famnb.formatting import format_count
from famnb.record import Ledger, RecordedCall
from famnb.record.ledger import ledger_of
from famnb.record.shared import open_shared, share_calls
from famnb.reply import Reply
from famnb.request import Request
from famnb.widget.board.panes import (
    BoardPane,
    BoardPaneView,
    find_client,
    name_panes,
    read_variants,
    share_text,
    view_shared,
    write_experiment,
)
from famnb.widget.board.rounds import BoardAnswer, BoardRound, RoundView, round_output, round_title
from famnb.widget.form.draft import (
    UNWRITTEN,
    PromptBox,
    fill_variables,
    last_user_content,
    read_rows,
    split_content,
)
from famnb.widget.form.editor import Editor, FieldView
from famnb.widget.form.images import PromptImage
from famnb.widget.form_tool import CodeView, FormTool, PromptBoxView, SharedTool, read_shared
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.facts import system_text
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle
from famnb.widget.live.reply_pane import EDITED, EndedStream, StreamLike, edit_reply
from famnb.widget.runtime.intent import intent, urgent_intent
from famnb.widget.runtime.tool import Computed
from famnb.widget.runtime.view import View

if TYPE_CHECKING:
    import pandas as pd


class BoardView(View, frozen=True):
    """The board."""

    panes: tuple[BoardPaneView, ...]
    shared: tuple[FieldView, ...]
    """What is set for all panes."""
    system: str
    prompt: PromptBoxView
    rounds: tuple[RoundView, ...]
    is_busy: bool
    """Whether an answer is being written."""
    is_marked: bool
    """Whether the words are marked in which answers differ."""
    code: CodeView | None


_Index: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class SharedRound(msgspec.Struct, frozen=True):
    """A round in a file: what was asked, and by pane, the removed ones last, the ids of its answers, if any."""

    prompt: str
    system: str
    winner: tuple[_Index, _Index] | None
    """The pane and the version of the pinned answer."""
    answers: list[list[str]]
    shown: list[_Index]
    edits: list[tuple[_Index, _Index, str]] = []
    """The pane, version and text of each answer that was edited."""


class SharedBoard(SharedTool, frozen=True, tag="board"):
    """What a file holds of a board."""

    panes: list[dict[str, Any]]
    system: str
    template: str
    rounds: list[SharedRound]


class Board(FormTool):
    """One prompt, several panes: any mix of endpoints, models and settings, streamed at once and compared.

        board = famnb.Board(client, [{"model": "fam-mini"}, {"endpoint": "messages", "thinking": 1024}])

    Each pane has its meters: first token, answer, tokens, cost; `≈` marks estimates. Each can be stopped by itself, and
    one that fails does not affect the others. Each further prompt goes on with every pane's own chat. Panes are added,
    changed and removed in place, and some settings are set for all of them at once. A pane that is asked again keeps
    its earlier answers. "Differences" marks the words that differ from the pinned or first answer.

    `replies`, `frame()` and `winner` are for the cells below; `submit()`, `say(prompt)`, `load(call)`, `stop()`,
    `ask_again()`, `edit_answer()`, `set_own_prompt()`, `show_version()`, `pin()`, `add()`, `remove()`,
    `set_for_all()` and `new_talk()` do what the buttons do, and `code` is the cell of an experiment with the same
    prompts and variants.
    """

    entry = "tools/board.js"
    note = "A famnb.Board: run this cell to use it."
    _opened: Ledger | None = None
    """The calls of the file that it was opened from."""

    def __init__(
        self,
        client: BaseClient | None = None,
        variants: Any = None,
        *,
        prompt: str = "",
        system: str = "",
        rows: Any = (),
    ) -> None:
        """Make a pane for each variant; nothing is sent yet.

        `variants` is a list of names of models, of fields as `famnb.compose` takes them ({"endpoint": "messages",
        "thinking": 1024}, with a `label` if one is wanted, and a `client` of its own for another service), of famnb
        requests, or what `famnb.grid()` returns, also that of `famnb.grid(client={…})`; or a mapping of labels to
        these. Without them there are two panes with two models of one endpoint; without a `client` it is that of the
        first variant if each has its own, else that of `famnb.connect()`. `rows`, a frame or a list of mappings, are
        the values of variables such as `{city}` in `prompt` and `system`. Raises InvalidRequest, naming the pane, for
        settings that no request can have, and InvalidArgument if `client` is not one of famnb.
        """
        if client is None:
            client = find_client(variants) or default_client()
        if not isinstance(client, BaseClient):
            raise InvalidArgument(f"client: expected a famnb.Client, such as famnb.connect() gives; got {client!r:.80}")
        if variants is None:
            target = endpoint_able_to(None, tools=False, schema=False, endpoints=client.endpoints)
            pairs = [(target.name, model) for model in target.models[:2]]
            # Where an endpoint has one model, two endpoints.
            pairs += [(other.name, other.models[0]) for other in client.endpoints.values() if other is not target]
            variants = [{"endpoint": endpoint, "model": model} for endpoint, model in pairs[:2]]
        self._keys = (f"p{number}" for number in itertools.count(1))
        self._panes: list[BoardPane] = []
        self._add_panes(read_variants(variants, client.endpoints))
        self._before: Turn | None = None
        """The turn that every pane goes on from."""
        self._rounds: list[BoardRound] = []
        """The rounds of the chat in view, the first one first."""
        self._chat = secrets.token_hex(4)
        """Different for every chat: part of the keys of its rounds and answers."""
        self._is_marked = False
        # A saved prompt, which says its version, is a text like any other here.
        super().__init__(client, PromptBox(str(prompt), str(system), rows=read_rows(rows)))

    # Its state, for other cells

    @Computed
    def replies(self) -> dict[str, Reply]:
        """The replies of the latest round by label, as far as they have come; empty before the first."""
        answers = self._rounds[-1].answers.values() if self._rounds else ()
        return {answer.label: answer.stream.reply for answer in answers}

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the panes."""
        return tuple(pane.label for pane in self._panes)

    @property
    def winner(self) -> str | None:
        """The label of the answer that was pinned in the latest round."""
        return self._rounds[-1].winner if self._rounds else None

    def frame(self) -> pd.DataFrame:
        """The calls of the latest round as `famnb.calls` has them, a row a pane, and whether each is the `winner`.

        A replayed reply has no row, since no call was made for it.
        """
        # Here, since pandas takes longer to load than the board to be drawn.
        import pandas as pd

        from famnb.frame.calls import calls

        if not self._rounds:
            return calls(ledger_of(self._client), limit=0).assign(winner=pd.Series(dtype="boolean"))
        latest = self._rounds[-1]
        # Several clients mostly have one ledger.
        ledgers = {ledger.path: ledger for ledger in (ledger_of(a.client) for a in latest.answers.values())}
        frames = [calls(ledger, tag=latest.tag) for ledger in ledgers.values()]
        frames += [] if self._opened is None else [calls(self._opened)]
        frames = [frame for frame in frames if len(frame)] or frames[:1]
        frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
        # By the call: a pane may have answered several times, and under another name.
        labels = {answer.stream.exchange.id: answer.label for answer in latest.answers.values()}
        positions = {call_id: index for index, call_id in enumerate(labels)}
        frame = frame[frame["call_id"].isin(list(labels))]
        frame = frame.sort_values("call_id", key=lambda ids: ids.map(positions), ignore_index=True)
        variants = frame["call_id"].map(labels)
        return frame.assign(variant=variants.astype("category"), winner=(variants == latest.winner).astype("boolean"))

    @property
    def code(self) -> str:
        """A cell with the `famnb.Experiment` of the prompts asked so far, or of the one written, and these panes."""
        sent = [
            answer.own_prompt if not board_round.prompt else board_round.prompt
            for board_round in self._rounds
            for answer in board_round.answers.values()
        ]
        pane_prompts = [(pane.prompt or pane.editor.prompt).strip() for pane in self._panes]
        # Each once; those of panes count where nothing else was written.
        candidates = (sent or [self._box.prompt.strip()], pane_prompts, [UNWRITTEN])
        prompts = next(found for texts in candidates if (found := list(dict.fromkeys(filter(None, texts)))))
        template, rows = self.table_of_values()
        return write_experiment(
            [template] if rows else prompts, self._panes, system=self._box.system, client=self._client, rows=rows
        )

    # What its buttons do

    def submit(self) -> dict[str, Stream]:
        """Send the prompt to every pane and return at once: the streams by label.

        While a round streams nothing is sent, and its streams are returned. Raises InvalidRequest, naming the pane,
        when there is nothing to send.
        """
        return self.say(self._box.prompt)

    def say(self, prompt: str) -> dict[str, Stream]:
        """Send another prompt to every pane, each of which goes on with its chat: the streams by label."""
        with self.lock:
            if not self.is_busy:
                self._ask(prompt.strip())
            streams: dict[str, Any] = {answer.label: answer.stream for answer in self._rounds[-1].answers.values()}
            return streams

    def load(self, call: Request | Reply | RecordedCall | str) -> None:
        """Write what a request asks, or that of a reply, of a recorded call, or of a call's id; the panes stay.

        What is written is its prompt with its images, and its system text. Raises InvalidRequest for a reply without a
        request, KeyError for a call that is not in the client's ledger.
        """
        request, _ = self.find_call(call)
        with self.lock:
            self._box.prompt, self._box.pictures = split_content(last_user_content(request))
            self._box.system = system_text(request)
            self.form_changed()

    @urgent_intent
    def stop(self, pane: str | None = None) -> None:
        """Stop the pane of that label, or all of them; what has come is kept. Raises UnknownName if no pane has it."""
        # The page names an answer by its key.
        answers = [answer for board_round in list(self._rounds) for answer in board_round.answers.values()]
        stopped = [answer for answer in answers if not pane or pane in (answer.label, answer.key)]
        if pane and not stopped and pane not in self.labels:
            raise _unknown(pane, [*self.replies, *self.labels])
        for answer in stopped:
            answer.stream.stop()

    def wait(self, timeout: float | None = None) -> dict[str, Reply]:
        """Wait until the round has ended; returns `replies`, as far as they have come in `timeout` seconds."""
        self._idle.wait(timeout)
        return dict(self.replies)

    @intent
    def pin(self, pane: str | None) -> None:
        """Mark an answer as the winner of the latest round, in the saved table too; None takes the mark away.

        Raises UnknownName if no pane has that label.
        """
        with self.lock:
            if self._rounds:
                self._rounds[-1].winner_key = "" if pane is None else self._find_answer(pane)[1].key
            self._rounds_changed()

    @intent
    def add(self, variant: Any = None) -> str:
        """Add a pane and return its label; without a variant, a copy of the last pane with another model.

        Its chat begins with the next prompt. Raises InvalidRequest for settings that no request can have.
        """
        with self.lock:
            if variant is None:
                last = self._panes[-1]
                pane = last.copy(taken=[pane.target for pane in self._panes if pane.client is last.client])
            else:
                (pane,) = read_variants([variant], self._client.endpoints)
                if pane.given_label in self.labels:
                    raise InvalidRequest(f"variants: there is a pane {pane.given_label!r} already")
            self._add_panes([pane])
            self._rounds_changed()
            return pane.label

    def _add_panes(self, panes: list[BoardPane]) -> None:
        labels = {pane.label for pane in [*self._panes, *panes]}
        for pane in panes:
            # Either names a pane.
            pane.key = next(key for key in self._keys if key not in labels)
        self._panes += panes

    @intent
    def remove(self, pane: str) -> None:
        """Take a pane away; what it has answered stays. Raises UnknownName if no pane has that label."""
        with self.lock:
            removed = self._find_pane(pane)
            if len(self._panes) == 1:
                raise InvalidRequest("a board has at least one pane; add another one first")
            self._panes.remove(removed)
            self._rounds_changed()

    def set_for_all(self, **fields: Any) -> None:
        """Set `max_tokens`, `temperature`, `top_p`, `stop` or `seed` of each pane whose endpoint has it; None unsets.

        Raises InvalidRequest for another field. What no request can have is said in the panes, and nothing is sent.
        """
        with self.lock:
            for name, value in fields.items():
                if isinstance(value, str) and value.isspace():
                    value = [value]  # in a field, spaces are no text
                text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
                self.set_shared(name, text)

    @intent
    def ask_again(self, pane: str) -> None:
        """Ask one pane what the latest round asked, with its settings as they are now; its earlier answers stay.

        Does nothing while a round streams. Raises UnknownName if no pane has that label.
        """
        with self.lock:
            retried = self._find_pane(pane)
            if self.is_busy or not self._rounds:
                return
            board_round = self._rounds[-1]
            earlier = board_round.answers.get(retried.key)
            prompt = (earlier.own_prompt if earlier else "") or board_round.prompt
            request = self._request(retried, prompt, board_round.number, board_round.pictures)
            self._follow([self._start(retried, board_round, request)])

    @intent
    def show_version(self, pane: str, number: int) -> None:
        """Show another answer of a pane to the latest prompt, by its number from 1: the next prompt goes on from it.

        Does nothing while a round streams. Raises UnknownName if there is no such answer.
        """
        with self.lock:
            if self.is_busy or not self._rounds:
                return
            latest, key = self._rounds[-1], self._find_answer(pane)[0]
            count = len(latest.versions[key])
            if not 1 <= number <= count:
                raise UnknownName(f"there is no answer {number} of this pane; it has {count}")
            latest.shown[key] = number - 1
            self._rounds_changed()

    @intent
    def read_answer(self, pane: str) -> str:
        """Return the text of a pane's answer to the latest prompt, as Markdown."""
        return self._find_answer(pane)[1].reply.text

    @intent
    def edit_answer(self, pane: str, text: str) -> None:
        """Have a pane's latest answer say another text, from which its chat goes on; the answer so far stays.

        Does nothing while a round streams. Raises UnknownName if no pane of that label has answered.
        """
        with self.lock:
            if self.is_busy:
                return
            key, old = self._find_answer(pane)
            stream = EndedStream(edit_reply(old.reply, text), old.stream.exchange)
            self._add_answer(self._rounds[-1], key, old.label, stream, old.client)
            self._rounds_changed()

    def _find_answer(self, pane: str) -> tuple[str, BoardAnswer]:
        """Return the answer of a pane to the latest prompt, with the pane's key."""
        answers = self._rounds[-1].answers if self._rounds else {}
        for key, answer in answers.items():
            if pane in (key, answer.label):
                return key, answer
        raise _unknown(pane, [answer.label for answer in answers.values()])

    def find_editor(self, pane: str) -> Editor:
        return self._find_pane(pane).editor

    def clear_chat(self) -> None:
        self._rounds, self._chat, self._before, self._template = [], secrets.token_hex(4), None, ""
        self._rounds_changed()

    def go_on_from(self, turn: Turn | None, pictures: tuple[PromptImage, ...]) -> None:
        """Have every pane go on from a turn, with pictures for the next prompt."""
        self._before, self._box.pictures = turn, pictures
        self.form_changed()

    def variants(self) -> dict[str, dict[str, Any]]:
        system = self._box.system
        return {
            pane.label: {**pane.variant(system=system), **({"client": pane.client} if pane.client else {})}
            for pane in self._panes
        }

    def share(self) -> SharedBoard | None:
        # A file cannot hold the clients of panes.
        if self._ledger is None or any(pane.client for pane in self._panes):
            return None
        answered = [key for board_round in self._rounds for key in board_round.versions]
        keys = [*dict.fromkeys([*(pane.key for pane in self._panes), *answered])]
        rounds = [self._share_round(board_round, keys) for board_round in self._rounds]
        ids = [call_id for shared in rounds for answers in shared.answers for call_id in answers]
        return SharedBoard(
            panes=[{"label": pane.given_label, **pane.describe()} for pane in self._panes],
            prompt=self._box.prompt,
            system=self._box.system,
            template=self._template,
            rows=self._box.rows,
            rounds=rounds,
            record=share_calls(self._ledger, ids, opened=self._opened),
        )

    def _share_round(self, board_round: BoardRound, keys: list[str]) -> SharedRound:
        versions = [board_round.versions.get(key, []) for key in keys]
        answers = {
            (pane, version): answer for pane, found in enumerate(versions) for version, answer in enumerate(found)
        }
        return SharedRound(
            prompt=board_round.prompt,
            system=board_round.system,
            winner=next((slot for slot, answer in answers.items() if answer.key == board_round.winner_key), None),
            answers=[[answer.stream.exchange.id for answer in found] for found in versions],
            shown=[board_round.shown.get(key, 0) for key in keys],
            edits=[(*slot, answer.reply.text) for slot, answer in answers.items() if EDITED in answer.reply.warnings],
        )

    @classmethod
    def from_page(cls, data: bytes, client: BaseClient | None = None) -> Board:
        """Return the board in the data of a page that `save` wrote: `famnb.open` reads them. Raises InvalidRequest."""
        shared = read_shared(data, SharedBoard)
        board = cls(client, shared.panes, prompt=shared.prompt, system=shared.system, rows=shared.rows)
        board._template, board._opened = shared.template, open_shared(shared.record)
        keys = [pane.key for pane in board._panes]
        keys += [next(board._keys) for _ in shared.rounds[0].answers[len(keys) :]] if shared.rounds else []
        try:
            for shared_round in shared.rounds:
                board._open_round(shared_round, keys, board._opened)
        except (IndexError, ValueError, KeyError) as error:
            raise InvalidRequest(f"the file is damaged: a round of its board cannot be read ({error})") from None
        return board

    def _open_round(self, shared: SharedRound, keys: list[str], ledger: Ledger) -> None:
        board_round = self._make_round(shared.prompt, system=shared.system)
        edits = {(pane, version): text for pane, version, text in shared.edits}
        for pane, (key, call_ids, shown) in enumerate(zip(keys, shared.answers, shared.shown, strict=True)):
            for version, call_id in enumerate(call_ids):
                call = ledger.call(call_id)
                text = edits.get((pane, version))
                reply = call.reply if text is None else edit_reply(call.reply, text)
                stream = EndedStream(reply, call.exchange())
                self._add_answer(board_round, key, call.row["variant"] or key, stream, self._client)
                board_round.shown[key] = min(shown, version)
        if shared.winner is not None:
            pane, version = shared.winner
            board_round.winner_key = board_round.versions[keys[pane]][version].key
        self._rounds.append(board_round)

    def __repr__(self) -> str:
        return f"<Board {' | '.join(self.labels)}>"

    # A round

    def _ask(self, template: str) -> None:
        """Ask every pane; nothing is changed if one of them cannot be asked."""
        prompt = fill_variables(template, self._box.chosen_row)
        # All of them before any is sent: either every pane answers the prompt, or none is charged for it.
        requests = self._requests(prompt)
        board_round = self._make_round(
            "" if all(pane.prompt for pane in self._panes) else prompt,
            system="" if self._rounds else self._filled_system,
            pictures=self._box.pictures,
        )
        try:
            answers = [self._start(pane, board_round, request) for pane, request in requests]
        except BaseException:
            for answer in board_round.answers.values():
                answer.stream.stop()
            raise
        self._rounds.append(board_round)
        self._template = self._template if template == prompt else template
        for pane in self._panes:
            pane.prompt = ""
        self._follow(answers)

    def _make_round(self, prompt: str, *, system: str, pictures: tuple[PromptImage, ...] = ()) -> BoardRound:
        """Return the next round of the chat, which nobody has answered yet."""
        number = len(self._rounds)
        # The tag is random rather than counted: other kernels may write rounds into the same ledger.
        key, tag = f"{self._chat}.{number}", f"board-{secrets.token_hex(6)}"
        return BoardRound(number=number, key=key, prompt=prompt, system=system, tag=tag, pictures=pictures)

    def _requests(self, prompt: str) -> list[tuple[BoardPane, Request]]:
        """Return what every pane sends for the next prompt; raises InvalidRequest if one of them has none."""
        if not prompt and not all(pane.has_own_prompt for pane in self._panes):
            raise InvalidRequest("prompt: nothing is asked yet; write a prompt")
        number, pictures, row = len(self._rounds), self._box.pictures, self._box.chosen_row
        prompts = [fill_variables(pane.prompt.strip(), row) or prompt for pane in self._panes]
        pairs = zip(self._panes, prompts, strict=True)
        return [(pane, self._request(pane, text, number, pictures)) for pane, text in pairs]

    def _request(self, pane: BoardPane, prompt: str, number: int, pictures: tuple[PromptImage, ...]) -> Request:
        """Return a pane's request for the round of that number, all turns before it repeated."""
        request = pane.request(prompt, system=self._filled_system, pictures=pictures)
        return requests_after(self._last_turn(pane.key, number), request, pane.editor.endpoints)[-1]

    @property
    def _filled_system(self) -> str:
        return fill_variables(self._box.system, self._box.chosen_row)

    def _last_turn(self, pane: str, number: int) -> Turn | None:
        """Return the turn of a pane that its one of that round follows: one that failed is left out of the chat."""
        answers = [found.answers.get(pane) for found in self._rounds[:number]]
        turns = (answer.turn for answer in reversed(answers) if answer is not None)
        return next((turn for turn in turns if turn.can_continue), self._before)

    def _start(self, pane: BoardPane, board_round: BoardRound, request: Request) -> BoardAnswer:
        """Send a pane's request of a round."""
        others = [answer.label for key, answer in board_round.answers.items() if key != pane.key]
        label = f"{pane.label} ({pane.key})" if pane.label in others else pane.label
        client = pane.client or self._client
        stream = client.engine.start(request, labels={"variant": label, "tag": board_round.tag})
        return self._add_answer(board_round, pane.key, label, stream, client)

    def _add_answer(
        self, board_round: BoardRound, pane: str, label: str, stream: StreamLike, client: BaseClient | None
    ) -> BoardAnswer:
        """Show one more answer of a pane in a round."""
        answer = BoardAnswer(
            stream,
            key=f"{board_round.key}.{pane}.{len(board_round.versions.get(pane, ()))}",
            label=label,
            client=client,
            ledger=self._ledger,
            before=self._last_turn(pane, board_round.number),
            shared_prompt=board_round.prompt,
            sharers=len(self._panes),
        )
        board_round.add(pane, answer)
        return answer

    def _follow(self, answers: list[BoardAnswer]) -> None:
        self._idle.clear()
        self._rounds_changed()
        self.follow(answers, on_end=self._end)

    def _end(self) -> None:
        """Show and save a round whose answers have ended."""
        with self.lock:
            try:
                self.update_saved()
            # What could not be saved is said, and the next prompt can be sent.
            except Exception as error:
                self.show_error(error)
            finally:
                self._idle.set()
            self.form_changed()
            self.notify("replies")

    def _rounds_changed(self) -> None:
        """Show, save and announce what has become of the answers."""
        self.form_changed()
        self.update_saved()
        self.notify("replies")

    # Panes

    def form_changed(self) -> None:
        name_panes(self._panes)
        super().form_changed()

    def _find_pane(self, name: str) -> BoardPane:
        """Return a pane by its label, as users name it, or by its key, as the page does."""
        pane = next((pane for pane in self._panes if name in (pane.label, pane.key)), None)
        if pane is None:
            raise _unknown(name, self.labels)
        return pane

    # What is saved

    def chat_output(self) -> tuple[str, Bundle] | None:
        if not self._rounds:
            return None
        title = round_title(self._rounds[-1])
        title += f" · {len(self._rounds)} rounds" if len(self._rounds) > 1 else ""
        outputs = [round_output(board_round, is_marked=self._is_marked) for board_round in self._rounds]
        return title, transcript.join_bundles(outputs)

    # What is shown

    def view(self) -> BoardView:
        if self._controls is None:
            prompt = fill_variables(self._box.prompt.strip(), self._box.chosen_row)
            turns = self._before.path if self._before else ()
            remark = f"Each pane goes on from {format_count(len(turns), 'turn')} of the chat that it was opened from."
            box = self.view_box(
                lambda: [(request, pane.client or self._client) for pane, request in self._requests(prompt)],
                fault=next((f"{pane.label}: {pane.editor.fault}" for pane in self._panes if pane.editor.fault), ""),
                has_conversation=all(pane.prompt or (pane.has_own_prompt and not self._rounds) for pane in self._panes),
                remarks=(remark,) if turns else (),
                has_answers=bool(self._rounds),
            )
            panes = tuple(pane.view() for pane in self._panes)
            self._controls = panes, view_shared(self._panes), box, self.view_code()
        panes, shared, box, code = self._controls
        labels = {pane.key: pane.label for pane in self._panes}
        return BoardView(
            panes=panes,
            shared=shared,
            system=self._box.system,
            prompt=box,
            rounds=tuple(board_round.view(labels, is_marked=self._is_marked) for board_round in self._rounds),
            is_busy=self.is_busy,
            is_marked=self._is_marked,
            code=code,
        )

    def write_code(self) -> tuple[str, CodeView]:
        code, note = "", "The prompts asked so far and these panes as variants. Running the cell sends nothing."
        try:
            code = self.code
        except InvalidRequest as fault:
            note = f"There is no code yet: {fault}"
        html = sanitize.render_code(code, "python") if code else SafeHtml()
        return code, CodeView(kinds=(), kind="", note=note, html=html, is_cell=bool(code))

    # What the page asks for: panes

    @intent
    def set_own_prompt(self, pane: str, text: str) -> None:
        """Write what a pane is asked next in place of what all are asked; nothing: it is asked that, too."""
        with self.lock:
            self._find_pane(pane).prompt = text
            self.form_changed()

    @intent
    def set_shared(self, field: str, text: str) -> None:
        """Write the text of a field of all panes."""
        share_text(self._panes, field, text)
        self.form_changed()

    # What the page asks for: answers

    @intent
    def mark_differences(self, is_marked: bool) -> None:
        """Mark the words that differ from the pinned or first answer, or show the answers as they are."""
        self._is_marked = is_marked
        self._rounds_changed()

    @intent
    def show_code(self, is_open: bool) -> None:
        """Show the code of an experiment, or no longer."""
        self._has_code, self._controls = is_open, None


def _unknown(label: str, labels: Iterable[str]) -> UnknownName:
    return UnknownName(f"there is no pane {label!r}; there are {', '.join(map(repr, dict.fromkeys(labels)))}")
