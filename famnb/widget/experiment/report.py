"""The report of an experiment as one HTML page: its findings, figures, plan, sample answers, failures and prices."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pandas as pd

from famnb import plot
from famnb.errors import LedgerError
from famnb.experiment.comparison import to_records
from famnb.experiment.experiment import BaseExperiment
from famnb.experiment.metrics import SCORE_PREFIX, find_metric, score_columns
from famnb.experiment.narrative import format_difference, format_p
from famnb.experiment.plan import model_of
from famnb.experiment.resume import ANSWERED, failures
from famnb.experiment.shared import share
from famnb.experiment.summary import (
    MAX_NOTES,
    Summary,
    drop_warmups,
    format_costs,
    sum_costs,
)
from famnb.experiment.variants import TARGET_FIELDS, Variant
from famnb.formatting import (
    format_count,
    format_level,
    shorten,
)
from famnb.record import price_book, prices
from famnb.widget.experiment.report_page import facts_html, figure_html, table_html
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.page import PageSection, page_html, write_page
from famnb.widget.html.sanitize import SafeHtml

# With these limits the page of an experiment of any size opens at once; the ledger has everything.
MAX_PROMPTS = 200
"""Prompts that are listed; of more it is said how many."""
MAX_SAMPLES = 3
"""Prompts whose answers are shown."""
MAX_FAILURES = 50
"""Failed calls that are listed; of more it is said how many."""
MAX_TITLE_CHARS = 90
"""Characters of a prompt in the title of its answers: about a line."""
MAX_COLUMNS = 6
"""Columns of figures beside each other; a table of more would be cut off on paper."""

_PARAGRAPH = SafeHtml("<p>{}</p>")
_SOFT = SafeHtml('<p class="soft">{}</p>')
_ITEM = SafeHtml("<li>{}</li>")
_LIST = SafeHtml("<ul>{}</ul>")
_FINDINGS = SafeHtml("<ul class=lines>{}</ul>")
_NOTHING = SafeHtml("<p class=soft>There is nothing to compare.</p>")
_NOTES = SafeHtml("<ul class=notes>{}</ul>")
_HEADING = SafeHtml("<h3>{}</h3>{}")
_WIDE = SafeHtml("<div class=wide>{}</div>")
_HEAD = SafeHtml("<p>Experiment report · {written_at}</p><h1>{name}</h1>{banner}{verdict}{facts}")
_VERDICT = SafeHtml('<ul class="lines verdict">{}</ul>')
_SIMULATED = SafeHtml(
    '<p class="banner"><strong>Simulated.</strong> These calls were answered by a simulated engine: texts and '
    "timings are made up, nothing was billed, and no model can be judged by them.</p>"
)
_PROMPTS = SafeHtml("<details><summary>Prompts</summary>{}{}</details>")
_SAMPLE = SafeHtml('<details{open}><summary>{title}</summary><div class="answers">{answers}</div></details>')
_ANSWER = SafeHtml('<div class="answer"><h4>{}</h4>{}</div>')


def save(experiment: BaseExperiment, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write an experiment's report; returns where it is. `options` are those of `Experiment.summary`.

    Raises OSError, InvalidRequest for options that the experiment has not, LedgerError if the ledger cannot be read.
    """
    return write_page(path, report_html(experiment, **options))


def report_html(experiment: BaseExperiment, **options: Any) -> SafeHtml:
    """An experiment's report as one HTML document; `options` are those of `Experiment.summary`."""
    frame = experiment.frame()
    summary = experiment.summary(**options)
    rows = drop_warmups(frame)
    answered = rows[rows["status"].isin(ANSWERED)]
    sections = [
        PageSection("What it shows", (SafeHtml() if answered.empty else _forest(summary)) + _findings(summary)),
        PageSection("Figures of each variant", _variant_figures(summary)),
        PageSection("Pictures", SafeHtml().join(_pictures(rows, summary, options))),
        PageSection("Answers", _sample_answers(experiment, answered, summary.primary)),
        PageSection("Plan and settings", _setup(experiment)),
        PageSection("Failures", _failures(rows)),
        PageSection("Prices", _prices(experiment)),
        PageSection("How to read it", _methods(summary)),
    ]
    written_at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    # Without user names and passwords, which a URL may hold.
    hosts = sorted({urlsplit(url).netloc.rpartition("@")[2] for url in frame["url"].dropna()})
    return page_html(
        experiment.name,
        _head(experiment, summary, frame, written_at),
        [section for section in sections if section.html],
        foot=f"Written by famnb {version('famnb')} on {written_at}; answered by {', '.join(hosts) or 'nobody yet'}.",
        data=share(experiment),
    )


