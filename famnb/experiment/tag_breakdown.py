"""The primary metric by a tag of prompts: what the variants' differences are among the prompts of each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from famnb import stats
from famnb.experiment.comparison import compare_variants, pair_variants
from famnb.experiment.metrics import Failed, Measured, Metric, measure
from famnb.experiment.summary import drop_warmups, list_variants

MAX_VALUES = 12
"""A tag with more values groups nothing."""


def grouping_tags(rows: pd.DataFrame, tags: Sequence[str]) -> list[str]:
    """The tags that put prompts into groups: with two values or more, not too many, and prompts that share one."""
    prompts = rows.drop_duplicates("prompt_id")
    counts = {tag: prompts[tag].nunique() for tag in tags if tag in prompts}
    return [tag for tag, count in counts.items() if 2 <= count <= MAX_VALUES and count < prompts[tag].count()]


def break_down(
    frame: pd.DataFrame,
    tag: str,
    metric: Metric,
    *,
    baseline: str,
    failed: Failed = "zero",
    slo: Mapping[str, float] | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return the rows of `compare_variants` for the prompts of each value of the column `tag`, with a column `value`.

    Every variant is compared with the baseline. `p_adjusted` is Holm's for all rows, since each of them is a chance to
    be wrong, and `clear` follows it.
    """
    rows = drop_warmups(frame)
    rows = rows.assign(prompt_id=rows["prompt_id"].astype(str))
    # Of all rows: what a failed call scores is the lowest that came at all.
    measured = measure(rows, metric, failed=failed, slo=slo or {})
    pairs = pair_variants(list_variants(rows), baseline, "baseline")
    tables = []
    for value in sorted(rows[tag].dropna().unique(), key=lambda value: (isinstance(value, str), value)):
        mask = (rows[tag] == value).to_numpy(dtype=bool, na_value=False)
        own = Measured(measured.value[mask], measured.low[mask], measured.high[mask])
        table = compare_variants(rows[mask], {metric: own}, pairs, baseline=baseline, primary=metric.name, level=level)
        tables.append(table.assign(value=str(value)))
    found = pd.concat(tables, ignore_index=True)
    # A ratio that the sums contradict is not clear, whatever its p-value: that stays.
    may_be_clear = (found["p_adjusted"] >= 1 - level).fillna(True) | found["clear"]
    found["p_adjusted"] = pd.array(stats.holm(found["p_value"].astype(float)), dtype="Float64")
    found["comparisons"] = int((found["n"] > 0).sum())
    found["clear"] = ((found["p_adjusted"] < 1 - level) & may_be_clear).fillna(False).astype("boolean")
    return found
