"""The board: one prompt to several variants at once, side by side while they stream, when they have ended, when saved.

    page ── front/board.js ── messages ──► Board ──┬── PaneColumn  a pane's settings as edited, and its talk
                                                   ├── LiveRound   a prompt and the answer of each pane
      ◄── snapshot, changes ── LiveView ◄──────────┴── BoardRound  a round that has ended, saved as a table

A round goes on from the turns that each pane has had: every pane talks on its own.
"""

from __future__ import annotations

import dataclasses
import itertools
import secrets
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from famnb.client.client import BaseClient
from famnb.client.connected import default_client
from famnb.client.conversation import Turn
from famnb.client.exchange import Exchange
from famnb.client.live_call import Stream
from famnb.endpoints import Endpoints, endpoint_able_to
from famnb.errors import InvalidArgument, InvalidRequest, UnknownName
from famnb.formatting import format_count
from famnb.record import Cost, Ledger
from famnb.record.ledger import ledger_of
from famnb.reply import Reply
from famnb.request import Request
from famnb.widget.board import table
from famnb.widget.board.experiment_code import ExperimentVariant, write_experiment
from famnb.widget.board.pane_columns import PaneColumn, SharedFields, name_columns
from famnb.widget.board.pane_settings import find_client, read_variants
from famnb.widget.board.rounds import BoardPane, LiveRound
from famnb.widget.board.table import BoardRound, PaneResult
from famnb.widget.form.draft import last_user_content
from famnb.widget.form.hints import Estimate, RequestEstimator
from famnb.widget.form.images import PromptImage, image_from_url
from famnb.widget.form.tool import STILL_ANSWERING, Computed
from famnb.widget.html import notices, sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.live.base import join_front
from famnb.widget.live.live_view import FormWidget
from famnb.widget.live.reply_pane import reply_so_far
from famnb.widget.runtime.output import Output

if TYPE_CHECKING:
    import pandas as pd

MAX_PANES = 8
"""The panes up to which others can be added: more cannot be compared by eye."""
_RELOADED = (
    "This page was reloaded, and a reloaded page cannot change outputs it already has. To save these answers with the "
    "notebook, show the board in a new cell."
)
# The style sheet hides this class while the widget above draws the same answers, lest each be seen twice.
_SAVED = SafeHtml('<div class="famnb-kept">{}</div>')


