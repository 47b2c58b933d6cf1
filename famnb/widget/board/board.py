"""The board: one prompt to several variants at once, a pane each, side by side while they stream and when saved.

Board ──┬── PaneSettings  what each pane sends
        ├── BoardView     prompt box and live view, a BoardPane with its meters a variant
        └── BoardRound    the answers to one prompt, saved as a table
"""

from __future__ import annotations

import dataclasses
import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets
import pandas as pd
import traitlets

from famnb.client.client import BlockingClient
from famnb.client.exchange import Exchange
from famnb.client.live_call import Stream
from famnb.errors import InvalidArgument, InvalidRequest, UnknownName
from famnb.frame.calls import calls
from famnb.frame.filters import ledger_of
from famnb.record import Cost, Ledger
from famnb.reply import Reply
from famnb.request import Request
from famnb.widget.board import table
from famnb.widget.board.meters import BoardPane
from famnb.widget.board.pane_settings import read_variants
from famnb.widget.board.table import BoardRound, PaneResult
from famnb.widget.html import diff, notices, transcript
from famnb.widget.live.base import guard_callbacks
from famnb.widget.live.output import Output
from famnb.widget.live.pane import reply_so_far
from famnb.widget.live.prompt_box import PromptBox

_RELOADED = (
    "This page was reloaded, and a reloaded page cannot change outputs it already has. To save these answers with the "
    "notebook, show the board in a new cell."
)


class BoardView(PromptBox):
    """The prompt box of a board, with the board's panes below it."""

    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    """The names of the panes."""
    pinned = traitlets.Unicode("").tag(sync=True)
    """The pane whose answer was chosen; empty before one is."""
    differences = traitlets.Bool(False).tag(sync=True)
    """Whether the words in which answers differ are marked."""
    ended = traitlets.Bool(False).tag(sync=True)
    """Whether a round is over, so that a winner can be chosen also where its panes are no longer drawn."""

    # The board draws the end of a round itself: it hides the panes, or draws them again with their differences.
    sends_final_snapshot = False

    def __init__(self, *, on_pin: Callable[[str], object], on_compare: Callable[[], object], **traits: Any) -> None:
        """`on_pin` is called with a pane's label when its answer is chosen, or was chosen and is chosen again."""
        super().__init__(**traits)
        self._on_pin = on_pin
        self._on_compare = on_compare

    def redraw(self) -> None:
        """Draw all panes again."""
        with self._lock:
            self._send_snapshot()

    def _on_message(self, widget: object, message: dict[str, Any], buffers: object) -> None:
        match message:
            case {"kind": "pin", "label": str(label)}:
                self._on_pin(label)
            case {"kind": "differences"}:
                self._on_compare()
            case _:
                super()._on_message(widget, message, buffers)


