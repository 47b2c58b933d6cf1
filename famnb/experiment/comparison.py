"""Paired comparisons of variants over the same prompts; `narrative.py` puts them in words.

repeats of a prompt ── averaged ── one value a prompt and variant ── second − first ── over prompts

The unit of sampling is the prompt: its repeats tell how one prompt varies, not how prompts do. The intervals are each
comparison's own. What is known only between bounds is compared at its least favourable ends. A difference of the
primary metric is clear if Holm's adjustment for the primary metric's comparisons leaves it so; one of any other metric
if that for all other comparisons does.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, assert_never

import numpy as np
import pandas as pd

from famnb import stats
from famnb.experiment.metrics import MEAN, P95, PERCENTILE, RATIO, SHARE, UNBOUNDED, Measured, Metric
from famnb.experiment.score import YES_NO
from famnb.stats.differences import average_repeats, is_clear

Pairs: TypeAlias = Literal["baseline", "all"]

NOTABLE = 0.1
"""The difference, as a share of the first variant's mean, that a sample should be able to show."""
MIN_PAIRS_FOR_SPREAD = 4
"""With fewer pairs their spread is not known well enough to say how many would suffice."""
COLUMNS = {
    "first": "string",
    "second": "string",
    "metric": "string",
    "n": "Int64",
    "difference": "Float64",
    "low": "Float64",
    "high": "Float64",
    "ratio": "Float64",
    "ratio_low": "Float64",
    "ratio_high": "Float64",
    "p_value": "Float64",
    "p_adjusted": "Float64",
    "clear": "boolean",
    "notable": "Float64",
    "needed": "Int64",
    "baseline": "boolean",
    "primary": "boolean",
    "statistic": "string",
    "first_value": "Float64",
    "second_value": "Float64",
    "estimated": "boolean",
    "comparisons": "Int64",
    "caution": "string",
}


def pair_variants(variants: Sequence[str], baseline: str, pairs: Pairs) -> list[tuple[str, str]]:
    """The pairs to compare: the baseline with every other variant, or every two, the baseline first."""
    ordered = [baseline, *(name for name in variants if name != baseline)]
    return [
        (first, second) for first, second in itertools.combinations(ordered, 2) if pairs == "all" or first == baseline
    ]


def compare_variants(
    rows: pd.DataFrame,
    measured: Mapping[Metric, Measured],
    pairs: Sequence[tuple[str, str]],
    *,
    baseline: str,
    primary: str,
    level: float,
) -> pd.DataFrame:
    """One row a metric and pair of variants; the columns are COLUMNS.

    `difference` is second − first in the metric's unit, over the prompts that both have, by what `statistic` says:
    the mean of the prompts' differences, the difference of shares of calls or that of 95th percentiles of calls;
    `low` and `high` are the ends of its interval, `first_value` and `second_value` what it is the difference of.
    `ratio` is the geometric mean over prompts of second / first; of costs it is the ratio of all that an answer costs,
    failed calls included, and it and not the difference is judged, as the `statistic` says. `estimated` says that
    inputs are known between bounds only: ends and p-value are then those of the least favourable bounds. `p_adjusted`
    is Holm's for the `comparisons` that are judged together: those of the `primary` metric, or all others. `notable`
    is a tenth of the first variant's mean, rounded; `needed`, where the difference is not clear, the pairs that would
    find so much (of a ratio, a tenth) by the same rule with a probability of 80 %. `caution` says why an interval may
    hold less often than it should. Missing where n carries none.
    """
    return judge(compare_pairs(rows, measured, pairs, baseline=baseline, primary=primary, level=level), level)


