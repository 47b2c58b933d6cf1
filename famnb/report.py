"""The report of an experiment as one HTML page: its summary, figures, answers, plan, failures and prices."""

from __future__ import annotations

import contextlib
import html
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import matplotlib.figure
import pandas as pd

from famnb import plot
from famnb.errors import LedgerError
from famnb.experiment.experiment import BaseExperiment
from famnb.experiment.metrics import score_columns
from famnb.experiment.plan import model_of
from famnb.experiment.resume import ANSWERED, failures
from famnb.experiment.shared import share
from famnb.experiment.summary import Summary, drop_warmups, format_costs, sum_costs
from famnb.experiment.variants import TARGET_FIELDS
from famnb.formatting import format_count, format_level, html_table, shorten
from famnb.plot.figure import Figure
from famnb.record import price_book, prices
from famnb.secret_patterns import mask_keys
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.page import PageSection, page_html
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
_FIGURE_WIDTH_PX = 820

_PARAGRAPH = SafeHtml("<p>{}</p>")
_SOFT = SafeHtml('<p class="soft">{}</p>')
_ITEM = SafeHtml("<li>{}</li>")
_LIST = SafeHtml("<ul>{}</ul>")
_HEADING = SafeHtml("<h3>{}</h3>{}")
_WIDE = SafeHtml("<div class=wide>{}</div>")
_HEAD = SafeHtml(
    "<p>Experiment report · {written_at}</p><h1>{name}</h1>{banner}"
    '<div class="verdict">{summary}</div><dl class="facts">{facts}</dl>'
)
_FACT = SafeHtml("<div><dt>{}</dt><dd>{}</dd></div>")
_FIGURE = SafeHtml(
    '<figure><picture><source srcset="{dark}" media="screen and (prefers-color-scheme:dark)">'
    f'<img src="{{light}}" alt="{{alt}}" width="{_FIGURE_WIDTH_PX}"></picture></figure>'
)
_SIMULATED = SafeHtml(
    '<p class="banner"><strong>Simulated.</strong> These calls were answered by a simulated engine: texts and '
    "timings are made up, nothing was billed, and no model can be judged by them.</p>"
)
_PROMPTS = SafeHtml("<details><summary>Prompts</summary>{}{}</details>")
_SAMPLE = SafeHtml('<details{open}><summary>{title}</summary><div class="answers">{answers}</div></details>')
_ANSWER = SafeHtml('<div class="answer"><h4>{}</h4>{}</div>')


def report_html(experiment: BaseExperiment, **options: Any) -> SafeHtml:
    """An experiment's report as one HTML document; `options` are those of `Experiment.summary`."""
    frame = experiment.frame()
    summary = experiment.summary(**options)
    rows = drop_warmups(frame)
    sections = [
        PageSection("Answers", _sample_answers(experiment, rows[rows["status"].isin(ANSWERED)])),
        PageSection("Plan and settings", _setup(experiment)),
        PageSection("Failures", _failures(rows)),
        PageSection("Prices", _prices(experiment)),
        PageSection("How to read it", _methods(summary)),
    ]
    sections = [PageSection(section.title, SafeHtml(mask_keys(section.html))) for section in sections]
    plots = PageSection("Plots", SafeHtml().join(map(figure_html, _figures(rows, summary, options))))
    written_at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    # Without user names and passwords, which a URL may hold.
    hosts = sorted({urlsplit(url).netloc.rpartition("@")[2] for url in frame["url"].dropna()})
    return page_html(
        mask_keys(experiment.name),
        SafeHtml(mask_keys(_head(experiment, summary, frame, written_at))),
        [section for section in (plots, *sections) if section.html],
        foot=f"Written by famnb {version('famnb')} on {written_at}; answered by {', '.join(hosts) or 'nobody yet'}.",
        data=share(experiment),
    )


def _head(experiment: BaseExperiment, summary: Summary, frame: pd.DataFrame, written_at: str) -> SafeHtml:
    """The title, whether answers are simulated, the summary, and the figures that readers ask for first."""
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
        summary=SafeHtml(summary._repr_html_()),
        facts=SafeHtml().join(_FACT.format(name, value) for name, value in facts),
    )


def _figures(rows: pd.DataFrame, summary: Summary, options: Mapping[str, Any]) -> Iterator[matplotlib.figure.Figure]:
    """The figures that have something to show."""
    answered = rows[rows["status"].isin(ANSWERED)]
    if answered.empty or summary.is_one_prompt:
        return
    if (summary.pairs["baseline"] & (summary.pairs["n"] > 0)).any():
        yield plot.differences(summary)
    scores = score_columns(answered)
    # In a score and in costs, failed calls count as the summary has them.
    compared = answered if options.get("failed") == "drop" else rows
    if answered["cost_usd"].notna().any():
        score = summary.primary if summary.primary in scores else next(iter(scores), None)
        yield plot.pareto(compared, by="variant", score=score)
    metric = summary.primary if summary.primary in answered else "e2e_s"
    yield plot.compare(compared, by="variant", metric=metric, baseline=summary.baseline)
    if failures(rows).any():
        yield plot.success(rows, by="variant")
    yield plot.latency(answered, by="variant", metric="ttft_s")
    if answered["cost_usd"].notna().any():
        yield plot.cost(rows, by="variant")


def figure_html(figure: matplotlib.figure.Figure) -> SafeHtml:
    """A figure of `famnb.plot`, for light pages and paper, and for dark ones."""
    assert isinstance(figure, Figure)
    # In an attribute nothing is typeset as a formula, and no tag can keep it from being so.
    alt = SafeHtml(html.escape(figure.alt))
    return _FIGURE.format(light=figure.to_uri(), dark=figure.to_uri(dark=True), alt=alt)


