"""A conversation as a tree: which turns there are, which branch is in view, and which versions a turn has."""

from __future__ import annotations

import dataclasses
import secrets

from famnb.client.conversation import Turn
from famnb.widget.composer.turn_pane import TurnPane
from famnb.widget.html.transcript import Bundle


@dataclasses.dataclass(slots=True, eq=False)
class Node:
    """A turn from the moment it is asked."""

    id: str
    """Another one for each turn of each conversation."""
    before: Node | None
    panes: list[TurnPane] = dataclasses.field(default_factory=list)
    """Its calls: one, and another for each round of tools."""
    turn: Turn | None = None
    """What came of it; None while it is being answered."""
    written: Bundle = dataclasses.field(default_factory=dict)
    """What came of it as notebook output."""

    @property
    def path(self) -> tuple[Node, ...]:
        """The turns up to this one, the first one first."""
        nodes = [self]
        while nodes[-1].before is not None:
            nodes.append(nodes[-1].before)
        return tuple(reversed(nodes))

    @property
    def end(self) -> Node | None:
        """The latest turn up to this one that a conversation can go on from."""
        going = [node for node in self.path if node.turn is not None and node.turn.goes_on]
        return going[-1] if going else None


class Branches:
    """The tree; `head` is the last turn of the branch in view."""

    def __init__(self) -> None:
        self.id = secrets.token_hex(6)
        """What the calls of the conversation have in common, as a label in the ledger."""
        self._nodes: list[Node] = []
        self._grown = 0
        self.head: Node | None = None

    @property
    def path(self) -> tuple[Node, ...]:
        """The branch in view, its first turn first."""
        return self.head.path if self.head else ()

    @property
    def others(self) -> tuple[tuple[Node, ...], ...]:
        """What the other branches say from where they part: the turns of each that none before it has."""
        seen, made = set(self.path), []
        for node in self._nodes:
            if node in seen:
                continue
            branch = [each for each in self._last_of(node).path if each not in seen]
            seen |= set(branch)
            made.append(tuple(branch))
        return tuple(made)

    def grow(self, before: Node | None) -> Node:
        """A further turn after that one, in view from now on."""
        self._grown += 1
        self.head = Node(f"{self.id}.{self._grown}", before)
        self._nodes.append(self.head)
        return self.head

    def drop(self, node: Node, head: Node | None) -> None:
        """Forget the turn that was asked last, since nothing was sent, and look at another one again."""
        self._nodes.remove(node)
        self.head = head

    def versions(self, node: Node) -> tuple[Node, ...]:
        """The turns that were asked in the same place, this one among them."""
        return tuple(each for each in self._nodes if each.before is node.before)

    def choose(self, node: Node) -> None:
        """Look at the branch with a turn in it that was continued last."""
        self.head = self._last_of(node)

    def _last_of(self, node: Node) -> Node:
        return next(each for each in reversed(self._nodes) if node in each.path)
