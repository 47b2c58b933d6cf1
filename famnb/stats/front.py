"""Which variants no other beats, such as in cost, latency and score at once, as far as the data can say.

    clear      every other variant is clearly worse in one way at least: none can beat it
    possible   the data do not decide
    beaten     another is clearly better in one way at least, and in each other clearly better, the same in every pair,
               or not worse by more than a margin

"Clearly" is by a paired comparison over the prompts that both answered, with Holm's adjustment over all comparisons of
all variants in all ways: any false clear or beaten in a whole table is then as rare as one false difference, 5 % at
a level of 95 %.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from famnb.errors import InvalidRequest
from famnb.stats.differences import (
    average_repeats,
    holm,
    is_clear,
    paired_bounds,
    paired_percentile,
    paired_share,
)
from famnb.stats.intervals import Interval, as_floats, check_share, mean, median, min_values, share

Standing = Literal["clear", "possible", "beaten"]
_NO_STANDING = (pd.NA, pd.NA)
SAME = "same in every pair"
"""In `Front.pairs`, instead of the better of two: all their differences are 0."""


@dataclasses.dataclass(frozen=True, slots=True)
class Objective:
    """A column in which variants compete, and how."""

    column: str
    more_is_better: bool = False
    statistic: Literal["mean", "median"] = "mean"
    """Of means, repeats of a prompt are averaged first; a column of yes and no is a share."""
    bounds: tuple[str, str] | None = None
    """The columns of the lowest and the highest that each value may be, where it is estimated; of a mean only."""
    margin: float | None = None
    """How much worse still counts as the same, in the column's unit, once the whole interval is within."""


@dataclasses.dataclass(frozen=True, slots=True)
class Front:
    """Where each variant stands."""

    table: pd.DataFrame
    """One row a variant, in the order they came: for each column its value, `_low`, `_high` (the interval, of new
    prompts) and `_n`; `standing`, and `beaten_by`, the first that beats it. Missing where a variant has no value."""
    pairs: pd.DataFrame
    """One row two variants and a column: first, second, metric, n (prompts), difference, low, high, p_value,
    p_adjusted; `better`: the clearly better of the two, SAME if all differences are 0, else missing; first_not_worse,
    second_not_worse: whether it is within the margin at worst."""
    level: float

    def standing(self, variant: str) -> str:
        """Return "clear", "possible" or "beaten"; empty for one without the values to place it."""
        return str(self.table.loc[variant, "standing"])


def front(
    frame: pd.DataFrame, objectives: Sequence[Objective], *, by: str, prompts: str | None, level: float = 0.95
) -> Front:
    """Return where each value of the column `by` stands; `prompts` is the column by which calls are paired.

    A call without a prompt is one of its own and paired with none. A variant that lacks values of an objective has no
    standing. ValueError without objectives, KeyError for a column that is not there.
    """
    check_share("level", level)
    if not objectives:
        raise InvalidRequest("objectives: expected at least one")
    columns = [name for objective in objectives for name in (objective.column, *(objective.bounds or ()))]
    is_grouped = frame[by].notna()
    numbers = None if prompts is None else _number_prompts(frame.loc[is_grouped, prompts])
    # Only what is compared: to copy the texts of a million calls takes longer than all else.
    rows = frame.loc[is_grouped, list(dict.fromkeys([by, *columns]))].reset_index(drop=True)
    # Numbers rather than names: a prompt is looked up some ten times for every two variants.
    rows = rows if numbers is None else rows.set_index(numbers)
    sides = {str(name): part for name, part in rows.groupby(by, observed=True, sort=False)}
    figures = {name: [_figure(part, objective, level) for objective in objectives] for name, part in sides.items()}
    complete = [
        name for name, intervals in figures.items() if all(math.isfinite(interval.value) for interval in intervals)
    ]
    pairs = _compare(sides, complete, objectives, level)
    names = ("first", "second", "better", "first_not_worse", "second_not_worse")
    outcomes = list(zip(*(pairs[name].fillna("") if name == "better" else pairs[name] for name in names), strict=True))
    standings = {name: _stand(name, outcomes) for name in complete}
    table = pd.DataFrame(index=pd.Index(list(figures), name=by))
    for index, objective in enumerate(objectives):
        for end, name in (("", "value"), ("_low", "low"), ("_high", "high"), ("_n", "n")):
            table[f"{objective.column}{end}"] = [getattr(intervals[index], name) for intervals in figures.values()]
    for index, name in enumerate(("standing", "beaten_by")):
        table[name] = pd.array([standings.get(variant, _NO_STANDING)[index] for variant in figures], dtype="string")
    return Front(table, pairs, level)


def _number_prompts(names: pd.Series[Any]) -> pd.Index[int]:
    """The number of each call's prompt; each call without a prompt is one of its own."""
    codes, uniques = pd.factorize(names)
    is_alone = codes < 0
    codes[is_alone] = len(uniques) + np.arange(np.count_nonzero(is_alone))
    return pd.Index(codes)


