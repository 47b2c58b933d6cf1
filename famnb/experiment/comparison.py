"""Paired comparisons of variants over the same prompts; `narrative.py` puts them in words.

repeats of a prompt ── averaged ── one value a prompt and variant ── second − first ── over prompts

The unit of sampling is the prompt: its repeats tell how one prompt varies, not how prompts do. The intervals are each
comparison's own. What is known only between bounds is compared at its least favourable ends. A difference of the
primary metric is clear if Holm's adjustment for the primary metric's comparisons leaves it so; one of any other metric
if that for all other comparisons does. A few values, and a long tail, say nothing of a mean: of times and counts the
median is then compared. Variants that were not asked at one time are compared, and nothing is claimed.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, assert_never

import numpy as np
import pandas as pd

from famnb import stats
from famnb.experiment.metrics import (
    MEAN,
    MEDIAN,
    NOT_NEGATIVE,
    P95,
    RATIO,
    SHARE,
    UNBOUNDED,
    Measured,
    Metric,
    margin_amount,
)
from famnb.experiment.resume import ANSWERED
from famnb.experiment.score import YES_NO
from famnb.stats.differences import average_repeats, is_clear

NOTABLE = 0.1
"""The difference, as a share of the first variant's mean, that a sample should be able to show."""
MIN_PAIRS_FOR_SPREAD = 4
"""With fewer pairs their spread is not known well enough to say how many would suffice."""
MAX_APART_S = 600.0
"""Variants whose calls for a prompt are further apart, at the median, are not of one time."""
# Of one service and the same calls an hour or a day later.
RUN_NOISE = 0.1
"""By how much times of two runs are taken to differ by themselves, as a share, where there is one run a side."""
Standing: TypeAlias = Literal["equivalent", "not worse", "worse", "unclear"]
"""Where a difference lies by its margin: within it either way, within it at worst, beyond it, or not known."""
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
    "first_least": "Float64",
    "first_most": "Float64",
    "second_least": "Float64",
    "second_most": "Float64",
    "estimated": "boolean",
    "comparisons": "Int64",
    "caution": "string",
    "share": "Float64",
    "share_more": "Float64",
    "margin": "Float64",
    "standing": "string",
    "apart_s": "Float64",
    "first_runs": "Int64",
    "second_runs": "Int64",
}


def compare_variants(
    rows: pd.DataFrame,
    measured: Mapping[Metric, Measured],
    pairs: Sequence[tuple[str, str]],
    *,
    baseline: str,
    primary: str,
    level: float,
    margins: Mapping[str, float | str] | None = None,
) -> list[dict[str, Any]]:
    """What each pair of variants shows of each metric, pair by pair; `judge` makes the table of it."""
    is_variant, prompts = {name: rows["variant"] == name for pair in pairs for name in pair}, number_prompts(rows)
    starts, runs = {}, {}
    for name, mask in is_variant.items():
        if "run" in rows:
            runs[name] = [mask & (rows["run"] == run) for run in rows["run"][mask].unique()]
        elif "started_at" in rows:
            calls = rows[mask & rows["status"].isin(ANSWERED) & rows["started_at"].notna()]
            starts[name] = calls.groupby([prompts[calls.index], "repeat"])["started_at"].min()
    apart = {
        (first, second): (starts[second] - starts[first]).dt.total_seconds().abs().median() if starts else math.nan
        for first, second in pairs
    }
    records = []
    for metric, values in measured.items():
        calls_of = {name: values.to_frame(mask, prompts) for name, mask in is_variant.items()}
        runs_of = {name: [values.to_frame(mask, prompts)["value"] for mask in masks] for name, masks in runs.items()}
        for index, (first, second) in enumerate(pairs):
            sides = (runs_of[first], runs_of[second]) if runs else None
            record = compare_two(metric, calls_of[first], calls_of[second], level=level, runs=sides)
            margin = (margins or {}).get(metric.name)
            allowed = math.nan if margin is None else margin_amount(metric.name, margin, of=record["first_value"])
            record |= {
                "first": first,
                "second": second,
                "metric": metric.name,
                "baseline": first == baseline,
                "primary": metric.name == primary,
                "apart_s": apart[first, second],
                "margin": allowed,
                "standing": "" if margin is None else _stand(metric, record, allowed, apart[first, second]),
            }
            records.append((index, record))
    # Pair by pair, as they are read.
    return [record for _, record in sorted(records, key=lambda item: item[0])]


