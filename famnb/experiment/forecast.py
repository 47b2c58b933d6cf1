"""What a plan will take: calls, tokens, money and time as intervals, and the most that it can cost.

past calls ── drawn again, up to 1,000 times ── as many possible runs ── the middle 95 % of them
caps × prices ── the ceiling, whatever the answers are

How the runs are drawn is `possible`'s business; which past calls count is `past`'s.

MERGED: What is foreseen of a plan, as values, tables and words; how it is foreseen is left to `forecast`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal

import numpy as np
import pandas as pd

from famnb.experiment.budget import Ceiling, ceiling
from famnb.experiment.forecast_history import FEWEST, Floats, Pool, pool, settings_of
from famnb.experiment.forecast_simulation import Rates, Slot, draws
from famnb.experiment.plan import Cell, model_of
from famnb.formatting import (
    escape_html,
    format_count,
    format_duration,
    format_interval,
    format_table,
    format_usd,
    html_paragraphs,
    html_table,
)
from famnb.record import prices
from famnb.record.price import MILLION
from famnb.record.serialize import input_chars
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
        table = format_table(_HEAD, map(_cells, self._shown()), left=2)
        return "\n".join([self._title(), table, self._time(), *self.notes])

    def _repr_html_(self) -> str:
        table = html_table(_HEAD, map(_cells, self._shown()), left=2)
        title = f"<p><b>{escape_html(self._title())}</b></p>"
        return f"<div>{title}{table}{html_paragraphs([self._time(), *self.notes])}</div>"

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
        took = format_interval(self.wall_s, format_duration)
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
    ceiling_said = "not known" if line.ceiling_usd is None else format_usd(line.ceiling_usd)
    return [
        line.variant,
        line.history or "–",
        f"{line.output_tokens.n:,}",
        f"{line.calls:,}",
        format_interval(line.input_tokens, format_count),
        format_interval(line.output_tokens, format_count),
        format_interval(line.cost_usd, format_usd),
        ceiling_said,
    ]


def forecast(
    cells: Sequence[Cell],
    history: pd.DataFrame,
    *,
    done: Collection[str] = (),
    variants: Iterable[str] = (),
    concurrency: int,
    level: float = 0.95,
    seed: int = 0,
) -> Forecast:
    """What the cells whose keys are not in `done` will take, from past calls as `past.history` frames them.

    `variants` are labels in the order in which they are shown, else that of the cells.
    The intervals are bootstrap prediction intervals of sums: past calls are drawn again, which says how well they are
    known, then once for every planned call, all quantities of a call together. No more than the caps is foreseen.
    """
    behind = frozenset(done)
    todo = [cell for cell in cells if cell.key not in behind]
    known = _Known(history)
    made = [known.of(cell) for cell in todo]
    sums, wall_s = draws([each.slot for each in made], concurrency=concurrency, seed=seed)
    lines = []
    for label in dict.fromkeys([*variants, *(cell.variant.label for cell in cells)]):
        own = [each for each in made if each.slot.variant == label]
        lines.append(_line(label, own, sums.get(label), level))
    return Forecast(
        planned=len(cells),
        lines=tuple(lines),
        total=_line("all", made, np.sum(list(sums.values()), axis=0) if sums else None, level),
        wall_s=_interval(np.stack([wall_s] * 3), made, level, most=math.nan),
        concurrency=concurrency,
        notes=tuple(_notes(made)),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Call:
    """A call to be made, with what is known of it before."""

    model: str
    most: Ceiling
    slot: Slot


class _Known:
    """Looks up what is known of calls, once for each request."""

    def __init__(self, history: pd.DataFrame) -> None:
        self._history = history
        self._pools: dict[tuple[str, str, str], Pool | None] = {}
        self._calls: dict[int, _Call] = {}

    def of(self, cell: Cell) -> _Call:
        """What is known of a cell's call."""
        place = id(cell.request)
        if place not in self._calls:
            self._calls[place] = self._made(cell)
        return self._calls[place]

    def _made(self, cell: Cell) -> _Call:
        request = cell.request
        model, most, chars = model_of(request), ceiling(request), input_chars(request)
        kind = model, request.endpoint, settings_of(request.endpoint, request.body())
        if kind not in self._pools:
            self._pools[kind] = pool(
                self._history, model=kind[0], endpoint=kind[1], settings=kind[2], cap=most.output_tokens
            )
        like = self._pools[kind]
        tokens = round(chars * float(np.mean(like.ratio))) if like and chars else 0
        return _Call(model, most, Slot(cell.variant.label, chars, most.output_tokens, like, _rates(model, tokens)))