def _is_share(part: pd.DataFrame, objective: Objective) -> bool:
    is_known = part[objective.column].dropna()
    return objective.statistic == "mean" and objective.bounds is None and bool(is_known.isin((0, 1)).all())


def _figure(part: pd.DataFrame, objective: Objective, level: float) -> Interval:
    """The value of one variant, with its interval for new prompts."""
    values, clusters = part[objective.column], part.index
    if objective.statistic == "median":
        return median(values, clusters=clusters, level=level)
    if _is_share(part, objective):
        return share(values, clusters=clusters, level=level)
    middle = mean(values, clusters=clusters, level=level)
    if objective.bounds is None:
        return middle
    lows, highs = (as_floats(part[name], finite=False) for name in objective.bounds)
    # A cost without an upper end leaves the mean without one.
    high = math.inf if np.isinf(highs).any() else mean(highs, clusters=clusters, level=level).high
    return dataclasses.replace(middle, low=mean(lows, clusters=clusters, level=level).low, high=high)


def _compare(
    sides: dict[str, pd.DataFrame], complete: Sequence[str], objectives: Sequence[Objective], level: float
) -> pd.DataFrame:
    """Every two variants in every way; see `Front.pairs`."""
    # Once for each variant rather than for each two, since repeats of a prompt are averaged first anyway.
    means = {
        (name, objective.column): _average(sides[name], objective)
        for name, objective in itertools.product(complete, objectives)
        if objective.statistic == "mean"
    }
    shares = {
        (name, objective.column)
        for name, objective in itertools.product(complete, objectives)
        if _is_share(sides[name], objective)
    }
    rows = []
    for first, second in itertools.combinations(complete, 2):
        for objective in objectives:
            a, b = (sides[name][objective.column] for name in (first, second))
            if objective.statistic == "median":
                difference = paired_percentile(a.dropna(), b.dropna(), 0.5, level=level)
            elif {(first, objective.column), (second, objective.column)} <= shares:
                difference = paired_share(a, b, level=level)
            else:
                ends = (means[name, objective.column] for name in (first, second))
                difference = paired_bounds(*ends, level=level)
            sign, margin = -1 if objective.more_is_better else 1, objective.margin
            worst = (
                max(-sign * end for end in (difference.low, difference.high)),
                max(sign * end for end in (difference.low, difference.high)),
            )
            rows.append(
                {
                    "first": first,
                    "second": second,
                    "metric": objective.column,
                    "n": difference.n,
                    "difference": difference.value,
                    "low": difference.low,
                    "high": difference.high,
                    "p_value": difference.p_value,
                    "sign": sign,
                    "first_not_worse": margin is not None and worst[0] <= margin,
                    "second_not_worse": margin is not None and worst[1] <= margin,
                }
            )
    figures = ["first", "second", "metric", "n", "difference", "low", "high", "p_value"]
    table = pd.DataFrame(rows, columns=[*figures, "sign", "first_not_worse", "second_not_worse"])
    table["p_adjusted"] = holm(table["p_value"].astype(float))
    is_same = (table["low"] == 0) & (table["high"] == 0) & (table["n"] >= min_values(level))
    is_first = table["sign"] * table["difference"].astype(float) > 0
    better = pd.Series(np.where(is_first, table["first"], table["second"]), index=table.index, dtype="string")
    table["better"] = better.where(is_clear(table["p_adjusted"], table["n"], level)).mask(is_same, SAME)
    return table.drop(columns="sign")


def _average(side: pd.DataFrame, objective: Objective) -> pd.DataFrame:
    """The mean of each prompt, with its ends, of the calls that have them."""
    low, high = objective.bounds or (objective.column,) * 2
    columns = {"low": low, "value": objective.column, "high": high}
    values = {name: as_floats(side[column], finite=name != "high") for name, column in columns.items()}
    is_known = ~np.isnan(values["low"] + values["value"] + values["high"])
    known = {name: column[is_known] for name, column in values.items()}
    return average_repeats(pd.DataFrame(known, index=side.index[is_known]))


def _stand(name: str, outcomes: Iterable[tuple[str, str, str, bool, bool]]) -> tuple[Standing, Any]:
    """Where one variant stands, and the first of those that beat it, by what each two show of each objective."""
    verdicts: dict[str, set[str]] = {}
    for first, second, winner, first_not_worse, second_not_worse in outcomes:
        if name not in (first, second):
            continue
        rival, is_close = (second, second_not_worse) if first == name else (first, first_not_worse)
        verdicts.setdefault(rival, set()).add(SAME if is_close and winner != rival else winner)
    for rival, better in verdicts.items():
        if rival in better and better <= {rival, SAME}:
            return "beaten", rival
    cannot_lose = all(name in better or better == {SAME} for better in verdicts.values())
    return ("clear" if cannot_lose else "possible"), pd.NA
