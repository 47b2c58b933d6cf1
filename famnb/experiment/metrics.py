"""The metrics that variants are compared by: how each is named and written, and its value in every call.

ttft_s, score_exact, …             a column of the frame, of answered calls
cost_usd                           the cost per answered call: what failed calls cost is in it
cost_per_call, cost_per_right      the cost per call that was tried, and per right answer by the first yes-or-no score
success                            1 for a call that was answered, 0 for one that failed
goodput                            1 for a call that was answered within every limit of `slo`, 0 for any other
ttft_s_p95, …                      the 95th percentile of a column of times, which is limited, but not compared
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from famnb import stats
from famnb.errors import InvalidRequest
from famnb.experiment.resume import ANSWERED, OUTCOME_COLUMNS, failures
from famnb.experiment.score import YES_NO, Span
from famnb.formatting import FormatValue, format_duration, format_number, format_points, format_share, format_usd
from famnb.frame.columns import CALLS
from famnb.frame.spend import is_unpriced
from famnb.record.token_estimates import PRIOR
from famnb.validation import check_number

Better: TypeAlias = Literal["less", "more", "neither"]
Failed: TypeAlias = Literal["zero", "drop"]

DEFAULT_COLUMNS = ("e2e_s", "ttft_s", "ttfa_s", "output_tokens", "cost_usd")
"""The columns that are compared unless others are named, beside scores."""
SUCCESS = "success"
GOODPUT = "goodput"
COST = "cost_usd"
COST_PER_CALL = "cost_per_call"
COST_PER_RIGHT = "cost_per_right"
SCORE_PREFIX = "score_"
P95 = 0.95
P95_SUFFIX = "_p95"
UNBOUNDED: Span = (-math.inf, math.inf)
NOT_NEGATIVE: Span = (0.0, math.inf)
_SPANS: dict[str, Span] = {f"{SCORE_PREFIX}votes": YES_NO}
"""Of scores that no scorer makes: people's votes are a share of pairs."""

MEAN = "mean of paired differences"
MEDIAN = "median of paired differences"
RATIO = "ratio of costs per answer"
SHARE = "difference of shares"

_TITLES = {
    "ttfb_s": "time to response headers",
    "ttft_s": "time to first token",
    "ttfa_s": "time to first answer text",
    "think_s": "time spent thinking",
    "e2e_s": "time to the end of the answer",
    "tpot_s": "time per output token",
    "output_tps": "output tokens a second",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    COST: "cost",
    COST_PER_CALL: "cost a call",
    COST_PER_RIGHT: "cost a right answer",
    SUCCESS: "success rate",
    GOODPUT: "goodput",
}
TIME_COLUMNS = ("started_at", "reply_model", "service")
"""The columns that tell whether calls are of one time, one model and one engine."""
_UNITS = {column.name: column.unit for column in CALLS if column.dtype in ("Int64", "Float64") and column.unit}
_SOURCES = [column.name for column in CALLS if "_source" in column.name]
MEASURED_COLUMNS = (*OUTCOME_COLUMNS, *TIME_COLUMNS, *_UNITS, *_SOURCES)
"""The columns of `famnb.calls` that metrics are measured from: numbers, their sources, how calls ended, and when."""
_FORMATS: dict[str, tuple[FormatValue, Better]] = {
    "s": (format_duration, "less"),
    "s/token": (format_duration, "less"),
    "USD": (format_usd, "less"),
    "tokens/s": (format_number, "more"),
}
_LIMITED_UNITS = ("s", "s/token", "ms", "tokens", "USD")
"""Units of the columns that an objective can limit."""
_BOUNDS = {"cost_usd": ("cost_low_usd", "cost_high_usd")}
"""Where the ends of a column are, if not in columns of its name with `_low` and `_high`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What is measured of a call, and how it is said."""

    name: str
    """The column of a frame, or the name of a metric that no column has."""
    title: str
    """The name in words."""
    format_value: FormatValue = format_number
    format_difference: FormatValue = format_number
    better: Better = "neither"
    span: Span = UNBOUNDED
    """The lowest and the highest value there can be; of scores a scorer may know more."""
    statistic: str = MEAN
    """What two variants are compared by, in words."""

    @property
    def column(self) -> str:
        """Where its values are; those of a percentile are what it is a percentile of."""
        return self.name.removesuffix(P95_SUFFIX)

    @property
    def is_score(self) -> bool:
        """Whether it is the score of a scorer, or the share of votes."""
        return self.name.startswith(SCORE_PREFIX)

    @property
    def is_speed(self) -> bool:
        """Whether it is a time, or a rate of one, which differs from run to run of the same calls."""
        return _UNITS.get(self.column) in ("s", "s/token", "tokens/s")

    @property
    def figure(self) -> Literal["mean", "median", "95th percentile", "share"]:
        """What one variant's values come to: of times the median, which a few slow calls do not move."""
        if self.column != self.name:
            return "95th percentile"
        if self.statistic == SHARE:
            return "share"
        return "median" if _UNITS.get(self.column) == "s" else "mean"


