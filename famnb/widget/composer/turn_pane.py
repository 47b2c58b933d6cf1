"""One call of a conversation as the composer shows it: what was said, tool calls with their verdicts and results."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from famnb.client.ask import Result
from famnb.reply import Block, Reply
from famnb.widget.composer.approval import Verdicts
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.transcript import Section
from famnb.widget.live.pane import Pane, Streaming, final_block


class Place(NamedTuple):
    """Where a turn stands, for the buttons that are its own."""

    turn: int
    """Its index on the branch in view."""
    version: int
    """Its index among the turns that were asked in the same place."""
    versions: int
    said: str
    """Its text, to be edited."""


class TurnPane(Pane):
    """A pane of the composer; its first one has what was said, later ones of the same turn follow tool calls."""

    def __init__(
        self,
        stream: Streaming,
        *,
        id: str,
        asked: Sequence[Section],
        verdicts: Verdicts,
        results: Sequence[Result],
        stop: bool,
    ) -> None:
        """`verdicts` and `results` are those of its tool calls, and grow as these are decided and run."""
        super().__init__(stream, id=id, stop=stop)
        self.place: Place | None = None
        """Where its turn stands; None for all but the first call of a turn."""
        self.outcome: Reply | None = None
        """What came of the turn, told by its last call."""
        self._asked = asked
        self._verdicts = verdicts
        self._results = results
        self._rendered: list[dict[str, Any]] | None = None

    @property
    def reply(self) -> Reply:
        """The reply with what was made of it."""
        known, made = super().reply, self.outcome
        return known if made is None else dataclasses.replace(known, warnings=made.warnings, parsed=made.parsed)

    @property
    def waits(self) -> Block | None:
        """The call that waits for a verdict."""
        return next((each for each in self.reply.tool_calls if self._verdicts.get(each.at) == "asked"), None)

    def final_blocks(self, pieces: Sequence[Section]) -> list[dict[str, Any]]:
        """The blocks of its reply, each call followed by its verdict or its result; Markdown is rendered once."""
        if self._rendered is None:
            self._rendered = super().final_blocks(pieces)
        calls = self.stream.reply.tool_calls
        numbers = iter(range(len(calls)))
        made = []
        for block, rendered in zip(self.stream.reply.blocks, self._rendered, strict=True):
            made.append(rendered)
            for number in itertools.islice(numbers, block.kind == "tool_call"):
                made += self._after(block, number, last=number == len(calls) - 1)
        return made

    def _after(self, call: Block, number: int, *, last: bool) -> list[dict[str, Any]]:
        """What stands below a tool call."""
        if number < len(self._results):
            return [final_block(transcript.result_section(self._results[number]))]
        name = sanitize.visible(call.name)
        match self._verdicts.get(call.at):
            case "asked":
                shown = {"kind": "verdict", "label": f"Run {name}?", "open": True, "html": "", "tail": ""}
                return [{**shown, "call": number, "last": last}]
            case _:
                return []

    def snapshot(self) -> dict[str, Any]:
        """All there is to show, with the buttons that a turn has."""
        shown = super().snapshot()
        later = self.place is None
        losses = [sanitize.visible(loss) for loss in self.stream.exchange.request.losses]
        return {
            **shown,
            "head": "" if later else shown["head"],
            "badges": [badge for badge in shown["badges"] if badge[1] != "plain" or not later],
            "asked": [[part.label, sanitize.visible(part.text)] for part in self._asked],
            "notes": [*losses, *shown["notes"]],
            "doing": "" if shown["running"] else self._doing(),
            "turn": self.place and list(self.place),
        }

    def _doing(self) -> str:
        """What goes on between this call and the next one of the turn."""
        call = self.waits
        if call is not None:
            return f"{sanitize.visible(call.name)} waits for your approval"
        left = () if self.outcome else self.reply.tool_calls[len(self._results) :]
        running = [each.name for each in left if self._verdicts.get(each.at) == "approved"]
        return f"running {sanitize.visible(running[0])} …" if running else ""