def _sample_answers(experiment: BaseExperiment, answered: pd.DataFrame) -> SafeHtml:
    """The answers of all variants to the first prompts, side by side."""
    samples: list[SafeHtml] = []
    for prompt in experiment.prompts[:MAX_SAMPLES]:
        rows = answered[(answered["prompt_id"] == prompt.id) & (answered["repeat"] == 0)].sort_values("variant")
        answers = []
        for name, call_id in zip(rows["variant"], rows["call_id"], strict=True):
            answer = _SOFT.format(f"{call_id} cannot be read.")
            with contextlib.suppress(KeyError, LedgerError):
                answer = SafeHtml(transcript.reply_bundle(experiment.ledger.call(call_id).reply)["text/html"])
            answers.append(_ANSWER.format(name, answer))
        title = f"{prompt.id} · {shorten(' '.join(prompt.text.split()), MAX_TITLE_CHARS)}"
        fold = _SAMPLE.format(open="" if samples else " open", title=title, answers=SafeHtml().join(answers))
        samples += [fold] if answers else []
    return SafeHtml().join(samples)


def _setup(experiment: BaseExperiment) -> SafeHtml:
    """What was planned: counts, variants, shared fields and prompts."""
    warmup = f", after {format_count(experiment.warmup, 'warm-up call')} of each variant" if experiment.warmup else ""
    plan = (
        f"{format_count(len(experiment.prompts), 'prompt')} × {format_count(len(experiment.variants), 'variant')} × "
        f"{format_count(experiment.repeats, 'repeat')}{warmup}: {format_count(len(experiment.cells), 'call')}. "
        f"Variants alternate within each prompt, in an order that seed {experiment.seed} decides."
    )
    requests = {cell.variant.label: cell.request for cell in experiment.cells}
    rows = []
    for variant in experiment.variants:
        request = requests[variant.label]
        fields = {name: value for name, value in variant.fields.items() if name not in TARGET_FIELDS}
        rows.append([variant.label, request.endpoint, model_of(request), _format_fields(fields)])
    variants = _table(("variant", "endpoint", "model", "own fields"), rows)
    shared = SafeHtml()
    if experiment.fields:
        shared = _HEADING.format("Fields of every request", sanitize.code_block(_format_fields(experiment.fields)))
    prompts = _table(("id", "prompt"), [[prompt.id, prompt.text] for prompt in experiment.prompts[:MAX_PROMPTS]])
    folded = _PROMPTS.format(prompts, _more_note(len(experiment.prompts), MAX_PROMPTS))
    return _PARAGRAPH.format(plan) + variants + shared + folded


def _format_fields(fields: Mapping[str, Any]) -> str:
    """Fields as JSON, on one line if they are few."""
    if not fields:
        return "–"
    return json.dumps(dict(fields), ensure_ascii=False, default=repr, indent=2 if len(fields) > 2 else None)


def _failures(rows: pd.DataFrame) -> SafeHtml:
    failed = rows[failures(rows)]
    if failed.empty:
        return _SOFT.format("No call failed.")
    columns = ["variant", "prompt_id", "repeat", "http_status", "error", "error_message"]
    lines = failed.head(MAX_FAILURES)[columns].astype("string").fillna("").to_numpy().tolist()
    head = ("variant", "prompt", "repeat", "status", "error", "message")
    return _table(head, lines) + _more_note(len(failed), MAX_FAILURES)


def _prices(experiment: BaseExperiment) -> SafeHtml:
    """The prices of the models in the plan, with their sources."""
    models = list(dict.fromkeys(model_of(cell.request) for cell in experiment.cells))
    entries = [entry for entry in prices if entry.model in models]
    unpriced = [model for model in models if all(entry.model != model for entry in entries)]
    note = f"No price is known for {', '.join(unpriced)}; their costs are missing."
    table = _WIDE.format(SafeHtml(price_book.price_html(entries)) if entries else "")
    return table + (_SOFT.format(note) if unpriced else SafeHtml())


def _methods(summary: Summary) -> SafeHtml:
    """How the figures are made; what holds for this experiment alone stands among its summary's sentences."""
    level = format_level(summary.level)
    notes = (
        "All intervals are of more prompts of the same kind: a prompt counts once, whatever its repeats. Of "
        f"{level} of such experiments they hold the truth. Those of medians and 95th percentiles are of order "
        "statistics, those of means Student's, widened by Hall's for skewed values, those of shares Wilson's.",
        "Variants are compared over the prompts that both have: repeats averaged, then second − first. A difference is "
        "clear if Holm's adjustment leaves it so, and if there are pairs enough for a sign test to show one.",
        "≈ marks what rests on token counts that the service did not report: each has a low and a high end, and a "
        "difference is clear only if it is so at the ends that speak most against it.",
        "Failed calls are in no time and no count of tokens; what they cost is shared out among the answers. Warm-up "
        "calls are in no figure, nor are calls that were made again; famnb.spend counts every call of the ledger.",
    )
    return _LIST.format(SafeHtml().join(map(_ITEM.format, notes)))


def _table(head: tuple[str, ...], rows: list[list[str]]) -> SafeHtml:
    return SafeHtml(html_table(head, rows, left=len(head)))


def _more_note(count: int, limit: int) -> SafeHtml:
    """How many of a list were left out by its limit, if any."""
    return _SOFT.format(f"{count - limit:,} more are not listed.") if count > limit else SafeHtml()
