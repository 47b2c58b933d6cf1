"""The report of an experiment: what was asked and how, what came of it, and what it cost, as sections of one page.

MERGED: The sections of a report that say how an experiment was set up: plan, settings, prices and what it was made
with.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pandas as pd

from famnb import plot
from famnb.errors import LedgerError
from famnb.experiment import BaseExperiment, Variant
from famnb.experiment.forecast import forecast
from famnb.experiment.forecast_history import read_history
from famnb.experiment.narrative import metric_formatter, metric_name
from famnb.experiment.plan import model_of
from famnb.experiment.resume import ANSWERED, failures
from famnb.experiment.summary import Summary
from famnb.experiment.variants import TARGET_FIELDS
from famnb.formatting import (
    format_count,
    format_duration,
    format_interval,
    format_level,
    format_number,
    format_range,
    format_usd,
)
from famnb.record import price_book, prices
from famnb.widget.experiment.report_page import Section, facts, page, picture, table, write
from famnb.widget.html import sanitize, transcript

PROMPTS = 200
"""Prompts that are listed; of more it is said how many."""
_LIBRARIES = ("famnb", "pandas", "scipy", "matplotlib", "httpx")


def setup(experiment: BaseExperiment) -> str:
    """What was planned: counts, variants, shared fields and prompts."""
    warmup = f", after {format_count(experiment.warmup, 'warm-up call')} of each variant" if experiment.warmup else ""
    plan = (
        f"{format_count(len(experiment.prompts), 'prompt')} × {format_count(len(experiment.variants), 'variant')} × "
        f"{format_count(experiment.repeats, 'repeat')}{warmup}: {format_count(len(experiment.cells), 'call')}. "
        f"Variants alternate within each prompt, in an order that seed {experiment.seed} decides."
    )
    places = {cell.variant.label: cell.request for cell in experiment.cells}
    variants = [
        [variant.label, places[variant.label].endpoint, model_of(places[variant.label]), _fields(_own(variant))]
        for variant in experiment.variants
    ]
    head = ("variant", "endpoint", "model", "own fields")
    shared = (
        f"<h3>Fields of every request</h3>{sanitize.code_block(_fields(experiment.fields))}"
        if experiment.fields
        else ""
    )
    prompts = [[prompt.id, prompt.text] for prompt in experiment.prompts[:PROMPTS]]
    more = len(experiment.prompts) - PROMPTS
    rest = f'<p class="soft">{more:,} more are not listed.</p>' if more > 0 else ""
    listed = f"<details><summary>Prompts</summary>{table(('id', 'prompt'), prompts, left=2)}{rest}</details>"
    return f"<p>{sanitize.escape(plan)}</p>{table(head, variants, left=4)}{shared}{listed}"


def prices_used(experiment: BaseExperiment) -> str:
    """The prices of the models in the plan, with their sources."""
    models = list(dict.fromkeys(model_of(cell.request) for cell in experiment.cells))
    entries = [entry for entry in prices if entry.model in models]
    lost = [model for model in models if all(entry.model != model for entry in entries)]
    unknown = f"No price is known for {', '.join(lost)}; their costs are missing." if lost else ""
    told = f'<p class="soft">{sanitize.escape(unknown)}</p>' if lost else ""
    return f"<div class=wide>{price_book.markup(entries) if entries else ''}</div>{told}"


def environment(frame: pd.DataFrame) -> str:
    """Versions, and which services answered."""
    hosts = {urlsplit(url).netloc.rpartition("@")[2] for url in frame["url"].dropna()}
    engines = sorted(str(engine) for engine in frame["service"].dropna().unique())
    known = [("Python", platform.python_version()), *((name, version(name)) for name in _LIBRARIES)]
    known.append(("system", f"{platform.system()} {platform.machine()}"))
    known.append(("service", ", ".join(sorted(hosts)) or "none called yet"))
    known += [("engine, by its own word", ", ".join(engines))] if engines else []
    return f'<div class="small">{facts(known)}</div>'


def _own(variant: Variant) -> Mapping[str, Any]:
    """A variant's own fields, without what stands in columns of its own."""
    return {name: value for name, value in variant.fields.items() if name not in TARGET_FIELDS}


def _fields(fields: Mapping[str, Any]) -> str:
    return (
        json.dumps(dict(fields), ensure_ascii=False, default=repr, indent=2 if len(fields) > 2 else None)
        if fields
        else "–"
    )


SAMPLES = 3
"""Prompts whose answers are shown."""
FAILURES = 50
"""Failed calls that are listed; of more it is said how many."""


def save(experiment: BaseExperiment, path: str | os.PathLike[str]) -> Path:
    """Write an experiment's report; returns where it is. Raises OSError, LedgerError if the ledger cannot be read."""
    target = Path(path).expanduser()
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: give the path of a file, such as {target / 'report.html'}")
    write(target, composed(experiment))
    return target


