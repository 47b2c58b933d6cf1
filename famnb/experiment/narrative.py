"""A summary in plain words: who wins on the primary metric, what is clear, what is not, and what n does not carry."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from famnb import stats
from famnb.experiment.comparison import NOTABLE
from famnb.experiment.metrics import RATIO, SCORE_PREFIX, SUCCESS, Failed, Metric, find_metric
from famnb.experiment.resume import ANSWERED, failures
from famnb.formatting import (
    ESTIMATE_MARK,
    MAX_FACTOR,
    FormatValue,
    format_count,
    format_level,
    format_percent,
    format_range,
    format_simulated,
    format_times,
    is_same,
)
from famnb.frame.spend import is_unpriced

Row: TypeAlias = Mapping[str, Any]
"""A row of `compare_variants`."""

MAX_PAIRS = 6
"""Number of pairs up to which all of them, if they were asked for, are put in words."""
_TIME_VERBS = {"ttft_s": "starts", "ttfa_s": "shows its first words", "e2e_s": "answers"}


# What the figures are of


def reservations(rows: pd.DataFrame, *, warmups: int, failed: Failed, has_scores: bool) -> Iterator[str]:
    """Yield what the figures leave out, and reservations about the rest, a sentence each."""
    simulated = int(rows["simulated"].fillna(False).sum()) if "simulated" in rows else 0
    if simulated:
        yield format_simulated(simulated, int(rows["simulated"].notna().sum()))
    if warmups:
        yield f"{format_count(warmups, 'warm-up call')} left out."
    is_failure = failures(rows)
    open_calls = int((~rows["status"].isin(ANSWERED) & ~is_failure).sum())
    if open_calls:
        yield f"{open_calls:,} of {len(rows):,} planned calls are not answered yet; the figures are of the others."
    for variant, own in rows.groupby("variant", observed=True):
        failures_of_variant = own[is_failure[own.index]]
        if len(failures_of_variant):
            counts = failures_of_variant["error"].astype("string").fillna("no error named").value_counts()
            errors = ", ".join(f"{error} {count:,}" for error, count in counts.items())
            yield f"{len(failures_of_variant):,} of {len(own):,} calls of {variant} failed ({errors})."
    if is_failure.any():
        yield f"Failed calls are in no time, token count or cost a call{_in_scores(failed) if has_scores else ''}."
    lacks_price = is_unpriced(rows) & rows["output_tokens"].notna()
    if lacks_price.any():
        calls = f"{int(lacks_price.sum()):,} of {len(rows):,} calls have no price and are in no cost"
        yield f"{calls}; famnb.prices.set gives their model one."
    for variant, own in rows.groupby("variant", observed=True):
        incomplete = int((own["status"] == "incomplete").sum())
        if incomplete:
            subject = f"{format_count(incomplete, 'answer')} of {variant}"
            yield f"{subject} did not come to an end, such as at a token cap; they count as they are."


def _in_scores(failed: Failed) -> str:
    if failed == "zero":
        return '; they count as the lowest score there can be, 0 of yes and no (failed="drop" leaves them out)'
    return ', and in no score (failed="zero" counts them as the lowest there can be)'


def judging(rows: Sequence[Row], why: str, *, slo: Mapping[str, float], level: float) -> Iterator[str]:
    """Yield what the limits of an objective are, which metric decides and how differences are judged."""
    if slo:
        metrics = {find_metric(name): limit for name, limit in slo.items()}
        limits = " and ".join(
            f"{metric.title} at most {metric.format_value(limit)}" for metric, limit in metrics.items()
        )
        yield f"Goodput is the share of calls that were answered with {limits}."
    primary = [row for row in rows if row["primary"]]
    if not primary:
        return
    title, share, others = find_metric(primary[0]["metric"]).title, format_level(level), len(rows) - len(primary)
    own = "judged alone" if len(primary) == 1 else f"its {len(primary):,} comparisons judged together (Holm)"
    rest = f"; the other {others:,} comparisons are judged together (Holm)" if others > 1 else ""
    yield f"The primary metric is {title} ({why}), {own} at {share}{rest}."
    yield "Differences are means of paired differences over prompts unless another statistic is named."


def cautions(reasons: Iterable[tuple[str, int, str]], *, level: float) -> Iterator[str]:
    """Yield why some intervals may hold the truth less often than they say, a sentence for each reason.

    `reasons` has the name of a metric, the n of one of its intervals and what speaks against it, if anything does.
    """
    # Of several intervals of one metric that of the fewest values says most.
    worst = {title: caution for title, _, caution in sorted(reasons, key=lambda reason: -reason[1]) if caution}
    for caution in dict.fromkeys(worst.values()):
        titles = [title for title, of_title in worst.items() if of_title == caution]
        rate = f"may hold the truth less often than {format_level(level)} of the time"
        yield f"Intervals of {_list(titles)} {rate}: {caution}."


# What they show


_LEAD = ("cost_usd", SUCCESS)
"""The metrics that are said after the primary one, each in a sentence of its own."""


def verdict(rows: Sequence[Row], *, level: float) -> Iterator[str]:
    """Yield who wins on the primary metric, by how much and how sure that is; then at what cost, and how reliably."""
    primary = [row for row in rows if row["primary"]]
    if not primary:
        return
    if len(primary) == 1:
        yield f"{_winner(primary)}: {_clause(primary[0], level, is_first=True)}."
    else:
        yield f"{_winner(primary)}."
        yield _describe_metric(primary, level)
    for name in _LEAD:
        of_metric = [row for row in rows if row["metric"] == name and not row["primary"]]
        if any(row["n"] >= stats.min_values(level) for row in of_metric):
            yield _describe_metric(of_metric, level)


def other_findings(rows: Sequence[Row], *, level: float) -> Iterator[str]:
    """Yield what is clear and what is not in all other metrics, a sentence for each two variants."""
    rest = [row for row in rows if not row["primary"] and row["metric"] not in _LEAD]
    are_told = sum(row["primary"] for row in rows) <= MAX_PAIRS or all(row["baseline"] for row in rows)
    for (first, second), group in itertools.groupby(rest, key=lambda row: (row["first"], row["second"])):
        of_pair = list(group)
        has_enough = any(row["n"] >= stats.min_values(level) for row in of_pair)
        if has_enough and (are_told or of_pair[0]["baseline"]):
            yield f"{_compare_two(first, second, of_pair, level)}."
    if not are_told:
        yield f"Of these, words compare each variant with {rows[0]['first']} only; the table of pairs has all."


class Effect(NamedTuple):
    """The statistic of a comparison with its ends, and how it is written."""

    value: float
    low: float
    high: float
    none: float
    """What it is where the two are equal."""
    format_value: FormatValue

    @classmethod
    def of(cls, row: Row, format_value: FormatValue | None = None) -> Effect:
        """That of a row of `compare_variants`; a difference is written as its metric is, or by `format_value`."""
        if row["statistic"] == RATIO:
            return cls(row["ratio"], row["ratio_low"], row["ratio_high"], 1.0, format_times)
        format_value = format_value or find_metric(row["metric"]).format_difference
        return cls(row["difference"], row["low"], row["high"], 0.0, format_value)

    @property
    def is_less(self) -> bool:
        """Whether the second has less than the first."""
        return self.value < self.none

    @property
    def excludes_none(self) -> bool:
        """Whether the interval leaves out that the two are equal."""
        return self.low > self.none or self.high < self.none

    def size(self) -> Effect:
        """The same without a sign: "0.2 s sooner" has none, and neither has its interval; a ratio has none anyway."""
        if self.none or not self.is_less:
            return self
        return self._replace(value=-self.value, low=-self.high, high=-self.low)


def format_difference(row: Row, format_value: FormatValue | None = None) -> str:
    """A compared statistic as a figure with its interval: `−0.41 s (−0.43 to −0.38 s)`, `≈ 0.2 times (0.15–0.28)`."""
    effect = Effect.of(row, format_value)
    if math.isnan(effect.value):
        return "–"
    sign = "+" if effect.none == 0 < effect.value else ""
    figure = f"{_mark(row)}{sign}{effect.format_value(effect.value)}"
    if math.isnan(effect.low):
        return figure
    return f"{figure} ({format_range(effect.low, effect.high, effect.format_value)})"


def _mark(row: Row) -> str:
    return ESTIMATE_MARK if row["estimated"] else ""


def _winner(rows: Sequence[Row]) -> str:
    """Who wins on the primary metric, in the rows of which every pair has one."""
    metric = find_metric(rows[0]["metric"])
    if metric.better == "neither":
        return _capitalize(metric.title)
    won = [_better(row, metric) for row in rows]
    if len(rows) == 1:
        return f"{won[0]} wins on {metric.title}" if won[0] else f"No winner on {metric.title}"
    baseline = rows[0]["first"]
    if all(row["baseline"] for row in rows):
        winners = [name for name in won if name not in (None, baseline)]
        verb = "beats" if len(winners) < 2 else "beat"
        return f"{_list(winners) or 'None'} {verb} {baseline} on {metric.title}"
    variants = {name for row in rows for name in (row["first"], row["second"])}
    best = [name for name in variants if won.count(name) == len(variants) - 1]
    return f"{best[0]} wins on {metric.title}" if best else f"None beats all others on {metric.title}"


def _better(row: Row, metric: Metric) -> str | None:
    """The variant that is clearly better; None if neither is."""
    if not row["clear"]:
        return None
    return str(row["second"] if Effect.of(row).is_less == (metric.better == "less") else row["first"])


def _describe_metric(rows: Sequence[Row], level: float) -> str:
    """A sentence on what each pair shows of one metric."""
    title = _capitalize(find_metric(rows[0]["metric"]).title)
    # The baseline is named once, before several that are compared with it.
    has_one_baseline = len(rows) > 1 and all(row["baseline"] for row in rows)
    against = f" compared with {rows[0]['first']}" if has_one_baseline else ""
    clauses = [_clause(row, level, is_first=not index, against=not against) for index, row in enumerate(rows)]
    return f"{title}{against}: {'; '.join(clauses)}."


def _clause(row: Row, level: float, *, is_first: bool, against: bool = True) -> str:
    """What a pair shows of a metric; the first names statistic and level, and `against` says of what."""
    first, second = row["first"], row["second"]
    if row["n"] < stats.min_values(level):
        subject = f"between {second} and {first}" if against else f"{second}:"
        return f"{subject} no difference can be claimed: {_too_few_pairs(row, level)}"
    p_value = "" if math.isnan(row["p_adjusted"]) else f", {format_p(row['p_adjusted'])}"
    sureness = f"{p_value}, n = {format_count(row['n'], 'pair')}"
    statistic = f"{row['statistic']}, " if is_first else ""
    named = f"{format_level(level)} interval " if is_first else ""
    if not row["clear"]:
        subject = f"no clear difference between {second} and {first}" if against else f"{second} not clearly different"
        return f"{subject} ({statistic}{_unclear_facts(row, named, level)}{sureness})"
    than = f" {_conjunction(row)} {first}" if against else ""
    return f"{second} {_claim(row)}{than} ({_format_levels(row)}{statistic}{_format_ends(row, named)}{sureness})"


def _compare_two(first: str, second: str, rows: Sequence[Row], level: float) -> str:
    """A sentence on two variants."""
    n = max(row["n"] for row in rows)
    clear = [row for row in rows if row["clear"]]
    # Said once if it is the same for all metrics.
    same_n = all(row["n"] == n for row in rows)
    parts = []
    for index, row in enumerate(clear):
        claim, interval = _claim(row), _format_ends(row, "" if index else f"{format_level(level)} interval ")
        count = "" if index and same_n else f", n = {row['n']:,} pairs"
        metric = find_metric(row["metric"])
        scorer = f" by {metric.name.removeprefix(SCORE_PREFIX)}" if metric.is_score else ""
        than = "" if index else f" {_conjunction(row)} {first}"
        parts.append(f"{claim}{than}{scorer} ({interval}{count})")
    unclear = "; ".join(_describe_unclear(row, level, same_n=same_n) for row in rows if not row["clear"])
    if not clear:
        count = f"; n = {n:,} pairs" if same_n else ""
        return f"{second} and {first}: no clear difference in {unclear}{count}"
    return f"{second} {'; '.join(parts)}{'; no clear difference in ' if unclear else ''}{unclear}"


def _conjunction(row: Row) -> str:
    return "as" if row["metric"] == "cost_usd" and row["statistic"] == RATIO else "than"


def _format_ends(row: Row, named: str) -> str:
    """The interval of a clear difference, after its name."""
    effect = Effect.of(row).size()
    if is_same(effect.low, effect.high):
        return "the same in every pair"
    return f"{named}{format_range(effect.low, effect.high, effect.format_value)}"


def _claim(row: Row) -> str:
    """A clear difference as a verb."""
    effect = Effect.of(row)
    name, metric, is_less, size = row["metric"], find_metric(row["metric"]), effect.is_less, _format_size(row)
    match name:
        case "ttft_s" | "ttfa_s" | "e2e_s":
            return f"{_TIME_VERBS[name]} {size} {'sooner' if is_less else 'later'}"
        case "output_tokens":
            return f"writes {size} tokens {'fewer' if is_less else 'more'}"
        case "cost_usd" if row["statistic"] == RATIO:
            return f"costs {size} as much"
        case "cost_usd":
            return f"costs {size} {'less' if is_less else 'more'} a call"
        case _ if metric.is_score:
            return f"scores {size} {'lower' if is_less else 'higher'}"
        case _ if row["statistic"] == RATIO:
            return f"has {size} the {metric.title}"
        case _:
            return f"has a {metric.title} {size} {'lower' if is_less else 'higher'}"


def _format_size(row: Row) -> str:
    """How large a clear difference is; of estimates too far apart for a figure, at which end it is the smallest."""
    effect = Effect.of(row).size()
    if not row["estimated"]:
        return effect.format_value(effect.value)
    if effect.high <= MAX_FACTOR * effect.low:
        return f"{ESTIMATE_MARK}{effect.format_value(effect.value)}"
    if effect.none and effect.is_less:
        return f"at most {effect.format_value(effect.high)}"
    return f"at least {effect.format_value(effect.low)}"


def _format_levels(row: Row) -> str:
    """What is compared, the second first: `0.82 against 0.7; `; of a ratio that of the sums, if that is another one."""
    # Levels that are estimates have ends of their own, which the table of variants shows.
    if row["estimated"]:
        return ""
    if row["statistic"] == RATIO:
        return f"{other}; " if (other := _format_other_ratio(row)) else ""
    format_value = find_metric(row["metric"]).format_value
    return f"{format_value(row['second_value'])} against {format_value(row['first_value'])}; "


def _format_other_ratio(row: Row) -> str:
    """The ratio of the sums, if it is not in the interval of that of the prompts; empty if it is."""
    of_sums = row["second_value"] / row["first_value"]
    # Equal ratios differ by rounding.
    is_inside = row["ratio_low"] * (1 - 1e-9) <= of_sums <= row["ratio_high"] * (1 + 1e-9)
    return "" if is_inside else f"of their sums, {format_times(of_sums)}"


def _describe_unclear(row: Row, level: float, *, same_n: bool) -> str:
    """A metric in which no difference is clear, with its interval and how many pairs would show one."""
    count = "" if same_n else f", n = {row['n']:,} pairs"
    return f"{find_metric(row['metric']).title} ({_unclear_facts(row, '', level)}{count})"


def _unclear_facts(row: Row, named: str, level: float) -> str:
    """The interval of a difference that is not clear, after its name, why it is not, and how many pairs would do."""
    effect = Effect.of(row)
    if math.isnan(effect.low):
        return "too few for an interval"
    if is_same(effect.low, effect.high):
        if effect.low == effect.none:
            return "the same in every pair"
        facts = f"{effect.format_value(effect.low)} in every pair"
    else:
        facts = f"{named}{_mark(row)}{format_range(effect.low, effect.high, effect.format_value)}"
    if row["estimated"]:
        facts += ", since token counts are estimates or not reported"
    elif row["statistic"] == RATIO and (other := _format_other_ratio(row)):
        facts += f"; {other}"
    elif effect.excludes_none and row["p_value"] >= 1 - level:
        # The interval of few yes and no is an approximation, the p-value is exact.
        facts += f", but {format_p(row['p_value'])} by itself"
    elif effect.excludes_none and row["comparisons"] > 1:
        facts += f", not enough for one of {row['comparisons']} comparisons"
    if row["needed"] > row["n"]:
        facts += f", about {_round_count(row['needed'])} pairs would show {_format_notable(row)}"
    return facts


def _format_notable(row: Row) -> str:
    if row["statistic"] == RATIO:
        return format_percent(NOTABLE)
    return find_metric(row["metric"]).format_difference(row["notable"])


def _too_few_pairs(row: Row, level: float) -> str:
    """How many pairs there are, and how many it would take."""
    have = f"n = {format_count(row['n'], 'pair')}"
    if math.isnan(row["needed"]):
        return f"{have}; {stats.min_values(level)} are the fewest that could show one"
    needed = f"about {_round_count(row['needed'])} would be needed"
    return f"{have}; {needed} to see {_format_notable(row)} in the {find_metric(row['metric']).title}"


def format_p(p_value: float) -> str:
    """A p-value: `p = 0.031`, `p < 0.001`."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _list(names: Sequence[str]) -> str:
    """Names as one lists them: `A, B and C`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _round_count(n: int) -> str:
    """A count with two significant digits, since an estimate of a sample size has no more."""
    return f"{int(float(f'{n:.1e}')):,}"
