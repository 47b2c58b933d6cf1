"""`famnb.bill`: what a month has cost, what its rest will cost, and what it would have cost otherwise.

calls of the month ── costs ── so far ─────────────────────┐
complete days before ── Student's prediction interval ── the rest ── the month
calls again ── another model, a cached prefix, batch, fewer repeats ── the month, what if
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from scipy import special

from famnb.errors import InvalidRequest
from famnb.events import Billing, Usage
from famnb.experiment.metrics import read_bounds
from famnb.experiment.summary import COST_COLUMNS, format_costs, sum_costs
from famnb.formatting import (
    escape_html,
    format_count,
    format_interval,
    format_level,
    format_percent,
    format_simulated,
    format_table,
    format_times,
    format_usd,
    html_paragraphs,
    html_table,
)
from famnb.frame.calls import calls
from famnb.frame.columns import BOUNDED_COUNTS
from famnb.frame.spend import PRICING_COLUMNS
from famnb.plot.canvas import set_date_ticks
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.layout import FigureSize, Width
from famnb.profiles import DEFAULT
from famnb.record import prices
from famnb.record.ledger import LedgerSource
from famnb.record.price import Cost
from famnb.stats import Interval
from famnb.validation import check_integer, check_number, check_zone

HISTORY_DAYS = 28
"""The newest complete days that a forecast rests on: four weeks, each day of the week equally often."""
MIN_DAYS = 3
"""With fewer complete days the rest of a month is not forecast."""
WEEKS_DAYS = 14
"""From this many days on, working days and weekends are forecast apart."""
LEVEL = 0.95
_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
_COLUMNS = (
    *("call_id", "started_at", "model", "reply_model", "endpoint", "profile", "simulated", "repeat"),
    *PRICING_COLUMNS,
    *COST_COLUMNS,
    *_COUNTS,
    *(f"{count}_{end}" for count in BOUNDED_COUNTS for end in ("low", "high")),
)
_EXPECTED_COLUMNS = ("expected_usd", "expected_low_usd", "expected_high_usd")
_INVOICE_NAMES = {
    "day": ("day", "date", "usage_date", "start_time", "started_at", "timestamp"),
    "model": ("model", "model_id", "line_item", "sku", "description", "service"),
    "invoiced_usd": ("invoiced_usd", "cost_usd", "cost", "amount", "amount_usd", "total", "usd", "amount_value"),
}
"""What vendors call the columns of an invoice."""


def bill(
    source: pd.DataFrame | LedgerSource = None,
    month: str | None = None,
    *,
    tz: str = "UTC",
    invoice: str | os.PathLike[str] | pd.DataFrame | None = None,
    now: datetime | None = None,
) -> Bill:
    """Return what a month has cost, what its rest will, and by which model and endpoint.

        bill = famnb.bill(month="2026-11")     # the present month unless another is named; a coming one is forecast
        bill.what_if(model="fam-mini")         # also {"fam-2-5-pro": "fam-mini"}, cached=0.8, batch=True, repeats=1
        bill.plot()
        bill.check("invoice.csv")              # the vendor's invoice beside it, by day and model

    `source` is a frame of `famnb.calls`, or what that reads: a ledger, its path, a client, None for the default one.
    Days are those of the time zone `tz`. The rest is forecast from up to 28 complete days before now, days without
    calls included: Student's prediction interval of a sum of days, working days and weekends apart if there are two
    weeks of them. With fewer than three days it is not forecast. Simulated calls are not billed: they count only if
    there are no others. `now` is the moment up to which the month is known. Raises InvalidRequest, LedgerError.
    """
    zone = check_zone("tz", tz)
    moment = (now or datetime.now(UTC)).astimezone(zone)
    try:
        start = datetime.strptime(month or f"{moment:%Y-%m}", "%Y-%m").replace(tzinfo=zone)
    except (TypeError, ValueError):
        raise InvalidRequest(f"month: expected a month such as '2026-11'; got {month!r}") from None
    end = (start + timedelta(days=32)).replace(day=1)
    since = min(start, moment - timedelta(days=HISTORY_DAYS + 1))
    if isinstance(source, pd.DataFrame):
        _require_columns("bill", source, {"started_at", "model", "endpoint", *COST_COLUMNS})
        rows = source[source["started_at"].notna()]
        rows = rows[(rows["started_at"] >= since) & (rows["started_at"] < end)]
    else:
        rows = calls(source, since=since, until=end, columns=_COLUMNS)
    simulated = rows["simulated"].fillna(False).astype(bool) if "simulated" in rows else pd.Series(False, rows.index)
    rows = rows[~simulated] if (~simulated).any() else rows
    days = rows["started_at"].dt.tz_convert(zone).dt.tz_localize(None).dt.normalize()
    found = Bill(rows.assign(day=days), start, end, moment, is_simulated=bool(len(rows) and simulated.all()))
    return found if invoice is None else dataclasses.replace(found, invoice=found.check(invoice))


@dataclasses.dataclass(frozen=True, slots=True, repr=False, eq=False)
class Bill:
    """A month's costs in USD: what it was, and what its rest will be."""

    rows: pd.DataFrame
    """The calls that are billed, those of the days before the month included, with their `day`."""
    start: datetime
    end: datetime
    now: datetime
    is_simulated: bool = False
    """Whether all calls are simulated, so that nothing is billed."""
    change: str = ""
    """What is different from what happened, in words; empty for the bill itself."""
    actual: Bill | None = None
    """The bill itself, of one that is different."""
    invoice: pd.DataFrame | None = None
    """What `check` has made of an invoice."""

    @property
    def calls(self) -> pd.DataFrame:
        """The calls of the month."""
        return self.rows[self.rows["day"] >= pd.Timestamp(self.start.replace(tzinfo=None))]

    @property
    def spent(self) -> Interval:
        """What the month has cost so far; its ends are those of estimates, and infinite where nothing limits them."""
        sums = sum_costs(self.calls)
        value, low, high = (0.0 if math.isnan(sums[name]) else sums[name] for name in COST_COLUMNS)
        is_open = sums["unpriced"] + sums["uncounted"] > 0
        return Interval(value, low, math.inf if is_open else high, len(self.calls), LEVEL)

    @property
    def rest(self) -> Interval:
        """What the rest of the month will cost; `n` is of the days that it is forecast from, NaN with too few."""
        return self._forecast(self.rows)

    @property
    def expected(self) -> Interval:
        """What the whole month will cost."""
        return _add(self.spent, self.rest)

    @property
    def table(self) -> pd.DataFrame:
        """One row a model and endpoint: calls, cost_usd and its ends so far, expected_usd and its ends, `unpriced`."""
        records = []
        keys = [self.rows[name].astype(object) for name in ("model", "endpoint")]
        for (model, endpoint), rows in self.rows.groupby(keys, dropna=False):
            part = dataclasses.replace(self, rows=rows)
            # Nothing is known of days before the first call of all, and of a model there were none until its first.
            expected, sums = _add(part.spent, self._forecast(rows)), sum_costs(part.calls)
            unpriced = sums["unpriced"] + sums["uncounted"]
            record = [model, endpoint, len(part.calls), *(sums[name] for name in COST_COLUMNS), unpriced]
            records.append([*record, expected.value, expected.low, expected.high])
        columns = ["model", "endpoint", "calls", *COST_COLUMNS, "unpriced", *_EXPECTED_COLUMNS]
        return pd.DataFrame(records, columns=columns).sort_values("expected_usd", ascending=False, ignore_index=True)

    def what_if(
        self,
        *,
        model: str | Mapping[str, str] | None = None,
        cached: float | None = None,
        batch: bool | float = False,
        repeats: int | None = None,
    ) -> Bill:
        """Return the month's bill if the same calls had been made otherwise; what is to come likewise.

        `model` answers in place of all others, or of those that a mapping names, with as many tokens. `cached` is the
        share of every input that is read from the cache, or, above 1, the tokens of a prefix that is. `batch` takes the
        price of the tier `batch`, or, as a number, such a share of the cost (0.5 is half). `repeats` is how many of an
        experiment's repeats are made. A call whose price is not known makes the bill open. Raises InvalidRequest.
        """
        rows, changes = self.rows, []
        if repeats is not None:
            check_integer("repeats", repeats, minimum=1)
            rows = rows[~(rows["repeat"] >= repeats).fillna(False)] if "repeat" in rows else rows
            changes.append(f"{format_count(repeats, 'repeat')} of each prompt")
        names = dict(model) if isinstance(model, Mapping) else {}
        if isinstance(model, str):
            names = dict.fromkeys(map(str, rows["model"].dropna().unique()), model)
        if cached is not None:
            check_number("cached", cached, minimum=0, expected="a share up to 1, or the tokens of a prefix")
            amount = format_percent(cached) if cached <= 1 else f"the first {cached:,.0f} tokens"
            changes.append(f"{amount} of the input from the cache")
        if model is not None:
            targets = [f"{new} for {old}" for old, new in names.items()] if isinstance(model, Mapping) else [str(model)]
            changes.append(f"answered by {', '.join(targets)}")
        if batch is True:
            changes.append("at the price of the batch tier")
        elif batch:
            check_number("batch", batch, above=0, expected="True, or a share of the cost such as 0.5")
            changes.append(f"in batches at {format_percent(batch)} of the cost")
        if not changes:
            raise InvalidRequest("what_if: expected model=, cached=, batch= or repeats=")
        if model is not None or cached is not None or batch is True:
            rows = _reprice(rows, names, cached=cached, tier="batch" if batch is True else None)
        if batch and batch is not True:
            rows = rows.assign(**{name: rows[name] * float(batch) for name in COST_COLUMNS})
        return dataclasses.replace(self, rows=rows, change=", ".join(changes), actual=self.actual or self, invoice=None)

    def check(self, invoice: str | os.PathLike[str] | pd.DataFrame) -> pd.DataFrame:
        """Return a vendor's invoice beside this bill: a row a day and model, as far as the invoice names them.

        `invoice` is a CSV file or a frame with a column of costs, such as `cost` or `amount` (USD), and, if it has
        them, of days and models. The columns: those, invoiced_usd, recorded_usd with its ends, difference_usd, and
        `agrees`: whether the invoice is between the ends, to the cent. Raises InvalidRequest if no column has costs.
        """
        table = invoice if isinstance(invoice, pd.DataFrame) else pd.read_csv(Path(invoice).expanduser())
        by_name = {str(name).strip().lower().replace(" ", "_"): name for name in table.columns}
        columns = {
            ours: next((by_name[name] for name in names if name in by_name), None)
            for ours, names in _INVOICE_NAMES.items()
        }
        if columns["invoiced_usd"] is None:
            expected = ", ".join(_INVOICE_NAMES["invoiced_usd"])
            raise InvalidRequest(f"invoice: expected a column of costs, one of {expected}; got {', '.join(by_name)}")
        amounts = pd.to_numeric(table[columns["invoiced_usd"]].astype(str).str.replace(r"[$,\s]", "", regex=True))
        month = f"{self.start:%Y-%m}"
        invoiced = pd.DataFrame({"invoiced_usd": amounts, "month": month})
        if columns["day"] is not None:
            days = pd.to_datetime(table[columns["day"]], utc=True, format="mixed").dt.tz_localize(None)
            invoiced["day"] = days.dt.normalize()
            invoiced = invoiced[days.dt.strftime("%Y-%m") == month]
        if columns["model"] is not None:
            invoiced["model"] = table[columns["model"]].astype(object)
        keys = [name for name in ("day", "model") if name in invoiced] or ["month"]
        costs = read_bounds(self.calls, "cost_usd")
        ends = {"recorded_usd": costs.value, "recorded_low_usd": costs.low, "recorded_high_usd": costs.high}
        recorded = self.calls.assign(month=month, model=self.calls["model"].astype(object), **ends)
        sums: list[Any] = [invoiced.groupby(keys)["invoiced_usd"].sum(), recorded.groupby(keys)[list(ends)].sum()]
        found: pd.DataFrame = pd.concat(sums, axis=1).fillna(0.0)
        amount, low, high = (found[name] for name in ("invoiced_usd", "recorded_low_usd", "recorded_high_usd"))
        agrees = amount.between(low - 0.005, high + 0.005)
        return found.assign(difference_usd=amount - found["recorded_usd"], agrees=agrees).reset_index()

    def plot(
        self,
        *,
        figsize: tuple[float, float] | None = None,
        width: Width | None = None,
        ax: Axes | None = None,
    ) -> matplotlib.figure.Figure:
        """Return a figure of the month: what it has cost from day to day, and up to where its rest may take it."""
        bills = {"as it was": self} if self.actual is None else {"as it was": self.actual, self.change: self}
        chart = Chart(
            title=f"Bill of {self.start:%B %Y}",
            x=f"day ({self.start.tzinfo})",
            y="USD so far",
            notes=[line for line in self.notes if not line.startswith("Method")],
            ax=ax,
            size=FigureSize.choose(figsize, width, ax),
            by="bill",
            groups=list(bills),
        )
        # By the clock of the zone, which matplotlib's dates do not have.
        start, now, end = (moment.replace(tzinfo=None) for moment in (self.start, self.now, self.end))
        canvas = chart.create_canvas()
        axes: Any = canvas.axes  # its stubs know no times
        entries = []
        for index, (name, part) in enumerate(bills.items()):
            style = canvas.palette.line_style(index)
            rows = part.calls.sort_values("started_at", kind="stable")
            sums = [0.0, *rows["cost_usd"].fillna(0).astype(float).cumsum()]
            times = [start, *rows["started_at"].dt.tz_convert(self.start.tzinfo).dt.tz_localize(None)]
            last = min(max(now, start), end)
            axes.step([*times, last], [*sums, sums[-1]], where="post", linewidth=1.8, **style)
            expected = part.expected
            if math.isfinite(expected.value) and last < end:
                dashed = {**style, "linestyle": (0, (2, 2))}
                axes.plot([last, end], [sums[-1], expected.value], linewidth=1.4, **dashed)
                top = expected.high if math.isfinite(expected.high) else expected.value
                ends = ([sums[-1], expected.low], [sums[-1], top])
                axes.fill_between([last, end], *ends, color=style["color"], alpha=0.15, linewidth=0)
            fact = f"{format_interval(expected, format_usd)} at the end of the month"
            entries.append(LegendEntry(Line2D([], [], linewidth=2, **style), name, [fact]))
        axes.set_xlim(start, end)
        axes.set_ylim(bottom=0)
        set_date_ticks(axes)
        chart.add_legend(entries)
        return chart.finish()

    @property
    def lines(self) -> tuple[str, ...]:
        """The bill in sentences: what it is, and what it rests on."""
        name = f"{self.start:%B %Y}"
        spent, rest = format_costs(sum_costs(self.calls)), self.rest
        if self.actual is not None:
            ours, theirs = self.expected, self.actual.expected
            ratio = format_times(ours.value / theirs.value) if theirs.value > 0 else "not known"
            typical = (self.calls["cost_usd"] / self.actual.calls["cost_usd"].reindex(self.calls.index)).median()
            # A month to come has no calls yet.
            beside = "" if pd.isna(typical) else f"; a typical call {format_times(typical)}"
            amounts = f"{format_interval(ours, format_usd)} instead of {format_interval(theirs, format_usd)}"
            return f"{name}, {self.change}: {amounts}, {ratio} the bill{beside}.", *self.notes
        if self.now >= self.end:
            head = f"{name}: {spent}."
        elif self.now < self.start:
            head = f"{name}: about {format_interval(rest, format_usd)}."
        elif math.isnan(rest.value):
            head = f"{name}: {spent} up to {self.now:%d %B}."
        else:
            total = format_interval(self.expected, format_usd)
            rest_text = format_interval(rest, format_usd)
            head = f"{name}: {spent} up to {self.now:%d %B}, and about {rest_text} to come: {total} in all."
        return head, *self.notes

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures rest on, and what they leave out."""
        notes, days = [], len(self._history(self.rows))
        if self.now < self.end:
            method = (
                f"Method: Student's {format_level(LEVEL)} prediction interval of a sum of days, from {days} complete "
                f"days{', working days and weekends apart' if days >= WEEKS_DAYS else ''}, if days go on like them."
            )
            known = f"{format_count(days, 'complete day')} with calls known, {MIN_DAYS} are the fewest"
            notes.append(method if days >= MIN_DAYS else f"The rest is not forecast: {known}.")
        if self.actual is not None:
            notes.append("The same calls, with as many tokens: another model may write more or less.")
        if self.is_simulated:
            notes.append(format_simulated(len(self.rows), len(self.rows)))
        if self.invoice is not None:
            differing = self.invoice[~self.invoice["agrees"]]
            total, ours = self.invoice["invoiced_usd"].sum(), format_costs(sum_costs(self.calls))
            where = f"{len(differing):,} of {format_count(len(self.invoice), 'line')} differ"
            notes.append(f"The invoice has {format_usd(total)}, the record {ours}: {where}.")
        return tuple(notes)

    def __repr__(self) -> str:
        return "\n".join([self.lines[0], format_table(*self._text_table(), left=2), *self.lines[1:]])

    def _repr_html_(self) -> str:
        head, *notes = self.lines
        table = html_table(*self._text_table(), left=2)
        return f"<div><p><b>{escape_html(head)}</b></p>{table}{html_paragraphs(notes)}</div>"

    def _text_table(self) -> tuple[list[str], list[list[str]]]:
        rows = []
        for row in self.table.to_dict("records"):
            unpriced, costs = int(row["unpriced"]), {name: row[name] for name in COST_COLUMNS}
            value, low, high = (float(row[name]) for name in _EXPECTED_COLUMNS)
            so_far = format_costs({**costs, "cost_n": row["calls"] - unpriced, "unpriced": unpriced, "uncounted": 0})
            whole_month = format_interval(Interval(value, low, high, 0, LEVEL), format_usd)
            rows.append([str(row["model"]), str(row["endpoint"]), f"{row['calls']:,}", so_far, whole_month])
        return ["model", "endpoint", "calls", "so far", "whole month"], rows

    def _history(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The costs of each complete day before now, with their ends; days without calls cost nothing."""
        today = pd.Timestamp(self.now.replace(tzinfo=None)).normalize()
        first = max(self.rows["day"].min(), today - pd.Timedelta(days=HISTORY_DAYS)) if len(self.rows) else today
        costs = read_bounds(rows, "cost_usd")
        ends = pd.DataFrame({"low": costs.low, "value": costs.value, "high": costs.high})
        days = pd.date_range(first, today - pd.Timedelta(days=1))
        return ends.groupby(rows["day"]).sum().reindex(days, fill_value=0.0)

    def _forecast(self, rows: pd.DataFrame) -> Interval:
        """What the rest of the month will cost of some calls."""
        history = self._history(rows)
        if self.now >= self.end:
            return Interval(0.0, 0.0, 0.0, len(history), LEVEL)
        now = pd.Timestamp(max(self.now, self.start).replace(tzinfo=None))
        days = pd.date_range(now.normalize(), self.end.replace(tzinfo=None), inclusive="left")
        left = pd.Series(1.0, index=days)
        left.iloc[0] = 1 - (now - now.normalize()) / pd.Timedelta(days=1)
        return predict_sum(history, left)


