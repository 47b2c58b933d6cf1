"""The board: one prompt to several variants at once, a pane each, side by side while they stream and when saved."""

from __future__ import annotations

import dataclasses
import secrets
import threading
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets
import pandas as pd

from famnb.client.client import BlockingClient
from famnb.client.exchange import Exchange
from famnb.client.live_call import Stream
from famnb.errors import InvalidRequest
from famnb.frame.calls import calls
from famnb.frame.filters import ledger_of
from famnb.record import Cost, Ledger
from famnb.reply import Reply
from famnb.request import Request
from famnb.widget.board import table
from famnb.widget.board.meters import MeteredPane
from famnb.widget.board.variants import read
from famnb.widget.board.view import BoardView
from famnb.widget.html import diff, notices, transcript
from famnb.widget.live.base import guard_callbacks
from famnb.widget.live.output import Output
from famnb.widget.live.pane import reply_so_far

_RELOADED = (
    "This page was reloaded, and a reloaded page cannot change outputs it already has. To save these answers with the "
    "notebook, show the board in a new cell."
)


class Board:
    """One prompt, several panes: any mix of endpoints, models and settings, streamed at once and compared.

    `replies`, `frame()` and `winner` are for the cells below; `send()`, `stop()` and `pin()` do what the buttons do.
    """

    def __init__(self, client: BlockingClient, variants: Any, *, prompt: str = "", system: str = "") -> None:
        """Make a pane for each variant; nothing is sent yet.

        `variants` is a list of fields as `famnb.compose` takes them ({"endpoint": "messages", "thinking": 1024}, with a
        `label` if one is wanted), of famnb requests, or what `famnb.grid()` returns; or a mapping of labels to these.
        Raises InvalidRequest, naming the pane, for settings that no request can have, TypeError for what is no client.
        """
        if not callable(getattr(client, "start", None)):
            raise TypeError(f"client: expected a famnb.Client, such as famnb.connect() gives; got {client!r:.80}")
        self._client = client
        self._variants = read(variants)
        self._system = system
        # Callbacks come on the main thread, on a subshell's, or on the flusher's.
        self._guard = threading.RLock()
        self._streams: dict[str, Stream] = {}
        self._tag: str | None = None
        self._round: table.Round | None = None
        """The latest round, once it has ended."""
        self._asked: str | None = None
        """The prompt of the round that streams now."""
        self._older: list[tuple[str, transcript.Bundle]] = []
        self._output = Output()
        self._trouble = widgets.HTML()
        self._guarded = guarded = guard_callbacks(self._guard, self._trouble)
        self._view = BoardView(
            on_send=guarded(self.send),
            picked=lambda label: guarded(lambda: self.pin(None if label == self.winner else label))(),
            compared=guarded(self._toggled),
            prompt=prompt,
            labels=[variant.label for variant in self._variants],
            replaced=all(isinstance(variant.settings, Request) for variant in self._variants),
        )
        self._view.observe(lambda _: self._reloaded(), "reloaded")
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
            requests = {variant.label: variant.request(prompt, system=self._system) for variant in self._variants}
            self._keep()
            self._trouble.value = ""
            self._view.busy, self._view.ended, self._view.pinned = True, False, ""
            self._tag = tag = f"board-{secrets.token_hex(6)}"
            self._streams = {
                label: self._client.start(request, labels={"variant": label, "tag": tag})
                for label, request in requests.items()
            }
            streams, turn = dict(self._streams), len(self._older)
            panes = [
                MeteredPane(
                    stream, id=f"{turn}.{number}", label=label, priced=self._priced, contrasted=self._contrasted
                )
                for number, (label, stream) in enumerate(streams.items())
            ]
            self._asked = prompt
            self._place()
            self._view.follow(panes, on_end=self._guarded(lambda: self._ended(prompt, panes)))
        return streams

    def stop(self, pane: str | None = None) -> None:
        """Stop the pane of that label, or all of them; what has come is kept. KeyError for a label that is none."""
        self._known(pane)
        for label, stream in self._streams.items():
            if pane in (None, label):
                stream.stop()

    def pin(self, label: str | None) -> None:
        """Mark an answer as the winner of the round, in the saved table too; None takes the mark away.

        KeyError for a label that is none.
        """
        self._known(label)
        with self._guard:
            self._view.pinned = label or ""
            self._marked()

    def frame(self) -> pd.DataFrame:
        """The calls of the latest round as `famnb.calls` has them, a row a pane, and whether each is the `winner`.

        A replayed reply has no row, since no call was made for it.
        """
        holder: Any = self._client  # a client without a ledger is refused in words
        ledger = ledger_of(holder)
        found = calls(ledger, tag=self._tag) if self._tag else calls(ledger, limit=0)
        place = {label: number for number, label in enumerate(self._streams)}
        ordered = found.sort_values("variant", key=lambda labels: labels.astype(object).map(place), ignore_index=True)
        return ordered.assign(winner=(ordered["variant"].astype(object) == self.winner).astype("boolean"))

    def _ipython_display_(self) -> None:
        self._view.reloaded = False
        self._trouble.value = ""
        controls = Output()
        controls.show(self._box)
        self._output.captured = controls.captured
        if not controls.captured:
            self._output.show(self._bundle())

    def __repr__(self) -> str:
        return f"<Board {' | '.join(variant.label for variant in self._variants)}>"

    # A round

    def _ended(self, prompt: str, panes: Sequence[MeteredPane]) -> None:
        """All panes have ended: their table becomes ordinary output, and the live panes give way to it."""
        try:
            rows = tuple(
                table.Row(
                    label=pane.label,
                    reply=reply_so_far(pane.stream),
                    meters=pane.meters,
                    notes=pane.stream.exchange.request.losses,
                )
                for pane in panes
            )
            self._round, self._asked = table.Round(prompt=prompt, system=self._system, rows=rows), None
            self._output.replace(self._bundle())
            if self._view.reloaded or self._output.captured:
                self._view.redraw()
                self._reloaded()
            else:
                self._view.hide()
        finally:
            self._view.ended, self._view.busy = True, False

    def _keep(self) -> None:
        """Put the latest round to the older ones, since another follows."""
        made = self._latest()
        if made is not None:
            self._older.append((table.title(made), table.bundle(made)))
        self._round = None

    def _latest(self) -> table.Round | None:
        """The round that ended last, with the marks that it has now."""
        if self._round is None:
            return None
        return dataclasses.replace(self._round, winner=self.winner, reference=self._reference)

    def _bundle(self) -> transcript.Bundle:
        made = self._latest()
        rounds = [*self._older, *([(table.title(made), table.bundle(made))] if made else [])]
        if self._asked is not None:
            rounds.append(("", table.pending(self._asked, system=self._system)))
        if rounds:
            return transcript.stack_bundles(rounds)
        return table.awaited({variant.label: variant.losses for variant in self._variants})

    def _marked(self) -> None:
        """Show what was pinned or is to be compared, in the panes and in the table that is saved."""
        if self._streams:
            self._view.redraw()
        if self._round is not None:
            self._place()

    def _place(self) -> None:
        """Put what there is into the output below the panes, where that can be done."""
        if not self._output.captured:
            self._output.replace(self._bundle())

    def _toggled(self) -> None:
        self._view.differences = not self._view.differences
        self._marked()

    @property
    def _reference(self) -> str | None:
        """The label of the answer that others are compared with, while differences are wanted."""
        return (self.winner or self._variants[0].label) if self._view.differences else None

    def _contrasted(self, label: str) -> tuple[str, str] | None:
        found = table.compared(self._reference, label, self.replies)
        return None if found is None else (diff.html(found), diff.describe_differences(found))

    def _priced(self, exchange: Exchange, reply: Reply) -> Cost | None:
        ledger = getattr(self._client, "ledger", None)
        return ledger.cost(exchange, reply) if isinstance(ledger, Ledger) else None

    def _known(self, label: str | None) -> None:
        labels = [variant.label for variant in self._variants]
        if label is not None and label not in labels:
            raise KeyError(f"there is no pane {label!r}; there are {', '.join(map(repr, labels))}")

    def _reloaded(self) -> None:
        if self._round is not None and self._view.reloaded:
            self._trouble.value = notices.remark(_RELOADED)
