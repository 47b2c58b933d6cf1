"""Whether an experiment is no worse than its baseline, by a margin: pass, fail or unknown.

how much worse     0      margin
pass         ├─────┼──┤     │
fail               │ ├──────┼──┤      clearly worse, and perhaps by more than the margin
unknown        ├───┼────────┼──┤
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from famnb.errors import InvalidRequest
from famnb.experiment.baseline import AFTER
from famnb.experiment.check import Outcome
from famnb.experiment.metrics import find_metric
from famnb.formatting import format_interval
from famnb.stats import Interval

if TYPE_CHECKING:
    from famnb.experiment.experiment import BaseExperiment

# The same that a sample is planned for, see `comparison.NOTABLE`.
MARGIN = "10%"
"""How much worse than its baseline a metric may be unless told: as a share of what it was."""


def compare_with_baseline(
    experiment: BaseExperiment,
    baseline: str | os.PathLike[str],
    margin: Mapping[str, float | str] | None = None,
    *,
    slo: Mapping[str, float] | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return whether an experiment is no worse than its baseline: a row a metric and variant, with outcome and why.

    A metric passes if the whole interval of how much worse it is stays within its margin, fails if it is clearly worse
    and does not pass, else the outcome is unknown. Without a margin, scores, success, time to the end and cost may be
    10 % worse. Raises InvalidRequest for a metric that has no better direction, or that the experiments lack.
    """
    earlier = Path(baseline) if Path(baseline).is_file() else str(baseline)
    names = list(margin or ()) or None
    summary = experiment.against(earlier, metrics=names, slo=slo, level=level)
    spans, labels = experiment.score_spans(), [variant.label for variant in experiment.variants]
    records = []
    for _, row in summary.pairs.iterrows():
        metric = find_metric(str(row["metric"]), spans)
        if metric.better == "neither":
            if margin:
                raise InvalidRequest(f"margin: neither more nor less of {metric.name} is better; it cannot get worse")
            continue
        sign = 1 if metric.better == "less" else -1
        difference, low, high, before = (
            math.nan if pd.isna(row[name]) else float(row[name])
            for name in ("difference", "low", "high", "first_value")
        )
        worse = sorted([sign * low, sign * high])
        allowed = _parse_margin(metric.name, (margin or {}).get(metric.name, MARGIN), before)
        if worse[1] <= allowed:
            outcome: Outcome = "pass"
        elif bool(row["clear"]) and worse[0] > 0:
            outcome = "fail"
        else:
            outcome = "unknown"
        interval = Interval(difference, low, high, int(row["n"]), level)
        change = format_interval(interval, metric.format_difference)
        records.append(
            {
                # One variant alone is called by the time only.
                "variant": labels[0] if len(labels) == 1 else str(row["second"]).removesuffix(f", {AFTER}"),
                "metric": metric.name,
                "outcome": outcome,
                "why": f"{metric.title} changed by {change}; it may get worse by {metric.format_difference(allowed)}",
            }
        )
    return pd.DataFrame(records, columns=["variant", "metric", "outcome", "why"])


def _parse_margin(metric: str, margin: float | str, before: float) -> float:
    try:
        share = isinstance(margin, str) and margin.strip().endswith("%")
        number = float(str(margin).strip().removesuffix("%"))
    except ValueError:
        number = -1.0
    if number < 0:
        raise InvalidRequest(
            f"margin: {metric}: expected a number of at least 0, or a share such as '10%'; got {margin!r}"
        )
    return number / 100 * abs(before) if share else number


def iterate_rows(table: pd.DataFrame) -> Iterator[tuple[str, str, Outcome, str]]:
    """Yield variant, metric, outcome and why of each row of a check or a comparison."""
    for _, row in table.iterrows():
        yield str(row["variant"]), str(row["metric"]), row["outcome"], str(row["why"])