def _rates(model: str, context: int) -> Rates | None:
    """Today's prices of a model in USD per token, for requests of so many tokens."""
    price = prices.price(model, context=context)
    if price is None:
        return None
    inputs = [each for each in (price.input, price.cached, price.cache_write) if each is not None]
    lowest, given, highest = (float(each / MILLION) for each in (min(inputs), price.input, max(inputs)))
    return Rates(lowest, given, highest, float(price.output / MILLION))


def _line(label: str, made: Sequence[_Call], sums: Floats | None, level: float) -> Line:
    """What some of the calls take."""
    given, output, paid = np.zeros((3, 3, 1)) if sums is None else sums
    caps = [each.most.output_tokens for each in made]
    tops = [each.most.usd for each in made]
    top = None if None in tops else sum((each for each in tops if each is not None), Decimal())
    return Line(
        variant=label,
        calls=len(made),
        history=_told(made),
        input_tokens=_interval(given, made, level, most=sum(each.most.input_tokens for each in made)),
        output_tokens=_interval(output, made, level, most=math.nan if None in caps else sum(cap or 0 for cap in caps)),
        cost_usd=_interval(paid, made, level, most=math.nan if top is None else float(top)),
        ceiling_usd=top,
    )


def _interval(sums: Floats, made: Sequence[_Call], level: float, *, most: float) -> Interval:
    """The middle of the drawn sums, lowest, best and highest; without history it lies between 0 and the ceiling."""
    n = min((each.slot.pool.n if each.slot.pool else 0 for each in made), default=0)
    if np.isnan(sums).any():
        return Interval(math.nan, 0.0 if math.isfinite(most) else math.nan, most, n, level)
    low, high = np.quantile(sums[0], (1 - level) / 2), np.quantile(sums[2], (1 + level) / 2)
    high = high if math.isnan(most) else min(high, most)
    # The mean of what is rarely much more can lie beyond the middle.
    middle = float(np.mean(sums[1]))
    return Interval(middle, min(float(low), middle), max(float(high), middle), n, level)


def _told(made: Sequence[_Call]) -> str:
    """Which past calls stand for these."""
    told = [each.slot.pool.told if each.slot.pool else "none" for each in made]
    return "; ".join(dict.fromkeys(told))


def _notes(made: Sequence[_Call]) -> list[str]:
    """What is not known, and what to do about it."""
    notes = []
    unknown = list(dict.fromkeys(each.model for each in made if each.slot.pool is None))
    if unknown:
        notes.append(
            f"The ledger has fewer than {FEWEST} answered calls to judge {', '.join(unknown)} by, or only such that a "
            "lower cap cut short: only the ceiling is known. Run a few calls first; the forecast then says more."
        )
    unsized = list(dict.fromkeys(each.model for each in made if each.slot.chars is None))
    if unsized:
        notes.append(f"What {', '.join(unsized)} will read is not known: images and earlier responses have no length.")
    unpriced = list(dict.fromkeys(each.model for each in made if each.slot.rates is None))
    if unpriced:
        notes.append(
            f"No price is known for {', '.join(unpriced)}, so neither is the cost: "
            f"famnb.prices.set({unpriced[0]!r}, input=…, output=…) in USD per million tokens."
        )
    endless = list(dict.fromkeys(each.model for each in made if each.most.output_tokens is None))
    if endless:
        notes.append(f"Nothing limits the answers of {', '.join(endless)}, so there is no ceiling: give max_tokens=.")
    pools = {id(each.slot.pool): each.slot.pool for each in made if each.slot.pool}.values()
    if any("simulated" in pool.told for pool in pools):
        notes.append("Simulated: the past calls were answered by a simulated engine, whose timings are made up.")
    if any(pool.ratio_guessed.any() or pool.output_guessed.any() for pool in pools):
        notes.append(
            "Some past calls came without token counts. Theirs are estimated from the length of the text; "
            "the intervals are as much wider."
        )
    return notes
