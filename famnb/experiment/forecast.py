"""Forecasts of an experiment's tokens, cost and duration, and how they are printed.

past calls ── drawn again, up to 1,000 times ── as many possible runs ── the middle 95 % of them
caps × prices ── the ceiling, whatever the answers are

`forecast_history.py` chooses the past calls, `forecast_simulation.py` draws the runs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal

import numpy as np
import pandas as pd

from famnb.endpoints import ENDPOINTS
from famnb.experiment.forecast_history import MIN_CALLS, Floats, SimilarCalls, find_similar_calls, settings_digest
from famnb.experiment.forecast_simulation import PlannedCall, simulate_runs
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
from famnb.record.ceiling import ceiling
from famnb.record.serialize import input_chars
from famnb.stats import Interval

_HEAD = ("variant", "from past calls of", "n", "calls", "input tokens", "output tokens", "cost", "at most")


@dataclasses.dataclass(frozen=True, slots=True)
class ForecastLine:
    """The forecast of some of the planned calls; `n` of an interval is the number of past calls behind it."""

    variant: str
    calls: int
    """Calls still to be made."""
    history: str
    """Which past calls it is made of, in words; "none" if there are too few."""
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
    its history did; with fewer than 20 past calls and a long tail in 90. Failures and retries are not part of it.
    """

    planned: int
    """Calls of the plan."""
    lines: tuple[ForecastLine, ...]
    """One a variant."""
    total: ForecastLine
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
        return pd.DataFrame([_frame_row(line) for line in self.lines]).set_index("variant")

    def __repr__(self) -> str:
        table = format_table(_HEAD, self._table_rows(), left=2)
        return "\n".join([self._title(), table, self._duration(), *self.notes])

    def _repr_html_(self) -> str:
        table = html_table(_HEAD, self._table_rows(), left=2)
        title = f"<p><b>{escape_html(self._title())}</b></p>"
        return f"<div>{title}{table}{html_paragraphs([self._duration(), *self.notes])}</div>"

    def _table_rows(self) -> list[list[str]]:
        lines = [*self.lines, self.total] if len(self.lines) > 1 else self.lines
        return list(map(_table_row, lines))

    def _title(self) -> str:
        done = self.planned - self.remaining
        if not done:
            return f"Forecast: {self.planned:,} calls"
        made_before = f"{done:,} {'was' if done == 1 else 'were'} made before"
        return f"Forecast: {self.remaining:,} of {self.planned:,} calls remain, {made_before}"

    def _duration(self) -> str:
        if not self.remaining:
            return "There is nothing left to do."
        return f"Time with {self.concurrency} calls at once: {format_interval(self.wall_s, format_duration)}."


def _frame_row(line: ForecastLine) -> dict[str, object]:
    row: dict[str, object] = {"variant": line.variant, "calls": line.calls, "history": line.history}
    row["n"] = line.output_tokens.n
    for stem, unit, interval in (
        ("input_tokens", "", line.input_tokens),
        ("output_tokens", "", line.output_tokens),
        ("cost", "_usd", line.cost_usd),
    ):
        row |= {f"{stem}{unit}": interval.value, f"{stem}_low{unit}": interval.low, f"{stem}_high{unit}": interval.high}
    row["ceiling_usd"] = math.nan if line.ceiling_usd is None else float(line.ceiling_usd)
    return row


