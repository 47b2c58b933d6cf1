"""Rounds of a board: a prompt to all panes and their answers, of which each pane shows one, with its meters.

The meters are times, tokens, speed and cost as text, while a reply streams and when it has ended. Figures that are not
known are left out, figures that are estimated are marked.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from famnb.client.client import BaseClient
from famnb.client.conversation import Turn
from famnb.client.exchange import Exchange
from famnb.formatting import ESTIMATE_MARK, format_count, format_duration
from famnb.record import prices
from famnb.record.price import Cost
from famnb.record.token_estimates import PRIOR
from famnb.reply import Reply
from famnb.widget.form.images import PromptImage
from famnb.widget.html import sanitize, transcript
from famnb.widget.live.pane import Change, Pane
from famnb.widget.live.reply_pane import StreamLike, reply_so_far


@dataclasses.dataclass(slots=True, eq=False)
class LiveRound:
    """A prompt, and the answers to it."""

    number: int
    prompt: str
    """What all panes are asked; empty if each has a prompt of its own."""
    system: str
    tag: str
    """The label `tag` of its calls in the ledger, by which `frame` finds them."""
    panes: dict[str, BoardPane] = dataclasses.field(default_factory=dict)
    """The answers that are shown, by the id of the pane, in the order of the panes."""
    versions: dict[str, list[BoardPane]] = dataclasses.field(default_factory=dict)
    """All answers by the id of the pane: one more for each time that it was asked again."""
    clients: dict[str, BaseClient] = dataclasses.field(default_factory=dict)
    """The clients that asked for them, in the same way."""
    pictures: tuple[PromptImage, ...] = ()
    winner: str | None = None
    """The label of the answer that was pinned."""
    saved: transcript.Bundle = dataclasses.field(default_factory=dict)
    """The round as notebook output; empty until it has ended, and once it has changed."""

    @property
    def replies(self) -> dict[str, Reply]:
        """The replies that are shown, by label, as far as they have come."""
        return {pane.label: pane.stream.reply for pane in self.panes.values()}

    def add(self, column: str, pane: BoardPane) -> None:
        """Show one more answer of a pane."""
        self.versions.setdefault(column, []).append(pane)
        self.panes[column] = pane
        self.saved = {}

    def show_version(self, column: str, number: int) -> BoardPane:
        """Show another one of a pane's answers and return it; the mark of a winner stays with the pane."""
        before, pane = self.panes[column], self.versions[column][number]
        if self.winner == before.label:
            self.winner = pane.label
        self.panes[column] = pane
        self.saved = {}
        return pane

    def find_version(self, pane: BoardPane) -> tuple[int, int]:
        """Return which of its pane's answers one is, from 0, and how many there are."""
        versions = next(versions for versions in self.versions.values() if pane in versions)
        return versions.index(pane), len(versions)

    def label_for(self, column: str, label: str) -> str:
        """Return a label for the answers of a pane that no other one of this round has."""
        is_taken = any(pane.label == label for id, pane in self.panes.items() if id != column)
        return f"{label} ({column})" if is_taken else label

    def rename(self, column: str, label: str) -> None:
        """Have the answers of a pane bear another label."""
        label = self.label_for(column, label)
        if column in self.panes and self.winner == self.panes[column].label:
            self.winner = label
        for pane in self.versions.get(column, ()):
            pane.label = label
        self.saved = {}

    def sort(self, columns: Sequence[str]) -> None:
        """Bring the answers into the order of the panes; those of panes that are gone stand last."""
        positions = {column: index for index, column in enumerate(columns)}
        self.panes = dict(sorted(self.panes.items(), key=lambda item: positions.get(item[0], len(positions))))
        self.saved = {}


CostOf: TypeAlias = Callable[[Exchange, Reply], Cost | None]
"""What a call with that reply costs so far; None if no price is known."""