# What it shows


def _head(experiment: BaseExperiment, summary: Summary, frame: pd.DataFrame, written_at: str) -> SafeHtml:
    """The title, whether answers are simulated, the trade-off, and the figures that readers ask for first."""
    days = sorted({f"{started_at:%Y-%m-%d}" for started_at in frame["started_at"].dropna()})
    warm_ups = ", warm-ups included" if experiment.warmup else ""
    facts = [
        (f"calls answered{warm_ups}", f"{int(frame['status'].isin(ANSWERED).sum()):,} of {len(frame):,}"),
        ("failed", format_count(int(failures(frame).sum()))),
        ("prompts", format_count(len(experiment.prompts))),
        ("variants", format_count(len(experiment.variants))),
        (f"cost{warm_ups}", format_costs(sum_costs(frame))),
        ("made on", " – ".join(dict.fromkeys((days[0], days[-1]))) if days else "not yet"),
    ]
    is_simulated = bool(frame["simulated"].fillna(False).any())
    return _HEAD.format(
        written_at=written_at,
        name=experiment.name,
        banner=_SIMULATED if is_simulated else "",
        verdict=_verdict(summary),
        facts=facts_html(facts),
    )


def _verdict(summary: Summary) -> SafeHtml:
    """The trade-off in a sentence, as a table, and with what is to be kept in mind."""
    headline = _VERDICT.format(_items([summary.headline]))
    head, rows = summary.trade_offs()
    if summary.is_one_prompt or not rows:
        return headline
    return (
        headline
        + table_html(head, rows, left=head.index("metric") + 1)
        + _NOTES.format(_items(summary.notes[:MAX_NOTES]))
    )


def _findings(summary: Summary) -> SafeHtml:
    """What is found, and what to keep in mind beside what stands above."""
    findings = _FINDINGS.format(_items(summary.findings)) if summary.findings else _NOTHING
    return findings + _NOTES.format(_items(summary.notes[0 if summary.is_one_prompt else MAX_NOTES :]))


def _variant_figures(summary: Summary) -> SafeHtml:
    # The first column names the variants; a table of more columns than this would not fit on paper.
    names, *columns = summary.text_columns().items()
    tables = SafeHtml()
    for start in range(0, len(columns), MAX_COLUMNS):
        head, cells = zip(names, *columns[start : start + MAX_COLUMNS], strict=True)
        tables += table_html(head, zip(*cells, strict=True))
    return tables + _SOFT.format(summary.legend()) + _pairs(summary)


def _pairs(summary: Summary) -> SafeHtml:
    """All comparisons of two variants."""
    if summary.pairs.empty:
        return SafeHtml()
    rows: list[list[str]] = []
    previous = ("", "")
    for row in to_records(summary.pairs):
        pair = (row["first"], row["second"])
        title = find_metric(row["metric"]).title
        rows.append(
            [
                # Each pair is named once, above the rows of its metrics.
                "" if pair == previous else f"{row['second']} − {row['first']}",
                f"{title} (primary)" if row["primary"] else title,
                row["statistic"],
                f"{row['n']:,}",
                format_difference(row),
                "–" if math.isnan(row["p_adjusted"]) else format_p(row["p_adjusted"]),
                "yes" if row["clear"] else "no",
            ]
        )
        previous = pair
    interval = f"difference ({format_level(summary.level)} interval)"
    head = ("variants", "metric", "statistic", "pairs", interval, "p (Holm)", "clear")
    return _HEADING.format("Compared over the same prompts", table_html(head, rows, left=3))


def _forest(summary: Summary) -> SafeHtml:
    """All metrics against the baseline, if anything was compared."""
    if not (summary.pairs["baseline"] & (summary.pairs["n"] > 0)).any():
        return SafeHtml()
    return figure_html(partial(plot.differences, summary))


def _pictures(rows: pd.DataFrame, summary: Summary, options: Mapping[str, Any]) -> Iterator[SafeHtml]:
    """The figures that have something to show."""
    answered = rows[rows["status"].isin(ANSWERED)]
    if answered.empty:
        return
    scores = score_columns(answered)
    # In a score and in costs, failed calls count as the summary has them.
    compared = answered if options.get("failed") == "drop" else rows
    if answered["cost_usd"].notna().any():
        score = summary.primary if summary.primary in scores else next(iter(scores), None)
        yield figure_html(partial(plot.pareto, compared, by="variant", score=score))
    metric = summary.primary if summary.primary in answered else "e2e_s"
    yield figure_html(partial(plot.compare, compared, by="variant", metric=metric, baseline=summary.baseline))
    if failures(rows).any():
        yield figure_html(partial(plot.success, rows, by="variant"))
    yield figure_html(partial(plot.latency, answered, by="variant", metric="ttft_s"))
    if answered["cost_usd"].notna().any():
        yield figure_html(partial(plot.cost, rows, by="variant"))