def find_metric(name: str, spans: Mapping[str, Span] | None = None) -> Metric:
    """Return the metric of a name; `spans` has the lowest and highest value of columns of scores."""
    column = name.removesuffix(P95_SUFFIX)
    if column != name:
        metric = find_metric(column)
        title = f"95th percentile of {metric.title}"
        return dataclasses.replace(metric, name=name, title=title)
    if name in (SUCCESS, GOODPUT):
        return Metric(
            name=name,
            title=_TITLES[name],
            format_value=format_share,
            format_difference=format_points,
            better="more",
            span=YES_NO,
            statistic=SHARE,
        )
    if name.startswith(SCORE_PREFIX):
        title, span = f"score {name.removeprefix(SCORE_PREFIX)}", {**_SPANS, **(spans or {})}.get(name, UNBOUNDED)
        return Metric(name=name, title=title, better="more", span=span)
    unit = "USD" if name in (COST_PER_CALL, COST_PER_RIGHT) else _UNITS.get(name, "")
    format_value, better = _FORMATS.get(unit, (format_number, "neither"))
    return Metric(
        name=name,
        title=_TITLES.get(name, name),
        format_value=format_value,
        format_difference=format_value,
        better=better,
        span=NOT_NEGATIVE if unit else UNBOUNDED,
        # Of one variant a long answer costs many times a short one, while another's cost as many times as much for
        # both: in differences the length of answers would hide that, in a ratio it cancels. That of sums, since a bill
        # is one: a typical call may be cheaper where the bill is dearer.
        statistic=RATIO if unit == "USD" else MEAN,
    )


def known_metrics(rows: pd.DataFrame, slo: Mapping[str, float]) -> list[str]:
    """The names of all that can be compared in these rows."""
    columns = [name for name in map(str, rows.columns) if name in _UNITS or name.startswith(SCORE_PREFIX)]
    return [*columns, SUCCESS, *([GOODPUT] if slo else [])]


def percentile_metrics(rows: pd.DataFrame) -> list[str]:
    """The names of the percentiles that can be limited."""
    return [f"{name}{P95_SUFFIX}" for name in map(str, rows.columns) if _UNITS.get(name) == "s"]


def default_metrics(rows: pd.DataFrame, slo: Mapping[str, float]) -> list[str]:
    """Scores, goodput and columns that some answered call has, and the success rate if some call failed."""
    answered = rows[rows["status"].isin(ANSWERED)]
    columns = [name for name in DEFAULT_COLUMNS if name in answered and answered[name].notna().any()]
    if {"ttft_s", "ttfa_s"} <= set(columns) and answered["ttft_s"].equals(answered["ttfa_s"]):
        # Without thinking the two are one; a second line of the same comparison would cost power in Holm's adjustment.
        columns.remove("ttfa_s")
    # Where nothing failed there is nothing to compare.
    shares = [SUCCESS] if failures(rows).any() else []
    return [*score_columns(answered), *([GOODPUT] if slo else []), *columns, *shares]


