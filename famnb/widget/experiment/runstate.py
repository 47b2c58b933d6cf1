"""A run in words: what its live view says while it is under way, and the ordinary output that is left of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from famnb.experiment import Run, RunReport, tables
from famnb.experiment.progress import SIMULATED, Progress
from famnb.record.price import dollars
from famnb.widget.text import markup, transcript
from famnb.widget.text.words import duration

VARIANTS = 12
"""Variants in the table; the others are counted."""
ERRORS = 5
"""Classes of errors that are named."""
_MISSING = "–"


def state(run: Run, *, trouble: str = "", stopping: bool = False) -> dict[str, Any]:
    """What the view draws, all of it text or numbers.

    `bar` has shares of the plan; `facts` are name, value and a small print; `rows` are those of the table under `head`.
    """
    now, report = run.progress, run.report
    head, rows, more = _variants(run)
    share = 100 / max(now.total, 1)
    return {
        "title": markup.visible(report.name),
        "said": _said(now),
        "percent": round(share * now.done, 1),
        "bar": {
            "done": share * (now.before + now.completed),
            "failed": share * now.failed,
            "running": share * now.running,
        },
        "facts": [_spend(now, report), *_times(now)],
        "errors": _errors(run),
        "head": head,
        "rows": rows,
        "more": more,
        "note": SIMULATED if now.simulated else "",
        "trouble": markup.visible(trouble),
        "stopping": stopping,
        "result": "",
    }


def bundle(run: Run, *, trouble: str = "") -> transcript.Bundle:
    """What a run came to, as ordinary notebook output."""
    report = run.report
    head, rows, more = _variants(run)
    broken = f"{type(run.failure).__name__}: {run.failure}" if run.failure is not None else ""
    errors = f"Errors: {_errors(run)}." if run.errors else ""
    notes = [*report.notes, errors]
    said = [
        transcript.Part("head", report.head),
        *(transcript.Part("failure", each) for each in (broken, trouble) if each),
        *(transcript.Part("note", each) for each in notes if each),
    ]
    made = transcript.written(said)
    if not rows:
        return made
    after = transcript.written([transcript.Part("note", more)] if more else [])
    return {
        "text/html": made["text/html"] + tables.markup(head, rows) + (after["text/html"] if more else ""),
        "text/markdown": "\n\n".join([made["text/markdown"], _markdown([head, *rows]), after["text/markdown"]]).strip(),
        "text/plain": "\n\n".join([made["text/plain"], tables.text(head, rows), after["text/plain"]]).strip(),
    }


def _said(now: Progress) -> str:
    words = [f"{now.done:,} of {now.total:,} done"]
    words += [f"{now.before:,} of them before"] if now.before else []
    words += [f"{count:,} {what}" for count, what in ((now.failed, "failed"), (now.cancelled, "stopped")) if count]
    return " · ".join([*words, f"{now.running:,} running"])


def _spend(now: Progress, report: RunReport) -> tuple[str, str, str]:
    answered, small = now.completed, []
    if now.spent_usd is not None:
        value = dollars(now.spent_usd)
        small += [f"plus the unknown cost of {tables.counted(now.unpriced, 'other')}"] if now.unpriced else []
    elif answered:
        value, small = "unknown", ["no call has a known price"]
    else:
        value = dollars(Decimal())
    if report.counted_usd is not None and report.budget_usd is not None:
        small.append(f"{dollars(report.counted_usd)} of the budget of {dollars(report.budget_usd)} counted")
    return "spend", value, "; ".join(small)


def _times(now: Progress) -> list[tuple[str, str, str]]:
    ended = now.completed + now.failed + now.cancelled
    pace = f"{ended / now.elapsed_s:.1f}" if ended and now.elapsed_s else _MISSING
    left = _MISSING if now.eta_s is None else f"about {duration(now.eta_s)}"
    return [("elapsed", duration(now.elapsed_s), ""), ("left", left, ""), ("calls a second", pace, "")]


def _errors(run: Run) -> str:
    found = list(run.errors.items())
    words = [f"{count:,} × {name}" for name, count in found[:ERRORS]]
    return ", ".join([*words, *([f"{len(found) - ERRORS:,} other kinds"] if len(found) > ERRORS else [])])


def _variants(run: Run) -> tuple[list[str], list[list[str]], str]:
    """The table of variants: its head, its rows, and what is to be said of those that are not in it."""
    found = run.variants
    rows = [
        [
            markup.visible(one.label),
            f"{one.answered:,} of {one.planned:,}",
            f"{one.failed:,}",
            _MISSING if one.ttft_s is None else duration(one.ttft_s),
        ]
        for one in found[:VARIANTS]
    ]
    more = f"and {len(found) - VARIANTS:,} more variants" if len(found) > VARIANTS else ""
    return ["variant", "answered", "failed", "median first token"], rows, more


def _markdown(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(markup.literal(' '.join(cell.split())) for cell in row)} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]])
