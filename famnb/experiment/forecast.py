"""Forecasts of an experiment's tokens, cost and duration, and how they are printed.

past calls ── drawn again, 1,000 times ── as many possible runs ── the middle 95 % of them
caps × prices ── the ceiling, whatever the answers are

for each of the runs
    past calls ── drawn with replacement ── as many again: what may be true of such calls
    each planned call ── one of those: its tokens, its time, hence its cost
    the calls in their order, so many at once ── how long all of it takes

A bootstrap rather than a formula, since token counts and times have long tails, and since calls that run side by side
take as long as they do only in their order.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from famnb.endpoints import ENDPOINTS
from famnb.experiment.metrics import read_bounds
from famnb.experiment.plan import Cell, model_of
from famnb.experiment.resume import ANSWERED
from famnb.experiment.services import address_of, call_address, is_simulated
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
from famnb.frame.calls import calls as read_calls
from famnb.frame.columns import BOUNDED_COUNTS
from famnb.profiles import find_endpoints
from famnb.record import Ledger, prices
from famnb.record.price import MILLION, Price
from famnb.record.price_book import Ceiling, ceiling
from famnb.record.serialize import input_chars
from famnb.record.token_estimates import USAGE_HINT
from famnb.stats import Interval

Floats = npt.NDArray[np.float64]
_TABLE_HEAD = ("variant", "from past calls of", "n", "calls", "input tokens", "output tokens", "cost", "at most")


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
        rows = []
        for line in self.lines:
            row: dict[str, object] = {"variant": line.variant, "calls": line.calls, "history": line.history}
            row["n"] = line.output_tokens.n
            for name in ("input_tokens", "output_tokens", "cost_usd"):
                stem, unit = (name[:4], "_usd") if name == "cost_usd" else (name, "")
                interval: Interval = getattr(line, name)
                row |= {name: interval.value, f"{stem}_low{unit}": interval.low, f"{stem}_high{unit}": interval.high}
            row["ceiling_usd"] = math.nan if line.ceiling_usd is None else float(line.ceiling_usd)
            rows.append(row)
        return pd.DataFrame(rows).set_index("variant")

    def __repr__(self) -> str:
        table = format_table(_TABLE_HEAD, self._table_rows(), left=2)
        return "\n".join([self._title(), table, self._duration(), *self.notes])

    def _repr_html_(self) -> str:
        table = html_table(_TABLE_HEAD, self._table_rows(), left=2)
        title = f"<p><b>{escape_html(self._title())}</b></p>"
        return f"<div>{title}{table}{html_paragraphs([self._duration(), *self.notes])}</div>"

    def _table_rows(self) -> list[list[str]]:
        return [
            [
                line.variant,
                line.history or "–",
                f"{line.output_tokens.n:,}",
                f"{line.calls:,}",
                format_interval(line.input_tokens, format_count),
                format_interval(line.output_tokens, format_count),
                format_interval(line.cost_usd, format_usd),
                "not known" if line.ceiling_usd is None else format_usd(line.ceiling_usd),
            ]
            for line in ([*self.lines, self.total] if len(self.lines) > 1 else self.lines)
        ]

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
    remaining = [cell for cell in cells if cell.key not in done_keys]
    similar: dict[tuple[str, str, str, str], SimilarCalls | None] = {}
    by_request: dict[int, PlannedCall] = {}
    # All repeats of a cell share one request object, so each request is looked up once.
    for cell in {id(cell.request): cell for cell in remaining}.values():
        request, most = cell.request, ceiling(cell.request, cell.profile)
        model, chars = model_of(request), input_chars(request)
        group = cell.service, model, request.endpoint, settings_digest(request.endpoint, request.body())
        if group not in similar:
            similar[group] = _find_similar_calls(history, group, token_cap=most.output_tokens)
        past = similar[group]
        # Some prices depend on the size of the input, of which only the length of the text is known.
        tokens = round(chars * float(past.samples[:, 1].mean())) if past and chars else 0
        price = prices.price(model, context=tokens, service=cell.profile)
        if price is not None and not ENDPOINTS[request.endpoint].traits.has_cache_writes:
            # Input is never written to a cache there, so that the rate of doing so puts no cost in doubt.
            price = dataclasses.replace(price, cache_write=None)
        by_request[id(request)] = PlannedCall(cell.variant.label, model, most, chars, past, price)
    calls = [by_request[id(cell.request)] for cell in remaining]
    sums, wall_s = _simulate_runs(calls, concurrency=concurrency, seed=seed)
    lines = []
    for label in dict.fromkeys([*variants, *(cell.variant.label for cell in cells)]):
        variant_calls = [call for call in calls if call.variant == label]
        lines.append(_forecast_line(label, variant_calls, sums.get(label), level))
    total = np.sum(list(sums.values()), axis=0) if sums else None
    return Forecast(
        planned=len(cells),
        lines=tuple(lines),
        total=_forecast_line("all", calls, total, level),
        wall_s=_interval(np.stack([wall_s] * 3), calls, level, most=math.nan),
        concurrency=concurrency,
        notes=tuple(_notes(calls)),
    )


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
    if models := _model_names(call for call in calls if call.similar is None):
        notes.append(
            f"The ledger has fewer than {MIN_CALLS} answered calls of this service to judge {', '.join(models)} by, "
            "or only such that a lower cap cut short: only the ceiling is known. Run a few calls first; the forecast "
            "then says more."
        )
    if models := _model_names(call for call in calls if call.chars is None):
        notes.append(f"What {', '.join(models)} will read is not known: images and earlier responses have no length.")
    if models := _model_names(call for call in calls if call.price is None):
        notes.append(
            f"No price is known for {', '.join(models)}, so neither is the cost: "
            f"famnb.prices.set({models[0]!r}, input=…, output=…) in USD per million tokens."
        )
    if models := _model_names(call for call in calls if call.ceiling.output_tokens is None):
        notes.append(f"Nothing limits the answers of {', '.join(models)}, so there is no ceiling: give max_tokens=.")
    histories = {call.similar for call in calls if call.similar}
    if any("simulated" in past.description for past in histories):
        notes.append("Simulated: the past calls were answered by a simulated engine, whose timings are made up.")
    if any(past.is_estimated for past in histories):
        notes.append(
            "Some past calls came without token counts. Theirs are estimated from the length of the text, and may be "
            f"as many as the cap allows; the intervals are as much wider. {USAGE_HINT}."
        )
    return notes


def _model_names(calls: Iterable[PlannedCall]) -> list[str]:
    return list(dict.fromkeys(call.model for call in calls))


RUNS = 1_000
"""Possible runs that are drawn."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class PlannedCall:
    """A call still to be made, with what is known of it before."""

    variant: str
    model: str
    ceiling: Ceiling
    chars: int | None
    """Characters sent; None where that says nothing of its tokens, such as with images."""
    similar: SimilarCalls | None
    price: Price | None
    """Today's, for a request of its likely length."""