class Board(FormWidget):
    """One prompt, several panes: any mix of endpoints, models and settings, streamed at once and compared.

        board = famnb.Board(client, [{"model": "fam-mini"}, {"endpoint": "messages", "thinking": 1024}])

    Each pane has its meters: first token, answer, tokens, cost; `≈` marks estimates. Each can be stopped by itself, and
    one that fails does not affect the others. Each further prompt goes on with every pane's own talk. Panes are added,
    changed, named, moved and removed in place, and what is set for all of them holds where one has nothing of its own.
    A pane that is asked again keeps its earlier answers. "Differences" marks the words that differ from the pinned or
    first answer.

    `replies`, `frame()` and `winner` are for the cells below; `send()`, `say(prompt)`, `stop()`, `ask_again()`,
    `show_version()`, `pin()`, `add()`, `rename()`, `move()`, `remove()`, `set_for_all()` and `new_talk()` do what the
    buttons do, and `code` is the cell of an experiment with the same prompts and variants.
    """

    _esm = join_front("board.js")
    note = "A famnb.Board: run this cell to use it."
    # The board draws the end of a round itself.
    sends_final_snapshot = False

    def __init__(
        self, client: BaseClient | None = None, variants: Any = None, *, prompt: str = "", system: str = ""
    ) -> None:
        """Make a pane for each variant; nothing is sent yet.

        `variants` is a list of fields as `famnb.compose` takes them ({"endpoint": "messages", "thinking": 1024}, with a
        `label` if one is wanted, and a `client` of its own for another service), of famnb requests, or what
        `famnb.grid()` returns, also that of `famnb.grid(client={…})`; or a mapping of labels to these. Without them
        there are two panes with two models of one endpoint; without a `client` it is that of the first variant if each
        has its own, else that of `famnb.connect()`. Raises InvalidRequest, naming the pane, for settings that no
        request can have, and InvalidArgument if `client` is not one of famnb.
        """
        if client is None:
            client = find_client(variants) or default_client()
        if not isinstance(client, BaseClient):
            raise InvalidArgument(f"client: expected a famnb.Client, such as famnb.connect() gives; got {client!r:.80}")
        self._client = client
        ledger = getattr(client, "ledger", None)
        self._ledger = ledger if isinstance(ledger, Ledger) else None
        self._ids = (f"p{number}" for number in itertools.count(1))
        variants = _first_variants(client.endpoints) if variants is None else variants
        settings = read_variants(variants, client.endpoints)
        self._columns = [PaneColumn(next(self._ids), each) for each in settings]
        self._shared = SharedFields()
        self._prompt, self._system = prompt, system
        self._pictures: tuple[PromptImage, ...] = ()
        self._rounds: list[LiveRound] = []
        """The rounds of the talk in view, the first one first."""
        self._talk = secrets.token_hex(4)
        """Different for every talk: part of the ids of its panes."""
        self._earlier: list[tuple[str, transcript.Bundle]] = []
        """The talks before this one as output, with their titles."""
        self._idle = threading.Event()
        """Set while no round streams."""
        self._idle.set()
        self._differences = False
        """Whether the words in which answers differ are marked."""
        self._has_code = False
        """Whether the panel with the code of an experiment is open."""
        self._output = Output()
        self._estimator = RequestEstimator(self._ledger)
        super().__init__()

    # Its state, for other cells

    @Computed
    def replies(self) -> dict[str, Reply]:
        """The replies of the latest round by label, as far as they have come; empty before the first."""
        return self._rounds[-1].replies if self._rounds else {}

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the panes."""
        return tuple(column.label for column in self._columns)

    @property
    def winner(self) -> str | None:
        """The label of the answer that was pinned in the latest round."""
        return self._rounds[-1].winner if self._rounds else None

    @property
    def _is_busy(self) -> bool:
        return not self._idle.is_set()

    @property
    def _streams(self) -> dict[str, Any]:
        """The streams of the latest round by label."""
        return {pane.label: pane.stream for pane in self._rounds[-1].panes.values()}

    def frame(self) -> pd.DataFrame:
        """The calls of the latest round as `famnb.calls` has them, a row a pane, and whether each is the `winner`.

        A replayed reply has no row, since no call was made for it.
        """
        # Here, since pandas takes longer to load than the board to be drawn.
        import pandas as pd

        from famnb.frame.calls import calls

        if not self._rounds:
            return calls(_ledger_of(self._client), limit=0).assign(winner=pd.Series(dtype="boolean"))
        latest = self._rounds[-1]
        # Several clients mostly have one ledger.
        ledgers = {ledger.path: ledger for ledger in map(_ledger_of, latest.clients.values())}
        frames = [calls(ledger, tag=latest.tag) for ledger in ledgers.values()]
        frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
        # By the call: a pane may have answered several times, and under another name.
        labels = {pane.stream.exchange.id: pane.label for pane in latest.panes.values()}
        positions = {call_id: index for index, call_id in enumerate(labels)}
        frame = frame[frame["call_id"].isin(list(labels))]
        frame = frame.sort_values("call_id", key=lambda ids: ids.map(positions), ignore_index=True)
        variants = frame["call_id"].map(labels)
        return frame.assign(variant=variants.astype("category"), winner=(variants == latest.winner).astype("boolean"))

    @property
    def code(self) -> str:
        """A cell with the `famnb.Experiment` of the prompts asked so far, or of the one written, and these panes."""
        asked = [prompt for each in self._rounds for prompt in _prompts_of(each)] or [self._prompt.strip()]
        own = [column.editor.prompt.strip() for column in self._columns]
        prompts = list(dict.fromkeys(prompt for prompt in asked if prompt)) or list(dict.fromkeys(filter(None, own)))
        # Labels as they are, but the same settings once: rows of a table of values differ in their prompts alone.
        variants: dict[str, ExperimentVariant] = {}
        for column in self._columns:
            request = column.request("…", system=self._system)
            variant = ExperimentVariant(request, column.client, column.settings.client_name)
            if all(
                request.body() != other.request.body() or column.client is not other.client
                for other in variants.values()
            ):
                variants[column.label] = variant
        return write_experiment(prompts or ["…"], variants, client=self._client)

    # What its buttons do

    def send(self, content: Any = None, buffers: Any = None) -> Any:
        """Send the prompt to every pane and return at once: the streams by label.

        While a round streams nothing is sent, and its streams are returned. Raises InvalidRequest, naming the pane,
        when there is nothing to send. With `content` it is ipywidgets' own `send`: a message to the page.
        """
        if content is not None:
            return super().send(content, buffers)
        with self._guard:
            if not self._is_busy:
                self._ask(self._prompt.strip())
            return self._streams

    def say(self, prompt: str) -> dict[str, Stream]:
        """Send another prompt to every pane, each of which goes on with its talk: the streams by label."""
        with self._guard:
            if not self._is_busy:
                self._ask(prompt.strip())
            return self._streams

    def stop(self, pane: str | None = None) -> None:
        """Stop the pane of that label, or all of them; what has come is kept. Raises UnknownName if no pane has it."""
        self._check_label(pane)
        for other in self._rounds[-1].panes.values() if self._rounds else ():
            if pane in (None, other.label):
                other.stream.stop()

    def wait(self, timeout: float | None = None) -> dict[str, Reply]:
        """Wait until the round has ended; returns `replies`, as far as they have come in `timeout` seconds."""
        self._idle.wait(timeout)
        return dict(self.replies)

    def pin(self, label: str | None) -> None:
        """Mark an answer as the winner of the latest round, in the saved table too; None takes the mark away.

        Raises UnknownName if no pane has that label.
        """
        self._check_label(label)
        with self._guard:
            if self._rounds:
                self._pin(self._rounds[-1], label)

    def add(self, variant: Any = None) -> str:
        """Add a pane and return its label; without a variant, a copy of the last pane with another model.

        Its talk begins with the next prompt. Raises InvalidRequest for settings that no request can have.
        """
        with self._guard:
            if variant is None:
                last = self._columns[-1]
                taken = [column.target for column in self._columns if column.client is last.client]
                column = self._columns[-1].copy(next(self._ids), taken=taken)
            else:
                (settings,) = read_variants([variant], self._client.endpoints)
                column = PaneColumn(next(self._ids), settings)
                if settings.given_label in self.labels:
                    raise InvalidRequest(f"variants: there is a pane {settings.given_label!r} already")
            self._shared.fill(column)
            self._columns.append(column)
            self._columns_changed()
            return column.label

    def remove(self, label: str) -> None:
        """Take a pane away; what it has answered stays. Raises UnknownName if no pane has that label."""
        with self._guard:
            self._remove(self._find_column(label))

    def rename(self, label: str, name: str) -> None:
        """Give a pane and its answers in view another label; with an empty `name` it is made of its settings again.

        The ledger keeps the labels under which was asked. Raises UnknownName if no pane has the label, InvalidRequest
        if another one has the name.
        """
        with self._guard:
            self._rename(self._find_column(label), name)

    def move(self, label: str, position: int) -> None:
        """Put a pane at a position among the others, from 0. Raises UnknownName if no pane has that label."""
        with self._guard:
            self._move(self._find_column(label), position)

    def set_for_all(self, **fields: Any) -> None:
        """Set `max_tokens`, `temperature` or `top_p` of all panes but those that have their own; None unsets it.

        Raises InvalidRequest for another field. What no request can have is said in the panes, and nothing is sent.
        """
        with self._guard:
            for name, value in fields.items():
                self._shared.set_text(name, "" if value is None else str(value), self._columns)
            self._settings_changed()

    def ask_again(self, label: str) -> None:
        """Ask one pane what the latest round asked, with its settings as they are now; its earlier answers stay.

        Does nothing while a round streams. Raises UnknownName if no pane has that label.
        """
        with self._guard:
            if self._rounds and not self._is_busy:
                self._ask_again(self._find_column(label), self._rounds[-1])

    def show_version(self, label: str, number: int) -> None:
        """Show another answer of a pane to the latest prompt, by its number from 1: the next prompt goes on from it.

        Does nothing while a round streams. Raises UnknownName if there is no such answer.
        """
        with self._guard:
            if self._rounds and not self._is_busy:
                self._show_version(self._rounds[-1], self._find_column(label).id, number - 1)

    def new_talk(self) -> None:
        """Put the rounds so far among the earlier ones, so that the next prompt begins another talk; not while busy."""
        with self._guard:
            if self._is_busy or not self._rounds:
                return
            self._earlier.append(self._talk_output())
            self._rounds, self._talk = [], secrets.token_hex(4)
            for column in self._columns:
                column.turns, column.before = {}, None
            self._update_output()
            self._follow([])
            self._send_form()
            self.notify("replies")

    def open_with(self, prompt: str, *, pictures: tuple[PromptImage, ...] = (), before: Turn | None = None) -> None:
        """Have a prompt and pictures written, and every pane go on from a turn."""
        self._prompt, self._pictures = prompt, pictures
        for column in self._columns:
            column.before = before

    def open_in(self, place: Output, saved: Output) -> None:
        """Show the board in the place of another output, and its table in that of a second one."""
        self._output = saved
        place.replace(self.controls_bundle())
        self._update_output()

    def __repr__(self) -> str:
        return f"<Board {' | '.join(self.labels)}>"

    # A round

    def _ask(self, prompt: str) -> None:
        """Ask every pane; nothing is changed if one of them cannot be asked."""
        is_own = not prompt and all(column.has_own_prompt for column in self._columns)
        if not prompt and not is_own:
            raise InvalidRequest("prompt: nothing is asked yet; write a prompt")
        # Random rather than counted: other kernels may write rounds into the same ledger.
        number, tag = len(self._rounds), f"board-{secrets.token_hex(6)}"
        # All of them before any is sent: either every pane answers the prompt, or none is charged for it.
        requests = {column.id: self._request(column, prompt, number, self._pictures) for column in self._columns}
        self._trouble = ""
        latest = LiveRound(number, prompt, self._system, tag, pictures=self._pictures)
        self._rounds.append(latest)
        panes = [self._start(column, latest, requests[column.id]) for column in self._columns]
        self._run(latest, panes)

    def _ask_again(self, column: PaneColumn, asked: LiveRound) -> None:
        """Ask one pane what a round asked: one that was added since, or whose answer is to be another one."""
        request = self._request(column, asked.prompt, asked.number, asked.pictures)
        self._run(asked, [self._start(column, asked, request)])

    def _request(self, column: PaneColumn, prompt: str, number: int, pictures: Sequence[PromptImage]) -> Request:
        return column.turn_request(prompt, number, system=self._system, pictures=pictures)

    def _start(self, column: PaneColumn, asked: LiveRound, request: Request) -> BoardPane:
        """Send a pane's request of a round."""
        label = asked.label_for(column.id, column.label)
        asked.clients[column.id] = client = self._client_of(column)
        stream = client.engine.start(request, labels={"variant": label, "tag": asked.tag})
        said = last_user_content(request)
        own_prompt = "" if asked.prompt else (said if isinstance(said, str) else column.editor.prompt)
        pane = BoardPane(
            stream,
            id=f"{self._talk}.{asked.number}.{column.id}.{len(asked.versions.get(column.id, ()))}",
            label=label,
            cost_of=self._cost_of,
            differences=lambda pane: self._mark_differences(asked, pane),
            is_winner=lambda pane: asked.winner == pane.label,
            version=asked.find_version,
            own_prompt=own_prompt,
        )
        pane.turn = Turn(said, reply_so_far(stream), column.last_turn(asked.number))
        column.turns[asked.number] = pane.turn
        asked.add(column.id, pane)
        asked.sort([each.id for each in self._columns])
        return pane

    def _run(self, asked: LiveRound, panes: Sequence[BoardPane]) -> None:
        self._idle.clear()
        asked.saved = {}
        self._update_output()
        self._follow(panes, asked=asked)
        self.notify("replies")

    def _follow(self, panes: Sequence[BoardPane], *, asked: LiveRound | None = None) -> None:
        """Draw all answers, of which these are streaming."""
        self.tell_state()
        earlier = [pane for each in self._rounds for pane in each.panes.values() if pane not in panes]
        self.follow(panes, earlier=earlier, on_end=None if asked is None else lambda: self._end(asked))

    def _end(self, asked: LiveRound) -> None:
        """Draw and save a round whose answers have ended."""
        with self._guard:
            try:
                for pane in asked.panes.values():
                    if pane.turn is not None:
                        pane.turn.reply = reply_so_far(pane.stream)
                self._estimator.forget()
                self._update_output()
            # What could not be drawn is said, and the next prompt can be sent.
            except Exception as error:
                self._trouble = notices.error_text(error)
            finally:
                self._idle.set()
                self._follow([])
                self._send_form()
                self.notify("replies")

    def _show_version(self, asked: LiveRound, id: str, number: int) -> None:
        count = len(asked.versions.get(id, ()))
        if not 0 <= number < count:
            raise UnknownName(f"there is no answer {number + 1} of this pane; it has {count}")
        pane = asked.show_version(id, number)
        for column in self._columns:
            if column.id == id and pane.turn is not None:
                column.turns[asked.number] = pane.turn
        self._update_output()
        self._follow([])
        self._send_form()
        self.notify("replies")

    def _pin(self, asked: LiveRound, label: str | None) -> None:
        asked.winner, asked.saved = label, {}
        self._follow_marks()

    def _follow_marks(self) -> None:
        """Draw marks that have changed."""
        self._update_output()
        self.tell_state()
        with self._lock:
            self._send_snapshot()

    def _reference(self, asked: LiveRound) -> str | None:
        """The label of the answer that others are compared with; None while no differences are marked."""
        return (asked.winner or next(iter(asked.replies), None)) if self._differences else None

    def _mark_differences(self, asked: LiveRound, pane: BoardPane) -> tuple[str, str] | None:
        """Return an answer with its differences from the reference marked, and their number in words; None if none."""
        pair = table.comparable(self._reference(asked), pane.label, asked.replies)
        if pair is None:
            return None
        html, summary = table.mark_differences(*pair)
        return str(html), summary

    def _client_of(self, column: PaneColumn) -> BaseClient:
        return column.client or self._client

    def _cost_of(self, exchange: Exchange, reply: Reply) -> Cost | None:
        return None if self._ledger is None else self._ledger.cost(exchange, reply)

    # Panes

    def _remove(self, column: PaneColumn) -> None:
        if len(self._columns) == 1:
            raise InvalidRequest("a board has at least one pane; add another one first")
        self._columns.remove(column)
        self._columns_changed()

    def _rename(self, column: PaneColumn, name: str) -> None:
        name = sanitize.visible(" ".join(name.split()))
        if name and any(name == other.label for other in self._columns if other is not column):
            raise InvalidRequest(f"label: there is a pane {name!r} already; give this one another name")
        column.settings = dataclasses.replace(column.settings, given_label=name)
        name_columns(self._columns)
        for asked in self._rounds:
            asked.rename(column.id, column.label)
        self._columns_changed()
        self._follow_marks()
        self.notify("replies")

    def _move(self, column: PaneColumn, position: int) -> None:
        self._columns.remove(column)
        self._columns.insert(max(0, position), column)
        for asked in self._rounds:
            asked.sort([each.id for each in self._columns])
        self._columns_changed()
        self._update_output()

    def _columns_changed(self) -> None:
        name_columns(self._columns)
        self.tell_state()
        self._send_form(fields=True)
        if not self._rounds:
            self._update_output()

    def _settings_changed(self, *, fields: bool = False) -> None:
        name_columns(self._columns)
        self._send_form(fields=fields)
        self.tell_state()

    def _find_column(self, label: str) -> PaneColumn:
        column = next((each for each in self._columns if each.label == label), None)
        if column is None:
            raise UnknownName(f"there is no pane {label!r}; there are {', '.join(map(repr, self.labels))}")
        return column

    def _column(self, id: str) -> PaneColumn:
        column = next((each for each in self._columns if each.id == id), None)
        if column is None:
            raise UnknownName(f"there is no pane {id!r}")
        return column

    def _check_label(self, label: str | None) -> None:
        labels = list(dict.fromkeys([*self.replies, *self.labels]))
        if label is not None and label not in labels:
            raise UnknownName(f"there is no pane {label!r}; there are {', '.join(map(repr, labels))}")

    # What is saved

    def show_outputs(self, *, captured: bool) -> None:
        """Put the rounds below the widget."""
        self._output.captured = captured
        if not captured:
            self._output.show(self._saved_bundle())

    def html(self) -> SafeHtml:
        """Return the rounds as HTML."""
        return SafeHtml(self._saved_bundle()["text/html"])

    def _update_output(self) -> None:
        # An output inside an Output widget cannot be replaced; the message would be sent for nothing.
        if not self._output.captured:
            self._output.replace(self._saved_bundle())

    def _saved_bundle(self) -> transcript.Bundle:
        """All talks as one notebook output."""
        if not self._rounds and not self._earlier:
            latest = table.empty_bundle({column.label: _losses(column) for column in self._columns})
            return {**latest, "text/html": _SAVED.format(SafeHtml(latest["text/html"]))}
        bundle = transcript.stack_bundles([*self._earlier, *([self._talk_output()] if self._rounds else [])])
        return {**bundle, "text/html": _SAVED.format(SafeHtml(bundle["text/html"]))}

    def _talk_output(self) -> tuple[str, transcript.Bundle]:
        """The rounds of the talk in view as notebook output, with a title."""
        last = self._saved_round(self._rounds[-1])
        title = table.round_title(last) + (f" · {len(self._rounds)} rounds" if len(self._rounds) > 1 else "")
        return title, transcript.join_bundles([self._round_bundle(each) for each in self._rounds])

    def _round_bundle(self, asked: LiveRound) -> transcript.Bundle:
        if any(pane.stream.running for pane in asked.panes.values()):
            return table.pending_bundle(asked.prompt, system=asked.system)
        if not asked.saved:
            asked.saved = table.round_bundle(self._saved_round(asked))
        return asked.saved

    def _saved_round(self, asked: LiveRound) -> BoardRound:
        results = tuple(
            PaneResult(
                label=pane.label,
                reply=reply_so_far(pane.stream),
                meters=pane.meters,
                prompt=pane.own_prompt,
                version=_describe_version(*asked.find_version(pane)),
                notes=pane.stream.exchange.request.losses,
            )
            for pane in asked.panes.values()
        )
        return BoardRound(
            prompt=asked.prompt,
            system=asked.system if asked.number == 0 else "",
            results=results,
            winner=asked.winner,
            reference=self._reference(asked),
        )

    # What the page is told

    def describe(self) -> dict[str, Any]:
        """Return the panes, the prompt and the state, for a page that is new."""
        return {
            "fields": self._describe_fields(),
            "columns": self._describe_columns(),
            "shared": self._shared.describe(self._columns),
            "form": self._describe_form(),
            "pictures": self._describe_pictures(),
            "state": self.describe_state(),
        }

    def describe_state(self) -> dict[str, Any]:
        """Return what may be done, and where each answer stands."""
        return {
            "busy": self._is_busy,
            "trouble": self._trouble,
            "remark": _RELOADED if self._rounds and self.reloaded else "",
            "differences": self._differences,
            "full": len(self._columns) >= MAX_PANES,
            "rounds": [self._describe_round(each) for each in self._rounds],
        }

    def _describe_round(self, asked: LiveRound) -> dict[str, Any]:
        columns = {column.id: column for column in self._columns}
        # Those of panes that are gone stand last.
        order = [*columns, *(id for id in asked.panes if id not in columns)]
        cells: list[dict[str, Any]] = [
            {"pane": asked.panes[id].id, "column": id}
            if id in asked.panes
            # In their order: a later prompt without the earlier ones would be another question.
            else {"column": id, "label": columns[id].label, "ready": self._is_ready(columns[id], asked)}
            for id in order
        ]
        return {"id": f"{self._talk}.{asked.number}", "prompt": sanitize.visible(asked.prompt), "cells": cells}

    def _is_ready(self, column: PaneColumn, asked: LiveRound) -> bool:
        return bool(asked.prompt) and all(column.id in each.panes for each in self._rounds[: asked.number])

    def _describe_fields(self) -> dict[str, Any]:
        """The fields of the endpoints that are in use."""
        return {column.fields_key: column.editor.describe_fields() for column in self._columns}

    def _describe_columns(self) -> list[dict[str, Any]]:
        return [{**column.describe(), "own": self._shared.describe_own(column)} for column in self._columns]

    def _describe_form(self) -> dict[str, Any]:
        faults = [column.fault for column in self._columns if column.fault]
        return {
            "prompt": self._prompt,
            "system": self._system,
            "fault": next(iter(faults), ""),
            "replaced": all(column.has_own_prompt for column in self._columns),
            "remarks": self._remarks(),
            "estimate": ["", ""] if faults else list(self._estimate()),
            "variables": {"names": [], "rows": [], "row": 0},
            "force": False,
        }

    def _remarks(self) -> list[str]:
        before = self._columns[0].before
        if before is None:
            return []
        count = len(before.path)
        return [f"Each pane goes on from {format_count(count, 'turn')} of the talk that it was opened from."]

    def _estimate(self) -> Estimate:
        number = len(self._rounds)
        try:
            requests = [
                (self._request(column, self._prompt.strip(), number, self._pictures), self._client_of(column))
                for column in self._columns
            ]
        except InvalidRequest:
            return Estimate("", "")
        return self._estimator.estimate_all(requests)

    def _describe_pictures(self) -> list[dict[str, str]]:
        return [
            {"label": picture.description, "url": picture.url if picture.is_upload else ""}
            for picture in self._pictures
        ]

    def _send_form(self, *, fields: bool = False, pictures: bool = False, columns: bool = True) -> None:
        parts: dict[str, Any] = {"form": self._describe_form()}
        if fields:
            parts["fields"] = self._describe_fields()
        if columns:
            parts |= {"columns": self._describe_columns(), "shared": self._shared.describe(self._columns)}
        if pictures:
            parts["pictures"] = self._describe_pictures()
        if self._has_code:
            parts["panel"] = self._describe_code()
        self.tell_changes(**parts)

    def _describe_code(self) -> dict[str, Any]:
        panel = {"name": "Experiment", "kinds": [], "kind": "", "note": "", "html": "", "is_cell": False}
        try:
            code = self.code
        except InvalidRequest as fault:
            return {**panel, "note": f"There is no code yet: {fault}"}
        note = "The prompts asked so far, each by itself, and these panes as variants. Running the cell sends nothing."
        return {**panel, "note": note, "html": str(sanitize.render_code(code, "python")), "is_cell": True}

    # What the page wishes

    def stop_pane(self, pane: str) -> None:
        """Stop the pane of that id, or all."""
        for asked in self._rounds:
            for other in asked.panes.values():
                if pane in ("", other.id):
                    other.stream.stop()

    def act(self, message: dict[str, Any]) -> None:
        """Carry out a message of the page; an unknown one, and most while a round streams, do nothing."""
        match message:
            case {"kind": "again", "column": str(id), "round": int(number)}:
                if not self._is_busy:
                    self._ask_again(self._column(id), self._rounds[number])
            case {"kind": "version", "column": str(id), "to": int(number)}:
                if not self._is_busy:
                    self._show_version(self._rounds[-1], id, number)
            case {"column": str(id)}:
                self._edit(self._column(id), message)
            case {"kind": "prompt", "text": str(text)}:
                self._prompt = text
                self._send_form(columns=False)
            case {"kind": "system", "text": str(text)}:
                self._system = text
                self._send_form(columns=False)
            case {"kind": "share", "field": str(name), "text": str(text)}:
                self._shared.set_text(name, text, self._columns)
                self._settings_changed()
            case {"kind": "panel", "open": bool(is_open)}:
                self._has_code = is_open
                self._send_form(columns=False)
            case {"kind": "differences"}:
                self._differences = not self._differences
                for asked in self._rounds:
                    asked.saved = {}
                self._follow_marks()
            case {"kind": "pin", "pane": str(pane_id)}:
                asked, pane = self._find(pane_id)
                self._pin(asked, None if asked.winner == pane.label else pane.label)
            case {"kind": "image", "url": str(url), "name": str(name)}:
                self._pictures = (*self._pictures, image_from_url(url, name=name))
                self._send_form(pictures=True, columns=False)
            case {"kind": "remove", "image": int(index)}:
                self._pictures = tuple(each for place, each in enumerate(self._pictures) if place != index)
                self._send_form(pictures=True, columns=False)
            case {"kind": "send"} if self._is_busy:
                raise InvalidRequest(STILL_ANSWERING)
            case _ if self._is_busy:
                pass
            case {"kind": "send", "prompt": str(prompt)}:
                self._ask(prompt.strip())
                self._prompt, self._pictures = "", ()
                self._send_form(pictures=True, columns=False)
            case {"kind": "add"}:
                if len(self._columns) < MAX_PANES:
                    self.add()
            case {"kind": "new"}:
                self.new_talk()
            case _:
                pass

    def _edit(self, column: PaneColumn, message: dict[str, Any]) -> None:
        """Carry out an edit of one pane's settings."""
        editor = column.editor
        fields = False
        match message:
            case {"kind": "drop"}:
                self._remove(column)
                return
            case {"kind": "rename", "text": str(text)}:
                self._rename(column, text)
                return
            case {"kind": "move", "to": int(position)}:
                self._move(column, position)
                return
            case {"kind": "share", "field": str(name)}:
                self._shared.reset(column, name)
            case {"kind": "set", "field": str(name), "text": str(text)}:
                editor.set_text(name, text)
                self._shared.follow_edit(column, name)
            case {"kind": "system", "text": str(text)}:
                editor.system = text
            case {"kind": "endpoint", "name": str(name)}:
                editor.choose_endpoint(name)
                self._shared.fill(column)
                fields = True
            case _:
                return
        column.use_form()
        self._settings_changed(fields=fields)

    def _find(self, pane_id: str) -> tuple[LiveRound, BoardPane]:
        for asked in self._rounds:
            for pane in asked.panes.values():
                if pane.id == pane_id:
                    return asked, pane
        raise UnknownName(f"there is no pane {pane_id!r}")


def _first_variants(endpoints: Endpoints) -> list[dict[str, str]]:
    """Two models of one endpoint, or two endpoints if it has one model."""
    target = endpoint_able_to(None, tools=False, schema=False, endpoints=endpoints)
    pairs = [(target.name, model) for model in target.models[:2]]
    pairs += [(other.name, other.models[0]) for other in endpoints.values() if other is not target]
    return [{"endpoint": endpoint, "model": model} for endpoint, model in pairs[:2]]


def _ledger_of(client: Any) -> Ledger:
    # Any, since a client without a ledger is refused by `ledger_of`, whose message says what to use.
    return ledger_of(client)


def _prompts_of(asked: LiveRound) -> list[str]:
    return [asked.prompt] if asked.prompt else [pane.own_prompt for pane in asked.panes.values()]


def _describe_version(number: int, count: int) -> str:
    return f"answer {number + 1} of {count}" if count > 1 else ""


def _losses(column: PaneColumn) -> tuple[str, ...]:
    return column.settings.losses
