"""A prompt to all panes of a board and their answers, of which each pane shows one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from famnb.client.client import BlockingClient
from famnb.reply import Reply
from famnb.widget.board.meters import BoardPane
from famnb.widget.form.images import PromptImage
from famnb.widget.html import transcript


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
    clients: dict[str, BlockingClient] = dataclasses.field(default_factory=dict)
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