def compare_pairs(
    rows: pd.DataFrame,
    measured: Mapping[Metric, Measured],
    pairs: Sequence[tuple[str, str]],
    *,
    baseline: str,
    primary: str,
    level: float,
) -> list[dict[str, Any]]:
    """What each pair of variants shows of each metric, to be judged by `judge`; see `compare_variants`."""
    is_variant, prompts = {name: rows["variant"] == name for pair in pairs for name in pair}, number_prompts(rows)
    calls = {
        metric: {name: values.to_frame(mask, prompts) for name, mask in is_variant.items()}
        for metric, values in measured.items()
    }
    return [
        compare_two(metric, *(calls[metric][name] for name in (first, second)), level=level)
        | {
            "first": first,
            "second": second,
            "metric": metric.name,
            "baseline": first == baseline,
            "primary": metric.name == primary,
        }
        for first, second in pairs
        for metric in measured
    ]


def judge(records: Sequence[dict[str, Any]], level: float) -> pd.DataFrame:
    """The table of `compare_variants`: those of the primary metric are judged together, and so are all others."""
    for is_primary in (False, True):
        family = [record for record in records if record["primary"] == is_primary]
        adjusted = stats.holm([record["p_value"] for record in family])
        comparisons = sum(record["n"] > 0 for record in family)
        for record, p_value in zip(family, adjusted, strict=True):
            clear = bool(is_clear(p_value, record["n"], level))
            record |= {"p_adjusted": p_value, "comparisons": comparisons, "clear": clear}
            record["needed"] = None if clear else _pairs_needed(record, level)
    columns = {name: pd.Series([record[name] for record in records], dtype=dtype) for name, dtype in COLUMNS.items()}
    return pd.DataFrame(columns)


def number_prompts(rows: pd.DataFrame) -> pd.Series[Any]:
    """The prompt of each row as a number: prompts are looked up in every comparison, and names take longer."""
    # As texts: a frame that was read from a file may have numbers where another has their digits.
    codes, _ = pd.factorize(rows["prompt_id"].astype(str))
    return pd.Series(codes, index=rows.index, name="prompt_id")


def to_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table by the names of its columns, NaN where a figure is missing."""
    columns = (table[name].to_numpy(dtype=object, na_value=math.nan) for name in table)
    names = list(map(str, table))
    return [dict(zip(names, line, strict=True)) for line in zip(*columns, strict=True)]


def compare_two(metric: Metric, first: pd.DataFrame, second: pd.DataFrame, *, level: float) -> dict[str, Any]:
    """What two variants' values of a metric, as `Measured.to_frame` has them, show: COLUMNS of one comparison."""
    statistic, ratio = metric.statistic, None
    if statistic == PERCENTILE:
        difference = stats.paired_percentile(first["value"], second["value"], P95, level=level)
    elif is_yes_no(first, metric) and is_yes_no(second, metric):
        statistic, difference = SHARE, stats.paired_share(first["value"], second["value"], level=level)
    else:
        # Once, for all that follows: a million calls are of some thousand prompts.
        first, second = average_repeats(first), average_repeats(second)
        difference = _paired(first, second, level)
        if statistic == RATIO:
            ratio = stats.paired_ratio(first, second, level=level)
            # What costs nothing has no ratio.
            if ratio.n and math.isnan(ratio.value):
                statistic, ratio = MEAN, None
    judged = difference if ratio is None else ratio
    both = first.index.intersection(second.index)
    shared = [side["value"][side.index.isin(both)] for side in (first, second)]
    values = [
        stats.percentile(side, P95).value if statistic == PERCENTILE else mean_over_prompts(side) for side in shared
    ]
    # To one digit: a tenth of the mean is a rule of thumb.
    notable = float(f"{NOTABLE * abs(values[0]):.0e}") if len(both) else math.nan
    return {
        "n": difference.n,
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "ratio": judged.ratio.value,
        "ratio_low": judged.ratio.low,
        "ratio_high": judged.ratio.high,
        "p_value": judged.p_value,
        "notable": notable,
        "statistic": statistic,
        "first_value": values[0],
        "second_value": values[1],
        "estimated": not difference.exact,
        "caution": judged.caution,
        "sd": judged.sd,
        # What `sd` is to be compared with.
        "effect": notable if ratio is None else math.log1p(NOTABLE),
    }


