"""The summary of an experiment: each variant's figures with intervals, paired comparisons, and both in words.

times                  over calls     medians with order-statistic intervals: of more calls with the same prompts
tokens, costs, scores  over prompts   repeats averaged first, then Student's: of more prompts of the same kind
comparisons            over prompts   paired, see `comparison.py`
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from famnb import stats
from famnb.experiment.comparison import comparable_metrics, compare_variants, score_columns
from famnb.experiment.narrative import findings, metric_formatter, reservations
from famnb.experiment.resume import ANSWERED, failures
from famnb.experiment.score import YES_NO, Span
from famnb.formatting import (
    escape_html,
    format_interval,
    format_level,
    format_range,
    format_table,
    format_usd,
    html_paragraphs,
    html_table,
)

_UNBOUNDED: Span = (-math.inf, math.inf)
TIMES = ("ttft_s", "ttfa_s", "e2e_s")
_COSTS = ("cost_usd", "cost_low_usd", "cost_high_usd")


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Summary:
    """The figures of an experiment; warm-up calls are in none of them."""

    table: pd.DataFrame
    """One row a variant.

    planned, completed, incomplete (answers that did not come to an end), failed, left (calls); for ttft_s, ttfa_s and
    e2e_s the `_median` with `_low`, `_high`, `_n`, and `_p95` where 20 calls or more carry it (s); the means of
    output_tokens, cost_per_call_usd and every score with `_low`, `_high` and `_n` (prompts); cost_usd, cost_low_usd,
    cost_high_usd (USD): the sums of what is known, of `cost_n` calls. Missing where n carries none.
    """
    pairs: pd.DataFrame
    """One row a metric and pair of variants; see `famnb.experiment.comparison.compare_variants`."""
    notes: tuple[str, ...]
    """What the figures leave out, and reservations about the rest."""
    findings: tuple[str, ...]
    """What the data say of each two variants, in plain words."""
    level: float
    """Of every interval by itself; words claim a difference only if all comparisons together leave it clear."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The notes, then the findings."""
        return *self.notes, *self.findings

    def text_table(self) -> tuple[list[str], list[list[str]]]:
        """The head and the rows of the table, formatted as text."""
        scores = [name.removesuffix("_mean") for name in self.table.columns if name.startswith("score_")]
        scores = [name for name in scores if f"{name}_mean" in self.table]
        head = ["variant", "answered", "failed", "first token", "end of answer", "output tokens", "cost a call", "cost"]
        head += [name.removeprefix("score_") for name in scores]
        return head, [self._text_row(str(variant), row, scores) for variant, row in self.table.iterrows()]

    def __repr__(self) -> str:
        head, rows = self.text_table()
        return "\n".join([format_table(head, rows), self._legend(), *self.lines])

    def _repr_html_(self) -> str:
        head, rows = self.text_table()
        legend = f'<p style="opacity:0.75;font-size:0.9em">{escape_html(self._legend())}</p>'
        return f"<div>{html_table(head, rows)}{legend}{html_paragraphs(self.lines)}</div>"

    def _legend(self) -> str:
        return f"Times are medians, the rest means, each with its {format_level(self.level)} interval."

    def _text_row(self, variant: str, row: pd.Series[Any], scores: list[str]) -> list[str]:
        def interval(stem: str, middle: str, metric: str) -> str:
            value, low, high = (
                math.nan if pd.isna(row[f"{stem}_{end}"]) else float(row[f"{stem}_{end}"])
                for end in (middle, "low", "high")
            )
            estimate = stats.Interval(value, low, high, int(row[f"{stem}_n"]), self.level)
            return "–" if math.isnan(value) else format_interval(estimate, metric_formatter(metric))

        spent = "–" if pd.isna(row["cost_usd"]) else format_usd(float(row["cost_usd"]))
        if spent != "–" and row["cost_low_usd"] < row["cost_high_usd"]:
            low, high = float(row["cost_low_usd"]), float(row["cost_high_usd"])
            spent += f" ({format_range(low, high, format_usd)})"
        return [
            variant,
            f"{row['completed'] + row['incomplete']:,} of {row['planned']:,}",
            f"{row['failed']:,}",
            interval("ttft_s", "median", "ttft_s"),
            interval("e2e_s", "median", "e2e_s"),
            interval("output_tokens", "mean", "output_tokens"),
            interval("cost_per_call", "mean", "cost_usd"),
            spent,
            *(interval(name, "mean", name) for name in scores),
        ]


