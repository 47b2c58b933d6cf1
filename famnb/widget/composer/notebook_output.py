"""What a composer leaves in the notebook: its conversations as one ordinary output, which changes as they go on."""

from __future__ import annotations

from collections.abc import Sequence

from famnb.widget.composer.turn_tree import Branches, Node
from famnb.widget.html import transcript
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.live.output import Output

_EMPTY = "Replies appear here and are saved with the notebook."
_KEPT = "famnb-kept"
"""The class of what a conversation on show has in it already."""


class Saved:
    """The output; the latest conversation stands open in it, those before are folded below."""

    def __init__(self) -> None:
        self.output = Output()
        self._older: list[tuple[str, Bundle]] = []

    def put_by(self, tree: Branches) -> None:
        """This conversation is over: another one begins."""
        if any(node.written for node in tree.path):
            self._older.append(_conversation(tree))

    def show(self, tree: Branches) -> None:
        """Put the output under the cell that runs now."""
        self.output.show(self._bundle(tree))

    def renew(self, tree: Branches) -> None:
        """Say what there is to say now."""
        self.output.replace(self._bundle(tree))

    def _bundle(self, tree: Branches) -> Bundle:
        if not any(node.written for node in tree.path):
            return transcript.stack_bundles(self._older) if self._older else _empty()
        title, latest = _conversation(tree)
        html = f'<div class="{_KEPT}">{latest["text/html"]}</div>'
        return transcript.stack_bundles([*self._older, (title, {**latest, "text/html": html})])


def _conversation(tree: Branches) -> tuple[str, Bundle]:
    """The branch in view with its title, the others folded below it."""
    path = tree.path
    others = []
    for branch in tree.others:
        title = f"another version of turn {len(branch[0].path)}: {_title(branch)}"
        note = transcript.render([Section("note", title)])
        others.append((title, transcript.join_bundles([note, *_written(branch)])))
    return _title(path), transcript.stack_bundles([*others, ("", transcript.join_bundles(_written(path)))])


def _title(nodes: Sequence[Node]) -> str:
    """Where it was asked, how it began, and how long it is."""
    said = [transcript.title(node.panes[0].reply) for node in nodes if node.written]
    return said[0] + (f" · {len(said)} turns" if len(said) > 1 else "") if said else ""


def _written(nodes: Sequence[Node]) -> list[Bundle]:
    return [node.written for node in nodes if node.written]


def _empty() -> Bundle:
    return {
        "text/html": f'<p style="{transcript.MUTED}">{_EMPTY}</p>',
        "text/markdown": f"*{_EMPTY}*",
        "text/plain": _EMPTY,
    }