def choose_metrics(
    rows: pd.DataFrame, *, primary: str | None, metrics: Iterable[str] | None, slo: Mapping[str, float]
) -> tuple[list[str], str]:
    """Return the metrics to compare, the primary one first, and why it is that.

    Unnamed it is the first of `metrics`; else the first score, since what a scorer asks is what the answers are for;
    else the goodput of an objective that was given; else the time to the end of the answer, which every answer has.
    Never by what the calls have shown: a metric chosen by its result would be judged by chance.
    """
    choices = known_metrics(rows, slo)
    if isinstance(metrics, str):
        raise InvalidRequest(f"metrics: expected a list of names such as [{metrics!r}], got a text")
    named = None if metrics is None else [check_metric("metrics", name, choices) for name in metrics]
    names = default_metrics(rows, slo) if named is None else named
    if primary is not None:
        names, why = [check_metric("primary", primary, choices), *names], "as named"
    elif named is not None:
        why = "the first of those named"
    elif names and names[0].startswith(SCORE_PREFIX):
        why = "the first score"
    else:
        why = "the objective that was given" if slo else "since there is no score"
    return list(dict.fromkeys(names)), why


# The same that a sample is planned for, see `comparison.NOTABLE`.
DEFAULT_MARGIN = "10%"
"""How much worse than its baseline a metric may be unless told: as a share of what it was."""
Margin: TypeAlias = float | str | Mapping[str, float | str]
"""How much worse a metric may be: in its unit, or a share such as "10%"; by metric, or of the primary one."""


def check_margins(margin: Margin | None, primary: str) -> dict[str, float | str]:
    """Return the margins by metric. Raises InvalidRequest if a margin is invalid or its metric cannot get worse."""
    if margin is None:
        return {}
    margins = dict(margin) if isinstance(margin, Mapping) else {primary: margin}
    for name, amount in margins.items():
        margin_amount(name, amount, of=1.0)
        if find_metric(name).better == "neither":
            raise InvalidRequest(f"margin: neither more nor less of {name} is better; it cannot get worse")
    return margins


def margin_amount(metric: str, margin: float | str, *, of: float) -> float:
    """Return a margin in the metric's unit, of a baseline's value. Raises InvalidRequest if it is not one."""
    is_share = isinstance(margin, str) and margin.strip().endswith("%")
    try:
        amount = -1.0 if isinstance(margin, bool) else float(str(margin).strip().removesuffix("%"))
    except ValueError:
        amount = -1.0
    if not 0 <= amount < math.inf:
        raise InvalidRequest(
            f"margin: {metric}: expected a number of at least 0, or a share such as '10%'; got {margin!r}"
        )
    return amount / 100 * abs(of) if is_share else amount


def score_columns(rows: pd.DataFrame) -> list[str]:
    """The columns of scores that some row has."""
    return [name for name in map(str, rows.columns) if name.startswith(SCORE_PREFIX) and rows[name].notna().any()]


def check_metric(argument: str, name: Any, choices: Iterable[str]) -> str:
    """Return a metric's name. Raises InvalidRequest if it is unknown."""
    names = list(choices)
    if name in names:
        return str(name)
    close = difflib.get_close_matches(str(name), names, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(names)}"
    if name == GOODPUT:
        hint = "goodput needs limits: slo={'ttft_s': 0.5}"
    elif str(name).endswith(P95_SUFFIX):
        hint = "of slow calls goodput is compared, with limits: slo={'ttft_s': 0.5}; check() limits percentiles"
    raise InvalidRequest(f"{argument}: there is no {name!r} to compare in these calls; {hint}")


