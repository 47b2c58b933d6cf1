"""The summary of an experiment: each variant's figures with intervals, paired comparisons, and both in words.

All intervals are of more prompts of the same kind: a prompt counts once, whatever its repeats.

times                          medians and 95th percentiles of calls, with order-statistic intervals
tokens, costs, scores          means over prompts
success, goodput               shares of calls
comparisons                    paired over prompts, see `comparison.py`
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import pandas as pd

from famnb import stats
from famnb.errors import InvalidRequest
from famnb.experiment import narrative
from famnb.experiment.comparison import compare_variants, estimate, judge, number_prompts, to_records
from famnb.experiment.metrics import (
    COST,
    COST_PER_CALL,
    COST_PER_RIGHT,
    GOODPUT,
    MEDIAN,
    P95,
    SCORE_PREFIX,
    SUCCESS,
    Failed,
    Margin,
    Measured,
    Metric,
    check_margins,
    check_slo,
    choose_metrics,
    default_metrics,
    find_metric,
    measure,
    read_bounds,
    score_columns,
)
from famnb.experiment.resume import ANSWERED, failures
from famnb.experiment.score import Span
from famnb.formatting import (
    escape_html,
    format_count,
    format_interval,
    format_level,
    format_sum,
    format_table,
    html_paragraphs,
    html_table,
)
from famnb.frame.spend import is_unpriced
from famnb.stats.differences import average_repeats
from famnb.stats.intervals import check_share

TIMES = ("ttft_s", "ttfa_s", "e2e_s")
MAX_COLUMNS = 6
"""Columns of figures beside each other in HTML."""
MAX_NOTES = 3
"""Reservations that stand beside the verdict; more are folded."""
UNKNOWN = "–"
COST_COLUMNS = ("cost_usd", "cost_low_usd", "cost_high_usd")
_ENDS = {"least": "low", "most": "high"}
_MEANS = ("output_tokens", COST, COST_PER_CALL, COST_PER_RIGHT)
"""The metrics of which every variant has a mean besides scores."""
_STEMS = {COST: "cost_per_answer"}
"""What the columns of a metric are called, if not like itself."""


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Summary:
    """The figures of an experiment; warm-up calls are in none of them."""

    table: pd.DataFrame
    """One row a variant, by its label; missing where n carries none.

    planned, completed, incomplete (answers that did not come to an end), failed, left
        calls
    success, goodput (with `slo`), each with _low, _high, _n
        shares of calls, and the calls that they are of
    ttft_s, ttfa_s, e2e_s: each with _median, _low, _high, _n; _p95, _p95_low, _p95_high
        seconds; the 95th percentile where 20 calls or more carry it; n is of calls
    output_tokens, cost_per_answer, cost_per_call, cost_per_right and every score: each with _mean, _low, _high, _n;
    _least, _most
        means over prompts (tokens, USD, the scorer's unit), n is of prompts; least and most: the mean with every
        estimated count at its low and at its high end, equal to the mean where all is known. The three costs are all
        that the calls cost, failed ones included, by answered calls, by calls that were tried and by right answers,
        which the first score of yes and no tells
    cost_usd, cost_low_usd, cost_high_usd, cost_n, unpriced, uncounted
        sums in USD of `cost_n` calls, failed ones included; not in them are answered calls without a price (unpriced)
        and without token counts (uncounted)
    """
    pairs: pd.DataFrame
    """One row a metric and pair of variants; see `famnb.experiment.comparison.judge`."""
    notes: tuple[str, ...]
    """What the figures leave out, and reservations about them."""
    headline: str
    """The trade-off in one sentence of fewer than 30 words."""
    verdict: tuple[str, ...]
    """What each two variants show of the primary metric and how sure that is; how reliably; and at what cost."""
    findings: tuple[str, ...]
    """The verdict, then what the data say of every other metric."""
    methods: tuple[str, ...]
    """How differences are judged."""
    level: float
    """Of every interval by itself; words claim a difference only if it is clear in the sense of `pairs`."""
    baseline: str
    """The variant that the others are compared with."""
    primary: str
    """The metric that decides."""
    exploratory: bool = False
    """Whether the primary metric was chosen after the calls; it is then judged together with all others."""
    look: stats.Look = dataclasses.field(default_factory=stats.Look)
    """Which look at growing data this is, and the level at which it judges."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The notes, the findings, and how differences are judged."""
        return *self.notes, *self.findings, *self.methods

    @property
    def is_one_prompt(self) -> bool:
        """Whether n is 1, which says nothing of another prompt."""
        primary = self.pairs[self.pairs["primary"].astype(bool)]
        return bool(len(primary)) and primary["n"].max() == 1

    def trade_offs(self) -> tuple[list[str], list[list[str]]]:
        """The head and the rows of a table of what each variant gained and lost, as text."""
        return narrative.trade_offs(to_records(self.pairs), level=self.level)

    def text_columns(self) -> dict[str, list[str]]:
        """The figures of every variant as text, by the head of their column; the first column has the variants."""
        table, lines = self.table, to_records(self.table)

        def format_column(metric: str, column: str) -> list[str]:
            """The figure of each variant with its interval."""
            format_value, stem, cells = find_metric(metric).format_value, re.sub("_(mean|median)$", "", column), []
            for line in lines:
                value, low, high = (line[name] for name in (column, f"{stem}_low", f"{stem}_high"))
                interval = stats.Interval(value, low, high, n=0, level=self.level)
                least, most = line.get(f"{stem}_least", 0), line.get(f"{stem}_most", 0)
                factor = most / least if least > 0 else math.inf if most > least else 1.0
                cells.append(UNKNOWN if math.isnan(value) else format_interval(interval, format_value, factor=factor))
            return cells

        answered = zip(table["completed"] + table["incomplete"], table["planned"], strict=True)
        columns = {
            "variant": list(map(str, table.index)),
            "answered": [f"{count:,} of {planned:,}" for count, planned in answered],
            "failed": [f"{count:,}" for count in table["failed"]],
        }
        # Where nothing failed, the column of answers says all.
        if table["failed"].any():
            columns["success rate"] = format_column(SUCCESS, SUCCESS)
        if GOODPUT in table:
            columns["goodput"] = format_column(GOODPUT, GOODPUT)
        means = [str(name).removesuffix("_mean") for name in table if str(name).endswith("_mean")]
        for name in (name for name in means if name.startswith(SCORE_PREFIX)):
            columns[name.removeprefix(SCORE_PREFIX)] = format_column(name, f"{name}_mean")
        columns["cost a call"] = format_column(COST, f"{COST_PER_CALL}_mean")
        # If every call was answered, and every answer is right, it is the same.
        for column, head in (("cost_per_answer", "cost an answer"), (COST_PER_RIGHT, "cost a right answer")):
            if not table[f"{column}_mean"].equals(table[f"{COST_PER_CALL}_mean"]):
                columns[head] = format_column(COST, f"{column}_mean")
        columns["cost"] = [format_costs(line) for line in lines]
        for name, title in (("ttft_s", "first token"), ("e2e_s", "end of answer")):
            columns[f"{title}, median"] = format_column(name, f"{name}_median")
            if table[f"{name}_p95"].notna().any():
                columns[f"{title}, p95"] = format_column(name, f"{name}_p95")
        columns["output tokens"] = format_column("output_tokens", "output_tokens_mean")
        return {head: cells for head, cells in columns.items() if set(cells) != {UNKNOWN}}

    def __repr__(self) -> str:
        if self.is_one_prompt:
            return self.headline
        head, rows = self.trade_offs()
        if rows:
            table = format_table(head, rows, left=head.index("metric") + 1)
        else:
            columns = self.text_columns()
            table = format_table(list(columns), zip(*columns.values(), strict=True))
        more = len(self.lines) - len(self.notes[:MAX_NOTES])
        sentences = f", {format_count(more, 'more sentence')} in .lines" if more else ""
        rest = f"Figures of each variant are in .table{sentences}."
        return "\n".join([self.headline, "", table, "", *self.notes[:MAX_NOTES], rest])

    def _repr_html_(self) -> str:
        verdict = f"<p><strong>{escape_html(self.headline)}</strong></p>"
        if self.is_one_prompt:
            return f"<div>{verdict}</div>"
        head, rows = self.trade_offs()
        # The columns before the metric, and that, name what a line compares.
        trade_offs = html_table(head, rows, left=head.index("metric") + 1) if rows else ""
        legend = (
            "Scores, tokens and costs are means over prompts, failed calls' costs included, times medians and 95th "
            f"percentiles of calls, each with its {format_level(self.level)} interval for more prompts of this kind; "
            "≈ marks what rests on estimated token counts."
        )
        # The first column names the variants; a table of more columns than this would not fit a page.
        names, *columns = self.text_columns().items()
        tables = "".join(
            html_table([head for head, _ in part], zip(*(cells for _, cells in part), strict=True))
            for start in range(0, len(columns), MAX_COLUMNS)
            for part in [[names, *columns[start : start + MAX_COLUMNS]]]
        )
        tables += f'<p style="opacity:0.75;font-size:0.9em">{escape_html(legend)}</p>'
        rest = tables + html_paragraphs(self.lines[len(self.notes[:MAX_NOTES]) :])
        folded = f"<details><summary>Figures of each variant, and all that was found</summary>{rest}</details>"
        return f"<div>{verdict}{trade_offs}{html_paragraphs(self.notes[:MAX_NOTES])}{folded}</div>"


def summary(
    frame: pd.DataFrame,
    *,
    baseline: str | None = None,
    primary: str | None = None,
    metrics: Iterable[str] | None = None,
    slo: Mapping[str, float] | None = None,
    failed: Failed = "zero",
    pairs: Sequence[tuple[str, str]] | None = None,
    level: float = 0.95,
    spans: Mapping[str, Span] | None = None,
    notes: Iterable[str] = (),
    margin: Margin | None = None,
    look: stats.Look | None = None,
    exploratory: bool = False,
) -> Summary:
    """Summarise a frame of `Experiment.frame`; see `Experiment.summary` for the arguments.

    `pairs` are the variants to compare in place of the baseline with every other; `spans` has the lowest and highest
    value of columns of scores; `notes` come before the summary's own; `look` says at which level differences are
    judged, `exploratory` that the primary metric was chosen after the calls. Raises InvalidRequest for what the frame
    has not.
    """
    rows = drop_warmups(frame)
    variants = list_variants(rows)
    level = check_share("level", level)
    first = check_choice("baseline", variants[0] if baseline is None else baseline, variants)
    check_choice("failed", failed, get_args(Failed))
    chosen_pairs = [(first, name) for name in variants if name != first] if pairs is None else list(pairs)
    limits = check_slo(slo, rows)
    names, why = choose_metrics(rows, primary=primary, metrics=metrics, slo=limits)
    scores = score_columns(rows[rows["status"].isin(ANSWERED)])
    tabled = [find_metric(name, spans) for name in (SUCCESS, *([GOODPUT] if limits else []), *scores, *TIMES, *_MEANS)]
    # One that was chosen after the calls is one of all that could have been.
    candidates = default_metrics(rows, limits) if exploratory else []
    judged = [find_metric(name, spans) for name in dict.fromkeys([*names, *candidates])]
    measured = {
        metric: measure(rows, metric, failed=failed, slo=limits) for metric in dict.fromkeys([*tabled, *judged])
    }
    main, this_look = next(iter(names), ""), look or stats.Look(level=level, nominal=level)
    table, mean_cautions = _variant_table(rows, variants, {metric: measured[metric] for metric in tabled}, level)
    found = compare_variants(
        rows,
        {metric: measured[metric] for metric in judged},
        chosen_pairs,
        baseline=first,
        primary=main,
        level=this_look.nominal,
        margins=check_margins(margin, main),
    )
    pair_table = judge(found, this_look.nominal, exploratory=exploratory)
    pair_table = pair_table[pair_table["metric"].isin(names)].reset_index(drop=True)
    compared = to_records(pair_table)
    medians = [find_metric(row["metric"]).title for row in compared if row["statistic"] == MEDIAN]
    reasons = [*mean_cautions] + [
        (find_metric(row["metric"]).title, row["n"], row["caution"]) for row in compared if row["statistic"] != MEDIAN
    ]
    left_out = narrative.reservations(rows, warmups=len(frame) - len(rows), failed=failed, has_scores=bool(scores))
    all_notes = [
        *narrative.timing(rows, compared),
        *narrative.looking(this_look, exploratory=exploratory and bool(compared), primary=main),
        *left_out,
        *notes,
        *narrative.cautions(reasons, list(dict.fromkeys(medians))),
    ]
    # That nothing of it is real comes first.
    all_notes.sort(key=lambda note: not note.startswith("Simulated"))
    verdict, others = narrative.describe_pairs(compared, level=level)
    result = Summary(
        table=table,
        pairs=pair_table,
        notes=tuple(all_notes),
        headline="",
        verdict=tuple(verdict),
        findings=(*verdict, *others),
        methods=tuple(narrative.judging(compared, why, slo=limits, level=level)),
        level=level,
        baseline=first,
        primary=main,
        exploratory=exploratory,
        look=this_look,
    )
    if len(variants) > 1:
        troubles = narrative.troubles(rows, main)
        sentence = narrative.headline(
            compared, troubles, level=level, exploratory=exploratory, failed=failed, has_scores=bool(scores)
        )
    else:
        figures = {head: cells[0] for head, cells in result.text_columns().items()}
        answered = figures.pop("answered")
        facts = [f"{head} {figures[head].partition(' (')[0]}" for head in list(figures)[2:5]]
        sentence = f"{narrative.quote(first)} answered {answered} calls{': ' if facts else ''}{', '.join(facts)}."
    return dataclasses.replace(result, headline=sentence)


def drop_warmups(frame: pd.DataFrame) -> pd.DataFrame:
    """The calls of an experiment's frame that are not warm-ups, `variant` as a categorical column."""
    rows = frame[~frame["warmup"].fillna(False).astype(bool)]
    # A frame that was read back from a file may have lost its categories, which are the order of the variants.
    if not isinstance(rows["variant"].dtype, pd.CategoricalDtype):
        rows = rows.assign(variant=pd.Categorical(rows["variant"], categories=rows["variant"].unique()))
    return rows


def list_variants(rows: pd.DataFrame) -> list[str]:
    """The labels of the variants of `drop_warmups`, in order."""
    return [str(name) for name in rows["variant"].cat.categories]


def check_choice(argument: str, value: str, choices: Sequence[str]) -> str:
    """Return one of a few values. Raises InvalidRequest for any other."""
    if value not in choices:
        raise InvalidRequest(f"{argument}: expected one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def _variant_table(
    rows: pd.DataFrame, variants: Sequence[str], measured: Mapping[Metric, Measured], level: float
) -> tuple[pd.DataFrame, list[tuple[str, int, str]]]:
    """The figures of every variant; and of each mean its metric, n, and what speaks against its interval."""
    cautions: list[tuple[str, int, str]] = []
    lines, prompts = [], number_prompts(rows)
    for name in variants:
        is_variant = rows["variant"] == name
        status, failed = rows["status"][is_variant].astype("string"), int(failures(rows[is_variant]).sum())
        answers = {name: int((status == name).sum()) for name in ANSWERED}
        counts = {"planned": len(status), **answers, "failed": failed}
        line: dict[str, Any] = {**counts, "left": len(status) - failed - sum(answers.values())}
        for metric, values in measured.items():
            part = values.to_frame(is_variant, prompts)
            figure, kind = estimate(metric, part, level=level), metric.figure
            stem = _STEMS.get(metric.name, metric.name)
            line[stem if kind == "share" else f"{stem}_{kind}"] = figure.value
            line |= {f"{stem}_low": figure.low, f"{stem}_high": figure.high, f"{stem}_n": figure.n}
            if kind == "median":
                p95 = stats.percentile(part["value"], P95, clusters=part.index, level=level)
                line |= {f"{stem}_p95": p95.value, f"{stem}_p95_low": p95.low, f"{stem}_p95_high": p95.high}
            if kind == "mean":
                by_prompt = average_repeats(part)
                line |= {f"{stem}_{word}": by_prompt[end].mean() for word, end in _ENDS.items()}
                cautions.append((metric.title, figure.n, figure.caution))
        lines.append(line | sum_costs(rows[is_variant]))
    return pd.DataFrame(lines, index=pd.Index(variants, name="variant")).convert_dtypes(), cautions


def sum_costs(rows: pd.DataFrame) -> dict[str, Any]:
    """What calls have cost, failed ones included: the columns of `Summary.table` from cost_usd on."""
    costs, is_unknown, has_counts = read_bounds(rows, "cost_usd"), is_unpriced(rows), rows["output_tokens"].notna()
    sums = (float(ends.sum(min_count=1)) for ends in (costs.value, costs.low, costs.high))
    return dict(zip(COST_COLUMNS, sums, strict=True)) | {
        "cost_n": int(costs.value.notna().sum()),
        "unpriced": int((is_unknown & has_counts).sum()),
        "uncounted": int((is_unknown & ~has_counts).sum()),
    }


def format_costs(sums: Mapping[str, Any]) -> str:
    """What `sum_costs` returns, as text."""
    gaps = {name: sums[name] for name in ("unpriced", "uncounted")}
    calls = sums["cost_n"] + sum(gaps.values())
    return format_sum(*(sums[name] for name in COST_COLUMNS), calls=calls, **gaps) if calls else UNKNOWN
