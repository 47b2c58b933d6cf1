"""Limits that an experiment's figures have to keep, judged by their intervals: pass, fail or unknown.

                 limit
pass     ├──┤      │
unknown        ├───┼──┤       also without an interval, and where calls are not made yet or their figures not known
fail               │   ├──┤
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import pandas as pd

from famnb import stats
from famnb.errors import InvalidRequest
from famnb.experiment.comparison import estimate
from famnb.experiment.metrics import Failed, Metric, check_metric, check_slo, find_metric, known_metrics, measure
from famnb.experiment.resume import ANSWERED, failures
from famnb.experiment.score import Span
from famnb.experiment.summary import drop_warmups
from famnb.formatting import escape_html, format_interval, format_level, html_paragraphs
from famnb.frame.spend import is_unpriced
from famnb.record.token_estimates import USAGE_HINT
from famnb.validation import check_number

Outcome: TypeAlias = Literal["pass", "fail", "unknown"]


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class CheckResult:
    """Whether figures keep their limits. True only for a pass, not for an unknown outcome."""

    outcome: Outcome
    """fail if any limit is broken for certain, else unknown if any may be, else pass."""
    table: pd.DataFrame
    """One row a variant and limit: variant, metric, statistic, value, low, high, n, bound (max or min), limit,
    outcome, why."""
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
) -> CheckResult:
    """Judge every variant of a frame of `Experiment.frame` by limits; see `Experiment.check` for the arguments.

    Raises InvalidRequest if a limit is not a number, or if the frame lacks its metric.
    """
    rows = drop_warmups(frame)
    objective = check_slo(slo, rows)
    names = known_metrics(rows, objective)
    limits = [*_check_bound("max", max, names), *_check_bound("min", min, names)]
    if not limits:
        raise InvalidRequest(
            'check: there is no limit; give some, such as max={"cost_usd": 0.01} or min={"score_exact": 0.9}'
        )
    records = []
    for bound, name, limit in limits:
        metric = find_metric(name, spans)
        measured = measure(rows, metric, failed=failed, slo=objective)
        for variant, calls in rows.groupby("variant", observed=True):
            values = measured.to_frame(rows["variant"] == variant, rows["prompt_id"].astype(str))
            interval = estimate(metric, values, level=level)
            untried = int((~(calls["status"].isin(ANSWERED) | failures(calls))).sum())
            unpriced = int(is_unpriced(calls).sum()) if metric.column == "cost_usd" else 0
            gaps = [f"{untried:,} of {len(calls):,} planned calls are not answered yet"] if untried else []
            gaps += [f"{unpriced:,} of {len(calls):,} calls have no known cost"] if unpriced else []
            outcome = _judge(interval, bound, limit, is_complete=not gaps)
            records.append(
                {
                    "variant": str(variant),
                    "metric": name,
                    "statistic": metric.figure,
                    "value": interval.value,
                    "low": interval.low,
                    "high": interval.high,
                    "n": interval.n,
                    "bound": bound,
                    "limit": limit,
                    "outcome": outcome,
                    "why": _explain(metric, interval, bound, limit, outcome, gaps),
                }
            )
    table = pd.DataFrame(records).convert_dtypes()
    rank: dict[Any, int] = {"fail": 0, "unknown": 1, "pass": 2}
    ordered = table.iloc[table["outcome"].map(rank).argsort(kind="stable")]
    outcome = next(iter(ordered["outcome"]), "unknown")
    lines = tuple(f"{row['variant']}: {row['why']}" for _, row in ordered.iterrows())
    return CheckResult(outcome, table, lines)


def _check_bound(name: str, limits: Mapping[str, float] | None, names: list[str]) -> Iterator[tuple[str, str, float]]:
    """Yield each limit as its bound, its metric's name and its value."""
    if limits is None:
        return
    if not isinstance(limits, Mapping):
        raise InvalidRequest(f'{name}: expected limits by metric, such as {{"e2e_s": 5}}, got {limits!r:.80}')
    for metric, limit in limits.items():
        check_metric(name, metric, names)
        yield name, metric, float(check_number(f"{name}[{metric!r}]", limit, expected="a number"))


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
    asked = f"{'at most' if bound == 'max' else 'at least'} {metric.format_value(limit)} asked"
    if math.isnan(interval.value):
        return f"{title} not known (n = {interval.n:,}); {asked}: unknown"
    figure = format_interval(interval, metric.format_value)
    reasons = list(gaps) if outcome == "unknown" else []
    if math.isinf(interval.high):
        reasons.append(f"tokens that were not reported have no upper end; {USAGE_HINT}")
    elif not interval.known:
        reasons.append(f"n = {interval.n:,} is too few for a {format_level(interval.level)} interval")
    elif outcome == "unknown" and not gaps:
        reasons.append(f"the limit is within the {format_level(interval.level)} interval")
    because = f", since {' and '.join(reasons)}" if reasons else ""
    return f"{title} {figure}, {asked}: {outcome}{because}"