def check_slo(slo: Mapping[str, float] | None, rows: pd.DataFrame) -> dict[str, float]:
    """Return the limits of an objective. Raises InvalidRequest if one is not a number, or its column has none."""
    if slo is None:
        return {}
    example = "such as {'ttft_s': 0.5, 'e2e_s': 5}"
    if not isinstance(slo, Mapping) or not slo:
        raise InvalidRequest(f"slo: expected a mapping of columns to the most that is allowed, {example}; got {slo!r}")
    limited = [name for name in map(str, rows.columns) if _UNITS.get(name) in _LIMITED_UNITS]
    return {
        check_metric("slo", name, limited): float(
            check_number(f"slo[{name!r}]", limit, above=0, expected=f"the most that is allowed, {example}")
        )
        for name, limit in slo.items()
    }


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """A metric's value in each call, and the ends that hold it for certain; NaN in a call that does not count."""

    value: pd.Series[float]
    low: pd.Series[float]
    high: pd.Series[float]

    @classmethod
    def exactly(cls, value: pd.Series[float]) -> Measured:
        """Values that are known."""
        return cls(value, value, value)

    def where(self, mask: pd.Series[bool]) -> Measured:
        """The same with NaN in all calls that the mask leaves out."""
        return Measured(self.value.where(mask), self.low.where(mask), self.high.where(mask))

    def to_frame(self, mask: pd.Series[bool], prompts: pd.Series[Any]) -> pd.DataFrame:
        """The calls that the mask names and that count, with columns low, value, high and the prompt as the index."""
        # In numpy, since a summary makes one of every metric and variant and pandas takes ten times as long for it.
        ends = {"low": self.low, "value": self.value, "high": self.high}
        columns = {name: end.to_numpy() for name, end in ends.items()}
        counts = mask.to_numpy() & ~np.isnan(np.stack(list(columns.values()))).any(axis=0)
        index = pd.Index(prompts.array[counts], name=prompts.name)
        return pd.DataFrame({name: end[counts] for name, end in columns.items()}, index=index)


def measure(
    rows: pd.DataFrame, metric: Metric, *, failed: Failed, slo: Mapping[str, float], by: str = "variant"
) -> Measured:
    """Return a metric's value in each of an experiment's calls; see `summary` for `failed` and `slo`.

    `by` is the column of the groups whose costs are shared out among their answers.
    """
    is_answered = rows["status"].isin(ANSWERED)
    is_tried = is_answered | failures(rows)
    if metric.name == SUCCESS:
        return Measured.exactly(is_answered.astype(float).where(is_tried))
    if metric.name == GOODPUT:
        limited = {name: read_bounds(rows, name) for name in slo}
        # What keeps a limit at its high end does so for certain: that is the low end of keeping it.
        ends = ({name: getattr(column, end) for name, column in limited.items()} for end in ("value", "high", "low"))
        kept = (stats.meets_slo(pd.DataFrame(columns), slo, failed=~is_answered) for columns in ends)
        return Measured(*(is_kept.astype("Float64").astype(float) for is_kept in kept)).where(is_tried)
    if metric.name in (COST, COST_PER_CALL, COST_PER_RIGHT):
        share = is_tried if metric.name == COST_PER_CALL else is_answered
        if metric.name == COST_PER_RIGHT:
            # The first score that is always 0 or 1.
            score = next((name for name in score_columns(rows) if rows[name].dropna().isin(YES_NO).all()), None)
            is_right = rows[score].eq(1) if score else is_answered & False
            share = is_answered & is_right.fillna(False).astype(bool)
        return _share_costs(rows, share, by=by)
    measured = read_bounds(rows, metric.column).where(is_answered)
    if metric.is_score and failed == "zero":
        # A failed call has the lowest score there can be: that of the scorer, else 0 or the lowest there is. Only for
        # prompts that the scorer scores, as one with an `expected` answer is by `exact`.
        scores, prompts, lowest = measured.value, _prompts(rows), metric.span[0]
        lowest = lowest if math.isfinite(lowest) else min(0.0, scores.min(skipna=True))
        is_scored = scores.notna().groupby(prompts).transform("any")
        if scores[is_answered].notna().all():
            # Then it also scores the prompts that nobody answered.
            is_scored |= ~is_answered.groupby(prompts).transform("any")
        return Measured.exactly(scores.mask(failures(rows) & is_scored, lowest))
    return measured


def measure_column(frame: pd.DataFrame, name: str, *, by: str) -> Measured:
    """Return the values of a column in any frame of calls by groups, as the summary of an experiment has them."""
    if {"variant", "prompt_id", "status", "error"} <= set(frame.columns):
        spans = frame.attrs.get("score_spans")
        return measure(frame, find_metric(name, spans), failed="zero", slo={}, by=by)
    return read_bounds(frame, name)


