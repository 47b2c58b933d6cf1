"""Limits and margins that an experiment has to keep, judged by intervals: pass, fail or unknown.

                 limit        of a figure; without an interval, or with calls still to be made, it is unknown
pass     ├──┤      │
unknown        ├───┼──┤
fail               │   ├──┤

                 0      margin        of how much worse a variant is than another, or than before
pass         ├───┼──┤     │
fail             │ ├──────┼──┤        clearly worse, and perhaps by more than the margin
unknown        ├─┼────────┼──┤
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, Literal, TypeAlias

import pandas as pd

from famnb import stats
from famnb.errors import InvalidRequest
from famnb.experiment.baseline import AFTER
from famnb.experiment.comparison import MAX_APART_S, estimate, to_records
from famnb.experiment.metrics import (
    Failed,
    Metric,
    check_metric,
    check_slo,
    find_metric,
    known_metrics,
    measure,
    percentile_metrics,
)
from famnb.experiment.resume import ANSWERED, failures
from famnb.experiment.score import Span
from famnb.experiment.summary import Summary, drop_warmups
from famnb.formatting import escape_html, format_about, format_interval, format_level, html_paragraphs
from famnb.frame.spend import is_unpriced
from famnb.record.token_estimates import USAGE_HINT
from famnb.stats.differences import is_clear
from famnb.validation import check_number

Outcome: TypeAlias = Literal["pass", "fail", "unknown"]
_COLUMNS = ("variant", "metric", "statistic", "value", "low", "high", "n", "bound", "limit", "outcome", "why")
_figures = attrgetter("value", "low", "high", "n")


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class CheckResult:
    """Whether figures keep their limits. True only for a pass, not for an unknown outcome."""

    outcome: Outcome
    """fail if any limit is broken for certain, else unknown if any may be, else pass."""
    table: pd.DataFrame
    """One row a variant and limit: variant, metric, statistic, value, low, high, n, bound (max or min), limit,
    outcome, why; with the bound `margin`, value, low and high are of the difference."""
    lines: tuple[str, ...]
    """Why, a sentence for each row; what did not pass comes first."""

    def __bool__(self) -> bool:
        return self.outcome == "pass"

    def __repr__(self) -> str:
        return "\n".join([self.outcome, *self.lines])

    def _repr_html_(self) -> str:
        return f"<div><strong>{escape_html(self.outcome)}</strong>{html_paragraphs(self.lines)}</div>"


def check_limits(
    frame: pd.DataFrame,
    *,
    max: Mapping[str, float] | None,
    min: Mapping[str, float] | None,
    slo: Mapping[str, float] | None,
    failed: Failed,
    level: float,
    spans: Mapping[str, Span] | None = None,
    compared: Summary | None = None,
    look: stats.Look | None = None,
) -> CheckResult:
    """Judge every variant of a frame of `Experiment.frame` by limits; see `Experiment.check` for the arguments.

    `compared` is a summary whose margins are to be kept. Raises InvalidRequest if a limit is not a number, or if the
    frame lacks its metric.
    """
    rows = drop_warmups(frame)
    objective = check_slo(slo, rows)
    names = [*known_metrics(rows, objective), *percentile_metrics(rows)]
    limits = []
    for bound, by_metric in (("max", {} if max is None else max), ("min", {} if min is None else min)):
        if not isinstance(by_metric, Mapping):
            raise InvalidRequest(f'{bound}: expected limits by metric, such as {{"e2e_s": 5}}, got {by_metric!r:.80}')
        for name, limit in by_metric.items():
            check_metric(bound, name, names)
            limits.append((bound, name, float(check_number(f"{bound}[{name!r}]", limit, expected="a number"))))
    if not limits and compared is None:
        raise InvalidRequest(
            'check: there is no limit; give some, such as max={"cost_usd": 0.01} or min={"score_exact": 0.9}'
        )
    nominal = look.nominal if look else level
    records = [] if compared is None else list(_judge_margins(compared, spans, nominal))
    for bound, name, limit in limits:
        metric = find_metric(name, spans)
        measured = measure(rows, metric, failed=failed, slo=objective)
        for variant, calls in rows.groupby("variant", observed=True):
            values = measured.to_frame(rows["variant"] == variant, rows["prompt_id"].astype(str))
            interval = dataclasses.replace(estimate(metric, values, level=nominal), level=level)
            untried = int((~(calls["status"].isin(ANSWERED) | failures(calls))).sum())
            unpriced = int(is_unpriced(calls).sum()) if metric.column == "cost_usd" else 0
            gaps = [f"{untried:,} of {len(calls):,} planned calls are not answered yet"] if untried else []
            gaps += [f"{unpriced:,} of {len(calls):,} calls have no known cost"] if unpriced else []
            outcome = _judge(interval, bound, limit, is_complete=not gaps)
            why = _explain(metric, interval, bound, limit, outcome, gaps)
            records.append((str(variant), name, metric.figure, *_figures(interval), bound, limit, outcome, why))
    table = pd.DataFrame(records, columns=_COLUMNS).convert_dtypes()
    if table.empty:
        return CheckResult("unknown", table, ("Nothing can be compared.",))
    rank: dict[Any, int] = {"fail": 0, "unknown": 1, "pass": 2}
    ordered = table.iloc[table["outcome"].map(rank).argsort(kind="stable")]
    lines = tuple(f"{row['variant']}: {row['why']}" for _, row in ordered.iterrows())
    return CheckResult(ordered["outcome"].iloc[0], table, lines)


def _judge_margins(summary: Summary, spans: Mapping[str, Span] | None, level: float) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each difference that has a margin."""
    rows = [row for row in to_records(summary.pairs) if row["standing"]]
    for row in rows:
        metric = find_metric(row["metric"], spans)
        is_worse = (row["difference"] > 0) == (metric.better == "less")
        # By itself, as every limit is, and as the prompts that it takes are counted: not among all other metrics.
        is_sure = is_clear(row["p_value"], row["n"], level) and not row["apart_s"] > MAX_APART_S
        outcome: Outcome = "unknown"
        if row["standing"] in ("equivalent", "not worse"):
            outcome = "pass"
        elif row["standing"] == "worse" or (is_sure and is_worse):
            outcome = "fail"
        interval = stats.Interval(row["difference"], row["low"], row["high"], int(row["n"]), summary.level)
        change = format_interval(interval, metric.format_difference)
        is_later = row["second_runs"] > 0
        changed = f"changed by {change}" if is_later else f"differs from {row['first']} by {change}"
        why = f"{metric.title} {changed}; it may get worse by {metric.format_difference(row['margin'])}"
        if outcome == "unknown" and metric.is_speed and row["first_runs"] == row["second_runs"] == 1:
            why += "; one run a side cannot tell how times differ by themselves"
        elif outcome == "unknown" and row["needed"] > row["n"]:
            why += f"; {format_about(row['needed'])} prompts would tell"
        variant = str(row["second"]).removesuffix(f", {AFTER}")
        # One variant alone is called by the time only.
        variant = "default" if variant == AFTER else variant
        yield variant, metric.name, row["statistic"], *_figures(interval), "margin", row["margin"], outcome, why