def _stand(metric: Metric, record: Mapping[str, Any], margin: float, apart_s: float) -> Standing:
    """Where a difference lies by its margin."""
    ends = record["low"], record["high"]
    least, most = ends if metric.better == "less" else (-ends[1], -ends[0])
    if not (math.isfinite(least) and math.isfinite(most)) or apart_s > MAX_APART_S:
        return "unclear"
    if most <= margin:
        return "equivalent" if least >= -margin else "not worse"
    return "worse" if least > margin else "unclear"


def judge(records: Sequence[dict[str, Any]], level: float, *, exploratory: bool = False) -> pd.DataFrame:
    """The table of what `compare_variants` found: one row a metric and pair of variants; the columns are COLUMNS.

    `difference` is second − first in the metric's unit, over the prompts that both have, by what `statistic` says: the
    mean of the prompts' differences, of times and counts their median where a mean is not known (`caution` says why;
    `share` and `share_more` are the shares of prompts in which the second has less and more) or the difference of
    shares of calls; `low` and `high` are the ends of its interval, `first_value` and `second_value` what it is the
    difference of, `_least` and `_most` the same with estimates at their ends. `ratio` is the geometric mean over
    prompts of second / first; of costs it is the ratio of all that an answer costs, failed calls included, and it and
    not the difference is judged, as the `statistic` says. `estimated` says that inputs are known between bounds only:
    ends and p-value are then those of the least favourable bounds. `p_adjusted` is Holm's for the `comparisons` that
    are judged together: those of the `primary` metric, or all others; all, if `exploratory` says that the primary
    metric was chosen afterwards. `notable` is a tenth of the first variant's value, rounded; `needed`, where the
    difference is not clear, the pairs that would find so much (of a ratio, a tenth; with a margin, show that no
    difference is within it) by the same rule with a probability of 80 %. `margin` is how much worse the second may be,
    and `standing` what the interval says of that, see Standing (empty without a margin). `apart_s` is how far apart in
    time the two were asked (seconds, at the median of prompts): beyond MAX_APART_S nothing is clear. `first_runs` and
    `second_runs` count the runs, where `rows` has a column `run`; an interval then has how runs differ in it. Missing
    where n carries none.
    """
    for is_primary in (False, True):
        family = [record for record in records if exploratory or record["primary"] == is_primary]
        adjusted = stats.holm([record["p_value"] for record in family])
        comparisons = sum(record["n"] > 0 for record in family)
        for record, p_value in zip(family, adjusted, strict=True):
            clear = bool(is_clear(p_value, record["n"], level)) and not record["apart_s"] > MAX_APART_S
            record |= {"p_adjusted": p_value, "comparisons": comparisons, "clear": clear}
            is_open = record["standing"] in ("unclear", "not worse") if record.get("standing") else not clear
            record["needed"] = _pairs_needed(record, level) if is_open else None
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