def summary(frame: pd.DataFrame, *, level: float = 0.95, spans: Mapping[str, Span] | None = None) -> Summary:
    """Summarise a frame of `Experiment.frame`; `spans` has the lowest and highest value of columns of scores."""
    rows = frame[~frame["warmup"].fillna(False).astype(bool)]
    # A frame that was read back from a file has lost its categories, which are the order of the variants.
    if not isinstance(rows["variant"].dtype, pd.CategoricalDtype):
        rows = rows.assign(variant=pd.Categorical(rows["variant"], categories=rows["variant"].unique()))
    answered = rows[rows["status"].isin(ANSWERED)]
    variants = [str(name) for name in rows["variant"].cat.categories]
    scores = score_columns(answered)
    table = pd.DataFrame(
        [
            _variant_figures(
                rows[rows["variant"] == name], answered[answered["variant"] == name], scores, level, spans or {}
            )
            for name in variants
        ],
        index=pd.Index(variants, name="variant"),
    ).convert_dtypes()
    pairs = compare_variants(answered, variants, comparable_metrics(answered), level=level)
    notes = tuple(reservations(rows, warmups=len(frame) - len(rows)))
    return Summary(table, pairs, notes, tuple(findings(pairs, variants, level=level)), level)


def _variant_figures(
    rows: pd.DataFrame, answered: pd.DataFrame, scores: list[str], level: float, spans: Mapping[str, Span]
) -> dict[str, Any]:
    """The figures of one variant."""
    status = rows["status"].astype("string")
    row: dict[str, Any] = {"planned": len(rows)}
    row |= {name: int((status == name).sum()) for name in ANSWERED} | {"failed": int(failures(rows).sum())}
    row["left"] = len(rows) - row["completed"] - row["incomplete"] - row["failed"]
    for name in TIMES:
        median = stats.median(answered[name], level=level)
        row |= {f"{name}_median": median.value, f"{name}_low": median.low, f"{name}_high": median.high}
        row[f"{name}_n"] = median.n
        row[f"{name}_p95"] = stats.percentile(answered[name], 0.95, level=level).value
    prompts = answered["prompt_id"]
    for stem, name in (
        ("output_tokens", "output_tokens"),
        ("cost_per_call", "cost_usd"),
        *zip(scores, scores, strict=True),
    ):
        mean = _mean_over_prompts(answered[name], prompts, level, spans.get(name, _UNBOUNDED))
        row |= {f"{stem}_mean": mean.value, f"{stem}_low": mean.low, f"{stem}_high": mean.high, f"{stem}_n": mean.n}
    row |= {name: rows[name].sum(min_count=1) for name in _COSTS}
    row["cost_n"] = int(rows["cost_usd"].notna().sum())
    return row


def _mean_over_prompts(values: pd.Series[Any], prompts: pd.Series[Any], level: float, span: Span) -> stats.Interval:
    """The mean over prompts, repeats averaged."""
    means = values.astype("Float64").groupby(prompts, observed=True).mean().dropna()
    # Of yes and no Wilson's interval, since Student's has no width where all answers are alike, such as 20 of 20.
    if len(means) and means.isin(YES_NO).all() and span in (YES_NO, _UNBOUNDED):
        return stats.proportion(int(means.sum()), len(means), level=level)
    mean = stats.mean(means, level=level)
    low, high = np.clip([mean.low, mean.high], *span)
    return dataclasses.replace(mean, low=float(low), high=float(high))