class BoardPane(Pane):
    """An answer on a board: a labelled stream with its meters, without a prompt that all panes share."""

    def __init__(
        self,
        stream: StreamLike,
        *,
        id: str,
        label: str,
        cost_of: CostOf,
        differences: Callable[[BoardPane], tuple[str, str] | None],
        is_winner: Callable[[BoardPane], bool] = lambda _: False,
        version: Callable[[BoardPane], tuple[int, int]] = lambda _: (0, 1),
        own_prompt: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`own_prompt` is what this pane alone is asked; `version` is which answer it is, and of how many.

        `differences` returns the answer of a pane with its differences marked, as HTML, and how many there are, or None
        if the answer is to be shown as it is.
        """
        super().__init__(stream, id=id, clock=clock)
        self.label = label
        self._cost_of = cost_of
        self._differences = differences
        self._is_winner = is_winner
        self._version = version
        self.turn: Turn | None = None
        """The turn that it is in its pane's talk."""
        self.own_prompt = own_prompt
        self._next_reading_s = 0.0
        self._sent_figures: list[str] = []

    @property
    def meters(self) -> Meters:
        """The meters now."""
        reply = reply_so_far(self.stream)
        if reply.status != "running":
            return read_meters(reply, cost=reply.cost, elapsed_s=0)
        # While a stream runs, the output tokens that it has reported are those of its beginning: their cost would be
        # too low, so they are estimated from the text instead.
        usage = msgspec.structs.replace(reply.usage, output_tokens=None, total_tokens=None)
        cost = self._cost_of(self.stream.exchange, dataclasses.replace(reply, usage=usage))
        return read_meters(reply, cost=cost, elapsed_s=self._clock() - self._start)

    def changes(self) -> list[Change]:
        """What came since the last call, with the meters if they have changed and METERS_PERIOD_S has passed."""
        changes = super().changes()
        if not changes or self._clock() < self._next_reading_s:
            return changes
        self._next_reading_s = self._clock() + METERS_PERIOD_S
        figures = list(self.meters)
        if figures == self._sent_figures:
            return changes
        self._sent_figures = figures
        return [*changes, ["meters", 0, figures]]

    def snapshot(self) -> dict[str, Any]:
        """All there is to draw; the answer has its differences marked if that is wanted and both have ended."""
        snapshot = super().snapshot()
        differences = None if snapshot["running"] else self._differences(self)
        if differences is not None:
            html, summary = differences
            thinking = [block for block in snapshot["blocks"] if block["kind"] == "thinking"]
            snapshot["blocks"] = [*thinking, {"kind": "text", "label": summary, "open": True, "html": html, "tail": ""}]
        losses = [sanitize.visible(loss) for loss in self.stream.exchange.request.losses]
        return {
            **snapshot,
            "asked": [["user", sanitize.visible(self.own_prompt)]] if self.own_prompt else [],
            "figures": "",
            "notes": [*losses, *snapshot["notes"]],
            "label": self.label,
            "pinned": self._is_winner(self),
            "version": list(self._version(self)),
            "meters": [[name, figure] for name, figure in zip(METER_NAMES, self.meters, strict=True)],
        }


# Nobody can read figures that change faster.
METERS_PERIOD_S = 1.0
"""Between two readings of the meters."""


class Meters(NamedTuple):
    """The figures of one pane as text; empty where not known."""

    first_token: str
    answer: str
    tokens: str
    speed: str
    in_all: str
    cost: str


METER_NAMES = Meters("first token", "answer", "tokens", "tokens/s", "in all", "cost")


def read_meters(reply: Reply, *, cost: Cost | None, elapsed_s: float) -> Meters:
    """The meters of a reply; its tokens are estimated from characters while it runs, and if they were never reported.

    `elapsed_s` is the time since the call began; it counts while the reply runs.
    """
    is_running, timing = reply.status == "running", reply.timing
    reported = None if is_running else reply.usage.output_tokens
    is_exact = reported is not None and reply.usage.source("output_tokens") != "estimated"
    mark = "" if is_exact else ESTIMATE_MARK
    characters = reply.output_chars
    tokens = round(characters * PRIOR.mid) if reported is None else reported
    seconds = elapsed_s if is_running else timing.e2e_s
    return Meters(
        _format_time(timing.ttft_s),
        _format_time(timing.ttfa_s),
        f"{mark}{format_count(tokens)}" if tokens else "",
        f"{mark}{tokens / seconds:.0f}" if tokens and seconds else "",
        "" if is_running else _format_time(timing.e2e_s),
        format_cost(reply, cost),
    )


def format_cost(reply: Reply, cost: Cost | None) -> str:
    """A cost in USD, with its interval if it is estimated, or why there is none."""
    if cost is None:
        return "not known" if prices.price(getattr(reply.request, "model", ""), service=reply.profile) else "no price"
    return str(cost)


def _format_time(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(seconds, brief=True)