# How it was set up


def _setup(experiment: BaseExperiment) -> SafeHtml:
    """What was planned: counts, variants, shared fields and prompts."""
    warmup = f", after {format_count(experiment.warmup, 'warm-up call')} of each variant" if experiment.warmup else ""
    plan = (
        f"{format_count(len(experiment.prompts), 'prompt')} × {format_count(len(experiment.variants), 'variant')} × "
        f"{format_count(experiment.repeats, 'repeat')}{warmup}: {format_count(len(experiment.cells), 'call')}. "
        f"Variants alternate within each prompt, in an order that seed {experiment.seed} decides."
    )
    requests = {cell.variant.label: cell.request for cell in experiment.cells}
    rows = [
        [
            variant.label,
            requests[variant.label].endpoint,
            model_of(requests[variant.label]),
            _format_fields(_own_fields(variant)),
        ]
        for variant in experiment.variants
    ]
    variants = table_html(("variant", "endpoint", "model", "own fields"), rows, left=4)
    shared = SafeHtml()
    if experiment.fields:
        shared = _HEADING.format("Fields of every request", sanitize.code_block(_format_fields(experiment.fields)))
    return _PARAGRAPH.format(plan) + variants + shared + _prompts(experiment)


def _prompts(experiment: BaseExperiment) -> SafeHtml:
    rows = [[prompt.id, prompt.text] for prompt in experiment.prompts[:MAX_PROMPTS]]
    return _PROMPTS.format(table_html(("id", "prompt"), rows, left=2), _more_note(len(experiment.prompts), MAX_PROMPTS))


def _own_fields(variant: Variant) -> Mapping[str, Any]:
    """A variant's own fields, without those that stand in columns of their own."""
    return {name: value for name, value in variant.fields.items() if name not in TARGET_FIELDS}


def _format_fields(fields: Mapping[str, Any]) -> str:
    """Fields as JSON, on one line if they are few."""
    if not fields:
        return "–"
    return json.dumps(dict(fields), ensure_ascii=False, default=repr, indent=2 if len(fields) > 2 else None)


def _prices(experiment: BaseExperiment) -> SafeHtml:
    """The prices of the models in the plan, with their sources."""
    models = list(dict.fromkeys(model_of(cell.request) for cell in experiment.cells))
    entries = [entry for entry in prices if entry.model in models]
    unpriced = [model for model in models if all(entry.model != model for entry in entries)]
    note = f"No price is known for {', '.join(unpriced)}; their costs are missing."
    table = _WIDE.format(SafeHtml(price_book.price_html(entries)) if entries else "")
    return table + (_SOFT.format(note) if unpriced else SafeHtml())


# What came of it


def _sample_answers(experiment: BaseExperiment, answered: pd.DataFrame, primary: str) -> SafeHtml:
    """The answers of all variants, side by side, to the prompts on which they disagree most."""
    if answered.empty:
        return SafeHtml()
    texts = {prompt.id: prompt.text for prompt in experiment.prompts}
    column = _disagreement_column(answered, primary)
    samples = _find_disagreements(answered, column, list(texts))
    title = find_metric(column).title if column.startswith(SCORE_PREFIX) else "length of the answer"
    differs = bool(samples) and samples[0][2]
    html = _SOFT.format(
        f"The prompts on which variants differ most in the {title}." if differs else f"None differ in the {title}."
    )
    for index, (prompt_id, repeat, _) in enumerate(samples):
        own = answered[(answered["prompt_id"] == prompt_id) & (answered["repeat"] == repeat)]
        answers = SafeHtml().join(
            _ANSWER.format(_name_answer(row, column), _answer_html(experiment, str(row["call_id"])))
            for _, row in own.sort_values("variant").iterrows()
        )
        head = f"{prompt_id} · {shorten(' '.join(texts[prompt_id].split()), MAX_TITLE_CHARS)}"
        html += _SAMPLE.format(open="" if index else " open", title=head, answers=answers)
    return html