def _simulate_runs(calls: Sequence[PlannedCall], *, concurrency: int, seed: int) -> tuple[dict[str, Floats], Floats]:
    """Draw possible runs: return the sums of each variant in each run, and each run's seconds.

    The sums are input tokens, output tokens and USD × lowest, best and highest × runs: the ends differ from the best
    where counts were estimated, and where input that is read from a cache has a price of its own.
    NaN where a call has no history.
    """
    rng, planned = np.random.default_rng(seed), max(len(calls), 1)
    every_run, free_at = np.arange(RUNS), np.zeros((RUNS, min(concurrency, planned)))
    sums = {call.variant: np.zeros((3, 3, RUNS)) for call in calls}
    resampled: dict[SimilarCalls, npt.NDArray[np.int64]] = {}
    for call in calls:
        if call.similar is None or call.chars is None:
            sums[call.variant] += math.nan
            free_at += math.nan
            continue
        n = call.similar.n
        if call.similar not in resampled:
            # Past calls are drawn anew for each run, so that what few calls cannot tell shows as uncertainty.
            resampled[call.similar] = rng.integers(n, size=(RUNS, n))
        drawn = call.similar.samples[resampled[call.similar][every_run, rng.integers(n, size=RUNS)]].T
        token_cap = math.inf if call.ceiling.output_tokens is None else call.ceiling.output_tokens
        input_tokens, output_tokens = drawn[:3] * call.chars, np.minimum(drawn[3:6], token_cap)
        costs = np.full_like(input_tokens, math.nan)
        if call.price is not None:
            rates = call.price.rates
            # Lowest and highest at the extreme prices of input.
            input_rates = np.array([float(rate) for rate in (min(rates.inputs), rates.input, max(rates.inputs))])
            costs = (input_tokens * input_rates[:, None] + output_tokens * float(rates.output)) / float(MILLION)
        sums[call.variant] += np.stack([input_tokens, output_tokens, costs])
        # As in a run: the next call takes the place that is free first.
        free_at[every_run, free_at.argmin(axis=1)] += drawn[6]
    return sums, free_at.max(axis=1)