def compare_two(
    metric: Metric,
    first: pd.DataFrame,
    second: pd.DataFrame,
    *,
    level: float,
    runs: tuple[list[pd.Series[float]], list[pd.Series[float]]] | None = None,
) -> dict[str, Any]:
    """What two variants' values of a metric, as `Measured.to_frame` has them, show: COLUMNS of one comparison.

    `runs` has the values of each run of either side, by prompt.
    """
    statistic, ratio = metric.statistic, None
    if is_yes_no(first, metric) and is_yes_no(second, metric):
        statistic, difference = SHARE, stats.paired_share(first["value"], second["value"], level=level)
    else:
        # Once, for all that follows: a million calls are of some thousand prompts.
        first, second = average_repeats(first), average_repeats(second)
        difference = stats.paired_bounds(first, second, level=level)
        if statistic == RATIO:
            ratio = stats.paired_ratio(first, second, level=level)
            # What costs nothing has no ratio.
            if ratio.n and math.isnan(ratio.value):
                statistic, ratio = MEAN, None
        elif difference.caution and metric.span == NOT_NEGATIVE:
            typical = stats.paired_bounds(first, second, level=level, of=stats.paired_median)
            statistic = MEDIAN
            difference = dataclasses.replace(typical, ratio=difference.ratio, caution=difference.caution)
    both = first.index.intersection(second.index)
    shared = [side[side.index.isin(both)] for side in (first, second)]
    values, least, most = ([_locate(side[end], statistic) for side in shared] for end in ("value", "low", "high"))
    if runs is not None:
        assumed_sd = RUN_NOISE * max(map(abs, values)) if metric.is_speed else math.nan
        difference = stats.widen_for_runs(difference, *_run_values(runs, statistic), assumed_sd=assumed_sd)
        if ratio is not None:
            ratio = stats.widen_for_runs(ratio, *map(np.log, _run_values(runs, statistic)))
            ends = dataclasses.replace(ratio.ratio, low=math.exp(ratio.low), high=math.exp(ratio.high))
            ratio = dataclasses.replace(ratio, ratio=ends)
    judged = difference if ratio is None else ratio
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
        "first_least": least[0],
        "first_most": most[0],
        "second_least": least[1],
        "second_most": most[1],
        "estimated": not difference.exact,
        "caution": judged.caution,
        "share": difference.share,
        "share_more": difference.share_more,
        "first_runs": None if runs is None else len(runs[0]),
        "second_runs": None if runs is None else len(runs[1]),
        "sd": judged.sd,
        # What `sd` is to be compared with.
        "effect": notable if ratio is None else math.log1p(NOTABLE),
        "sd_in_unit": difference.sd,
    }


def _locate(calls: pd.Series[float], statistic: str) -> float:
    """What a statistic compares of one side, from its calls by prompt; NaN without any."""
    by_prompt = average_repeats(calls.to_frame("value"))["value"]
    return float(by_prompt.median() if statistic == MEDIAN else by_prompt.mean())


def _run_values(runs: tuple[list[pd.Series[float]], list[pd.Series[float]]], statistic: str) -> tuple[Any, Any]:
    """The value of each run of either side, over the prompts that all runs have."""
    shared = functools.reduce(pd.Index.intersection, (run.index.unique() for side in runs for run in side))
    first, second = (np.array([_locate(run[run.index.isin(shared)], statistic) for run in side]) for side in runs)
    return first, second


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


def _pairs_needed(row: Mapping[Any, Any], level: float) -> int | None:
    """The number of pairs that would show a notable difference, or that one is within its margin; None if not known."""
    n, has_margin = row["n"], bool(row.get("standing"))
    sd, effect = (row["sd_in_unit"], row["margin"]) if has_margin else (row["sd"], row["effect"])
    # More pairs show nothing where it is the inputs that are not known.
    if row["estimated"] or n < MIN_PAIRS_FOR_SPREAD or not effect > 0 or not sd > 1e-9 * effect:
        return None
    comparisons = 1 if has_margin else row["comparisons"]
    try:
        needed = stats.sample_size(sd=sd, sd_n=n, difference=effect, level=level, comparisons=comparisons)
        if row["statistic"] == SHARE:
            # However little few prompts tell of it, yes and no do not differ more than two coins do.
            coins = stats.sample_size(sd=math.sqrt(0.5), difference=effect, level=level, comparisons=comparisons)
            needed = min(needed, coins)
        return needed
    except ValueError:
        return None