class Board:
    """One prompt, several panes: any mix of endpoints, models and settings, streamed at once and compared.

        board = famnb.Board(client, [{"model": "fam-mini"}, {"endpoint": "messages", "thinking": 1024}])

    Each pane has its meters: first token, answer, tokens, cost; `≈` marks estimates. Each can be stopped by itself, and
    one that fails does not affect the others. "Differences" marks the words that differ from the pinned or first
    answer. `replies`, `frame()` and `winner` are for the cells below; `send()`, `stop()` and `pin()` do what the
    buttons do.
    """

    def __init__(self, client: BlockingClient, variants: Any, *, prompt: str = "", system: str = "") -> None:
        """Make a pane for each variant; nothing is sent yet.

        `variants` is a list of fields as `famnb.compose` takes them ({"endpoint": "messages", "thinking": 1024}, with a
        `label` if one is wanted), of famnb requests, or what `famnb.grid()` returns; or a mapping of labels to these.
        Raises InvalidRequest, naming the pane, for settings that no request can have, TypeError if `client` is not one
        of famnb.
        """
        if not callable(getattr(client, "start", None)):
            raise InvalidArgument(f"client: expected a famnb.Client, such as famnb.connect() gives; got {client!r:.80}")
        self._client = client
        self._panes = read_variants(variants)
        self._system = system
        # Callbacks come on the main thread, on an ipykernel subshell's, or on the live view's flusher. Reentrant, since
        # a callback may set a trait whose observer takes the lock again.
        self._guard = threading.RLock()
        self._streams: dict[str, Stream] = {}
        self._tag: str | None = None
        """The label `tag` of the latest round's calls in the ledger, by which `frame` finds them."""
        self._round: BoardRound | None = None
        """The latest round, once it has ended."""
        self._pending_prompt: str | None = None
        """The prompt of the round that streams now."""
        self._earlier: list[tuple[str, transcript.Bundle]] = []
        """The rounds before the latest as output, with their titles."""
        self._output = Output()
        self._trouble = widgets.HTML()
        self._guarded = guarded = guard_callbacks(self._guard, self._trouble)
        self._view = BoardView(
            on_send=guarded(self.send),
            on_pin=lambda label: guarded(lambda: self.pin(None if label == self.winner else label))(),
            on_compare=guarded(self._toggle_differences),
            prompt=prompt,
            labels=[pane.label for pane in self._panes],
            replaced=all(isinstance(pane.settings, Request) for pane in self._panes),
        )
        self._view.observe(lambda _: self._explain_reload(), "reloaded")
        self._box = widgets.VBox([self._view, self._trouble])
        self._box.add_class("famnb-composer")

    @property
    def replies(self) -> dict[str, Reply]:
        """The replies of the latest round by label, as far as they have come; empty before the first."""
        return {label: stream.reply for label, stream in self._streams.items()}

    @property
    def winner(self) -> str | None:
        """The label of the answer that was pinned in the latest round."""
        return self._view.pinned or None

    def send(self) -> dict[str, Stream]:
        """Send the prompt to every pane and return at once: the streams by label.

        While a round streams nothing is sent, and its streams are returned. Raises InvalidRequest, naming the pane,
        when there is nothing to send.
        """
        with self._guard:
            if self._view.busy:
                return dict(self._streams)
            prompt = self._view.prompt.strip()
            if not prompt and not self._view.replaced:
                raise InvalidRequest("prompt: nothing is asked yet; write a prompt")
            # All of them before any is sent: either every pane answers the prompt, or none is charged for it.
            requests = {pane.label: pane.request(prompt, system=self._system) for pane in self._panes}
            self._archive_round()
            self._trouble.value = ""
            self._view.busy, self._view.ended, self._view.pinned = True, False, ""
            # Random rather than counted: other kernels may write rounds into the same ledger.
            self._tag = tag = f"board-{secrets.token_hex(6)}"
            self._streams = {
                label: self._client.start(request, labels={"variant": label, "tag": tag})
                for label, request in requests.items()
            }
            streams, round_number = dict(self._streams), len(self._earlier)
            panes = [
                BoardPane(
                    stream,
                    id=f"{round_number}.{index}",
                    label=label,
                    cost_of=self._cost_of,
                    differences=self._differences_of,
                )
                for index, (label, stream) in enumerate(streams.items())
            ]
            self._pending_prompt = prompt
            self._update_output()
            self._view.follow(panes, on_end=self._guarded(lambda: self._end_round(prompt, panes)))
        return streams

    def stop(self, pane: str | None = None) -> None:
        """Stop the pane of that label, or all of them; what has come is kept. Raises KeyError if no pane has it."""
        self._check_label(pane)
        for label, stream in self._streams.items():
            if pane in (None, label):
                stream.stop()

    def pin(self, label: str | None) -> None:
        """Mark an answer as the winner of the round, in the saved table too; None takes the mark away.

        Raises KeyError if no pane has that label.
        """
        self._check_label(label)
        with self._guard:
            self._view.pinned = label or ""
            self._redraw()

    def frame(self) -> pd.DataFrame:
        """The calls of the latest round as `famnb.calls` has them, a row a pane, and whether each is the `winner`.

        A replayed reply has no row, since no call was made for it.
        """
        # Any, since a client without a ledger is refused by `ledger_of`, whose message says what to use.
        client: Any = self._client
        ledger = ledger_of(client)
        frame = calls(ledger, tag=self._tag) if self._tag else calls(ledger, limit=0)
        positions = {label: index for index, label in enumerate(self._streams)}
        frame = frame.sort_values("variant", key=lambda labels: labels.astype(object).map(positions), ignore_index=True)
        return frame.assign(winner=(frame["variant"].astype(object) == self.winner).astype("boolean"))

    def _ipython_display_(self) -> None:
        self._view.reloaded = False
        self._trouble.value = ""
        controls = Output()
        controls.show(self._box)
        # An Output widget that captures the controls captures the table below them too.
        self._output.captured = controls.captured
        if not controls.captured:
            self._output.show(self._bundle())

    def open_in(self, place: Output) -> None:
        """Show the board in the place of another output, which can hold its panes, but no table of them beside it."""
        self._output.captured = True
        place.replace({**self._box._repr_mimebundle_(), "text/plain": repr(self)})

    def __repr__(self) -> str:
        return f"<Board {' | '.join(pane.label for pane in self._panes)}>"

    # A round

    def _end_round(self, prompt: str, panes: Sequence[BoardPane]) -> None:
        """Put the table of the round into the output, in place of the live panes."""
        try:
            results = tuple(
                PaneResult(
                    label=pane.label,
                    reply=reply_so_far(pane.stream),
                    meters=pane.meters,
                    notes=pane.stream.exchange.request.losses,
                )
                for pane in panes
            )
            self._round = BoardRound(prompt=prompt, system=self._system, results=results)
            self._pending_prompt = None
            self._output.replace(self._bundle())
            if self._view.reloaded or self._output.captured:
                # The output does not change on this page: the answers stay in the live view.
                self._view.redraw()
                self._explain_reload()
            else:
                self._view.hide()
        finally:
            # Even if something could not be drawn, the next prompt can be sent.
            self._view.ended, self._view.busy = True, False

    def _archive_round(self) -> None:
        """Put the latest round among the earlier ones, since another one follows."""
        latest = self._round_with_marks()
        if latest is not None:
            self._earlier.append((table.round_title(latest), table.round_bundle(latest)))
        self._round = None

    def _round_with_marks(self) -> BoardRound | None:
        """The round that ended last, with the winner and the differences that are marked now."""
        if self._round is None:
            return None
        return dataclasses.replace(self._round, winner=self.winner, reference=self._reference)

    def _bundle(self) -> transcript.Bundle:
        """All rounds as one notebook output."""
        latest = self._round_with_marks()
        rounds = [*self._earlier, *([(table.round_title(latest), table.round_bundle(latest))] if latest else [])]
        if self._pending_prompt is not None:
            rounds.append(("", table.pending_bundle(self._pending_prompt, system=self._system)))
        if rounds:
            return transcript.stack_bundles(rounds)
        return table.empty_bundle({pane.label: pane.losses for pane in self._panes})

    def _redraw(self) -> None:
        """Draw a changed winner or changed differences, in the panes and in the output."""
        if self._streams:
            self._view.redraw()
        if self._round is not None:
            self._update_output()

    def _update_output(self) -> None:
        # An output inside an Output widget cannot be replaced; the message would be sent for nothing.
        if not self._output.captured:
            self._output.replace(self._bundle())

    def _toggle_differences(self) -> None:
        self._view.differences = not self._view.differences
        self._redraw()

    @property
    def _reference(self) -> str | None:
        """The label of the answer that others are compared with; None while no differences are marked."""
        return (self.winner or self._panes[0].label) if self._view.differences else None

    def _differences_of(self, label: str) -> tuple[str, str] | None:
        """A pane's answer with its differences marked, as HTML, and a summary of them; None to show it as it is."""
        pieces = table.compare_answers(self._reference, label, self.replies)
        return None if pieces is None else (diff.html(pieces), diff.describe_differences(pieces))

    def _cost_of(self, exchange: Exchange, reply: Reply) -> Cost | None:
        ledger = getattr(self._client, "ledger", None)
        return ledger.cost(exchange, reply) if isinstance(ledger, Ledger) else None

    def _check_label(self, label: str | None) -> None:
        labels = [pane.label for pane in self._panes]
        if label is not None and label not in labels:
            raise UnknownName(f"there is no pane {label!r}; there are {', '.join(map(repr, labels))}")

    def _explain_reload(self) -> None:
        if self._round is not None and self._view.reloaded:
            self._trouble.value = notices.remark(_RELOADED)
