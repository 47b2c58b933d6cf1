"""What a pane of a board measures while its reply streams and when it has ended, in words; drawing is left to others.

Figures that are not known are left out, figures that are estimated are marked.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from famnb.client.exchange import Exchange
from famnb.formatting import format_duration, format_usd
from famnb.record import prices
from famnb.record.price import Cost
from famnb.record.token_estimates import PRIOR
from famnb.reply import Reply
from famnb.widget.html import sanitize
from famnb.widget.live.pane import Change, Pane, Streaming, reply_so_far

PERIOD_S = 1.0
"""Between two readings of the meters: faster than that nobody reads them."""

Priced = Callable[[Exchange, Reply], Cost | None]
"""What a call with that reply costs so far."""


class Meters(NamedTuple):
    """The figures of one pane as one reads them; empty where not known."""

    first_token: str
    answer: str
    tokens: str
    speed: str
    in_all: str
    cost: str


NAMES = Meters("first token", "answer", "tokens", "tokens/s", "in all", "cost")


def read(reply: Reply, *, cost: Cost | None, elapsed_s: float) -> Meters:
    """The meters of a reply; while it runs its tokens are estimated from characters, and so are those never reported.

    `elapsed_s` counts while it runs.
    """
    running, timing = reply.status == "running", reply.timing
    reported = None if running else reply.usage.output_tokens
    mark = "" if reported is not None and reply.usage.source("output_tokens") != "estimated" else "≈ "
    chars = sum(len(block.text) for block in reply.blocks)
    tokens = round(chars * PRIOR.mid) if reported is None else reported
    seconds = elapsed_s if running else timing.e2e_s
    return Meters(
        "" if timing.ttft_s is None else format_duration(timing.ttft_s, brief=True),
        "" if timing.ttfa_s is None else format_duration(timing.ttfa_s, brief=True),
        f"{mark}{tokens:,}" if tokens else "",
        f"{mark}{tokens / seconds:.0f}" if tokens and seconds else "",
        "" if running or timing.e2e_s is None else format_duration(timing.e2e_s, brief=True),
        spent(reply, cost),
    )


def spent(reply: Reply, cost: Cost | None) -> str:
    """The cost in words, with its interval where it is estimated."""
    if cost is None:
        return "not known" if prices.price(getattr(reply.request, "model", "")) else "no price"
    if cost.exact:
        return format_usd(cost.usd)
    return f"≈ {format_usd(cost.usd)} ({format_usd(cost.low)} to {format_usd(cost.high)})"


class MeteredPane(Pane):
    """A pane of a board: a labelled stream with its meters, without the prompt that all panes share."""

    def __init__(
        self,
        stream: Streaming,
        *,
        id: str,
        label: str,
        priced: Priced,
        contrasted: Callable[[str], tuple[str, str] | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(stream, id=id, clock=clock)
        self.label = label
        self._priced = priced
        self._contrasted = contrasted
        """The answer of that label with its differences as HTML, and what they come to; None: show it as it is."""
        self._due = 0.0
        self._told: list[str] = []

    @property
    def meters(self) -> Meters:
        """The figures now."""
        reply = reply_so_far(self.stream)
        if reply.status != "running":
            return read(reply, cost=reply.cost, elapsed_s=0)
        # What a running stream says of its output is a beginning, not a count.
        usage = msgspec.structs.replace(reply.usage, output_tokens=None, total_tokens=None)
        cost = self._priced(self.stream.exchange, dataclasses.replace(reply, usage=usage))
        return read(reply, cost=cost, elapsed_s=self._clock() - self._began)

    def changes(self) -> list[Change]:
        """What came since the last look, the meters now and then."""
        made = super().changes()
        if not made or self._clock() < self._due:
            return made
        self._due = self._clock() + PERIOD_S
        figures = list(self.meters)
        if figures == self._told:
            return made
        self._told = figures
        return [*made, ["meters", 0, figures]]

    def snapshot(self) -> dict[str, Any]:
        """All there is to show: the answer with its differences where they are wanted and known."""
        shown = super().snapshot()
        contrast = None if shown["running"] else self._contrasted(self.label)
        if contrast is not None:
            html, said = contrast
            kept = [block for block in shown["blocks"] if block["kind"] == "thinking"]
            shown["blocks"] = [*kept, {"kind": "text", "label": said, "open": True, "html": html, "tail": ""}]
        losses = [sanitize.visible(loss) for loss in self.stream.exchange.request.losses]
        return {
            **shown,
            "asked": [],
            "figures": "",
            "notes": [*losses, *shown["notes"]],
            "label": self.label,
            "meters": [[name, figure] for name, figure in zip(NAMES, self.meters, strict=True)],
        }