def _share_costs(rows: pd.DataFrame, share: pd.Series[bool], *, by: str) -> Measured:
    """Costs of calls that were tried, such that the mean of a group is all that its calls cost by those that `share`.

    A group's costs C and its calls that share A, both means over prompts, make the ratio u = C / A. It is the mean of
    u + (cost − u · share) / A, whose spread is that of the ratio (linearised). If all calls share it is their cost.
    """
    costs, is_failure = read_bounds(rows, COST), failures(rows)
    # A refusal costs nothing; what a call that broke off cost may not be known.
    is_open = is_unpriced(rows) & is_failure
    value, low = (end.mask(is_failure, end.fillna(0.0)) for end in (costs.value, costs.low))
    high = costs.high.mask(is_failure, costs.high.fillna(is_open.map({True: math.inf, False: 0.0})))
    ends = pd.DataFrame({"low": low, "value": value, "high": high})
    ends = ends.where((rows["status"].isin(ANSWERED) | is_failure) & value.notna())
    # Only answers tell whether anything has a price.
    has_price = (
        costs.value.where(rows["status"].isin(ANSWERED)).notna().groupby(rows[by], observed=True).transform("any")
    )
    ends = ends.where(has_price.reindex(rows.index, fill_value=False).astype(bool))
    counted = share.astype(float).where(ends["value"].notna())
    if counted.dropna().eq(1).all():
        return Measured(ends["value"], ends["low"], ends["high"])
    means = ends.assign(share=counted).groupby([rows[by].astype(object), _prompts(rows)]).mean()
    by_group = means.groupby(level=0).mean()
    per_share = rows[by].astype(object).map(by_group["share"].where(by_group["share"] > 0)).astype(float)
    columns = {}
    for end in ends:
        unit = rows[by].astype(object).map(by_group[end]).astype(float) / per_share
        is_finite = np.isfinite(unit) | unit.isna()
        columns[end] = (unit + (ends[end] - unit * counted) / per_share).where(is_finite, math.inf)
    # The means of the ends enclose that of the value; in a single row they may stand the other way round.
    spans = pd.DataFrame(columns).where(ends["value"].notna())
    return Measured(spans["value"], spans["low"], spans["high"])


def read_bounds(rows: pd.DataFrame, column: str) -> Measured:
    """A column of a frame with its ends, which are the value itself where it is known."""
    value = _as_floats(rows[column])
    ends = _BOUNDS.get(column, (f"{column}_low", f"{column}_high"))
    if set(ends) <= set(rows.columns):
        low, high = (_as_floats(rows[end]) for end in ends)
        # A count without an upper end has a low one alone.
        high = high.fillna(low.where(low.isna(), math.inf)).fillna(value)
        low = low.fillna(value)
    elif f"{column}_source" in rows:
        # A frame without ends says only which counts are estimates: they may be off as far as any estimate.
        is_estimate = (rows[f"{column}_source"] == "estimated").fillna(False)
        low = value.where(~is_estimate, value * PRIOR.low / PRIOR.mid)
        # Reasoning may be among output tokens, as much as there can be.
        factor = math.inf if column == "output_tokens" else PRIOR.high / PRIOR.mid
        high = value.where(~is_estimate, value * factor)
    else:
        low = high = value
    # An end that rounding put on the other side of the value would be none.
    low, high = (pd.Series(ends, index=rows.index) for ends in (np.minimum(low, value), np.maximum(high, value)))
    return Measured(value, low, high)


def _prompts(rows: pd.DataFrame) -> pd.Series[str]:
    """What tells the prompts of calls apart, also of those outside of experiments."""
    prompts = rows["prompt_id"].astype("string")
    prompts = prompts.fillna(rows["prompt_hash"].astype("string")) if "prompt_hash" in rows else prompts
    return prompts.fillna("")


def _as_floats(column: pd.Series[Any]) -> pd.Series[float]:
    """The numbers of a column, NaN where missing."""
    return pd.Series(column.to_numpy(dtype=float, na_value=math.nan), index=column.index)