def predict_sum(history: pd.DataFrame, days: pd.Series[float]) -> Interval:
    """Return the sum that coming days will have, from the sums of past days: Student's prediction interval.

    `history` has the columns low, value and high, a row a day; `days` how much of each coming day counts, both with the
    days as their index. Working days and weekends are apart from two weeks on. NaN with fewer than three past days.
    """
    n, ends = len(history), {}
    if n < MIN_DAYS:
        return Interval(math.nan, math.nan, math.nan, n, LEVEL)
    past, coming = (index.day_of_week >= 5 for index in (pd.DatetimeIndex(history.index), pd.DatetimeIndex(days.index)))
    kinds: Sequence[Any] = [(past, coming), (~past, ~coming)] if n >= WEEKS_DAYS else [(past | True, coming | True)]
    bound = float(special.stdtrit(n - len(kinds), (1 + LEVEL) / 2))
    for end in ("low", "value", "high"):
        total = variance = 0.0
        for is_past, is_coming in kinds:
            sums, parts = history[end].to_numpy(float)[is_past], days.to_numpy(float)[is_coming]
            if len(parts) and np.isinf(sums).any():
                total = math.inf
                continue
            spread = float(np.var(sums, ddof=1))
            total += float(np.mean(sums)) * parts.sum()
            # Of the coming days themselves, and of how well the past ones tell their mean.
            variance += spread * (float((parts**2).sum()) + float(parts.sum()) ** 2 / len(sums))
        ends[end] = total, bound * math.sqrt(variance)
    low, high = ends["low"][0] - ends["low"][1], ends["high"][0] + ends["high"][1]
    # No day costs less than nothing.
    return Interval(ends["value"][0], max(low, 0.0), high, n, LEVEL)