MIN_CALLS = 5
"""Calls that a group must have; with fewer the next, less specific group is tried."""
MAX_TRUNCATED_SHARE = 0.05
"""Share of answers that a lower cap may have cut short in a group of other settings."""
MAX_CALLS = 500
"""Newest calls of a group that are used: more would narrow the intervals little, and old ones may be outdated."""
_MAX_HISTORY = 5_000
"""Newest calls that are read, which bounds the time of a forecast on a ledger of any size."""
_HISTORY_COLUMNS = (
    "call_id",
    "started_at",
    "endpoint",
    "model",
    "status",
    "simulated",
    "url",
    "profile",
    "e2e_s",
    "input_tokens",
    "output_tokens",
    *(f"{count}_{detail}" for count in BOUNDED_COUNTS for detail in ("low", "high", "source")),
)

_SYSTEM_ROLES = ("system", "developer")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SimilarCalls:
    """Past calls that stand for planned ones."""

    description: str
    """Which calls they are, in words."""
    samples: Floats
    """A row a call: input tokens a character and output tokens, the lowest, best and highest of each, and seconds."""
    is_estimated: bool
    """Whether the tokens of some were estimated from the length of the text."""

    @classmethod
    def of(cls, description: str, rows: pd.DataFrame) -> SimilarCalls:
        """Rows of `read_history`, further apart than they were.

        A bootstrap of few calls is too narrow, by the ratio of Student's t to the normal quantile, and of the spread
        with n - 1 to that with n.
        """
        n, counts = len(rows), [read_bounds(rows, name) for name in ("input_tokens", "output_tokens")]
        chars, seconds = (rows[name].to_numpy(dtype=float) for name in ("input_chars", "e2e_s"))
        samples = np.stack([counts[0].value / chars, counts[1].value, seconds])
        mean = samples.mean(axis=1, keepdims=True)
        stretch = float(stats.t.ppf(0.975, n - 1) / stats.norm.ppf(0.975)) * math.sqrt(n / (n - 1))
        # What is nothing may still be without an upper end.
        samples = np.maximum(mean + stretch * (samples - mean), np.finfo(float).tiny)
        columns = [
            best * np.where(count.value > 0, end / count.value, 1.0)
            for best, count in zip(samples, counts, strict=False)
            for end in (count.low, count.value, count.high)
        ]
        sources = rows[["input_tokens_source", "output_tokens_source"]]
        return cls(description, np.column_stack([*columns, samples[2]]), bool((sources == "estimated").any(axis=None)))

    @property
    def n(self) -> int:
        """Number of calls."""
        return len(self.samples)


