"""Charts of calls over time, as numbers and words for front/parts/chart.js: a few kilobytes, however many calls.

frame ── Timeline: at most MAX_SPANS equal spans ── × Groups: a model or an endpoint each ── four charts
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from famnb.experiment.metrics import read_bounds
from famnb.experiment.resume import ANSWERED
from famnb.formatting import format_count, format_duration, format_sum, format_usd
from famnb.frame.spend import is_unpriced
from famnb.model_colours import group_slots, page_style
from famnb.widget.dashboard.views import ChartView
from famnb.widget.html import sanitize

# As many bars as a chart of 300 pixels has room for.
MAX_SPANS = 40
"""Spans of time that are shown."""
# The colours that can be told apart, and a line more for the rest.
MAX_GROUPS = 7
"""Models that are shown one by one; the others are one group."""
# As many as stand beside one another where the chart is narrowest.
X_TICKS = 3
_STEPS = "1s 2s 5s 10s 15s 30s 1min 2min 5min 10min 15min 30min 1h 2h 3h 6h 12h 1D 2D 7D 14D 28D 91D 364D"
STEPS = [pd.Timedelta(text).to_pytimedelta() for text in _STEPS.split()]
"""How long a span may be."""
Values: TypeAlias = npt.NDArray[Any]
"""A row a span, a column a group; NaN where there is nothing."""


@dataclasses.dataclass(frozen=True)
class Timeline:
    """Equal spans of time, in the zone of this machine."""

    start: datetime
    step: timedelta
    count: int

    @classmethod
    def over(cls, first: datetime, last: datetime) -> Self:
        """The shortest spans of a round length that hold both moments, at most MAX_SPANS of them."""
        first, last = first.astimezone(), last.astimezone()
        # From midnight on, so that spans begin at round times of the clock.
        midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
        for step in STEPS:
            start = midnight + (first - midnight) // step * step
            count = (last - start) // step + 1
            if count <= MAX_SPANS:
                break
        return cls(start, step, min(count, MAX_SPANS))

    def find_spans(self, started_at: pd.Series[pd.Timestamp]) -> npt.NDArray[np.int64]:
        """Return the index of the span of each call."""
        seconds = (started_at - pd.Timestamp(self.start)).dt.total_seconds().to_numpy()
        return np.asarray(np.clip(seconds // self.step.total_seconds(), 0, self.count - 1), np.int64)

    def span(self, index: int) -> tuple[datetime, datetime]:
        """Return the moments between which a span is."""
        start = self.start + index * self.step
        return start, start + self.step

    def words(self) -> tuple[str, ...]:
        """Return each span in words: `10:05 to 10:10`, with the day where it is not today."""
        today = datetime.now().astimezone().date()
        words = []
        for start, end in map(self.span, range(self.count)):
            if self.step >= timedelta(days=1):
                last = end - timedelta(days=1)
                words.append(f"{start:%d %b}" if last.date() <= start.date() else f"{start:%d %b} to {last:%d %b}")
                continue
            form = "%H:%M:%S" if self.step < timedelta(minutes=1) else "%H:%M"
            day = "" if start.date() == today else f"{start:%d %b} "
            words.append(f"{day}{start:{form}} to {end:{form}}")
        return tuple(words)

    def ticks(self) -> tuple[tuple[int, str], ...]:
        """Return a few spans and the times at which they begin."""
        if self.step >= timedelta(days=1):
            form = "%d %b"
        elif self.step < timedelta(minutes=1):
            form = "%H:%M:%S"
        else:
            form = "%H:%M" if self.count * self.step <= timedelta(days=1) else "%d %b %H:%M"
        indexes = range(0, self.count, max(math.ceil(self.count / X_TICKS), 1))
        return tuple((index, f"{self.span(index)[0]:{form}}") for index in indexes)


@dataclasses.dataclass(frozen=True)
class Groups:
    """The models or endpoints of calls, each with its colour."""

    labels: list[str]
    codes: npt.NDArray[np.int64]
    """The group of each call, as an index into `labels`."""
    styles: list[dict[str, Any]]
    """Colour and dashes of each group; no colour is that of text."""

    @classmethod
    def of(cls, frame: pd.DataFrame, by: str) -> Self:
        """The groups of a frame by "model" or "endpoint", the largest ones by name and the rest as one."""
        names = frame[by].fillna("(none)").astype(str)
        # Of names with equally many calls, those that came first: their order of size is that of a stable sort.
        largest = names.value_counts(sort=False).sort_values(ascending=False, kind="stable").index
        # In order of name, so that a model which overtakes another does not change its place.
        labels = sorted(largest if len(largest) <= MAX_GROUPS + 1 else largest[:MAX_GROUPS])
        codes = pd.Index(labels).get_indexer(names)
        styles = [page_style(slot) for slot in group_slots(by, labels)]
        if others := len(largest) - len(labels):
            codes = np.where(codes < 0, len(labels), codes)
            labels.append(f"{others} others")
            styles.append({"colour": "var(--famnb-muted)", "cycle": 0})
        return cls(labels, codes, styles)


def draw_charts(frame: pd.DataFrame, timeline: Timeline, groups: Groups) -> tuple[ChartView, ...]:
    """Return a chart each of spend, calls, latency and errors."""
    shape = timeline.count, len(groups.labels)
    table = _Table(timeline.find_spans(frame["started_at"]) * len(groups.labels) + groups.codes, shape)
    calls = table.sums(np.ones(len(frame)))
    failed = table.sums((frame["status"] == "failed").to_numpy(float))

    def describe_calls(index: int) -> str:
        return format_count(calls[index].sum(), "call")

    def describe_errors(index: int) -> str:
        return f"{int(failed[index].sum()):,} of {describe_calls(index)} failed"

    return (
        _spend_chart(frame, table, groups.labels),
        _make_chart("calls", "bars", calls, groups.labels, format_count, describe_calls),
        _latency_chart(frame, table, groups.labels),
        _make_chart("errors", "bars", failed, groups.labels, format_count, describe_errors),
    )


@dataclasses.dataclass(frozen=True)
class _Table:
    """Where each call lies in a table with a row a span and a column a group."""

    cells: npt.NDArray[np.int64]
    """The cell of each call, counted row by row."""
    shape: tuple[int, int]

    def sums(self, weights: Values) -> Values:
        return np.bincount(self.cells, np.nan_to_num(weights), math.prod(self.shape)).reshape(self.shape)

    def medians(self, values: Values) -> Values:
        medians = pd.Series(values).groupby(self.cells).median().reindex(range(math.prod(self.shape)))
        return medians.to_numpy(float).reshape(self.shape)


def _spend_chart(frame: pd.DataFrame, table: _Table, labels: Sequence[str]) -> ChartView:
    costs, is_unknown, has_counts = read_bounds(frame, "cost_usd"), is_unpriced(frame), frame["output_tokens"].notna()
    value, low, high = (table.sums(ends.to_numpy(float)) for ends in (costs.value, costs.low, costs.high))
    parts = (costs.value.notna(), is_unknown & has_counts, is_unknown & ~has_counts)
    known, unpriced, uncounted = (table.sums(part.to_numpy(float)).astype(int) for part in parts)

    def format_part(cells: Any) -> str:
        gaps = {"unpriced": int(unpriced[cells].sum()), "uncounted": int(uncounted[cells].sum())}
        ends = (float(part[cells].sum()) if known[cells].sum() else math.nan for part in (value, low, high))
        calls = int(known[cells].sum()) + sum(gaps.values())
        return format_sum(*ends, calls=calls, **gaps) if calls else format_usd(0.0)

    def describe(index: int) -> str:
        calls = known[index] + unpriced[index] + uncounted[index]
        # By the rule that the sum is said by; the reasons stand there.
        parts = [
            f"{sanitize.visible(label)} {format_part((index, group)).partition(' (')[0]}"
            for group, label in enumerate(labels)
            if calls[group]
        ]
        return ": ".join(filter(None, [format_part(index), ", ".join(parts)]))

    return _make_chart("spend", "bars", value, [], format_usd, describe)


def _latency_chart(frame: pd.DataFrame, table: _Table, labels: Sequence[str]) -> ChartView:
    times = frame["ttft_s"].astype("Float64").where(frame["status"].isin(ANSWERED)).to_numpy(float, na_value=math.nan)
    medians, counts = table.medians(times), table.sums((~np.isnan(times)).astype(float)).sum(axis=1)

    def describe(index: int) -> str:
        return f"of {format_count(counts[index], 'answer')}" if counts[index] else "no answers"

    format_time = functools.partial(format_duration, brief=True)
    return _make_chart("median time to first token", "lines", medians, labels, format_time, describe)


def _make_chart(
    name: str,
    kind: Literal["bars", "lines"],
    values: Values,
    labels: Sequence[str],
    format_value: Callable[[float], str],
    describe: Callable[[int], str],
) -> ChartView:
    """Return a chart: its values by group, the ticks of its axis, and each span in words, by label if there are any."""

    def describe_groups(index: int) -> str:
        parts = zip(labels, values[index], strict=False)
        words = ", ".join(f"{sanitize.visible(label)} {format_value(value)}" for label, value in parts if value > 0)
        return f": {words}" if words else ""

    heights = values.sum(axis=1) if kind == "bars" else values
    top = _round_up(float(np.nanmax(heights)) if np.isfinite(heights).any() else 0.0)
    # There is no half of one call.
    ticks = [] if not top else [0.0, top] if format_value is format_count and top < 2 else [0.0, top / 2, top]
    return ChartView(
        key=name,
        kind=kind,
        top=top,
        ticks=tuple((value, format_value(value) if value else "0") for value in ticks),
        values=tuple(
            tuple(None if math.isnan(value) else float(f"{value:.4g}") for value in column) for column in values.T
        ),
        words=tuple(f"{describe(index)}{describe_groups(index)}" for index in range(len(values))),
    )


def _round_up(value: float) -> float:
    """Return the least round number that is not below a value, for the end of an axis; its half is round too."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(value))
    # Beyond 10 for a value that rounding made a little more than 10 units.
    return next(unit * factor for factor in (1, 2, 4, 6, 8, 10, 20) if unit * factor >= value * (1 - 1e-9))