def iterate_rows(table: pd.DataFrame) -> Iterator[tuple[str, str, Outcome, str]]:
    """Yield variant, metric, outcome and why of each row of a check."""
    yield from table[["variant", "metric", "outcome", "why"]].itertuples(index=False, name=None)


def _judge(interval: stats.Interval, bound: str, limit: float, *, is_complete: bool) -> Outcome:
    # As of a maximum: a minimum is one with all signs turned.
    low, high = (interval.low, interval.high) if bound == "max" else (-interval.high, -interval.low)
    limit = limit if bound == "max" else -limit
    if math.isnan(low) or math.isnan(high):
        return "unknown"
    if low > limit:
        return "fail"
    return "pass" if high <= limit and is_complete else "unknown"


def _explain(
    metric: Metric, interval: stats.Interval, bound: str, limit: float, outcome: Outcome, gaps: list[str]
) -> str:
    title = f"{metric.figure} {metric.title}" if metric.figure in ("mean", "median") else metric.title
    limit_text = f"{'at most' if bound == 'max' else 'at least'} {metric.format_value(limit)} asked"
    if math.isnan(interval.value):
        return f"{title} not known (n = {interval.n:,}); {limit_text}: unknown"
    figure = format_interval(interval, metric.format_value)
    reasons = list(gaps) if outcome == "unknown" else []
    if math.isinf(interval.high):
        reasons.append(f"tokens that were not reported have no upper end; {USAGE_HINT}")
    elif not interval.known:
        reasons.append(f"n = {interval.n:,} is too few for a {format_level(interval.level)} interval")
    elif outcome == "unknown" and not gaps:
        reasons.append(f"the limit is within the {format_level(interval.level)} interval")
    because = f", since {' and '.join(reasons)}" if reasons else ""
    return f"{title} {figure}, {limit_text}: {outcome}{because}"