def _disagreement_column(answered: pd.DataFrame, primary: str) -> str:
    """What answers are compared by: the primary score, else the first score, else their length."""
    scores = score_columns(answered)
    return primary if primary in scores else next(iter(scores), "text_chars")


def _find_disagreements(answered: pd.DataFrame, column: str, prompts: list[str]) -> list[tuple[str, int, bool]]:
    """Prompts with a repeat of each and whether variants differ in it: the farthest apart first, else in order."""
    values = answered.assign(value=answered[column].astype("Float64").astype(float))
    by_repeat = values.groupby(["prompt_id", "repeat"])["value"]
    spread = (by_repeat.max() - by_repeat.min()).fillna(0.0).rename("spread").reset_index()
    spread["order"] = spread["prompt_id"].map({name: order for order, name in enumerate(prompts)})
    ordered = spread.sort_values(["spread", "order", "repeat"], ascending=[False, True, True], kind="stable")
    chosen = ordered.drop_duplicates("prompt_id").head(MAX_SAMPLES)
    columns = (chosen[name].tolist() for name in ("prompt_id", "repeat", "spread"))
    return [(str(prompt_id), int(repeat), distance > 0) for prompt_id, repeat, distance in zip(*columns, strict=True)]


def _name_answer(row: pd.Series[Any], column: str) -> str:
    """The variant of an answer, with its score if there is one."""
    if not column.startswith(SCORE_PREFIX) or pd.isna(row[column]):
        return str(row["variant"])
    metric = find_metric(column)
    return f"{row['variant']} · {metric.title} {metric.format_value(float(row[column]))}"


def _answer_html(experiment: BaseExperiment, call_id: str) -> SafeHtml:
    with contextlib.suppress(KeyError, LedgerError):
        return SafeHtml(transcript.reply_bundle(experiment.ledger.call(call_id).reply)["text/html"])
    return _SOFT.format(f"{call_id} cannot be read.")


def _failures(rows: pd.DataFrame) -> SafeHtml:
    failed = rows[failures(rows)]
    if failed.empty:
        return _SOFT.format("No call failed.")
    lines = [
        [
            str(row["variant"]),
            str(row["prompt_id"]),
            str(row["repeat"]),
            *("" if pd.isna(row[column]) else str(row[column]) for column in ("http_status", "error", "error_message")),
        ]
        for _, row in failed.head(MAX_FAILURES).iterrows()
    ]
    head = ("variant", "prompt", "repeat", "status", "error", "message")
    return table_html(head, lines, left=len(head)) + _more_note(len(failed), MAX_FAILURES)


def _methods(summary: Summary) -> SafeHtml:
    """How the figures are made."""
    level = format_level(summary.level)
    notes = (
        "All intervals are of more prompts of the same kind: a prompt counts once, whatever its repeats. Of "
        f"{level} of such experiments they hold the truth, unless the notes say otherwise.",
        "Medians and 95th percentiles are of calls and have order-statistic intervals, whatever the distribution. "
        "Means of tokens, costs and scores are over prompts, repeats averaged first, with Student's interval "
        "widened by Hall's for skewed values; shares have Wilson's.",
        "Variants are compared over the prompts that both have: repeats averaged, then second − first, then the "
        "mean over prompts. Shares of calls and 95th percentiles are compared as such; the table names the "
        "statistic.",
        "The primary metric decides and is judged by itself; Holm's adjustment holds for several comparisons of "
        "it, and for all comparisons of the other metrics together. A difference is called clear where that "
        "leaves it so, and where there are pairs enough for a sign test to show one.",
        "Times are measured where the bytes arrive. Costs follow from token counts and the prices above. ≈ marks "
        "what rests on counts that the service did not report: each has a low and a high end, and a difference is "
        "called clear only if it is so at the ends that speak most against it. What is known only within more "
        "than a factor of three is said as what it is at most.",
        "Failed and unanswered calls are in no median and no mean of times and tokens; what failed calls cost is "
        "shared out among the answers, and costs are compared by that, as a ratio. Warm-up calls are in no figure of a "
        "variant. Calls that were stopped or cut off and made again are in no figure at all; famnb.spend counts every "
        "call of the ledger.",
    )
    return _LIST.format(_items(notes))


def _items(texts: Iterable[str]) -> SafeHtml:
    return SafeHtml().join(map(_ITEM.format, texts))


def _more_note(count: int, limit: int) -> SafeHtml:
    """How many of a list were left out by its limit, if any."""
    return _SOFT.format(f"{count - limit:,} more are not listed.") if count > limit else SafeHtml()