def _table_row(line: ForecastLine) -> list[str]:
    return [
        line.variant,
        line.history or "–",
        f"{line.output_tokens.n:,}",
        f"{line.calls:,}",
        format_interval(line.input_tokens, format_count),
        format_interval(line.output_tokens, format_count),
        format_interval(line.cost_usd, format_usd),
        "not known" if line.ceiling_usd is None else format_usd(line.ceiling_usd),
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
    """Forecast the cells whose keys are not in `done`, from past calls as `read_history` frames them.

    `variants` are labels in the order in which they are shown, else that of the cells.
    The intervals are bootstrap prediction intervals of sums: past calls are drawn again, which says how well they are
    known, then once for every planned call, all quantities of a call together. No more than the caps is forecast.
    """
    done_keys = frozenset(done)
    calls = _plan_calls([cell for cell in cells if cell.key not in done_keys], history)
    sums, wall_s = simulate_runs(calls, concurrency=concurrency, seed=seed)
    lines = []
    for label in dict.fromkeys([*variants, *(cell.variant.label for cell in cells)]):
        own = [call for call in calls if call.variant == label]
        lines.append(_forecast_line(label, own, sums.get(label), level))
    total = np.sum(list(sums.values()), axis=0) if sums else None
    return Forecast(
        planned=len(cells),
        lines=tuple(lines),
        total=_forecast_line("all", calls, total, level),
        wall_s=_interval(np.stack([wall_s] * 3), calls, level, most=math.nan),
        concurrency=concurrency,
        notes=tuple(_notes(calls)),
    )


def _plan_calls(cells: Sequence[Cell], history: pd.DataFrame) -> list[PlannedCall]:
    """What is known of each cell's call before it is made."""
    similar: dict[tuple[str, str, str, str], SimilarCalls | None] = {}
    calls: dict[int, PlannedCall] = {}
    for cell in cells:
        # All repeats of a cell share one request object, so each request is looked up once.
        if id(cell.request) in calls:
            continue
        request, most = cell.request, ceiling(cell.request, cell.service_names)
        model, chars = model_of(request), input_chars(request)
        group = cell.service, model, request.endpoint, settings_digest(request.endpoint, request.body())
        if group not in similar:
            similar[group] = find_similar_calls(
                history,
                service=group[0],
                model=group[1],
                endpoint=group[2],
                settings=group[3],
                token_cap=most.output_tokens,
            )
        past = similar[group]
        # Some prices depend on the size of the input, of which only the length of the text is known.
        tokens = round(chars * float(np.mean(past.tokens_per_char))) if past and chars else 0
        price = prices.price(model, context=tokens, service=cell.service_names)
        if price is not None and not ENDPOINTS[request.endpoint].traits.has_cache_writes:
            price = price.without_cache_writes
        calls[id(request)] = PlannedCall(cell.variant.label, model, most, chars, past, price)
    return [calls[id(cell.request)] for cell in cells]


def _forecast_line(label: str, calls: Sequence[PlannedCall], sums: Floats | None, level: float) -> ForecastLine:
    """The forecast of some of the calls."""
    input_tokens, output_tokens, cost = np.zeros((3, 3, 1)) if sums is None else sums
    caps = [call.ceiling.output_tokens for call in calls]
    token_cap = math.nan if None in caps else sum(cap or 0 for cap in caps)
    ceilings = [call.ceiling.usd for call in calls]
    ceiling_usd = None if None in ceilings else sum((usd for usd in ceilings if usd is not None), Decimal())
    histories = [call.similar.description if call.similar else "none" for call in calls]
    return ForecastLine(
        variant=label,
        calls=len(calls),
        history="; ".join(dict.fromkeys(histories)),
        input_tokens=_interval(input_tokens, calls, level, most=sum(call.ceiling.input_tokens for call in calls)),
        output_tokens=_interval(output_tokens, calls, level, most=token_cap),
        cost_usd=_interval(cost, calls, level, most=math.nan if ceiling_usd is None else float(ceiling_usd)),
        ceiling_usd=ceiling_usd,
    )


def _interval(sums: Floats, calls: Sequence[PlannedCall], level: float, *, most: float) -> Interval:
    """The middle of the drawn sums (lowest, best, highest); without history it lies between 0 and `most`."""
    n = min((call.similar.n if call.similar else 0 for call in calls), default=0)
    if np.isnan(sums).any():
        return Interval(math.nan, 0.0 if math.isfinite(most) else math.nan, most, n, level)
    low, high = np.quantile(sums[0], (1 - level) / 2), np.quantile(sums[2], (1 + level) / 2)
    high = high if math.isnan(most) else min(high, most)
    # The mean of a quantity that is seldom much larger can lie outside the middle of its distribution.
    mean = float(np.mean(sums[1]))
    return Interval(mean, min(float(low), mean), max(float(high), mean), n, level)


def _notes(calls: Sequence[PlannedCall]) -> list[str]:
    """What is not known, and what to do about it."""
    notes = []
    if models := _models(call for call in calls if call.similar is None):
        notes.append(
            f"The ledger has fewer than {MIN_CALLS} answered calls of this service to judge {', '.join(models)} by, or "
            "only such that a lower cap cut short: only the ceiling is known. Run a few calls first; the forecast then "
            "says more."
        )
    if models := _models(call for call in calls if call.chars is None):
        notes.append(f"What {', '.join(models)} will read is not known: images and earlier responses have no length.")
    if models := _models(call for call in calls if call.price is None):
        notes.append(
            f"No price is known for {', '.join(models)}, so neither is the cost: "
            f"famnb.prices.set({models[0]!r}, input=…, output=…) in USD per million tokens."
        )
    if models := _models(call for call in calls if call.ceiling.output_tokens is None):
        notes.append(f"Nothing limits the answers of {', '.join(models)}, so there is no ceiling: give max_tokens=.")
    histories = {call.similar for call in calls if call.similar}
    if any("simulated" in past.description for past in histories):
        notes.append("Simulated: the past calls were answered by a simulated engine, whose timings are made up.")
    if any(past.is_estimated(name).any() for past in histories for name in ("input_tokens", "output_tokens")):
        notes.append(
            "Some past calls came without token counts. Theirs are estimated from the length of the text; "
            "the intervals are as much wider."
        )
    return notes


def _models(calls: Iterable[PlannedCall]) -> list[str]:
    return list(dict.fromkeys(call.model for call in calls))