def read_history(ledger: Ledger, models: Iterable[str]) -> pd.DataFrame:
    """Read the newest answered calls of these models; newest last.

    The columns: some of `famnb.calls`, then `input_chars` (characters sent, messages framed) and `settings` (see
    `settings_digest`).
    Raises LedgerError if the ledger cannot be read.
    """
    wanted = sorted(set(models))
    rows = read_calls(ledger, model=wanted, status=ANSWERED, limit=_MAX_HISTORY, columns=_HISTORY_COLUMNS)
    sql = """
        SELECT calls.id, calls.input_chars, calls.endpoint, requests.body
        FROM calls LEFT JOIN requests ON requests.key = calls.request_key
        WHERE calls.id IN (SELECT value FROM json_each(?))"""
    call_ids = msgspec.json.encode(list(rows["call_id"])).decode()
    with ledger.reading() as connection:
        records = connection.execute(sql, (call_ids,)).fetchall() if connection else []
    sent = [
        (call_id, chars, body and settings_digest(endpoint, msgspec.json.decode(body)))
        for call_id, chars, endpoint, body in records
    ]
    columns = {"call_id": rows["call_id"].dtype, "input_chars": "Int64", "settings": "string"}
    return rows.merge(pd.DataFrame(sent, columns=list(columns)).astype(columns), how="left", on="call_id")


def settings_digest(endpoint: str, body: Mapping[str, Any]) -> str:
    """A digest of a request's JSON body without what the user asks; equal for equal settings."""
    prompt_field = ENDPOINTS[endpoint].request.prompt_field
    prompt = body.get(prompt_field)
    messages = prompt if isinstance(prompt, list) else []
    # A system text is among the messages on some endpoints, and is a setting on all of them.
    system = [message for message in messages if isinstance(message, dict) and message.get("role") in _SYSTEM_ROLES]
    settings = {name: value for name, value in body.items() if name != prompt_field}
    return hashlib.blake2b(msgspec.json.encode([endpoint, settings, system], order="sorted"), digest_size=8).hexdigest()


def _find_similar_calls(
    history: pd.DataFrame, group: tuple[str, str, str, str], *, token_cap: int | None
) -> SimilarCalls | None:
    """The most specific group of at least MIN_CALLS past calls, of which no cap below `token_cap` cut many short."""
    # Another service may be faster, and another model's host.
    service, model, endpoint, settings = group
    usable = history.dropna(subset=["e2e_s", "input_tokens", "output_tokens", "input_chars"])
    usable = usable[usable["input_chars"] > 0]
    is_simulated_call = usable["simulated"].fillna(False).astype(bool)
    is_own, simulated = is_simulated_call, is_simulated(service)
    if not simulated:
        places = zip(usable["url"], usable["profile"], usable["endpoint"], strict=True)
        addresses = [call_address(url, find_endpoints(profile)[name]) for url, profile, name in places]
        is_own = pd.Series(addresses, index=usable.index, dtype=object) == address_of(service)
        # What answers at an address is a simulation only if all of its answers are simulated.
        simulated = bool(is_own.any()) and bool(is_simulated_call[is_own].all())
        is_own = is_own if simulated else is_own & ~is_simulated_call
    usable = usable[is_own]
    if usable.empty:
        return None
    same_model = usable["model"] == model
    same_endpoint = same_model & (usable["endpoint"] == endpoint)
    below_cap = usable["output_tokens"] < (math.inf if token_cap is None else token_cap)
    was_truncated = (usable["status"] != ANSWERED[0]) & below_cap
    groups = {
        "the same model, endpoint and settings": same_endpoint & (usable["settings"] == settings),
        "the same model and endpoint": same_endpoint,
        "the same model": same_model,
    }
    for level, (description, mask) in enumerate(groups.items()):
        is_large_enough = mask.sum() >= MIN_CALLS
        # An answer that a lower cap cut short says nothing about how long it would have become. Under the same settings
        # the planned calls are cut short alike.
        if is_large_enough and (level == 0 or was_truncated[mask].mean() <= MAX_TRUNCATED_SHARE):
            return SimilarCalls.of(f"{description}{', simulated' if simulated else ''}", usable[mask].tail(MAX_CALLS))
    return None