def composed(experiment: BaseExperiment) -> str:
    """An experiment's report as one HTML document."""
    frame = experiment.frame()
    found = experiment.summary()
    rows = frame[~frame["warmup"].fillna(False).astype(bool)]
    answered = rows[rows["status"].isin(ANSWERED)]
    sections = [
        Section("What it shows", _findings(found)),
        Section("Figures of each variant", _figures(found)),
        Section("Pictures", "".join(_pictures(answered))),
        Section("Plan and settings", setup(experiment)),
        Section("Forecast and outcome", _outcome(experiment, frame)),
        Section("Answers", "".join(_answers(experiment, answered))),
        Section("Failures", _failures(rows)),
        Section("Prices", prices_used(experiment)),
        Section("How to read it", _methods(found)),
        Section("Made with", environment(frame)),
    ]
    written = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return page(
        experiment.name,
        _head(experiment, frame, answered, written),
        [section for section in sections if section.html],
        f"Written by famnb on {written}. This file is complete in itself: it loads nothing and runs nothing.",
    )


def _head(experiment: BaseExperiment, frame: pd.DataFrame, answered: pd.DataFrame, written: str) -> str:
    """Title, the figures one asks for first, and whether any of it is real."""
    failed = int(failures(frame).sum())
    spent = frame["cost_usd"].sum(min_count=1)
    days = sorted({f"{day:%Y-%m-%d}" for day in frame["started_at"].dropna()})
    known = [
        ("calls answered", f"{int(frame['status'].isin(ANSWERED).sum()):,} of {len(frame):,}"),
        ("failed", f"{failed:,}"),
        ("prompts", f"{len(experiment.prompts):,}"),
        ("variants", f"{len(experiment.variants):,}"),
        ("spent", "not known" if pd.isna(spent) else format_usd(float(spent))),
        ("made on", " – ".join(dict.fromkeys((days[0], days[-1]))) if days else "not yet"),
    ]
    made_up = bool(answered["simulated"].fillna(False).any())
    banner = (
        '<p class="banner"><strong>Simulated.</strong> These calls were answered by a simulated engine: texts and '
        "timings are made up, nothing was billed, and no model can be judged by them.</p>"
    )
    return (
        f"<p>Experiment report · {sanitize.escape(written)}</p><h1>{sanitize.escape(experiment.name)}</h1>"
        f"{facts(known)}{banner if made_up else ''}"
    )


def _findings(found: Summary) -> str:
    lines = "".join(f"<li>{sanitize.escape(line)}</li>" for line in found.findings)
    said = f"<ul class=lines>{lines}</ul>" if lines else "<p class=soft>There is nothing to compare.</p>"
    notes = "".join(f"<li>{sanitize.escape(note)}</li>" for note in found.notes)
    return f"{said}<ul class=notes>{notes}</ul>"


def _figures(found: Summary) -> str:
    head, rows = found.formatted_table()
    note = f'<p class="soft">Times are medians, the rest means, each with its {format_level(found.level)} interval.</p>'
    return f"{table(head, rows)}{note}{_pairs(found)}"


def _pairs(found: Summary) -> str:
    """All paired comparisons."""
    if found.pairs.empty:
        return ""
    rows: list[list[str]] = []
    last = ("", "")
    for row in found.pairs.to_dict("records"):
        written = metric_formatter(row["metric"])
        known = pd.notna(row["low"])
        rows.append(
            [
                "" if last == (row["first"], row["second"]) else f"{row['second']} − {row['first']}",
                metric_name(row["metric"]),
                f"{row['n']:,}",
                written(row["difference"]) if pd.notna(row["difference"]) else "–",
                format_range(row["low"], row["high"], written) if known else "–",
                format_number(row["ratio"]) if pd.notna(row["ratio"]) else "–",
                f"{row['p_adjusted']:.2g}" if pd.notna(row["p_adjusted"]) else "–",
                "yes" if row["clear"] else "no",
            ]
        )
        last = row["first"], row["second"]
    head = ("difference", "of", "pairs", "mean", f"{format_level(found.level)} interval", "ratio", "p (Holm)", "clear")
    return f"<h3>Compared over the same prompts</h3>{table(head, rows, left=2)}"


def _pictures(answered: pd.DataFrame) -> Iterator[str]:
    """The figures that have something to show."""
    if answered.empty:
        return
    frame = answered.assign(prompt=answered["prompt_id"])
    scores = [name for name in frame.columns if str(name).startswith("score_") and frame[name].notna().any()]
    yield picture(partial(plot.latency, frame, by="variant", metric="ttft_s"))
    yield picture(partial(plot.compare, frame, by="variant", metric="e2e_s"))
    if frame["cost_usd"].notna().any():
        most = max(scores, key=lambda name: frame[name].notna().sum(), default=None)
        yield picture(partial(plot.pareto, frame, by="variant", score=most))
        yield picture(partial(plot.cost, frame, by="variant"))