def _paired(first: pd.DataFrame, second: pd.DataFrame, level: float) -> stats.Difference:
    if is_exact(first) and is_exact(second):
        return stats.paired(first["value"], second["value"], level=level)
    return stats.paired_bounds(first, second, level=level)


def is_yes_no(calls: pd.DataFrame, metric: Metric) -> bool:
    """Whether all values, as `Measured.to_frame` has them, are yes or no and known: their mean is a share of calls."""
    return bool(metric.span in (YES_NO, UNBOUNDED) and calls["value"].isin(YES_NO).all() and is_exact(calls))


def is_exact(calls: pd.DataFrame) -> bool:
    """Whether all values, as `Measured.to_frame` has them, are known."""
    return bool((calls["low"].to_numpy() == calls["high"].to_numpy()).all())


def estimate(metric: Metric, calls: pd.DataFrame, *, level: float) -> stats.Interval:
    """The figure of one variant, by the metric's `figure`, from its values as `Measured.to_frame` has them.

    It is for new prompts, wherever between their ends uncertain values lie.
    """
    match metric.figure:
        case "95th percentile":
            return stats.percentile(calls["value"], P95, clusters=calls.index, level=level)
        case "median":
            return stats.median(calls["value"], clusters=calls.index, level=level)
        case "share":
            ends = (stats.share(calls[end], clusters=calls.index, level=level) for end in ("value", "low", "high"))
            value, low, high = ends
            return dataclasses.replace(value, low=low.low, high=high.high)
        case "mean":
            return bounded_mean(calls, metric, level=level)
        case _:
            assert_never(metric.figure)


def bounded_mean(calls: pd.DataFrame, metric: Metric, *, level: float) -> stats.Interval:
    """The mean over prompts of values with ends, as `Measured.to_frame` has them; `n` is the number of prompts.

    The interval reaches from that of the low ends to that of the high ends, and no further than values can be.
    """
    if is_yes_no(calls, metric):
        mean = stats.share(calls["value"], clusters=calls.index, level=level)
        return dataclasses.replace(mean, n=mean.clusters)
    # A value without an upper end leaves the mean without one.
    is_open = bool(np.isinf(calls["high"]).any())
    ends = ("value",) * 3 if is_exact(calls) else ("value", "low", "value" if is_open else "high")
    means = {end: stats.mean(calls[end], clusters=calls.index, level=level) for end in dict.fromkeys(ends)}
    value, low, high = (means[end] for end in ends)
    # No count, amount or time is below 0, though the interval of a mean of few values may reach there.
    lowest, highest = np.clip([low.low, math.inf if is_open else high.high], *metric.span)
    return dataclasses.replace(value, low=float(lowest), high=float(highest), n=value.clusters)


def mean_over_prompts(values: pd.Series[float]) -> float:
    """The mean of values by prompt, repeats averaged first; NaN without any."""
    codes, prompts = pd.factorize(values.index)
    is_known = codes >= 0
    sums = np.bincount(codes[is_known], values.to_numpy()[is_known])
    return float((sums / np.bincount(codes[is_known])).mean()) if len(prompts) else math.nan


def _pairs_needed(row: Mapping[Any, Any], level: float) -> int | None:
    """The number of pairs that would show a notable difference; None without a spread to compute it from."""
    n, sd, effect = row["n"], row["sd"], row["effect"]
    # More pairs show nothing where it is the inputs that are not known.
    if row["estimated"] or n < MIN_PAIRS_FOR_SPREAD or not effect > 0 or not sd > 1e-9 * effect:
        return None
    try:
        return stats.sample_size(sd=sd, sd_n=n, difference=effect, level=level, comparisons=row["comparisons"])
    except ValueError:
        return None
