"""The live view of a run: what `run(wait=False)` returns shows itself in a notebook, and leaves ordinary output.

Run ── progress, twice a second ── RunView ── front/tools/run.js (bar, figures, Stop)
                                      └ end ── the report, in the view's place
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from IPython import get_ipython

from famnb.experiment.plan import Cell
from famnb.experiment.progress import RunReport
from famnb.experiment.runner import Executor, Run
from famnb.formatting import format_count, format_duration, format_usd
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.runtime.intent import intent
from famnb.widget.runtime.output import Output
from famnb.widget.runtime.tool import RELOADED, BaseTool, keep_ended
from famnb.widget.runtime.view import View
from famnb.widget.tables import FigureView, LineView

# Often enough to follow a run by eye; each update sends the whole state, a few kilobytes.
PERIOD_S = 0.5
"""Between two updates of a view."""
# With these limits the view fits a window, however large the experiment is.
MAX_VARIANTS = 12
"""Variants in the table; the others are counted."""
MAX_ERRORS = 5
"""Classes of errors that are named; the others are counted."""
_MISSING = "–"
_PARAGRAPH = SafeHtml("<p>{}</p>")


class ProgressView(View, frozen=True):
    """How far a run is."""

    title: str
    summary: str
    percent: float
    """Of the plan's cells that are done."""
    done: float
    failed: float
    running: float
    """These as parts of the bar, in percent of the plan."""
    facts: tuple[FigureView, ...]
    errors: str
    head: tuple[str, ...]
    rows: tuple[LineView, ...]
    more: str
    """How many variants have no row."""
    note: str
    is_stopping: bool


class RunStateView(View, frozen=True):
    """A run: its progress, or the report once it is over."""

    progress: ProgressView | None
    result: SafeHtml


def view_progress(run: Run, *, is_stopping: bool = False) -> ProgressView:
    """Return what is shown of a run that is under way."""
    progress = run.progress
    head, rows, more = _variants_table(progress)
    share = 100 / max(progress.planned, 1)
    rate = f"{progress.ended / progress.elapsed_s:.1f}" if progress.ended and progress.elapsed_s else _MISSING
    left = _MISSING if progress.eta_s is None else f"about {format_duration(progress.eta_s, brief=True)}"
    facts = [
        _spend(progress),
        FigureView(key="elapsed", value=format_duration(progress.elapsed_s, brief=True)),
        FigureView(key="left", value=left),
        FigureView(key="calls a second", value=rate),
    ]
    if progress.pause_s:
        pause, reason = format_duration(progress.pause_s, brief=True), sanitize.visible(progress.pause_reason)
        facts.append(FigureView(key="paused for", value=pause, note=reason))
    counts = [
        (progress.skipped, "of them before"),
        (progress.failed, "failed"),
        (progress.cancelled, "stopped"),
    ]
    summary = [f"{progress.done:,} of {progress.planned:,} done"]
    summary += [f"{count:,} {name}" for count, name in counts if count]
    return ProgressView(
        title=sanitize.visible(progress.name),
        summary=" · ".join([*summary, f"{progress.running:,} running"]),
        percent=round(share * progress.done, 1),
        done=share * (progress.skipped + progress.completed),
        failed=share * progress.failed,
        running=share * progress.running,
        facts=tuple(facts),
        errors=_errors(progress),
        head=head,
        rows=rows,
        more=more,
        note=progress.simulation_note,
        is_stopping=is_stopping,
    )


def run_bundle(run: Run, *, trouble: str = "") -> Bundle:
    """The report of a run as ordinary notebook output."""
    report = run.progress
    head, rows, more = _variants_table(report)
    failure = f"{type(run.failure).__name__}: {run.failure}" if run.failure is not None else ""
    errors = f"Errors: {_errors(report)}." if report.errors else ""
    sections = [
        Section("head", report.head),
        *(Section("failure", text) for text in (failure, trouble) if text),
        *(Section("note", text) for text in (*report.notes, errors) if text),
    ]
    before = transcript.render(sections)
    if not rows:
        return before
    after = [transcript.render([Section("note", more)])] if more else []
    table = transcript.table_bundle(head, [[row.key, *row.cells] for row in rows])
    return transcript.join_bundles([before, table, *after])