def _outcome(experiment: BaseExperiment, frame: pd.DataFrame) -> str:
    """What calls before this experiment would have foreseen of its answered calls, and what these came to."""
    rows = frame[frame["status"].isin(ANSWERED)]
    if rows.empty:
        return ""
    past = read_history(
        experiment.ledger, {model_of(cell.request) for cell in experiment.cells}, until=rows["started_at"].min()
    )
    others = {cell.key for cell in experiment.cells} - set(rows["cell"])
    foreseen = forecast(experiment.cells, past, done=others, concurrency=1).total
    lines = []
    for told, interval, name in (
        ("input tokens", foreseen.input_tokens, "input_tokens"),
        ("output tokens", foreseen.output_tokens, "output_tokens"),
        ("cost", foreseen.cost_usd, "cost_usd"),
    ):
        written = format_usd if name == "cost_usd" else format_count
        came = rows[name].sum(min_count=1)
        lines.append([told, format_interval(interval, written), "not known" if pd.isna(came) else written(float(came))])
    took = (rows["started_at"] + pd.to_timedelta(rows["e2e_s"].astype(float), unit="s")).max() - rows[
        "started_at"
    ].min()
    lines.append(["from first start to last end", "", format_duration(took.total_seconds())])
    note = (
        f"Of the {len(rows):,} answered calls, warm-ups included. Foreseen by the ledger's calls that are older than "
        f"these ({foreseen.history}), at today's prices."
    )
    return f'{table(("", "foreseen", "came to"), lines)}<p class="soft">{sanitize.escape(note)}</p>'


def _answers(experiment: BaseExperiment, answered: pd.DataFrame) -> Iterator[str]:
    """The answers of all variants to a few prompts."""
    texts = {prompt.id: prompt.text for prompt in experiment.prompts}
    order = list(texts)
    first = answered[answered["repeat"] == answered["repeat"].min()]
    chosen = sorted(first["prompt_id"].unique(), key=order.index)[:SAMPLES]
    for place, prompt_id in enumerate(chosen):
        cards = []
        for _, row in first[first["prompt_id"] == prompt_id].sort_values("variant").iterrows():
            shown = f'<p class="soft">{sanitize.escape(str(row["call_id"]))} cannot be read.</p>'
            with contextlib.suppress(KeyError, LedgerError):
                shown = transcript.reply_bundle(experiment.ledger.call(str(row["call_id"])).reply)["text/html"]
            cards.append(f'<div class="answer"><h4>{sanitize.escape(str(row["variant"]))}</h4>{shown}</div>')
        title = sanitize.escape(f"{prompt_id} · {_beginning(texts[prompt_id])}")
        opened = " open" if place == 0 else ""
        yield f'<details{opened}><summary>{title}</summary><div class="answers">{"".join(cards)}</div></details>'


def _beginning(text: str, limit: int = 90) -> str:
    """A prompt in one line."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _failures(rows: pd.DataFrame) -> str:
    failed = rows[failures(rows)]
    if failed.empty:
        return '<p class="soft">No call failed.</p>'
    lines = [
        [
            str(row["variant"]),
            str(row["prompt_id"]),
            f"{row['repeat']}",
            "" if pd.isna(row["http_status"]) else f"{row['http_status']}",
            "" if pd.isna(row["error"]) else str(row["error"]),
            "" if pd.isna(row["error_message"]) else str(row["error_message"]),
        ]
        for _, row in failed.head(FAILURES).iterrows()
    ]
    head = ("variant", "prompt", "repeat", "status", "error", "message")
    more = f'<p class="soft">{len(failed) - FAILURES:,} more are not listed.</p>' if len(failed) > FAILURES else ""
    return f"{table(head, lines, left=len(head))}{more}"


def _methods(found: Summary) -> str:
    """How the figures are made."""
    level = format_level(found.level)
    notes = (
        f"Medians have order-statistic intervals over calls: of more calls with the same prompts, {level} of such "
        "intervals hold the true median, whatever the distribution.",
        "Means of tokens, costs and scores are over prompts, repeats averaged first, with Student's interval; of yes "
        "and no with Wilson's.",
        "Variants are compared over the prompts that both answered: repeats averaged, then second − first, then the "
        "mean over prompts with Student's interval. Each interval is its comparison's own.",
        "A difference is called clear only where Holm's adjustment for all comparisons of this report leaves it so, "
        "and where there are pairs enough for a sign test to show one.",
        "Times are measured where the bytes arrive. Costs follow from token counts and the prices above; where a count "
        "is estimated, the cost has a low and a high end.",
        "Failed and unanswered calls are in no median and no mean; what is known to be spent on them is in the sums. "
        "Warm-up calls are in no figure of a variant.",
    )
    return f"<ul>{''.join(f'<li>{sanitize.escape(note)}</li>' for note in notes)}</ul>"