def _require_columns(name: str, frame: pd.DataFrame, columns: set[str]) -> None:
    if missing := columns - set(frame.columns):
        raise InvalidRequest(f"{name}: expected a frame of famnb.calls; it has no column {', '.join(sorted(missing))}")


def _add(first: Interval, second: Interval) -> Interval:
    value, low, high = (getattr(first, end) + getattr(second, end) for end in ("value", "low", "high"))
    return Interval(value, low, high, second.n, second.level)


def _reprice(rows: pd.DataFrame, names: Mapping[str, str], *, cached: float | None, tier: str | None) -> pd.DataFrame:
    """The calls with what they would have cost; NaN without a price. What was not billed stays so."""
    _require_columns("what_if", rows, {*_COUNTS})
    costs: list[Cost | None] = []
    for row in rows[[name for name in _COLUMNS if name in rows]].to_dict("records"):
        counts: dict[str, Any] = {name: _count(row[name]) for name in _COUNTS}
        if counts["input_tokens"] is None or counts["output_tokens"] is None:
            costs.append(None)
            continue
        if cached is not None:
            share = cached * counts["input_tokens"] if cached <= 1 else min(cached, counts["input_tokens"])
            counts["cached_tokens"] = max(round(share), counts["cached_tokens"] or 0)
        model = names.get(str(row["model"]), str(row["model"]))
        bounds: list[dict[str, Any]] = [
            {name: _count(row.get(f"{name}_{end}", row[name])) for name in BOUNDED_COUNTS} for end in ("low", "high")
        ]
        low, high = (Usage(**bound) for bound in bounds)
        estimated = BOUNDED_COUNTS if low != high else ()
        usage = Usage(**counts, billing=Billing(tier=tier or ""), estimated=estimated)
        if tier and not any(price.model == model and price.tier == tier for price in prices):
            raise InvalidRequest(
                f"batch: no price of the tier 'batch' is known for {model!r}: famnb.prices.set({model!r}, "
                "tier='batch', input=…, output=…), or batch=0.5 for half of the cost"
            )
        at, profile = row["started_at"].to_pydatetime(), str(row.get("profile", DEFAULT))
        costs.append(prices.cost(model, usage, at, between=(low, high), service=profile))
    figures = [(math.nan,) * 3 if cost is None else (cost.usd, cost.low, cost.high) for cost in costs]
    return rows.assign(**pd.DataFrame(figures, rows.index, COST_COLUMNS).astype(float))


def _count(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)