def _spend(progress: RunReport) -> FigureView:
    notes = []
    if progress.spent_usd is not None:
        value = progress.spent
        notes += [f"plus the unknown cost of {format_count(progress.unpriced, 'other')}"] if progress.unpriced else []
    elif progress.completed:
        value, notes = "unknown", ["no call has a known price"]
    else:
        value = format_usd(Decimal())
    if progress.counted_usd is not None and progress.budget_usd is not None:
        notes.append(f"{format_usd(progress.counted_usd)} of the budget of {format_usd(progress.budget_usd)} counted")
    return FigureView(key="spend", value=value, note="; ".join(notes))


def _errors(progress: RunReport) -> str:
    """The classes of errors with their counts."""
    errors = list(progress.errors.items())
    parts = [f"{count:,} × {name}" for name, count in errors[:MAX_ERRORS]]
    parts += [f"{len(errors) - MAX_ERRORS:,} other kinds"] if len(errors) > MAX_ERRORS else []
    return ", ".join(parts)


def _variants_table(progress: RunReport) -> tuple[tuple[str, ...], tuple[LineView, ...], str]:
    """Return the table of variants: its head, its lines, and how many variants are not in it."""
    variants = progress.variants
    rows = tuple(
        LineView(
            key=sanitize.visible(variant.label),
            cells=(
                f"{variant.answered:,} of {variant.planned:,}",
                f"{variant.failed:,}",
                _MISSING if variant.ttft_s is None else format_duration(variant.ttft_s),
            ),
        )
        for variant in variants[:MAX_VARIANTS]
    )
    more = f"and {len(variants) - MAX_VARIANTS:,} more variants" if len(variants) > MAX_VARIANTS else ""
    return ("variant", "answered", "failed", "median first token"), rows, more


class RunView(BaseTool):
    """One run: its progress, twice a second; Stop; and what it came to, as ordinary output in its place."""

    entry = "tools/run.js"
    note = "A run was under way here when this was saved: `famnb.calls()` has what came of it."

    def __init__(self, run: Run) -> None:
        """Follow a run to its end; closing the view ends that, not the run."""
        self._run = run
        self._outputs: list[Output] = []
        self._is_stopping = False
        self._next_look_s = 0.0
        super().__init__()
        if run.running:
            self.follow([self], on_end=self._end)

    def view(self) -> RunStateView:
        if self._run.running:
            return RunStateView(progress=view_progress(self._run, is_stopping=self._is_stopping), result=SafeHtml())
        # For a page that cannot change its outputs.
        note = _PARAGRAPH.format(RELOADED.format(what="this", tool="the run")) if self.reloaded else ""
        return RunStateView(progress=None, result=SafeHtml(self.saved()["text/html"]) + note)

    @intent(is_urgent=True)
    def stop(self, pane: str = "") -> None:  # noqa: ARG002 - as in other tools; there is one run
        """Stop the run; what has come is kept."""
        self._is_stopping = True
        self.refresh()
        self._run.stop()

    def saved(self) -> Bundle:
        return run_bundle(self._run, trouble=self.error)

    def _ipython_display_(self) -> None:
        """Show the view under the cell that runs now, or the report if the run is over."""
        with self.lock:
            output = Output()
            if not self._run.running:
                output.show(self.saved())
                return
            bundle, _ = self._repr_mimebundle_() or ({}, {})
            output.show(bundle)
            self._outputs.append(output)
            self.refresh()

    # The run as a Source

    @property
    def is_running(self) -> bool:
        """Whether the run is under way."""
        return self._run.running

    def advance(self) -> bool:
        """Have the progress shown again after a while."""
        is_due = time.monotonic() >= self._next_look_s
        self._next_look_s = time.monotonic() + PERIOD_S if is_due else self._next_look_s
        return is_due

    def finish(self) -> None:
        """Do nothing: the view shows the report by itself."""

    def _end(self) -> None:
        """Put the report in the place of the view, which shows it too, for a page that cannot change its outputs."""
        with self.lock:
            if self.comm is None:
                return
            for output in self._outputs:
                if not output.captured:
                    output.replace(self.saved())
        keep_ended(self)


class ShownRun(Run):
    """A run that shows its progress if it is the last value of a notebook's cell."""

    def __init__(self, todo: Sequence[Cell], report: RunReport, executor: Executor, **options: Any) -> None:
        self._view: RunView | None = None
        super().__init__(todo, report, executor, **options)

    @property
    def view(self) -> RunView:
        """The widget that shows this run; it can stand in boxes beside others."""
        if self._view is None:
            self._view = RunView(self)
        return self._view

    def _ipython_display_(self) -> None:
        if not hasattr(get_ipython(), "kernel"):
            raise NotImplementedError  # IPython prints the repr then.
        self.view._ipython_display_()
