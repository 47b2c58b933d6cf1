"""What is foreseen of a plan, as values, tables and words; how it is foreseen is left to `forecast`."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal

import pandas as pd

from famnb.experiment import tables
from famnb.record.price import dollars
from famnb.stats import Interval

_HEAD = ("variant", "from past calls of", "n", "calls", "input tokens", "output tokens", "cost", "at most")


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """What some of the planned calls will take; `n` of an interval is the number of past calls behind it."""

    variant: str
    calls: int
    """Calls still to be made."""
    history: str
    """Which past calls it is made of; why there is none otherwise."""
    input_tokens: Interval
    """Without history: not known, from 0 to one token a byte."""
    output_tokens: Interval
    """Without history: not known, from 0 to the caps; no upper end where nothing limits an answer."""
    cost_usd: Interval
    """In USD; all NaN where there is no price."""
    ceiling_usd: Decimal | None
    """The most that it can cost by today's prices; None where that is not known."""


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Forecast:
    """What the rest of an experiment will take, with 95 % prediction intervals.

    Each interval holds the sum over all calls still to be made in 95 of 100 runs, if calls go on as the past ones of
    its history did; with fewer than 20 past calls and a long tail in 90. Failures and retries are not foreseen.
    """

    planned: int
    """Calls of the plan."""
    lines: tuple[Line, ...]
    """One a variant."""
    total: Line
    """All of them."""
    wall_s: Interval
    """Seconds that the rest takes with `concurrency` calls at once, each as fast as past ones; NaN without history."""
    concurrency: int
    notes: tuple[str, ...]
    """What is not known, and what to do about it."""

    @property
    def remaining(self) -> int:
        """Calls still to be made."""
        return self.total.calls

    @property
    def frame(self) -> pd.DataFrame:
        """One row a variant: calls, history, n, then each quantity with its `_low` and `_high`, and `ceiling_usd`."""
        return pd.DataFrame([_row(line) for line in self.lines]).set_index("variant")

    def __repr__(self) -> str:
        table = tables.text(_HEAD, map(_cells, self._shown()), left=2)
        return "\n".join([self._title(), table, self._time(), *self.notes])

    def _repr_html_(self) -> str:
        table = tables.markup(_HEAD, map(_cells, self._shown()), left=2)
        title = f"<p><b>{tables.escape(self._title())}</b></p>"
        return f"<div>{title}{table}{tables.paragraphs([self._time(), *self.notes])}</div>"

    def _shown(self) -> list[Line]:
        return [*self.lines, self.total] if len(self.lines) > 1 else list(self.lines)

    def _title(self) -> str:
        done = self.planned - self.remaining
        said = f"{self.remaining:,} of {self.planned:,} calls remain"
        return (
            f"Forecast: {said}, {done:,} {'was' if done == 1 else 'were'} made before"
            if done
            else f"Forecast: {self.planned:,} calls"
        )

    def _time(self) -> str:
        if not self.remaining:
            return "There is nothing left to do."
        took = tables.around(self.wall_s, tables.seconds)
        return f"Time with {self.concurrency} calls at once: {took}."


def _row(line: Line) -> dict[str, object]:
    row: dict[str, object] = {"variant": line.variant, "calls": line.calls, "history": line.history}
    row["n"] = line.output_tokens.n
    for name in ("input_tokens", "output_tokens", "cost_usd"):
        found: Interval = getattr(line, name)
        stem, unit = (name.removesuffix("_usd"), "_usd") if name.endswith("_usd") else (name, "")
        row |= {name: found.value, f"{stem}_low{unit}": found.low, f"{stem}_high{unit}": found.high}
    row["ceiling_usd"] = math.nan if line.ceiling_usd is None else float(line.ceiling_usd)
    return row


def _cells(line: Line) -> list[str]:
    ceiling_said = "not known" if line.ceiling_usd is None else dollars(line.ceiling_usd)
    return [
        line.variant,
        line.history or "–",
        f"{line.output_tokens.n:,}",
        f"{line.calls:,}",
        tables.around(line.input_tokens, tables.whole),
        tables.around(line.output_tokens, tables.whole),
        tables.around(line.cost_usd, tables.usd),
        ceiling_said,
    ]
